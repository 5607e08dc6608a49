package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// listening is a node of which only the port is open.
func listening(t *testing.T) *Cluster {
	t.Helper()
	n := found(t)
	c, _ := fakeCluster(t, http.NotFoundHandler())
	var err error
	if c.file, err = identity.Load(n.dir); err != nil {
		t.Fatal(err)
	}
	if c.credentials, err = c.file.Credentials(system.Now); err != nil {
		t.Fatal(err)
	}
	if c.port, err = c.listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.port.close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return c
}

// connect connects to the port with the certificate of a file; nil: none.
func (c *Cluster) connect(t *testing.T, as *identity.File, protocols ...string) (net.Conn, error) {
	t.Helper()
	o := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: protocols} // of the client; the port is tested
	if as != nil {
		pair, err := tls.X509KeyPair([]byte(as.Certificate.Certificate), []byte(as.Certificate.Key))
		if err != nil {
			t.Fatal(err)
		}
		o.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil } // also for another authority
	}
	conn, err := dialTLS(t.Context(), c.file.Node.Address, o)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

// refused reports whether the port has closed a connection without an answer.
func refused(t *testing.T, conn net.Conn, err error) bool {
	t.Helper()
	if err != nil {
		return true
	}
	if err := conn.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	var timeout net.Error
	return err != nil && !(errors.As(err, &timeout) && timeout.Timeout())
}

// TestPort: the port gives a connection to the server of its protocol. Calls need the certificate of a node of this cluster, as do orders, except
// the one to join.
func TestPort(t *testing.T) {
	c := listening(t)
	foreign, err := identity.Load(found(t).dir)
	if err != nil {
		t.Fatal(err)
	}
	operator := *c.file
	operator.Certificate = c.file.Operator

	calls := c.Calls()
	for _, tt := range []struct {
		name     string
		as       *identity.File
		protocol string
	}{
		{"call without a certificate", nil, callProtocol},
		{"call of a foreign node", foreign, callProtocol},
		{"call of the operator", &operator, callProtocol},
		{"order of a foreign node", foreign, orderProtocol},
		{"order of the operator", &operator, orderProtocol},
		{"unknown protocol", c.file, "h2"},
		{"no protocol", c.file, ""},
	} {
		var protocols []string
		if tt.protocol != "" {
			protocols = []string{tt.protocol}
		}
		conn, err := c.connect(t, tt.as, protocols...)
		if !refused(t, conn, err) {
			t.Errorf("%s is accepted", tt.name)
		}
	}

	accepted := make(chan net.Conn, 1)
	go func() {
		conn, err := calls.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- conn
	}()
	conn, err := c.connect(t, c.file, callProtocol)
	if err != nil {
		t.Fatal(err)
	}
	there := <-accepted
	if _, err := there.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = there.Close()

	// A second listener replaces the first one.
	again := c.Calls()
	if _, err := calls.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the earlier listener: %v", err)
	}
	_ = again.Close()
	if conn, err := c.connect(t, c.file, callProtocol); !refused(t, conn, err) {
		t.Error("a call is accepted while the server is closed")
	}

	for _, tt := range []struct {
		as     *identity.File
		target string
		want   int
	}{
		{nil, pathHello, http.StatusForbidden},
		{nil, pathCheckpoint, http.StatusForbidden},
		{nil, pathControl + "/status", http.StatusForbidden},
		{nil, "/nothing", http.StatusForbidden},
		{nil, pathJoin, http.StatusForbidden}, // since the body has no secret: admit has refused it
		{c.file, pathHello, http.StatusOK},
		{c.file, pathCheckpoint, http.StatusServiceUnavailable},
		{c.file, pathControl + "/status", http.StatusServiceUnavailable},
		{c.file, "/nothing", http.StatusNotFound},
	} {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
			return c.connect(t, tt.as, orderProtocol)
		}}}
		body := `{}`
		if tt.target == pathJoin {
			body = `{"secret": 1}`
		}
		res, err := client.Post("http://node"+tt.target, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != tt.want || (tt.target != pathJoin && tt.as == nil) != (string(text) == identity.ErrRole.Error()) {
			t.Errorf("POST %s = %d %s, want %d", tt.target, res.StatusCode, text, tt.want)
		}
	}
}

// TestPortCloses: the port closes at once, although a client does not finish its handshake.
func TestPortCloses(t *testing.T) {
	c := listening(t)
	raw, err := net.Dial("tcp", c.file.Node.Address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Write([]byte{0x16}); err != nil { // the start of a handshake
		t.Fatal(err)
	}
	conn, err := c.connect(t, c.file, orderProtocol) // the port has accepted the first connection before this one
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	began := time.Now()
	if err := c.port.close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > handshakeTime/2 {
		t.Errorf("the port has closed after %v", took)
	}
	c.port.listener = closed{}
}

// closed is a listener that was closed.
type closed struct{ net.Listener }

// Close implements [net.Listener].
func (closed) Close() error { return nil }
