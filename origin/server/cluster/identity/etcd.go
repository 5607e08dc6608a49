package identity

import (
	"bytes"
	"errors"
	"path/filepath"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// tlsDir is the folder of the files that [File.WriteTLS] writes.
const tlsDir = "etcd-tls"

// TLSFiles are the paths of the PEM files of etcd and etcdctl.
//
// etcd's ports need ClientCertAuth and TLS 1.3. Its peer port also needs two more settings of TLSInfo. AllowedCNs with [RoleNode] refuses the
// operator. SkipClientSANVerify accepts a node that connects from another IP address than that of its node port, for example by another
// network interface or through NAT.
type TLSFiles struct {
	Authority                        string // TrustedCAFile of etcd, and --cacert of etcdctl
	Certificate, Key                 string // CertFile and KeyFile of etcd
	OperatorCertificate, OperatorKey string // --cert and --key of etcdctl
}

// WriteTLS writes the certificates of the file into a folder of the data folder dir, since etcd and etcdctl read them from files. Only the
// folder's user can read them. A file that has its content already is not written, so that a node with a full disk starts. The caller calls
// WriteTLS at each start, before etcd starts.
func (f *File) WriteTLS(dir string) (_ TLSFiles, err error) {
	dir = filepath.Join(dir, tlsDir)
	files, err := system.OpenFolder(dir)
	if err != nil {
		return TLSFiles{}, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	paths := TLSFiles{
		Authority:   filepath.Join(dir, "authority.pem"),
		Certificate: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node-key.pem"),
		OperatorCertificate: filepath.Join(dir, "operator.pem"), OperatorKey: filepath.Join(dir, "operator-key.pem"),
	}
	for path, text := range map[string]string{
		paths.Authority: f.Cluster.Authority.Certificate, paths.Certificate: f.Certificate.Certificate, paths.Key: f.Certificate.Key,
		paths.OperatorCertificate: f.Operator.Certificate, paths.OperatorKey: f.Operator.Key,
	} {
		name := filepath.Base(path)
		have, err := system.ReadIn(files, name, maxFile)
		if err == nil && bytes.Equal(have, []byte(text)) {
			err = system.RestrictMode(path)
		} else {
			err = system.ReplaceIn(files, name, []byte(text))
		}
		if err != nil {
			return TLSFiles{}, err
		}
	}
	return paths, nil
}
