package httpd

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// heldBytes is the maximum size of the body of a forwarded request that the server reads before it forwards the request. A Forwarder can
// send such a request again.
const heldBytes = 1 << 20

// hold reads a small body into b. It returns nil if b has the complete body. If the body is larger, or its caller's share of memory is used
// up, hold returns an upload that sends the body while it arrives.
func (s *Server) hold(ctx *fasthttp.RequestCtx, r *api.Request, b *body) (*upload, error) {
	length := int64(ctx.Request.Header.ContentLength())
	stream := ctx.RequestBodyStream()
	switch {
	case length > s.o.MaxBody:
		return nil, errLarge
	case stream == nil:
		return nil, nil
	}
	u := &upload{paced: s.paced(ctx, nil), length: length, most: s.o.MaxBody}
	u.paced.from = &guarded{from: stream, stopped: &u.stopped}
	if length <= heldBytes {
		var err error
		if b.from, err = s.sourceOf(ctx, r); err != nil { // the other node refuses the caller
			b.from = source{shares: s.unknown, caller: r.Remote}
		}
		complete, err := b.read(u.paced, length, heldBytes)
		u.paced.end()
		switch {
		case complete:
			return nil, nil
		case err != nil && !errors.Is(err, errBudget):
			return nil, err
		}
		u.first = b.bytes
	}
	u.sent = int64(len(u.first))
	return u, nil
}

// upload is a body that is sent to another node while it arrives. A transport reads it on another goroutine, even after it has returned the
// answer. After cut it reads nothing more.
type upload struct {
	paced  *pacedReader
	length int64  // of the body; negative: it has chunks
	most   int64  // maximum number of bytes
	onEnd  func() // called when the body has been read completely, with mu held

	complete atomic.Bool // the body has been read completely
	stopped  atomic.Bool

	mu    sync.Mutex
	first []byte // bytes that hold has read
	sent  int64  // number of bytes read from the connection
	err   error  // result of all further reads
}

// Read implements [io.Reader].
func (u *upload) Read(p []byte) (n int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.first) > 0 {
		n = copy(p, u.first)
		if u.first = u.first[n:]; len(u.first) == 0 {
			u.first = nil
		}
		return n, nil
	}
	if u.err != nil {
		return 0, u.err
	}
	n, err = u.paced.Read(p)
	u.sent += int64(n)
	switch {
	case u.length < 0 && u.sent > u.most:
		u.err = errLarge
	case errors.Is(err, io.EOF) && (u.length < 0 || u.sent == u.length):
		u.err = io.EOF
		u.paced.end()
		u.complete.Store(true)
		u.paced.conn.enter(serving)
		u.onEnd()
	case errors.Is(err, errSlow):
		u.err = errSlow
	case err != nil:
		u.err = errChunks
	}
	return n, u.err
}

// Close implements [io.Closer]. A transport may call it at any time.
func (u *upload) Close() error { return nil }

// cut returns when nothing reads the body any more.
func (u *upload) cut() {
	u.stopped.Store(true)
	_ = u.paced.conn.SetReadDeadline(time.Unix(1, 0)) // ends a Read
	u.mu.Lock()
	if u.err == nil {
		u.err = errCut
	}
	u.mu.Unlock()
	u.paced.end()
}

// refusal returns the error of the client's body, or nil. It must follow cut.
func (u *upload) refusal() error {
	var why *refusal
	if errors.As(u.err, &why) {
		return why
	}
	return nil
}

// guarded is a reader that ends when it is stopped. The pacedReader sets its deadline before the check, and cut sets another one after it has
// set stopped. So one of both ends a Read.
type guarded struct {
	from    io.Reader
	stopped *atomic.Bool
}

func (g *guarded) Read(p []byte) (int, error) {
	if g.stopped.Load() {
		return 0, errCut
	}
	return g.from.Read(p)
}
