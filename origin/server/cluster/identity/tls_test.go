package identity

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

func clock(now time.Time) func() time.Time { return func() time.Time { return now } }

func credentials(t testing.TB, f *File, now time.Time) *Credentials {
	t.Helper()
	c, err := f.Credentials(clock(now))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handshake connects a client to a server. It returns the server's view of the connection, and the errors of both ends.
func handshake(t testing.TB, server, client *tls.Config) (state tls.ConnectionState, atServer, atClient error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // net.Pipe would block if both ends write
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conn net.Conn
		if conn, atServer = l.Accept(); atServer != nil {
			return
		}
		defer conn.Close()
		c := tls.Server(conn, server)
		if atServer = c.Handshake(); atServer == nil {
			state = c.ConnectionState()
			_, atServer = c.Write([]byte{1})
		}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, atClient = tls.Client(conn, client).Read(make([]byte, 1)) // with TLS 1.3 a client learns only here that the server refused its certificate
	_ = conn.Close()
	<-done
	return state, atServer, atClient
}

func TestHandshakeOfNodes(t *testing.T) {
	for _, hosts := range [][2]string{{"10.0.0.5:7000", "10.0.0.6:7000"}, {"a.example:7000", "[fd00::6]:7000"}} {
		first := create(t, hosts[0])
		second := admit(t, first, hosts[1])
		for _, pair := range [][2]*File{{first, second}, {second, first}, {first, first}} {
			server, client := credentials(t, pair[0], start), credentials(t, pair[1], start)
			for _, to := range []Node{pair[0].Node, {Address: pair[0].Node.Address}} {
				state, atServer, atClient := handshake(t, server.ServerTLS("h2", "http/1.1"), client.ClientTLS(to, "h2"))
				if atServer != nil || atClient != nil {
					t.Fatalf("%s to %s: %v, %v", pair[1].Node.Address, to, atServer, atClient)
				}
				if id, err := PeerNode(&state); err != nil || id != pair[1].Node.ID {
					t.Errorf("PeerNode = %s, %v, want %s", id, err, pair[1].Node.ID)
				}
				if state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "h2" {
					t.Errorf("version %x, protocol %q", state.Version, state.NegotiatedProtocol)
				}
			}
		}
	}
}

// keyPair returns the certificate of a pair without checks.
func keyPair(t testing.TB, pair KeyPair) tls.Certificate {
	t.Helper()
	c, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestServerRefuses connects clients with wrong certificates. None of them gets a byte from the server.
func TestServerRefuses(t *testing.T) {
	f, foreign := create(t, "10.0.0.5:7000"), create(t, "10.0.0.5:7000")
	peer := admit(t, f, "10.0.0.6:7000")
	server := credentials(t, f, start).ServerTLS()
	with := func(pair KeyPair) *tls.Config {
		c := credentials(t, peer, start).ClientTLS(f.Node)
		own := keyPair(t, pair)
		// A hostile client sends its certificate even if the server does not ask for its authority.
		c.Certificates, c.GetClientCertificate = nil, func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		return c
	}
	for name, tt := range map[string]struct {
		client *tls.Config
		want   string
	}{
		"foreign authority":     {with(foreign.Certificate), "unknown authority"},
		"operator":              {with(f.Operator), "certificate of the operator"},
		"authority as a client": {with(f.Cluster.Authority), ErrRole.Error()},
		"node itself":           {with(peer.Certificate), ""},
	} {
		state, atServer, atClient := handshake(t, server, tt.client)
		if tt.want == "" {
			if atServer != nil || atClient != nil {
				t.Errorf("%s: %v, %v", name, atServer, atClient)
			}
			continue
		}
		if atServer == nil || atClient == nil || !strings.Contains(atServer.Error(), tt.want) {
			t.Errorf("%s: %v, %v, want %q", name, atServer, atClient, tt.want)
		}
		if id, err := PeerNode(&state); !errors.Is(err, ErrRole) || id != "" {
			t.Errorf("%s: PeerNode = %s, %v", name, id, err)
		}
	}
	none := credentials(t, peer, start).ClientTLS(f.Node)
	none.Certificates = nil
	state, atServer, atClient := handshake(t, server, none)
	if _, err := PeerNode(&state); atServer != nil || atClient != nil || !errors.Is(err, ErrRole) {
		t.Errorf("without a certificate: %v, %v, PeerNode %v", atServer, atClient, err)
	}
	if _, err := PeerNode(nil); !errors.Is(err, ErrRole) {
		t.Errorf("PeerNode(nil): %v", err)
	}
	// A certificate that nobody verified names nobody.
	unverified := tls.ConnectionState{PeerCertificates: []*x509.Certificate{credentials(t, peer, start).own.Leaf}}
	if _, err := PeerNode(&unverified); !errors.Is(err, ErrRole) {
		t.Errorf("PeerNode of an unverified certificate: %v", err)
	}
}

// TestClientRefuses connects to servers with wrong certificates.
func TestClientRefuses(t *testing.T) {
	f, foreign := create(t, "10.0.0.5:7000"), create(t, "10.0.0.5:7000")
	peer := admit(t, f, "10.0.0.6:7000")
	twin := admit(t, f, "10.0.0.5:7000") // another node at the same address
	client := credentials(t, peer, start)
	with := func(pair KeyPair) *tls.Config {
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{keyPair(t, pair)}, Time: clock(start)}
	}
	for name, server := range map[string]*tls.Config{
		"foreign authority":     credentials(t, foreign, start).ServerTLS(),
		"operator":              with(f.Operator),
		"operator as a server":  with(operatorAsServer(t, f)),
		"authority":             with(f.Cluster.Authority),
		"host of another node":  credentials(t, peer, start).ServerTLS(),
		"another node":          credentials(t, twin, start).ServerTLS(),
		"expired at the server": credentials(t, f, start.Add(life+time.Hour)).ServerTLS(),
	} {
		_, atServer, atClient := handshake(t, server, client.ClientTLS(f.Node))
		if atClient == nil {
			t.Errorf("%s: %v, accepted", name, atServer)
		}
		if name == "another node" && !errors.Is(atClient, ErrRole) {
			t.Errorf("%s: %v, want ErrRole", name, atClient)
		}
	}
	_, atServer, atClient := handshake(t, credentials(t, twin, start).ServerTLS(), client.ClientTLS(Node{Address: f.Node.Address}))
	if atServer != nil || atClient != nil {
		t.Errorf("any node at the address: %v, %v", atServer, atClient)
	}
}

// TestClocks makes handshakes at the ends of the certificates' lives.
func TestClocks(t *testing.T) {
	f := create(t, "10.0.0.5:7000")
	peer := admit(t, f, "10.0.0.6:7000")
	token, err := f.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		now  time.Time
		good bool
	}{
		"not yet valid": {start.Add(-time.Hour - time.Second), false}, "a slow clock": {start.Add(-time.Hour), true},
		"the last day": {start.Add(life), true}, "expired": {start.Add(life + time.Second), false},
	} {
		late := credentials(t, peer, tt.now)
		if _, atServer, atClient := handshake(t, credentials(t, f, start).ServerTLS(), late.ClientTLS(f.Node)); (atClient == nil) != tt.good {
			t.Errorf("%s at the client: %v, %v", name, atServer, atClient)
		}
		_, atServer, atClient := handshake(t, late.ServerTLS(), credentials(t, f, start).ClientTLS(peer.Node))
		if (atServer == nil && atClient == nil) != tt.good {
			t.Errorf("%s at the server: %v, %v", name, atServer, atClient)
		}
		if _, _, atClient := handshake(t, credentials(t, f, start).ServerTLS(), JoinTLS(token, clock(tt.now))); (atClient == nil) != tt.good {
			t.Errorf("%s at a joining node: %v", name, atClient)
		}
	}
}

