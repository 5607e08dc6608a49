package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Causes of a [Failure].
var (
	errAddress     = errors.New("the address is not public")
	errNoAddress   = errors.New("the host name has no IP address")
	errRedirects   = errors.New("too many redirects")
	errHeadersLate = errors.New("the response headers took too long")
	errTooLarge    = errors.New("the response is too large")
	errEncoding    = errors.New("the response has a Content-Encoding")
	errEmpty       = errors.New("the response is empty")
)

// statusError is an HTTP status without a picture.
type statusError struct{ code int }

func (e *statusError) Error() string { return "HTTP status " + strconv.Itoa(e.code) }

// get sends a request for target. The caller must close the response's body. public reports whether a public address has answered, which
// Policy.AllowPrivate does not require.
func (f *Fetcher) get(ctx context.Context, target *url.URL) (res *http.Response, public bool, err error) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { public = isPublic(c.Conn) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, false, err
	}
	req.Header.Set("Accept", "image/*, video/*")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "Sightline")
	res, err = f.client.Do(req)
	return res, public, err
}

// publicConn is a connection to a public address.
type publicConn struct{ net.Conn }

func isPublic(c net.Conn) bool {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	_, ok := c.(publicConn)
	return ok
}

// dial connects to address, the "host:port" of a URL that has passed the policy. It resolves the host once and refuses if any of the IP
// addresses is not public. Then it connects to one of the checked addresses.
func (f *Fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, err
	}
	addresses, err := f.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var failures error
	for _, a := range addresses {
		one, cancel := context.WithTimeout(ctx, headerTimeout/3) // a dead address leaves time for the next
		c, err := f.o.Dial(one, network, netip.AddrPortFrom(a, uint16(port)).String(), f.control)
		cancel()
		if err == nil {
			if isPublicAddr(a) {
				c = publicConn{c}
			}
			return c, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
}

// addresses resolves host, or parses it as a literal, and checks all addresses. A name with both a public and a private address indicates
// an attack.
func (f *Fetcher) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if literal, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{literal.Unmap()}, f.check(literal)
	}
	answers, err := f.o.Resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(answers) == 0 {
		return nil, errNoAddress
	}
	const tried = 4 // each attempt may take a connection's time limit
	var addresses []netip.Addr
	for _, a := range answers {
		if err := f.check(a); err != nil {
			return nil, err
		}
		addresses = append(addresses, a.Unmap())
	}
	return addresses[:min(tried, len(addresses))], nil
}

// check refuses an address that is not public.
func (f *Fetcher) check(a netip.Addr) error {
	if f.o.AllowPrivate || isPublicAddr(a) {
		return nil
	}
	return fmt.Errorf("%v: %w", a, errAddress)
}

// control checks the address that the socket actually connects to.
func (f *Fetcher) control(_, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if err := f.check(ap.Addr()); err != nil {
		return err
	}
	return f.o.port(ap.Port())
}

// read writes the body of a final response to to, and closes the body. It raises w.Bytes for a file that is or may be camera raw.
func read(res *http.Response, w *Limits, to io.Writer) (err error) {
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return &statusError{res.StatusCode}
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return errEncoding
	}
	head, err := io.ReadAll(io.LimitReader(res.Body, sniffed))
	if err != nil {
		return err
	}
	if len(head) == 0 {
		return errEmpty
	}
	if w.Kind == raster.Picture && w.Bytes == MaxBytes && raster.SizeLimit(head) > MaxBytes {
		w.Bytes = MaxRawBytes
	}
	if res.ContentLength > w.Bytes {
		return errTooLarge
	}
	if b, ok := to.(*bytes.Buffer); ok && res.ContentLength > 0 {
		b.Grow(int(min(res.ContentLength, 1<<20)) + bytes.MinRead) // the declared length may be false
	}
	if _, err := to.Write(head); err != nil || raster.Recognise(head).Kind&w.Kind == 0 {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(res.Body, w.Bytes+1-int64(len(head))))
	if err == nil && int64(len(head))+n > w.Bytes {
		err = errTooLarge
	}
	return err
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// location returns the target of a redirect, resolved against the redirecting URL.
func location(res *http.Response) (*url.URL, error) {
	values := res.Header.Values("Location")
	if len(values) != 1 {
		return nil, fmt.Errorf("%w: %d Location headers", errRedirects, len(values))
	}
	if err := plain(values[0]); err != nil {
		return nil, err
	}
	next, err := res.Request.URL.Parse(values[0])
	if err != nil {
		return nil, err
	}
	return next, nil
}

// sniffed is the number of bytes of a body from which read recognises the kind of the file.
const sniffed = 1 << 10
