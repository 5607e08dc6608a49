package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// The errors behind a [Failure].
var (
	errAddress     = errors.New("the address is not public")
	errNoAddress   = errors.New("the host name has no IP address")
	errRedirects   = errors.New("too many redirects")
	errHeadersLate = errors.New("the response headers took too long")
	errTooLarge    = errors.New("the response is too large")
	errEncoding    = errors.New("the response has a Content-Encoding")
	errEmpty       = errors.New("the response is empty")
)

// statusError is an answer that has no picture.
type statusError struct{ code int }

func (e *statusError) Error() string { return "HTTP status " + strconv.Itoa(e.code) }

// get asks for target. The response's body must be closed.
func (f *Fetcher) get(ctx context.Context, target *url.URL) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "image/*, video/*")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "Sightline")
	return f.client.Do(req)
}

// dial is the transport's way out: address is the "host:port" of a URL that passed the
// policy. It resolves once, refuses when any answer is not public, and connects to one of
// the addresses it has just checked.
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
			return c, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
}

// addresses resolves host, or reads it as a literal, and checks all of the answers: a name
// that has one public and one private address has been made for an attack.
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
	const tried = 4 // each may take the time of a connection
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
	if f.o.AllowPrivate || Public(a) {
		return nil
	}
	return fmt.Errorf("%v: %w", a, errAddress)
}

// control looks once more at what the socket really connects to.
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

// read writes the body of a final response, and closes it.
func read(res *http.Response, w Limits, to io.Writer) (err error) {
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return &statusError{res.StatusCode}
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return errEncoding
	}
	if res.ContentLength > w.Bytes {
		return errTooLarge
	}
	head, err := io.ReadAll(io.LimitReader(res.Body, sniffed))
	if err != nil {
		return err
	}
	if len(head) == 0 {
		return errEmpty
	}
	if b, ok := to.(*bytes.Buffer); ok && res.ContentLength > 0 {
		b.Grow(int(min(res.ContentLength, 1<<20)) + bytes.MinRead) // what is declared is not yet sent
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

// location returns the target of a redirect, resolved against its source.
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

// sniffed is the number of bytes of a body that decide whether it may be the wanted content.
const sniffed = 1 << 10