func TestTLS12IsRefused(t *testing.T) {
	f := create(t, "10.0.0.5:7000")
	peer := admit(t, f, "10.0.0.6:7000")
	token, err := f.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	old := func(c *tls.Config) *tls.Config {
		c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		return c
	}
	server := func() *tls.Config { return credentials(t, f, start).ServerTLS() }
	clients := map[string]*tls.Config{"node": credentials(t, peer, start).ClientTLS(f.Node), "joining node": JoinTLS(token, clock(start))}
	for name, client := range clients {
		if _, atServer, atClient := handshake(t, old(server()), client); atServer == nil || atClient == nil {
			t.Errorf("%s with an old server: %v, %v", name, atServer, atClient)
		}
		if _, atServer, atClient := handshake(t, server(), old(client)); atServer == nil || atClient == nil {
			t.Errorf("%s as an old client: %v, %v", name, atServer, atClient)
		}
	}
}

// TestJoinTLS connects a joining node, which knows only the token, to servers.
func TestJoinTLS(t *testing.T) {
	f, foreign := create(t, "10.0.0.5:7000"), create(t, "10.0.0.5:7000")
	token, err := f.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := func(parts ...KeyPair) *tls.Config {
		own := keyPair(t, parts[0])
		for _, p := range parts[1:] {
			own.Certificate = append(own.Certificate, keyPair(t, p).Certificate...)
		}
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, Time: clock(start)}
	}
	server := operatorAsServer(t, f)
	for name, tt := range map[string]struct {
		server *tls.Config
		want   string
	}{
		"operator valid for servers":    {of(server, f.Cluster.Authority), "certificate of the operator"},
		"node":                          {credentials(t, f, start).ServerTLS("h2"), ""},
		"foreign node":                  {credentials(t, foreign, start).ServerTLS("h2"), ErrAuthority.Error()},
		"foreign node, our authority":   {of(foreign.Certificate, f.Cluster.Authority), "unknown authority"},
		"foreign node, both":            {of(foreign.Certificate, foreign.Cluster.Authority, f.Cluster.Authority), "unknown authority"},
		"without the authority":         {of(f.Certificate), ErrAuthority.Error()},
		"operator":                      {of(f.Operator, f.Cluster.Authority), "certificate"},
		"authority itself":              {of(f.Cluster.Authority), ErrAuthority.Error()},
		"authority twice":               {of(f.Cluster.Authority, f.Cluster.Authority), "certificate"},
		"node of another address":       {credentials(t, admit(t, f, "10.0.0.6:7000"), start).ServerTLS("h2"), "10.0.0.5"},
		"another node at the address":   {credentials(t, admit(t, f, "10.0.0.5:7000"), start).ServerTLS("h2"), ""},
		"node, with a foreign one more": {of(f.Certificate, foreign.Certificate, f.Cluster.Authority), ""},
	} {
		state, _, atClient := handshake(t, tt.server, JoinTLS(token, clock(start), "h2"))
		if tt.want == "" && atClient != nil || tt.want != "" && (atClient == nil || !strings.Contains(atClient.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, atClient, tt.want)
		}
		if _, err := PeerNode(&state); !errors.Is(err, ErrRole) {
			t.Errorf("%s: the server takes the joining machine for a node: %v", name, err)
		}
	}
	token.Authority[0] ^= 1
	if _, _, atClient := handshake(t, credentials(t, f, start).ServerTLS(), JoinTLS(token, clock(start))); !errors.Is(atClient, ErrAuthority) {
		t.Errorf("another fingerprint: %v, want ErrAuthority", atClient)
	}
}

