package program

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// certifier is a certificate authority that implements as much ACME (RFC 8555) as one order needs. It does not verify signatures, because
// this test is not about them. It does check (RFC 8737) that the client controls the name.
type certifier struct {
	*httptest.Server
	t    *testing.T
	name string // name that it certifies
	at   string // address where it checks the challenge

	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu         sync.Mutex
	thumbprint string // of the account's key
	valid      bool   // the challenge for the name was answered
	issued     []byte // DER
	orders     int
}

const challengeToken = "a-token-of-the-authority"

func newCertifier(t *testing.T, name string) *certifier {
	t.Helper()
	c := &certifier{t: t, name: name}
	var err error
	if c.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: system.Now().Add(-time.Hour), NotAfter: system.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, c.key.Public(), c.key)
	if err != nil {
		t.Fatal(err)
	}
	if c.root, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	c.Server = httptest.NewTLSServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *certifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Replay-Nonce", "nonce")
	w.Header().Set("Content-Type", "application/json")
	var jws struct{ Protected, Payload string }
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&jws); err != nil {
			c.t.Errorf("%s: %v", r.URL.Path, err)
		}
	}
	answer := func(status int, location string, v any) {
		if location != "" {
			w.Header().Set("Location", c.URL+location)
		}
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(v); err != nil {
			c.t.Error(err)
		}
	}
	switch r.URL.Path {
	case "/directory":
		answer(200, "", cli.Object{"newNonce": c.URL + "/nonce", "newAccount": c.URL + "/account", "newOrder": c.URL + "/orders"})
	case "/nonce":
	case "/account":
		c.register(jws.Protected)
		answer(201, "/account/1", cli.Object{"status": "valid"})
	case "/orders":
		c.orders++
		answer(201, "/order", c.order())
	case "/order":
		answer(200, "/order", c.order())
	case "/authorization":
		status := "pending"
		if c.valid {
			status = "valid"
		}
		answer(200, "", cli.Object{
			"status": status, "identifier": cli.Object{"type": "dns", "value": c.name},
			"challenges": []cli.Object{{"type": "tls-alpn-01", "url": c.URL + "/challenge", "token": challengeToken, "status": status}},
		})
	case "/challenge":
		c.valid = c.look()
		answer(200, "", cli.Object{"type": "tls-alpn-01", "url": c.URL + "/challenge", "token": challengeToken, "status": "processing"})
	case "/finalize":
		c.certify(jws.Payload)
		answer(200, "/order", c.order())
	case "/certificate":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_ = pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: c.issued})
		_ = pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: c.root.Raw})
	default:
		c.t.Errorf("the authority is asked for %s", r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	}
}

// order returns the current state of the order.
func (c *certifier) order() cli.Object {
	o := cli.Object{
		"status": "pending", "identifiers": []cli.Object{{"type": "dns", "value": c.name}},
		"authorizations": []string{c.URL + "/authorization"}, "finalize": c.URL + "/finalize",
	}
	switch {
	case c.issued != nil:
		o["status"], o["certificate"] = "valid", c.URL+"/certificate"
	case c.valid:
		o["status"] = "ready"
	}
	return o
}

// register stores the thumbprint of the account's key, from the header of its first request.
func (c *certifier) register(protected string) {
	b, err := base64.RawURLEncoding.DecodeString(protected)
	var header struct {
		JWK struct{ X, Y string }
	}
	if err == nil {
		err = json.Unmarshal(b, &header)
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":%q,"y":%q}`, header.JWK.X, header.JWK.Y))
	c.thumbprint = base64.RawURLEncoding.EncodeToString(sum[:])
}

// look reports whether the server at the address answers the challenge for the name.
func (c *certifier) look() bool {
	conn, err := tls.Dial("tcp", c.at, &tls.Config{ServerName: c.name, NextProtos: []string{acme.ALPNProto}, InsecureSkipVerify: true})
	if err != nil {
		c.t.Errorf("the challenge: %v", err)
		return false
	}
	defer conn.Close()
	want, err := asn1.Marshal(sha256sum(challengeToken + "." + c.thumbprint))
	if err != nil {
		c.t.Error(err)
	}
	for _, e := range conn.ConnectionState().PeerCertificates[0].Extensions {
		if e.Id.String() == "1.3.6.1.5.5.7.1.31" {
			return string(e.Value) == string(want)
		}
	}
	return false
}

func sha256sum(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// certify signs the requested certificate, if the challenge was answered.
func (c *certifier) certify(payload string) {
	var p struct{ CSR string }
	b, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil {
		b, err = base64.RawURLEncoding.DecodeString(p.CSR)
	}
	var request *x509.CertificateRequest
	if err == nil {
		request, err = x509.ParseCertificateRequest(b)
	}
	if err != nil || !c.valid {
		c.t.Errorf("finalize: %v, name found: %v", err, c.valid)
		return
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: request.DNSNames, NotBefore: system.Now().Add(-time.Hour), NotAfter: system.Now().Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	var signer crypto.Signer = c.key
	if c.issued, err = x509.CreateCertificate(rand.Reader, template, c.root, request.PublicKey, signer); err != nil {
		c.t.Error(err)
	}
}

// TestACME gets a certificate over the serving port, and reuses it at the next start. It orders no certificate for names that are not
// configured.
func TestACME(t *testing.T) {
	const name = "sightline.test"
	authority := newCertifier(t, name)
	s := testSettings(t)
	s.TLS = server.TLSSettings{Domains: []string{name}, Directory: authority.URL + "/directory", Authority: authority.Client()}
	roots := x509.NewCertPool()
	roots.AddCert(authority.root)
	serve := func() (*server.Server, string) {
		srv, err := server.Start(t.Context(), s, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return srv, srv.Listener.Addr().String()
	}
	shake := func(address, name string) error {
		c, err := tls.Dial("tcp", address, &tls.Config{ServerName: name, RootCAs: roots, NextProtos: []string{"http/1.1"}})
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	srv, address := serve()
	authority.mu.Lock()
	authority.at = address
	authority.mu.Unlock()
	if !strings.HasPrefix(srv.Settings.PublicURL, "https://"+name+":") {
		t.Errorf("the public address is %s", srv.Settings.PublicURL)
	}
	for range 2 {
		if err := shake(address, name); err != nil {
			t.Errorf("with the new certificate: %v", err)
		}
	}
	for _, other := range []string{"other.test", "localhost"} {
		if err := shake(address, other); err == nil {
			t.Errorf("%s: shakes hands", other)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	srv, address = serve()
	if err := shake(address, name); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	authority.mu.Lock()
	defer authority.mu.Unlock()
	if authority.orders != 1 {
		t.Errorf("%d certificates were ordered, want 1", authority.orders)
	}
	if files, err := filepath.Glob(filepath.Join(s.Data, "acme", name+"*")); err != nil || len(files) == 0 {
		t.Errorf("kept: %q, %v", files, err)
	}
}
