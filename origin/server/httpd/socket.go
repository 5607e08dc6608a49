package httpd

import (
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"

	"github.com/sightline-dev/sightline/core/api"
)

// A live answer is sent over a WebSocket (RFC 6455) if the client asks for one. The output of its handler between two flushes is one
// binary message. Messages of the client are read and dropped, except for a close, which ends the call. A page cannot set headers on a
// WebSocket, so the credential may be among the protocols that it offers:
//
//	new WebSocket(url, ["sightline.sync", "authorization." + base64url("Bearer …")])
//
// There are no cookies here, so pages of any site may connect, as they may call.

const (
	socketProtocol = "sightline.sync" // the one that is chosen
	socketSecret   = "authorization." // begins the offer that is a credential
	socketReceives = 4 << 10          // bytes of a message that a client may send
	socketFarewell = 2 * time.Second  // to take the last message and answer it
	socketGathered = liveChunkBytes   // bytes that are kept for the next message
	socketMost     = 1 << 20          // bytes of a message: more is sent without a flush
	socketBuffers  = liveChunkBytes   // of the library, each way
	codeWhole      = websocket.CloseNormalClosure
	codeCut        = websocket.CloseInternalServerErr
)

var upgrader = websocket.FastHTTPUpgrader{
	ReadBufferSize: socketBuffers, WriteBufferSize: socketBuffers,
	Subprotocols: []string{socketProtocol},
	Error:        func(*fasthttp.RequestCtx, int, error) {}, // the mount's handler answers
	CheckOrigin:  func(*fasthttp.RequestCtx) bool { return true },
}

// wantsSocket reports whether a request asks for a WebSocket.
func wantsSocket(ctx *fasthttp.RequestCtx) bool { return websocket.FastHTTPIsWebSocketUpgrade(ctx) }

// authorizeSocket takes the credential of a WebSocket from where a page can put it.
func authorizeSocket(ctx *fasthttp.RequestCtx, r *api.Request) {
	if r.Authorization != "" || !wantsSocket(ctx) {
		return
	}
	offered := field(ctx.Request.Header.RawHeaders(), "Sec-WebSocket-Protocol")
	for offer := range strings.SplitSeq(offered, ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(offer), socketSecret); ok {
			value, err := base64.RawURLEncoding.DecodeString(text)
			if err == nil {
				r.Authorization = string(value)
			}
			return
		}
	}
}

// socket goes over to the WebSocket protocol, in which t is then written.
func (s *Server) socket(ctx *fasthttp.RequestCtx, id string, t *stream, res *api.Response) (status int, err error) {
	if s.draining.Load() {
		return 0, errBusy
	}
	s.write(ctx, id, &api.Response{Status: res.Status, Header: res.Header})
	serve := func(k *websocket.Conn) {
		ctx.Request.Header = fasthttp.RequestHeader{} // 3 KB, which the library would keep
		t.serve(k)
	}
	if err := upgrader.Upgrade(ctx, serve); err != nil {
		ctx.Response.Reset()
		return 0, errSocket
	}
	connOf(ctx).unserved = sync.OnceFunc(func() { _ = t.Close() }) // the library drops those that come as it stops
	return fasthttp.StatusSwitchingProtocols, nil
}

// serve writes the stream as messages. The library has a goroutine for it.
func (t *stream) serve(k *websocket.Conn) {
	t.conn.each = 0 // Flush sets the deadlines of messages
	t.s.sockets.Add(1)
	defer t.s.sockets.Add(-1)
	defer func() { _ = t.Close() }()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		t.listen(k)
	}()
	out := &messages{t: t, k: k}
	code := codeWhole
	if err := t.write(out, func() (int64, error) { return out.sent, out.err }); err != nil {
		code = codeCut
	}
	until := t.s.now().Add(socketFarewell)
	_ = k.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), until) // it may have gone
	_ = k.SetReadDeadline(until)
	<-heard
}

// listen drops what the client says, answers its pings, and ends the call when it leaves.
func (t *stream) listen(k *websocket.Conn) {
	defer t.cancel()
	k.SetReadLimit(socketReceives)
	for {
		if _, _, err := k.NextReader(); err != nil {
			return
		}
	}
}

// messages sends what was written with each flush, within the time of one piece.
type messages struct {
	t       *stream
	k       *websocket.Conn
	pending []byte
	sent    int64
	err     error // the first; there is nothing after it
}

func (m *messages) Write(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	m.pending = append(m.pending, p...)
	if len(m.pending) < socketMost {
		return len(p), nil
	}
	return len(p), m.Flush()
}

// Flush sends a message, if there is anything to say.
func (m *messages) Flush() error {
	if m.err != nil || len(m.pending) == 0 {
		return m.err
	}
	if m.err = m.t.s.ctx.Err(); m.err != nil {
		return m.err
	}
	m.t.conn.enter(writing)
	if m.err = m.k.SetWriteDeadline(m.t.s.now().Add(m.t.each)); m.err == nil {
		m.err = m.k.WriteMessage(websocket.BinaryMessage, m.pending)
	}
	if m.err != nil && !errors.Is(m.err, net.ErrClosed) {
		m.t.cancel()
	}
	m.sent += int64(len(m.pending))
	m.pending = m.pending[:0]
	if cap(m.pending) > socketGathered {
		m.pending = nil
	}
	return m.err
}