// operatorAsServer returns a certificate that the authority never issues: the operator's, for servers at the node's host.
func operatorAsServer(t testing.TB, f *File) KeyPair {
	t.Helper()
	a, err := ParseAuthority(f.Cluster.Authority)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := f.Operator.parse()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		IPAddresses: []net.IP{net.ParseIP(f.Node.Address.Host)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := a.issue(template, RoleOperator, f.Node.ID, key.Public(), start, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return KeyPair{encodePEM(certificateBlock, der), f.Operator.Key}
}

// TestHostileOwners checks SPIFFE IDs that the authority never issues.
func TestHostileOwners(t *testing.T) {
	for name, uri := range map[string]string{
		"none": "", "role": "spiffe://00000000000000aa/node", "ID": "spiffe://00000000000000aa/node/x", "cluster": "spiffe://a/node/00000000000000bb",
		"query": "spiffe://00000000000000aa/node/00000000000000bb?x", "scheme": "https://00000000000000aa/node/00000000000000bb",
		"user": "spiffe://u@00000000000000aa/node/00000000000000bb", "more": "spiffe://00000000000000aa/node/00000000000000bb/x",
		"escape": "spiffe://00000000000000aa/%6eode/00000000000000bb", "slashes": "spiffe://00000000000000aa//node/00000000000000bb",
	} {
		c := &x509.Certificate{}
		if uri != "" {
			c.URIs = append(c.URIs, parseURL(t, uri))
		}
		if o, err := ownerOf(c); !errors.Is(err, ErrRole) {
			t.Errorf("%s: %v, %v, want ErrRole", name, o, err)
		}
	}
	two := &x509.Certificate{}
	for range 2 {
		two.URIs = append(two.URIs, parseURL(t, "spiffe://00000000000000aa/node/00000000000000bb"))
	}
	if o, err := ownerOf(two); err == nil {
		t.Errorf("two IDs: %v", o)
	}
	two.URIs = two.URIs[:1]
	if o, err := nodeOf(two); err != nil || o.node != "00000000000000bb" {
		t.Errorf("nodeOf = %v, %v", o, err)
	}
}

func parseURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
