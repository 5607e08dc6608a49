// Package fetch downloads pictures and videos from strangers' addresses, without giving strangers access to the server's network.
//
//	URL ──▶ Parse ──▶ resolve once ──▶ every answer public? ──▶ dial the checked address
//	          ▲        (or literal)                                 │ socket asks again
//	          │                                                     ▼
//	          └───────────── redirect, at most five ◀──────── headers ──▶ body, bounded
//
// The rules are those of the OWASP notes on server-side request forgery, with the address blocks of IANA's special-purpose registries. It
// permits only http and https, no user information, ports 80 and 443, no proxy from the environment, and only global unicast addresses.
// It connects to the very address that was checked. Size, time and redirects are limited, and nothing is decompressed. Every failure has
// the same text, so that answers reveal nothing about the network behind the server.
//
// It is not a browser: no cookies, no credentials, no cache, no HTTP/2.
package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// MaxBytes is the maximum number of bytes of a picture.
const MaxBytes = 20 << 20

// Other limits of one fetch.
const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	headerTimeout  = 10 * time.Second // from the start of the fetch to the last response's headers
	timeout        = 30 * time.Second // of a whole Fetch
)

// Failure is the error of every fetch that fails. Its text is always the same, because it
// goes to the caller that named the URL; Cause is for the log of the operator.
type Failure struct{ cause error }

// Error returns the one text of all failures.
func (*Failure) Error() string { return "the picture could not be downloaded" }

// Cause returns what really happened. It may name private addresses: log it, never answer it.
func (f *Failure) Cause() error { return f.cause }

// Passing reports whether the same URL may succeed a little later: nothing answered, or the answer was an error of the server. A refusal
// by the rules is permanent.
func (f *Failure) Passing() bool {
	rules := []error{errURL, errAddress, errNoAddress, errRedirects, errTooLarge, errEncoding, errEmpty}
	if slices.ContainsFunc(rules, func(rule error) bool { return errors.Is(f.cause, rule) }) {
		return false
	}
	if status := new(statusError); errors.As(f.cause, &status) {
		switch status.code {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return true
		}
		return status.code >= 500
	}
	if name := new(net.DNSError); errors.As(f.cause, &name) {
		return !name.IsNotFound
	}
	return true
}

// TooLarge reports whether the file has more bytes than were wanted.
func (f *Failure) TooLarge() bool { return errors.Is(f.cause, errTooLarge) }

// Is reports whether target is context.Canceled and the fetch was abandoned by its caller.
// Everything else about a failure stays behind Cause.
func (f *Failure) Is(target error) bool {
	return target == context.Canceled && errors.Is(f.cause, context.Canceled)
}

// Options are the fetcher's rules and what it borrows from the process. Resolve and Dial are required.
type Options struct {
	Policy

	// Resolve returns the addresses of a name. Each request asks once.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an IP address and port. It calls control with the address that its socket connects to, before any packet leaves,
	// and gives up when control returns an error.
	Dial func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
}

// Fetcher downloads pictures. It is safe for concurrent use and keeps no connection open.
type Fetcher struct {
	o      Options
	client *http.Client
}

// New returns a fetcher under the rules o. It panics without Resolve or Dial.
func New(o Options) *Fetcher {
	if o.Resolve == nil || o.Dial == nil {
		panic("fetch: Options without Resolve or Dial")
	}
	f := &Fetcher{o: o}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // the environment's proxies would dial for us, unchecked
			DialContext:            f.dial,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
			TLSHandshakeTimeout:    headerTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return f
}

// Fetch returns the picture behind rawURL, whose bytes belong to the caller. A file of another
// type is cut after its first kilobyte: enough for a decoder to recognise it, and useless for
// reading other things. Every error is a *Failure.
func (f *Fetcher) Fetch(ctx context.Context, rawURL string) ([]byte, error) {
	var picture bytes.Buffer
	if err := f.Download(ctx, rawURL, Limits{raster.Picture, MaxBytes, timeout}, &picture); err != nil {
		return nil, err
	}
	return picture.Bytes(), nil
}

// Limits is the permitted content of a download.
type Limits struct {
	Kind    raster.Kind   // a file of another kind is cut after its first kilobyte
	Bytes   int64         // the most; see [Failure.TooLarge]
	Timeout time.Duration // of the whole download
}

// Download writes the file behind rawURL to to. Every error is a *Failure.
func (f *Fetcher) Download(ctx context.Context, rawURL string, w Limits, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	if err := f.follow(ctx, rawURL, func(res *http.Response) error { return read(res, w, to) }); err != nil {
		return &Failure{err}
	}
	return nil
}

// follow walks from rawURL through the allowed number of redirects to a response, and has it read.
func (f *Fetcher) follow(ctx context.Context, rawURL string, read func(*http.Response) error) error {
	headers, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late, cancel := context.WithTimeout(ctx, headerTimeout)
	defer cancel()
	armed := context.AfterFunc(late, func() { stop(errHeadersLate) })
	defer armed()

	target, err := f.o.Parse(rawURL)
	for redirects := 0; ; redirects++ {
		if err != nil {
			return err
		}
		res, err2 := f.get(headers, target)
		if err2 != nil {
			return errors.Join(err2, context.Cause(headers))
		}
		if !isRedirect(res.StatusCode) {
			armed()
			return read(res)
		}
		next, err2 := location(res)
		_ = res.Body.Close() // nothing in a redirect's body matters
		if err2 != nil {
			return err2
		}
		if redirects >= maxRedirects {
			return errRedirects
		}
		target, err = f.o.parse(next)
	}
}
