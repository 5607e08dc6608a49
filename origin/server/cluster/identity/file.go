package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// FileName is the name of the file in the data folder. Anyone who can read it can become a node, so only the folder's user can, and no backup
// has it.
const FileName = "cluster.json"

const (
	fileVersion = 1
	maxFile     = 1 << 20 // bytes
)

// Limits of the election timeout. The timing of etcd needs no tuning by default.
const (
	DefaultElection = time.Second
	MinElection     = 500 * time.Millisecond
	MaxElection     = 5 * time.Second
)

// File is the content of [FileName]: what a node knows of itself and of its cluster before it can ask another node.
type File struct {
	Cluster     Cluster `json:"cluster"`
	Node        Node    `json:"node"`
	Certificate KeyPair `json:"certificate"`      // for the three ports, as server and client
	Operator    KeyPair `json:"operator"`         // for etcdctl on this machine
	BlobCache   int64   `json:"blob_cache_bytes"` // maximum size of the cache of pictures; 0: the default of the cache
	// EtcdStarted reports whether this node has ever started its etcd member. If so and etcd's folder is missing, the member must not start: it has
	// forgotten its votes. The caller sets it before the first start.
	EtcdStarted bool   `json:"etcd_started"`
	PublicURL   string `json:"public_url,omitempty"` // the same at all nodes; "": not known yet
	Peers       []Node `json:"peers,omitempty"`      // other nodes when the file was written, to find the cluster again
}

// Cluster is the part of a [File] that is the same on every node.
type Cluster struct {
	ID         string  `json:"id"`                // 16 random hex digits
	EtcdID     EtcdID  `json:"etcd_id,omitempty"` // 0: etcd has not started yet
	S3         string  `json:"s3"`                // URL of the bucket, without credentials
	ElectionMS int     `json:"election_ms"`       // etcd's election timeout in milliseconds; its heartbeat is a tenth
	Authority  KeyPair `json:"authority"`
	Key        Secret  `json:"key"` // encrypts the certificates of ACME in S3
}

// Election returns etcd's election timeout.
func (c Cluster) Election() time.Duration { return time.Duration(c.ElectionMS) * time.Millisecond }

// Node is a node of a cluster.
type Node struct {
	ID      string  `json:"id"` // 16 random hex digits; a machine that joins again gets another ID
	Address Address `json:"address"`
}

var errNodeID = errors.New("ID of a node is not 16 hex digits")

func (n Node) check() error {
	if !isID(n.ID) {
		return errNodeID
	}
	return n.Address.check()
}

// Options are the settings of a new cluster.
type Options struct {
	Address   Address       // of its first node
	S3        string        // URL of the bucket, without credentials; the caller checks it
	Election  time.Duration // etcd's election timeout; 0: DefaultElection
	BlobCache int64         // maximum size of the first node's cache in bytes; 0: the default of the cache
}

// Create returns the file of the first node of a new cluster, with a new authority. The caller saves it.
func Create(o Options, now time.Time, random io.Reader) (*File, error) {
	if o.Election == 0 {
		o.Election = DefaultElection
	}
	f := &File{Node: Node{Address: o.Address}, BlobCache: o.BlobCache}
	f.Cluster.S3, f.Cluster.ElectionMS = o.S3, int(o.Election.Milliseconds())
	var err error
	for _, id := range []*string{&f.Cluster.ID, &f.Node.ID} {
		if *id, err = NewID(random); err != nil {
			return nil, err
		}
	}
	if f.Cluster.Key, err = NewSecret(random); err != nil {
		return nil, err
	}
	a, err := NewAuthority(f.Cluster.ID, now, random)
	if err != nil {
		return nil, err
	}
	if f.Cluster.Authority, err = a.KeyPair(); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, err
	}
	certificate, err := a.IssueNode(f.Node, key.Public(), now, random)
	if err != nil {
		return nil, err
	}
	return f, f.complete(a, certificate, key, now, random)
}

// complete adds the node's certificate and a new one for its operator, and checks the file.
func (f *File) complete(a *Authority, certificate string, key *ecdsa.PrivateKey, now time.Time, random io.Reader) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	f.Certificate = KeyPair{certificate, encodePEM(keyBlock, private)}
	if f.Operator, err = a.IssueOperator(f.Node.ID, now, random); err != nil {
		return err
	}
	return f.check()
}

