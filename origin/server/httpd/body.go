package httpd

import (
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/shares"
)

const (
	firstBytes      = 16 << 10 // initial size of a body's buffer, which then doubles
	maxStrangerBody = 1 << 20  // maximum size of a body of an anonymous caller: to sign up, to log in, to get a token
)

// source is the budget that a body takes its memory from.
type source struct {
	shares  *shares.Shares
	caller  string
	maxSize int64 // maximum size of one body
}

// admissible decides whether the server accepts a body before reading it, by the caller and the size in the request's head.
func (s *Server) admissible(ctx *fasthttp.RequestCtx, r *api.Request) (source, error) {
	n := int64(ctx.Request.Header.ContentLength())
	switch {
	case n > s.o.MaxBody:
		return source{}, errLarge
	case n == 0 || n < -1:
		return source{}, nil
	}
	from, err := s.sourceOf(ctx, r)
	r.Caller = from.caller
	switch {
	case err != nil:
		return from, err
	case n > from.maxSize:
		return from, errLarge
	case s.draining.Load():
		return from, nil // accepted before draining began, so it is answered
	case s.o.Full(from.caller) != nil:
		return from, errBusy
	case n > 0 && !from.shares.Fits(from.caller, n):
		return from, errBudget
	}
	return from, nil
}

// sourceOf returns the budget for the body of a request, by its caller.
func (s *Server) sourceOf(ctx *fasthttp.RequestCtx, r *api.Request) (source, error) {
	if m := s.mount(r.Path); m != nil {
		if m.Live {
			readOffers(ctx, r)
		}
		caller, err := m.caller(s.ctx, r)
		if err != nil {
			return source{}, &callerError{err}
		}
		if caller != "" {
			return source{s.bodies, caller, s.o.MaxBody}, nil
		}
	}
	return source{s.unknown, r.Remote, min(s.o.MaxBody, maxStrangerBody)}, nil
}

// discardSmallBody reports whether the server has read a refused request to its end: b, and a rest that fits the library's first read. Then
// the connection stays usable, which makes refusing under load cheap. After an ambiguous request discardSmallBody returns false.
func (s *Server) discardSmallBody(ctx *fasthttp.RequestCtx, b *body, why error) bool {
	const firstRead = 8 << 10
	var stranger *callerError
	if !errors.Is(why, api.ErrBusy) && !errors.As(why, &stranger) {
		return false
	}
	n, got := int64(ctx.Request.Header.ContentLength()), int64(len(b.bytes))
	switch {
	case n < -1: // the request has no body
		return true
	case n < 0, n-got > firstRead:
		return false
	}
	if stream := ctx.RequestBodyStream(); stream != nil && got < n {
		rest, err := io.Copy(io.Discard, stream)
		return err == nil && got+rest == n
	}
	return got == n
}

// body is a request's body and its share of the budget.
type body struct {
	bytes    []byte
	from     source
	reserved int64
}

func (s *Server) release(b *body) {
	if b.reserved > 0 {
		b.from.shares.Release(b.from.caller, b.reserved)
	}
	*b = body{}
}

// grow enlarges the buffer, up to length bytes. The budget counts the buffer's size, not the size that the header declares.
func (b *body) grow(length int64) error {
	size := min(length, max(firstBytes, 2*int64(cap(b.bytes))))
	if !b.from.shares.TryAcquire(b.from.caller, size-b.reserved) {
		return errBudget
	}
	b.reserved = size
	b.bytes = append(make([]byte, 0, size), b.bytes...)
	return nil
}

// readBody reads the body within the budget, the size limit, the deadline and the minimum rate. Even after an error, b holds memory of the
// budget, which the caller must release.
func (s *Server) readBody(ctx *fasthttp.RequestCtx, request *api.Request, b *body) (err error) {
	if b.from, err = s.admissible(ctx, request); err != nil {
		return err
	}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	r := s.paced(ctx, stream)
	defer r.end()
	complete, err := b.read(r, int64(ctx.Request.Header.ContentLength()), b.from.maxSize)
	if err == nil && !complete {
		return errLarge
	}
	return err
}

// read appends a body of length bytes to b. If length is negative, the body has chunks, and read stops after one byte more than most. complete
// reports whether b has all bytes.
func (b *body) read(r io.Reader, length, most int64) (complete bool, err error) {
	chunked := length < 0
	if chunked {
		length = most + 1
	}
	for int64(len(b.bytes)) < length {
		if len(b.bytes) == cap(b.bytes) {
			if err := b.grow(length); err != nil {
				return false, err
			}
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case err == nil, int64(len(b.bytes)) == length:
		case errors.Is(err, errSlow):
			return false, errSlow
		case !chunked || !errors.Is(err, io.EOF):
			return false, errChunks
		default:
			return true, nil
		}
	}
	return !chunked, nil
}

// pacedReader reads a body. The client must finish before the deadline and, after a grace period, always keep the minimum rate. Only the time
// in which the server waits for the client counts.
//
//	bytes ▲             ╱ received: above the line, or cut
//	      │           ╱
//	      │ ________╱──── minimum rate
//	      └─────────┴──────────────┴──▶ time
//	          grace            deadline
type pacedReader struct {
	conn   *conn
	from   io.Reader
	extra  time.Duration // additional time, for another node that waits for its client
	waited time.Duration
	read   int64
	now    func() time.Time
}

func (s *Server) paced(ctx *fasthttp.RequestCtx, from io.Reader) *pacedReader {
	p := &pacedReader{conn: connOf(ctx), from: from, now: s.o.Now}
	if p.conn.gate.nodes {
		p.extra = bodyGrace
	}
	return p
}

func (p *pacedReader) Read(b []byte) (int, error) {
	began := p.now()
	allowed := bodyGrace + time.Duration(float64(p.read)/minRate*float64(time.Second))
	deadline := began.Add(min(allowed, bodyTimeout) + p.extra - p.waited)
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := p.from.Read(b)
	ended := p.now()
	p.read += int64(n)
	p.waited += ended.Sub(began)
	if err != nil && !errors.Is(err, io.EOF) && !ended.Before(deadline) {
		return n, errSlow // the library hides a timeout between chunks
	}
	if errors.Is(err, io.EOF) && p.conn.ended {
		err = io.ErrUnexpectedEOF // the library returns the end of the connection between two chunks as the end of the body
	}
	return n, err
}

// end removes the deadline, so that it does not fire while the request is handled.
func (p *pacedReader) end() { _ = p.conn.SetReadDeadline(time.Time{}) }
