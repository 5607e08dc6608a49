package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/valyala/fasthttp"
)

// chunkBytes is the size at which a stream sends its output; a live stream sends each piece.
const (
	chunkBytes     = 32 << 10
	liveChunkBytes = 1 << 10
)

// stream is an answer's body that is written while it goes out. The library runs it after the
// handler has returned, in the connection's own goroutine.
type stream struct {
	s      *Server
	conn   *conn
	id     string
	body   func(io.Writer) error
	gather int                // bytes before it sends
	each   time.Duration      // for one piece to be taken
	cancel context.CancelFunc // of the call's context
	end    func()             // counts and logs the request; called once, with the stream's end
}

// newStream is the stream of a mount's answer.
func (s *Server) newStream(ctx *fasthttp.RequestCtx, id string, m *Mount, body func(io.Writer) error, cancel context.CancelFunc) *stream {
	t := &stream{s: s, conn: connOf(ctx), id: id, body: body, gather: chunkBytes, each: writeTimeout, cancel: cancel}
	if m.Live {
		t.gather, t.each = liveChunkBytes, stallTimeout
	}
	return t
}

var errCut = errors.New("the answer was cut off")

// SupportsBodyWriteTo tells the library to call WriteTo.
func (t *stream) SupportsBodyWriteTo() bool { return true }

// Read is never called, since WriteTo is.
func (t *stream) Read([]byte) (int, error) { return 0, errCut }

// WriteTo writes the body. Its error makes the library close the connection before the last
// chunk, which every client notices.
func (t *stream) WriteTo(w io.Writer) (n int64, err error) {
	out := &chunks{t: t, w: w}
	err = t.write(bufio.NewWriterSize(out, t.gather), func() (int64, error) { return out.sent, out.err })
	return out.sent, err
}

// flusher sends what was written when it is told to.
type flusher interface {
	io.Writer
	Flush() error
}

// write writes the body to w. gone returns the number of sent bytes, and the reason why the rest was not taken.
func (t *stream) write(w flusher, gone func() (int64, error)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.s.reportPanic(t.id, p)
			err = errCut
		}
	}()
	err = t.body(w)
	if err == nil {
		err = w.Flush()
	}
	switch sent, why := gone(); {
	case why != nil: // the client has gone, or is too slow, or this server stops
		t.s.o.Log.Debug("the client did not read the answer", "id", t.id, "sent", sent, "error", why)
		return why
	case err != nil:
		t.s.o.Log.Error("the answer was cut off", "id", t.id, "sent", sent, "error", err)
	}
	return err
}

// Close ends the request. The library calls it in any case.
func (t *stream) Close() error {
	t.cancel()
	if t.end != nil {
		t.end()
		t.end = nil
	}
	return nil
}

// chunks writes what is gathered, each piece with a deadline; see conn.Write.
type chunks struct {
	t    *stream
	w    io.Writer
	sent int64
	err  error // the first; there is nothing after it
}

func (c *chunks) Write(p []byte) (n int, err error) {
	if c.err == nil {
		c.err = c.t.s.ctx.Err()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.t.conn.enter(writing) // a client that takes what it gets is not the one that waits longest
	n, c.err = c.w.Write(p)
	c.sent += int64(n)
	return n, c.err
}
