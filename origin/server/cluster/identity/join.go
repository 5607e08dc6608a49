package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// maxClockDifference is the largest accepted difference between the clocks of two nodes.
const maxClockDifference = time.Minute

// JoinRequest asks the node that created a token to admit a new one. It is sent over a connection of [JoinTLS], in JSON.
type JoinRequest struct {
	Secret    Secret    `json:"secret"`     // of the token
	PublicKey []byte    `json:"public_key"` // of the new node: ECDSA P-256, PKIX, DER
	Address   Address   `json:"address"`    // of the new node
	Now       time.Time `json:"now"`        // clock of the new node
	Version   string    `json:"version"`    // of the new node's program; the caller compares it
}

// JoinResponse admits a node. It has the authority's key and the cluster's key, so the joining node must have verified the server.
type JoinResponse struct {
	Cluster     Cluster `json:"cluster"`
	NodeID      string  `json:"node_id"`
	Certificate string  `json:"certificate"` // of the new node, in PEM
	Peers       []Node  `json:"peers"`       // all other nodes
}

// Join is the joining node's side of a request.
type Join struct {
	Request JoinRequest // the caller sends it to the address of the token

	token Token
	key   *ecdsa.PrivateKey
}

// NewJoin creates the key of a new node and its request. The private key stays on this machine.
func NewJoin(t Token, address Address, version string, now time.Time, random io.Reader) (*Join, error) {
	if err := address.check(); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return &Join{JoinRequest{Secret: t.Secret, PublicKey: public, Address: address, Now: now, Version: version}, t, key}, nil
}

// Check checks a request against the clock of the server. It does not check the secret. The error is one sentence with the fix, for the operator
// of the joining node. A server calls it before it uses up the secret, so that the operator can repeat the command with the same token.
func (r JoinRequest) Check(now time.Time) error {
	if err := r.Address.check(); err != nil {
		return err
	}
	if _, err := r.publicKey(); err != nil {
		return err
	}
	return CheckClock(r.Now, now)
}

func (r JoinRequest) publicKey() (*ecdsa.PublicKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(r.PublicKey)
	key, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("public key of the joining node is not an ECDSA P-256 key: install the cluster's version of sightline there")
	}
	return key, nil
}

// CheckClock returns an error if the clock of another node, theirs, and the clock of this one, ours, differ by more than one minute. It is one
// sentence that has both times and the fix.
func CheckClock(theirs, ours time.Time) error {
	difference := theirs.Sub(ours).Abs()
	if difference <= maxClockDifference {
		return nil
	}
	const layout = "2006-01-02 15:04:05"
	return fmt.Errorf(
		"clocks differ by %s: the joining node has %s UTC and the cluster's node has %s UTC; set both clocks, for example with NTP, and try again",
		difference.Round(time.Second), theirs.UTC().Format(layout), ours.UTC().Format(layout))
}

// Admit checks a request, and returns the response with a new ID and certificate. The response has the file's peers and its
// node, and the caller may replace them by newer ones. The caller has checked the secret and used it up.
func (f *File) Admit(r JoinRequest, now time.Time, random io.Reader) (JoinResponse, error) {
	if err := r.Check(now); err != nil {
		return JoinResponse{}, err
	}
	key, err := r.publicKey()
	if err != nil {
		return JoinResponse{}, err
	}
	a, err := ParseAuthority(f.Cluster.Authority)
	if err != nil {
		return JoinResponse{}, err
	}
	id, err := NewID(random)
	if err != nil {
		return JoinResponse{}, err
	}
	certificate, err := a.IssueNode(Node{id, r.Address}, key, now, random)
	if err != nil {
		return JoinResponse{}, err
	}
	return JoinResponse{f.Cluster, id, certificate, append(slices.Clone(f.Peers), f.Node)}, nil
}

// Accept returns the file of the new node, which its caller saves. It checks that the response comes from the cluster of the token and fits the
// request. blobCache is the maximum size of the cache of pictures in bytes; 0: the default of the cache.
func (j *Join) Accept(r JoinResponse, blobCache int64, now time.Time, random io.Reader) (*File, error) {
	a, err := ParseAuthority(r.Cluster.Authority)
	if err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	if a.Fingerprint() != j.token.Authority {
		return nil, ErrAuthority
	}
	f := &File{Cluster: r.Cluster, Node: Node{r.NodeID, j.Request.Address}, BlobCache: blobCache}
	f.Peers = slices.DeleteFunc(slices.Clone(r.Peers), func(n Node) bool { return n.ID == r.NodeID })
	if err := f.complete(a, r.Certificate, j.key, now, random); err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	return f, nil
}
