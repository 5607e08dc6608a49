// Package fetch downloads pictures and videos from untrusted URLs, without giving their authors access to the server's network.
//
//	URL ──▶ Parse ──▶ resolve once ──▶ every answer public? ──▶ dial the checked address
//	          ▲        (or literal)                                 │ socket asks again
//	          │                                                     ▼
//	          └───────────── redirect, at most five ◀──────── headers ──▶ body, bounded
//
// The rules follow the OWASP notes on server-side request forgery, with the address blocks of IANA's special-purpose registries. Package
// fetch permits only http and https, no user information, ports 80 and 443, no proxy from the environment, and only global unicast
// addresses. It connects to exactly the address that it has checked. It limits size, time and redirects, and decompresses nothing. Every
// failure has the same text, so that answers reveal nothing about the network behind the server. If a public address has answered, the
// failure also has a reason for the caller; see [Failure.Reason].
//
// The fetcher is not a browser: it has no cookies, no credentials, no cache and no HTTP/2.
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
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// MaxBytes is the maximum number of bytes of a picture, and MaxRawBytes that of camera raw. A TIFF may turn out to be camera raw, so it may
// have as many; the decoder checks its size again.
const (
	MaxBytes    = 20 << 20
	MaxRawBytes = 64 << 20
)

// Other limits of one fetch.
const (
	maxRedirects   = 5
	maxHeaderBytes = 64 << 10
	headerTimeout  = 10 * time.Second // from the start of the fetch to the last response's headers
	timeout        = 30 * time.Second // limit of a whole Fetch
)

// Failure is the error of every failed fetch. Its text is always the same, because it goes to the caller that named the URL. Cause is for
// the operator's log.
type Failure struct {
	cause    error
	answered bool // a public address has answered, and the answer is the cause
	limits   Limits
}

// Error returns the same text for all failures.
func (*Failure) Error() string { return "the picture could not be downloaded" }

// Cause returns the actual error. It may contain private addresses, so log it and never send it to the caller.
func (f *Failure) Cause() error { return f.cause }

// Retryable reports whether a later fetch of the same URL may succeed: no server answered, or the server reported that it failed. A refusal
// by the rules is permanent.
func (f *Failure) Retryable() bool {
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

// Reason returns the cause for the caller, as the end of a sentence about the file. It is empty unless a public address has answered: all
// other causes concern addresses.
func (f *Failure) Reason() string {
	status := new(statusError)
	switch {
	case !f.answered:
		return ""
	case errors.As(f.cause, &status):
		return "its server answered with " + status.Error()
	case errors.Is(f.cause, errTooLarge):
		return fmt.Sprintf("it has more than %d bytes", f.limits.Bytes)
	case errors.Is(f.cause, errEncoding):
		return "its server compresses it with a Content-Encoding"
	case errors.Is(f.cause, errEmpty):
		return "it is empty"
	case errors.Is(f.cause, errRedirects):
		return fmt.Sprintf("its server redirects more than %d times", maxRedirects)
	case errors.Is(f.cause, context.DeadlineExceeded):
		return fmt.Sprintf("its server sent it for longer than %d seconds", int(f.limits.Timeout.Seconds()))
	}
	return "its server ended the transfer early"
}

// TooLarge reports whether the file exceeds the limit in bytes.
func (f *Failure) TooLarge() bool { return errors.Is(f.cause, errTooLarge) }

// Is reports whether target is context.Canceled and the caller abandoned the fetch. Only Cause reveals other reasons.
func (f *Failure) Is(target error) bool {
	return target == context.Canceled && errors.Is(f.cause, context.Canceled)
}

// Options are the fetcher's rules and the functions that it needs from the process. Resolve and Dial are required.
type Options struct {
	Policy

	// Resolve returns the IP addresses of a host name. The fetcher calls it once for each request.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an IP address and port. Before any packet leaves, it must call control with the address that its socket connects to.
	// If control returns an error, Dial fails.
	Dial func(ctx context.Context, network, address string, control func(network, address string) error) (net.Conn, error)
}

// Fetcher downloads pictures. It is safe for concurrent use and keeps no connection open.
type Fetcher struct {
	o      Options
	client *http.Client
}

// New returns a fetcher with the rules o. It panics if Resolve or Dial is nil.
func New(o Options) *Fetcher {
	if o.Resolve == nil || o.Dial == nil {
		panic("fetch: Options without Resolve or Dial")
	}
	f := &Fetcher{o: o}
	f.client = &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // the environment's proxies would connect for us, unchecked
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

// Fetch returns the picture at rawURL. The bytes belong to the caller. A file of another type is cut after its first kilobyte: enough for a
// decoder to recognise it, and useless for reading other data. Every error is a *Failure.
func (f *Fetcher) Fetch(ctx context.Context, rawURL string) ([]byte, error) {
	var picture bytes.Buffer
	if err := f.Download(ctx, rawURL, Limits{raster.Picture, MaxBytes, timeout}, &picture); err != nil {
		return nil, err
	}
	return picture.Bytes(), nil
}

// Limits are the limits of a download.
type Limits struct {
	Kind    raster.Kind   // a file of another kind is cut after its first kilobyte
	Bytes   int64         // maximum size; see [Failure.TooLarge]
	Timeout time.Duration // limit of the whole download
}

// Download writes the file at rawURL to to. Every error is a *Failure.
func (f *Fetcher) Download(ctx context.Context, rawURL string, w Limits, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	if answered, err := f.follow(ctx, rawURL, func(res *http.Response) error { return read(res, &w, to) }); err != nil {
		return &Failure{err, answered, w}
	}
	return nil
}

// follow requests rawURL, follows up to maxRedirects redirects, and calls read with the final response. answered reports whether the error
// is about the response of a public address.
func (f *Fetcher) follow(ctx context.Context, rawURL string, read func(*http.Response) error) (answered bool, err error) {
	headers, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late, cancel := context.WithTimeout(ctx, headerTimeout)
	defer cancel()
	armed := context.AfterFunc(late, func() { stop(errHeadersLate) })
	defer armed()

	target, err := f.o.Parse(rawURL)
	for redirects := 0; ; redirects++ {
		if err != nil {
			return false, err
		}
		res, public, err2 := f.get(headers, target)
		if err2 != nil {
			return false, errors.Join(err2, context.Cause(headers))
		}
		if !isRedirect(res.StatusCode) {
			armed()
			return public, read(res)
		}
		next, err2 := location(res)
		_ = res.Body.Close() // nothing in a redirect's body matters
		if err2 != nil {
			return false, err2
		}
		if redirects >= maxRedirects {
			return public, errRedirects
		}
		target, err = f.o.parse(next)
	}
}
