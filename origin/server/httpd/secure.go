package httpd

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
)

// hardenTLS returns a TLS configuration with our rules, whatever else is in it: TLS 1.2 at least, and HTTP/1.1 as the only protocol, since
// the library has no other. A client that checks whether we hold a name, as certificate authorities do, may complete the handshake and
// nothing else.
func hardenTLS(c *tls.Config, now func() time.Time) *tls.Config {
	c = c.Clone()
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	protocols := []string{"http/1.1"}
	if slices.Contains(c.NextProtos, acme.ALPNProto) {
		protocols = append(protocols, acme.ALPNProto)
	}
	c.NextProtos = protocols
	c.Time = now
	return c
}

// handshaking is a connection that shakes hands at its first read, in the goroutine and under
// the deadline of its first header: a stalled handshake is a stalled header.
type handshaking struct {
	*tls.Conn
	raw    net.Conn
	gate   *gate
	shaken atomic.Bool
	failed bool // used by the reading goroutine alone
}

// Read implements net.Conn. A handshake that fails reads like a client that has gone: there
// is nobody who could understand an answer.
func (h *handshaking) Read(p []byte) (int, error) {
	if h.failed {
		return 0, io.EOF
	}
	if !h.shaken.Load() {
		if !h.shake() {
			h.failed = true
			return 0, io.EOF
		}
		h.shaken.Store(true)
	}
	return h.Conn.Read(p)
}

// shake shakes hands, and reports whether there is a client to serve after it.
func (h *handshaking) shake() bool {
	if h.raw.SetWriteDeadline(h.gate.now().Add(headerTimeout)) != nil {
		return false
	}
	err := h.Handshake()
	if err == nil {
		return h.ConnectionState().NegotiatedProtocol != acme.ALPNProto
	}
	reason := "handshake"
	var clear tls.RecordHeaderError
	if errors.As(err, &clear) && clear.Conn != nil && startsRequest(clear.RecordHeader) {
		reason = "clear"
		h.refuse()
	}
	h.gate.metrics.refused.WithLabelValues(reason).Inc()
	h.gate.log.Debug("TLS handshake failed", "remote", h.raw.RemoteAddr().String(), "error", err)
	return false
}

// startsRequest reports whether what should be TLS is a request in the clear.
func startsRequest(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

// refuse tells a client that has sent a request in the clear, and so perhaps a key, what to do.
func (h *handshaking) refuse() {
	if _, err := h.raw.Write(overClear); err != nil {
		return
	}
	if half, ok := h.raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		linger(h.raw, h.gate.now())
	}
}

// linger reads on for a while: a close with bytes unread resets the connection, and the client
// would lose the answer.
func linger(c net.Conn, now time.Time) {
	if c.SetReadDeadline(now.Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, lingerBytes)) // whatever comes is not wanted
	}
}

// CloseWrite says that nothing more will be written, once anything could be.
func (h *handshaking) CloseWrite() error {
	if !h.shaken.Load() {
		return net.ErrClosed
	}
	return h.Conn.CloseWrite()
}