// Load reads the file of the data folder dir. If the folder has none, it belongs to no cluster and the error is fs.ErrNotExist. The error of a
// damaged file names it.
func Load(dir string) (*File, error) {
	name := filepath.Join(dir, FileName)
	b, err := system.ReadFile(name, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var f *File
	if err == nil {
		f, err = decode(b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use %s: %w", name, err)
	}
	return f, nil
}

// Save creates or atomically replaces the file of the data folder dir, which only its user can read. It is durable when Save returns nil.
// Save is not safe for concurrent use on one folder.
func (f *File) Save(dir string) (err error) {
	b, err := f.encode()
	if err != nil {
		return err
	}
	files, err := system.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return system.ReplaceIn(files, FileName, b)
}

// content is the JSON of a file.
type content struct {
	Version int `json:"version"`
	File
}

// encode returns the JSON of a valid file.
func (f *File) encode() ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(content{fileVersion, *f}, "", "  ")
	return append(b, '\n'), err
}

// errDamaged is the error of a file that encode did not write.
var errDamaged = errors.New("it is damaged: restore it, or move the data folder aside and join the cluster again with an empty one")

// decode parses the output of [File.encode].
func decode(b []byte) (*File, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, fmt.Errorf("%w (%w)", errDamaged, err)
	}
	if head.Version > fileVersion {
		return nil, fmt.Errorf("it has version %d and this program knows version %d: start a newer sightline", head.Version, fileVersion)
	}
	var c content
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(&c)
	if err == nil && c.Version != fileVersion {
		err = errors.New("version is missing")
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errDamaged, err)
	}
	return &c.File, nil
}

// check reports the first invalid field. It does not look at the lifetimes of certificates, because the file stays usable for a rotation.
func (f *File) check() error {
	if !isID(f.Cluster.ID) {
		return errors.New("ID of the cluster is not 16 hex digits")
	}
	if e := f.Cluster.Election(); e < MinElection || e > MaxElection {
		return fmt.Errorf("election timeout is %s: use one from %s to %s", e, MinElection, MaxElection)
	}
	if f.Cluster.S3 == "" {
		return errors.New("URL of the S3 bucket is missing")
	}
	if f.Cluster.Key == (Secret{}) {
		return errors.New("key of the cluster is missing")
	}
	if f.BlobCache < 0 {
		return errors.New("size of the cache of pictures is negative")
	}
	if err := f.Node.check(); err != nil {
		return err
	}
	ids := map[string]bool{f.Node.ID: true}
	for _, p := range f.Peers {
		if err := p.check(); err != nil {
			return fmt.Errorf("other node: %w", err)
		}
		if ids[p.ID] {
			return fmt.Errorf("node %s is listed twice", p.ID)
		}
		ids[p.ID] = true
	}
	return f.checkCertificates()
}

func (f *File) checkCertificates() error {
	a, err := ParseAuthority(f.Cluster.Authority)
	if err == nil && a.cluster != f.Cluster.ID {
		err = errors.New("certificate belongs to another cluster")
	}
	if err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	certificate, err := f.checkPair(a, f.Certificate, RoleNode, x509.ExtKeyUsageServerAuth)
	if err == nil {
		err = certificate.VerifyHostname(f.Node.Address.Host)
	}
	if err != nil {
		return fmt.Errorf("certificate of the node: %w", err)
	}
	if _, err := f.checkPair(a, f.Operator, RoleOperator, x509.ExtKeyUsageClientAuth); err != nil {
		return fmt.Errorf("certificate of the operator: %w", err)
	}
	return nil
}

// checkPair checks that a certificate fits its key, that the authority signed it, and that it names the file's node with the given role.
func (f *File) checkPair(a *Authority, pair KeyPair, role Role, usage x509.ExtKeyUsage) (*x509.Certificate, error) {
	c, _, err := pair.parse()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	_, err = c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: c.NotBefore, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return nil, err
	}
	if o, err := ownerOf(c); err != nil || o != (owner{f.Cluster.ID, role, f.Node.ID}) {
		return nil, errors.New("certificate has another owner")
	}
	return c, nil
}
