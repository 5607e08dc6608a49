package httpd

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/valyala/fasthttp"
)

// A stream sends its output in chunks of chunkBytes. A live stream sends its output at each flush, and after liveChunkBytes.
const (
	chunkBytes     = pieceBytes
	liveChunkBytes = 1 << 10
)

// stream is an answer's body that is written while it is sent. The library runs it on the connection's goroutine after the handler has
// returned.
type stream struct {
	s      *Server
	conn   *conn
	id     string
	body   func(io.Writer) error
	gather int                // maximum number of bytes that wait for a flush
	live   bool               // mostly waits for events, so it has no minimum rate
	cancel context.CancelFunc // cancels the call's context
	end    func()             // counts and logs the request; called once, when the stream ends
}

// newStream returns the stream for an answer. body writes the answer.
func (s *Server) newStream(ctx *fasthttp.RequestCtx, id string, live bool, body func(io.Writer) error, cancel context.CancelFunc) *stream {
	t := &stream{s: s, conn: connOf(ctx), id: id, body: body, gather: chunkBytes, live: live, cancel: cancel}
	if live {
		t.gather = liveChunkBytes
	}
	return t
}

// answer makes the stream the body of an answer. A negative length is unknown. An answer to HEAD has no body, so answer closes the stream:
// the library would write the end of the last chunk.
func (t *stream) answer(ctx *fasthttp.RequestCtx, length int) {
	if ctx.IsHead() {
		ctx.Response.Header.SetContentLength(length)
		_ = t.Close()
		return
	}
	ctx.Response.SetBodyStream(t, length)
}

var (
	errCut  = errors.New("the answer was cut off")
	errLeft = errors.New("the client has disconnected, or this server stops")
)

// SupportsBodyWriteTo makes the library call WriteTo instead of Read.
func (t *stream) SupportsBodyWriteTo() bool { return true }

// Read always fails. The library calls WriteTo instead.
func (t *stream) Read([]byte) (int, error) { return 0, errCut }

// WriteTo writes the body. If it returns an error, the library closes the connection before the last chunk, which every client notices.
func (t *stream) WriteTo(w io.Writer) (n int64, err error) {
	out := &chunks{t: t, w: w}
	err = t.write(bufio.NewWriterSize(out, t.gather), func() (int64, error) { return out.sent, out.err })
	return out.sent, err
}

// flusher is a writer that sends its pending output on Flush.
type flusher interface {
	io.Writer
	Flush() error
}

// write writes the body to w. result returns the number of sent bytes, and an error if the rest was not sent.
func (t *stream) write(w flusher, result func() (int64, error)) (err error) {
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
	sent, why := result()
	return t.outcome(err, sent, why)
}

// outcome logs and returns the error of an answer: err of its body, or why the rest was not sent. It is apart from write because it needs 200
// bytes of stack, with which an idle client's stack of 16 KB would not shrink to 8 KB.
func (t *stream) outcome(err error, sent int64, why error) error {
	switch {
	case why != nil: // the client has disconnected or is too slow, or this server stops
		t.s.o.Log.Debug("the client did not read the answer", "id", t.id, "sent", sent, "error", why)
		return why
	case errors.Is(err, errLeft):
		t.s.o.Log.Debug("the call ended before its answer", "id", t.id, "sent", sent)
	case err != nil:
		t.s.o.Log.Error("the answer was cut off", "id", t.id, "sent", sent, "error", err)
	}
	return err
}

// Close ends the request. The library always calls it.
func (t *stream) Close() error {
	t.cancel()
	if t.conn.answer != nil {
		t.conn.answer.Settle(0)
	}
	if t.end != nil {
		t.end()
		t.end = nil
	}
	return nil
}

// chunks writes each chunk with a deadline; see conn.Write.
type chunks struct {
	t    *stream
	w    io.Writer
	sent int64
	err  error // first error; nothing is written after it
}

func (c *chunks) Write(p []byte) (n int, err error) {
	if c.err == nil {
		c.err = c.t.s.ctx.Err()
	}
	if c.err != nil {
		return 0, c.err
	}
	c.t.conn.enter(writing) // move to the back of the waiting list, since the client reads
	n, c.err = c.w.Write(p)
	if f, ok := c.w.(flusher); ok && c.err == nil { // the answer has a length, so the library would gather it
		c.err = f.Flush()
	}
	c.sent += int64(n)
	return n, c.err
}
