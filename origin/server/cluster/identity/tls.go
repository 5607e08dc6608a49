package identity

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// ErrRole is returned if the other end of a connection has no certificate, or its owner is not a node of this cluster or not the expected one.
var ErrRole = errors.New("certificate does not belong to the expected node of this cluster")

// ErrAuthority is returned if a server's authority does not have the fingerprint of the join token.
var ErrAuthority = errors.New("server does not belong to the cluster of the join token: create a token at a node of the right cluster")

// Credentials authenticate a node on its node port and towards other nodes. They are safe for concurrent use.
type Credentials struct {
	cluster string // ID of the cluster
	own     tls.Certificate
	roots   *x509.CertPool
	now     func() time.Time
}

// Credentials returns the credentials of the file's node. They compare the lifetimes of certificates with now.
func (f *File) Credentials(now func() time.Time) (*Credentials, error) {
	authority, err := parseCertificate(f.Cluster.Authority.Certificate)
	if err != nil {
		return nil, err
	}
	leaf, key, err := f.Certificate.parse()
	if err != nil {
		return nil, err
	}
	c := &Credentials{cluster: f.Cluster.ID, roots: x509.NewCertPool(), now: now}
	c.roots.AddCert(authority)
	// A joining node does not have the authority yet, so a server sends it too.
	c.own = tls.Certificate{Certificate: [][]byte{leaf.Raw, authority.Raw}, PrivateKey: key, Leaf: leaf}
	return c, nil
}

// ServerTLS returns the configuration of the node port, with the given ALPN protocols. It accepts clients without a certificate, because a
// joining node has none; [PeerNode] finds them. A certificate that a client sends must belong to a node of this cluster.
func (c *Credentials) ServerTLS(protocols ...string) *tls.Config {
	o := c.config(protocols)
	o.ClientAuth, o.ClientCAs = tls.VerifyClientCertIfGiven, c.roots
	o.SessionTicketsDisabled = true // each connection verifies its certificates
	o.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil
		}
		return c.verify(&state, "")
	}
	return o
}

// ClientTLS returns the configuration of a client of the node port of server, with the given ALPN protocols. The server's certificate must belong
// to the host of its address and to the node with its ID. If the ID is empty, any node of this cluster is accepted.
func (c *Credentials) ClientTLS(server Node, protocols ...string) *tls.Config {
	o := c.config(protocols)
	o.RootCAs, o.ServerName = c.roots, server.Address.Host
	o.VerifyConnection = func(state tls.ConnectionState) error { return c.verify(&state, server.ID) }
	return o
}

func (c *Credentials) config(protocols []string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.own}, NextProtos: protocols, Time: c.now}
}

// verify checks the owner of a verified certificate. An empty node accepts every node.
func (c *Credentials) verify(state *tls.ConnectionState, node string) error {
	o, err := peer(state)
	if err == nil && (o.cluster != c.cluster || node != "" && o.node != node) {
		err = fmt.Errorf("node %s of cluster %s: %w", o.node, o.cluster, ErrRole)
	}
	return err
}

// PeerNode returns the ID of the node at the other end of a connection of [Credentials]. Without a verified certificate of a node, for example
// for a joining node, the error is ErrRole. state may be nil.
func PeerNode(state *tls.ConnectionState) (id string, err error) {
	o, err := peer(state)
	return o.node, err
}

// peer returns the owner of the verified certificate at the other end, which must be a node.
func peer(state *tls.ConnectionState) (owner, error) {
	if state == nil || len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return owner{}, ErrRole
	}
	return nodeOf(state.PeerCertificates[0])
}

// nodeOf returns the owner of a verified certificate, which must be a node.
func nodeOf(c *x509.Certificate) (owner, error) {
	o, err := ownerOf(c)
	if err == nil && o.role != RoleNode {
		err = fmt.Errorf("certificate of the %s of node %s: %w", o.role, o.node, ErrRole)
	}
	if err != nil {
		return owner{}, err
	}
	return o, nil
}

// JoinTLS returns the configuration for the request to join, with the given ALPN protocols. The joining node does not know the authority yet.
// So the server must send a certificate with the token's fingerprint, and that authority must have signed the certificate of a node at the
// host of the token's address. If the fingerprint differs, the handshake fails with ErrAuthority. The token's secret is sent only after the
// handshake, so another server never gets it.
func JoinTLS(t Token, now func() time.Time, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, Time: now, ServerName: t.Address.Host,
		InsecureSkipVerify: true, // VerifyConnection verifies against the fingerprint instead of known authorities
		VerifyConnection:   func(state tls.ConnectionState) error { return t.verify(state.PeerCertificates, now()) },
	}
}

// verify checks the certificates of the server that the token names.
func (t Token) verify(chain []*x509.Certificate, now time.Time) error {
	for i, authority := range chain {
		if i == 0 || sha256.Sum256(authority.Raw) != t.Authority {
			continue
		}
		roots := x509.NewCertPool()
		roots.AddCert(authority)
		_, err := chain[0].Verify(x509.VerifyOptions{
			Roots: roots, DNSName: t.Address.Host, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err == nil {
			_, err = nodeOf(chain[0])
		}
		return err
	}
	return ErrAuthority
}
