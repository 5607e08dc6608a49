package httpd

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// budget is a number of bytes that all requests share. It never waits: who finds it empty
// is refused, since a queue of bodies would be the memory that it is there to save.
type budget struct {
	left atomic.Int64
}

func (b *budget) take(n int64) bool {
	for {
		left := b.left.Load()
		if n > left {
			return false
		}
		if b.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

func (b *budget) give(n int64) { b.left.Add(n) }

const (
	firstBytes = 16 << 10 // of a body's buffer
	trusted    = 1 << 20  // a client that sent as much gets the rest of its declared length at once
	chunkStep  = 16 << 10
)

// admissible decides about a body before it is read, from what its header declares.
func (s *Server) admissible(ctx *fasthttp.RequestCtx) error {
	n := int64(ctx.Request.Header.ContentLength())
	switch {
	case n > s.o.MaxBody:
		return errLarge
	case n == 0 || n < -1:
		return nil
	case s.draining.Load() && n != 0:
		return nil // accepted before the end: it is answered
	case s.o.Full() != nil:
		return errBusy
	case n > s.budget.left.Load():
		return errBudget
	}
	return nil
}

// arrived reports whether a refused request has been read to its end all the same: a body
// that fits the library's first read, or none. Then the connection may carry another, which
// makes refusing under load cheap. After anything ambiguous it never does.
func (s *Server) arrived(ctx *fasthttp.RequestCtx, why error) bool {
	const firstRead = 8 << 10
	if why != errBusy && why != errBudget {
		return false
	}
	n := ctx.Request.Header.ContentLength()
	if n < 0 || n > firstRead {
		return false
	}
	if stream := ctx.RequestBodyStream(); stream != nil {
		got, err := io.Copy(io.Discard, stream)
		return err == nil && got == int64(n)
	}
	return n == 0
}

// body is a request's body and its share of the budget.
type body struct {
	bytes []byte
	taken int64
}

func (s *Server) release(b *body) {
	s.budget.give(b.taken)
	*b = body{}
}

// readBody reads the body under the budget, the size limit, the deadline and the least rate.
// On an error what it has taken is in b all the same.
func (s *Server) readBody(ctx *fasthttp.RequestCtx, b *body) error {
	if err := s.admissible(ctx); err != nil {
		return err
	}
	stream := ctx.RequestBodyStream()
	if stream == nil {
		return nil
	}
	r := paced{conn: ctx.Conn(), from: stream, start: s.now(), o: &s.o}
	defer r.end()
	length := int64(ctx.Request.Header.ContentLength())
	if length < 0 {
		return s.readChunked(&r, b)
	}
	if length == 0 {
		return nil
	}
	if !s.budget.take(length) {
		return errBudget
	}
	b.taken = length
	b.bytes = make([]byte, 0, min(length, firstBytes))
	for int64(len(b.bytes)) < length {
		if len(b.bytes) == cap(b.bytes) {
			size := min(length, 2*int64(cap(b.bytes)))
			if len(b.bytes) >= trusted {
				size = length
			}
			b.bytes = append(make([]byte, 0, size), b.bytes...)
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if err != nil && int64(len(b.bytes)) < length {
			return broken(err)
		}
	}
	return nil
}

// readChunked takes its share of the budget as the body grows.
func (s *Server) readChunked(r *paced, b *body) error {
	for {
		if int64(len(b.bytes)) == b.taken {
			step := min(max(chunkStep, b.taken), s.o.MaxBody+1-b.taken)
			if step <= 0 {
				return errLarge
			}
			if !s.budget.take(step) {
				return errBudget
			}
			b.taken += step
			b.bytes = append(make([]byte, 0, b.taken), b.bytes...)
		}
		n, err := r.Read(b.bytes[len(b.bytes):b.taken])
		b.bytes = b.bytes[:len(b.bytes)+n]
		if int64(len(b.bytes)) > s.o.MaxBody {
			return errLarge
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return broken(err)
		}
	}
}

// broken says what an error in the middle of a body means.
func broken(err error) error {
	if errors.Is(err, errSlow) {
		return errSlow
	}
	return errChunks
}

// paced reads a body whose client must finish before the deadline and, after a grace, have
// sent at the least rate all along.
//
//	bytes ▲             ╱ received: above the line, or cut
//	      │           ╱
//	      │ ________╱──── least rate
//	      └─────────┴──────────────┴──▶ time
//	          grace            deadline
type paced struct {
	conn  net.Conn
	from  io.Reader
	start time.Time
	read  int64
	o     *Options
}

func (p *paced) Read(b []byte) (int, error) {
	allowed := p.o.BodyGrace + time.Duration(float64(p.read)/float64(p.o.MinBodyRate)*float64(time.Second))
	deadline := p.start.Add(min(allowed, p.o.BodyTimeout))
	if err := p.conn.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	n, err := p.from.Read(b)
	p.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !p.o.Now().Before(deadline) {
		return n, errSlow // the library hides a timeout between chunks
	}
	return n, err
}

// end takes the deadline away: it must not strike while the request is handled.
func (p *paced) end() { _ = p.conn.SetReadDeadline(time.Time{}) }
