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

// If the client asks for a WebSocket, the server sends a live answer over it (RFC 6455). The output of the handler between two flushes is
// one binary message. The server reads and drops messages of the client, except for a close, which ends the call. A page cannot set headers
// on a WebSocket, so the credential and the version of the protocol may be among the protocols that it offers:
//
//	new WebSocket(url, ["sightline.sync", "sync-protocol.2", "authorization." + base64url("Bearer …")])
//
// This API uses no cookies, so pages of any site may connect, as they may send requests.

const (
	socketProtocol = "sightline.sync" // the protocol that the server selects
	socketSecret   = "authorization." // prefix of an offered protocol that contains the credential
	socketVersion  = "sync-protocol." // prefix of an offered protocol that contains the version, for the header versionHeader
	versionHeader  = "Sync-Protocol"
	socketReceives = 4 << 10         // maximum number of bytes of a client's message
	socketFarewell = 2 * time.Second // time for the client to take the last message and to answer it
	socketGathered = liveChunkBytes  // bytes that stay allocated for the next message
	socketMost     = 1 << 20         // maximum size of a message; more output is sent without a flush
	socketBuffers  = liveChunkBytes  // size of each of the library's two buffers
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

// readOffers sets r.Authorization and the version of the protocol to those in the protocols that a WebSocket request offers. Headers of the
// request count first.
func readOffers(ctx *fasthttp.RequestCtx, r *api.Request) {
	if !wantsSocket(ctx) {
		return
	}
	offered := field(ctx.Request.Header.RawHeaders(), "Sec-WebSocket-Protocol")
	if r.Authorization == "" {
		value, err := base64.RawURLEncoding.DecodeString(offer(offered, socketSecret))
		if err == nil {
			r.Authorization = string(value)
		}
	}
	if version := offer(offered, socketVersion); version != "" && r.Header(versionHeader) == "" {
		header := r.Header
		r.Header = func(name string) string {
			if name == versionHeader {
				return version
			}
			return header(name)
		}
	}
}

// offer returns the first of the offered protocols with a prefix, without the prefix. It returns "" if there is none.
func offer(offered, prefix string) string {
	for one := range strings.SplitSeq(offered, ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(one), prefix); ok {
			return text
		}
	}
	return ""
}

// socket switches the connection to the WebSocket protocol. The library then calls t.serve.
func (s *Server) socket(ctx *fasthttp.RequestCtx, id string, t *stream, res *api.Response) (status int, err error) {
	if s.draining.Load() {
		return 0, errBusy
	}
	s.write(ctx, id, &api.Response{Status: res.Status, Header: res.Header})
	serve := func(k *websocket.Conn) {
		ctx.Request.Header = fasthttp.RequestHeader{} // releases 3 KB that the library would keep
		t.serve(k)
	}
	if err := upgrader.Upgrade(ctx, serve); err != nil {
		ctx.Response.Reset()
		return 0, errSocket
	}
	connOf(ctx).unserved = sync.OnceFunc(func() { _ = t.Close() }) // the library drops connections that switch during its shutdown
	return fasthttp.StatusSwitchingProtocols, nil
}

// serve writes the stream as messages. The library calls it on a separate goroutine.
func (t *stream) serve(k *websocket.Conn) {
	t.conn.each = 0 // Flush sets the deadlines of messages
	t.s.sockets.Add(1)
	defer t.s.sockets.Add(-1)
	defer func() { _ = t.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.listen(k)
	}()
	out := &messages{t: t, k: k}
	code := codeWhole
	if err := t.write(out, func() (int64, error) { return out.sent, out.err }); err != nil {
		code = codeCut
	}
	until := t.s.now().Add(socketFarewell)
	_ = k.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), until) // the client may have disconnected
	_ = k.SetReadDeadline(until)
	<-done
}

// listen drops the client's messages and answers its pings. When the client disconnects, listen ends the call.
func (t *stream) listen(k *websocket.Conn) {
	defer t.cancel()
	k.SetReadLimit(socketReceives)
	for {
		if _, _, err := k.NextReader(); err != nil {
			return
		}
	}
}

// messages sends the data written since the last flush as one message. The client has stallTimeout to take it.
type messages struct {
	t       *stream
	k       *websocket.Conn
	pending []byte
	sent    int64
	err     error // first error; nothing is sent after it
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

// Flush sends a message unless nothing is pending.
func (m *messages) Flush() error {
	if m.err != nil || len(m.pending) == 0 {
		return m.err
	}
	if m.err = m.t.s.ctx.Err(); m.err != nil {
		return m.err
	}
	m.t.conn.enter(writing)
	if m.err = m.k.SetWriteDeadline(m.t.s.now().Add(stallTimeout)); m.err == nil {
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
