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

// hardenTLS returns a copy of c with this package's rules: TLS 1.2 or later, and HTTP/1.1 as the only protocol, since the library supports
// no other. A certificate authority that checks whether this server controls a name may complete the handshake and do nothing else.
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

// handshaking is a TLS connection that performs the handshake at its first read. That read has the goroutine and the deadline of the first
// header, so a stalled handshake counts as a stalled header.
type handshaking struct {
	*tls.Conn
	raw    net.Conn
	gate   *gate
	shaken atomic.Bool
	failed bool // used only by the reading goroutine
}

// Read implements net.Conn. A failed handshake reads like a closed connection, because the client could not understand an answer.
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

// shake performs the handshake, and reports whether the client sends requests after it.
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

// startsRequest reports whether b, which should be TLS, begins an unencrypted HTTP request.
func startsRequest(b [5]byte) bool {
	switch string(b[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

// refuse answers a client that has sent an unencrypted request, which may contain a key.
func (h *handshaking) refuse() {
	if _, err := h.raw.Write(overClear); err != nil {
		return
	}
	if half, ok := h.raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		linger(h.raw, h.gate.now())
	}
}

// linger keeps reading for a while. Closing a connection with unread bytes would reset it, and the client would lose the answer.
func linger(c net.Conn, now time.Time) {
	if c.SetReadDeadline(now.Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, lingerBytes)) // the bytes do not matter
	}
}

// CloseWrite closes the writing side. Before the handshake is complete, it returns an error.
func (h *handshaking) CloseWrite() error {
	if !h.shaken.Load() {
		return net.ErrClosed
	}
	return h.Conn.CloseWrite()
}
