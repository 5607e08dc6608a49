package httpd

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// tunnelBytes is the size of the buffer for each direction of a tunnel, and for a live stream. Most of the time it is empty.
const tunnelBytes = 4 << 10

// tunnel switches the client's connection to the protocol that another node has accepted. The library then copies bytes both ways, until one
// side ends or this server begins to drain.
func (s *Server) tunnel(ctx *fasthttp.RequestCtx, id string, p *passage) (*stream, error) {
	far, ok := p.res.Body.(io.ReadWriteCloser)
	if !ok || !wantsSocket(ctx) || s.draining.Load() {
		return nil, errForward
	}
	p.release() // the tunnel reads from the connection
	describePassed(ctx, p.res)
	ctx.Response.Header.Set("Connection", "Upgrade")
	ctx.Response.Header.Set("Upgrade", p.res.Header.Get("Upgrade"))
	t := s.newStream(ctx, id, true, nil, p.end)
	ctx.Hijack(func(near net.Conn) {
		ctx.Request.Header = fasthttp.RequestHeader{} // releases 3 KB that the library would keep
		t.join(near, far)
	})
	t.conn.unserved = sync.OnceFunc(func() { _ = t.Close() }) // the library drops connections that switch during its shutdown
	return t, nil
}

// join copies bytes between the client and another node. The client has stallTimeout to take each part.
func (t *stream) join(near net.Conn, far io.ReadWriteCloser) {
	t.s.sockets.Add(1)
	defer t.s.sockets.Add(-1)
	defer func() { _ = t.Close() }()
	past := time.Unix(1, 0)
	unhook := context.AfterFunc(t.s.live, func() {
		_ = t.conn.SetReadDeadline(past) // the library may have released near
		_ = far.Close()
	})
	defer unhook()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = copyEach(unbuffered{far}, near, make([]byte, tunnelBytes)) // the client has disconnected, or the other node
		_ = far.Close()
	}()
	out := &chunks{t: t, w: near}
	_ = copyEach(unbuffered{out}, far, make([]byte, tunnelBytes)) // likewise
	_ = near.SetReadDeadline(past)
	<-done
}

// unbuffered is a writer that has nothing to flush.
type unbuffered struct{ io.Writer }

// Flush does nothing.
func (unbuffered) Flush() error { return nil }
