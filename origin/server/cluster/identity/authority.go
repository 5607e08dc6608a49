package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/origin/server/certificate"
)

// life is the lifetime of every certificate of a cluster. It is long, because an expired certificate would stop the whole cluster at a moment
// when nobody changes anything. A stolen key needs another remedy anyway: a new authority, which voids all certificates at once. No certificate
// outlives its authority.
const life = 10 * 365 * 24 * time.Hour

// Role is the kind of the owner of a certificate. It is the certificate's common name, too.
type Role string

// Roles. An etcd member accepts only [RoleNode] on its peer port (AllowedCNs of etcd's TLSInfo).
const (
	RoleNode     Role = "node"     // a node, as a server and as a client
	RoleOperator Role = "operator" // the operator's etcdctl, as a client of etcd
)

// KeyPair is a certificate and its private key, both in PEM. The key is PKCS #8.
type KeyPair struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// String returns a text without the private key.
func (KeyPair) String() string { return "(certificate and key)" }

// Fingerprint is the SHA-256 of a certificate in DER.
type Fingerprint [sha256.Size]byte

// String returns 64 hex digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Authority signs the certificates of one cluster. It is safe for concurrent use if random is.
type Authority struct {
	cluster     string // ID of the cluster
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates the authority of the cluster with this ID of 16 hex digits. It is valid for ten years.
func NewAuthority(cluster string, now time.Time, random io.Reader) (*Authority, error) {
	if !isID(cluster) {
		return nil, fmt.Errorf("ID of the cluster %q is not 16 hex digits", cluster)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Sightline cluster " + cluster}, CommonName: "authority"},
		URIs:      []*url.URL{{Scheme: "spiffe", Host: cluster}},
		NotBefore: now.Add(-certificate.Backdating), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	return &Authority{cluster, parsed, key}, err
}

// ParseAuthority parses the output of [Authority.KeyPair].
func ParseAuthority(pair KeyPair) (*Authority, error) {
	parsed, key, err := pair.parse()
	if err != nil {
		return nil, err
	}
	if !parsed.IsCA || len(parsed.URIs) != 1 || parsed.URIs[0].Scheme != "spiffe" || !isID(parsed.URIs[0].Host) {
		return nil, errors.New("certificate is not that of a cluster's authority")
	}
	if err := parsed.CheckSignatureFrom(parsed); err != nil {
		return nil, err
	}
	return &Authority{parsed.URIs[0].Host, parsed, key}, nil
}

// KeyPair returns the authority's certificate and private key.
func (a *Authority) KeyPair() (KeyPair, error) { return newKeyPair(a.certificate.Raw, a.key) }

// Fingerprint returns the fingerprint of the authority's certificate.
func (a *Authority) Fingerprint() Fingerprint { return sha256.Sum256(a.certificate.Raw) }

// IssueNode returns the certificate, in PEM, of a node with an ECDSA P-256 key. It is valid for clients, and for servers at the host of the
// node's address. It is valid for ten years, but no longer than the authority.
func (a *Authority) IssueNode(n Node, key crypto.PublicKey, now time.Time, random io.Reader) (string, error) {
	if err := n.check(); err != nil {
		return "", err
	}
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	if ip, err := netip.ParseAddr(n.Address.Host); err == nil {
		template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
	} else {
		template.DNSNames = []string{n.Address.Host}
	}
	der, err := a.issue(template, RoleNode, n.ID, key, now, random)
	return encodePEM(certificateBlock, der), err
}

// IssueOperator returns a certificate, with a new key, for the operator of the node with this ID. It is valid for clients only, for as long as
// the certificate of a node.
func (a *Authority) IssueOperator(node string, now time.Time, random io.Reader) (KeyPair, error) {
	if !isID(node) {
		return KeyPair{}, errNodeID
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return KeyPair{}, err
	}
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := a.issue(template, RoleOperator, node, key.Public(), now, random)
	if err != nil {
		return KeyPair{}, err
	}
	return newKeyPair(der, key)
}

// issue completes a template and signs it.
func (a *Authority) issue(c *x509.Certificate, role Role, node string, key crypto.PublicKey, now time.Time, random io.Reader) ([]byte, error) {
	if public, ok := key.(*ecdsa.PublicKey); !ok || public.Curve != elliptic.P256() {
		return nil, errors.New("public key is not an ECDSA P-256 key")
	}
	if now.After(a.certificate.NotAfter) {
		return nil, fmt.Errorf("authority of the cluster has expired at %s", a.certificate.NotAfter.Format(time.RFC3339))
	}
	c.Subject = pkix.Name{Organization: a.certificate.Subject.Organization, CommonName: string(role)}
	c.URIs = []*url.URL{{Scheme: "spiffe", Host: a.cluster, Path: "/" + string(role) + "/" + node}}
	c.NotBefore, c.NotAfter = now.Add(-certificate.Backdating), now.Add(life)
	if c.NotAfter.After(a.certificate.NotAfter) {
		c.NotAfter = a.certificate.NotAfter
	}
	c.KeyUsage, c.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	return x509.CreateCertificate(random, c, a.certificate, key, a.key)
}

// owner is the owner of a certificate by its SPIFFE ID.
type owner struct {
	cluster string
	role    Role
	node    string
}

// ownerOf returns the owner of a certificate. The caller must have verified the certificate.
func ownerOf(c *x509.Certificate) (owner, error) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != "spiffe" {
		return owner{}, ErrRole
	}
	role, node, _ := strings.Cut(strings.TrimPrefix(c.URIs[0].Path, "/"), "/")
	o := owner{c.URIs[0].Host, Role(role), node}
	if c.URIs[0].String() != "spiffe://"+o.cluster+"/"+role+"/"+node || !isID(o.cluster) || !isID(node) {
		return owner{}, ErrRole
	}
	return o, nil
}

// Types of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

func newKeyPair(der []byte, key *ecdsa.PrivateKey) (KeyPair, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	return KeyPair{encodePEM(certificateBlock, der), encodePEM(keyBlock, private)}, err
}

// parse returns the certificate and the key of a pair, which must fit together.
func (p KeyPair) parse() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	parsed, err := parseCertificate(p.Certificate)
	if err != nil {
		return nil, nil, err
	}
	der, err := decodePEM(keyBlock, p.Key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, nil, errors.New("private key is damaged") // the error of the parser may quote a part of the key
	}
	key, ok := private.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(parsed.PublicKey) {
		return nil, nil, errors.New("private key does not fit the certificate")
	}
	return parsed, key, nil
}

func parseCertificate(text string) (*x509.Certificate, error) {
	der, err := decodePEM(certificateBlock, text)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// decodePEM returns the only block of a PEM text.
func decodePEM(kind, text string) ([]byte, error) {
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != kind || len(rest) > 0 {
		return nil, fmt.Errorf("%s is not one PEM block", strings.ToLower(kind))
	}
	return block.Bytes, nil
}
