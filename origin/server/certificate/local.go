package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Names of the files that [CreateLocal] makes.
const (
	AuthorityFile    = "authority.pem"
	AuthorityKeyFile = "authority-key.pem"
	CertificateFile  = "certificate.pem"
	KeyFile          = "key.pem"
)

// Lifetimes of the certificates of [CreateLocal]. Some systems reject a server certificate of more than 398 days.
const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 397 * 24 * time.Hour
)

// Backdating is the time between the start of a certificate's validity and its creation, for clocks that are slow.
const Backdating = time.Hour

// ErrHost is returned for a text that is neither a host name nor an IP address.
var ErrHost = errors.New("not a host name or IP address")

// CreateLocal creates a certificate for hosts and for loopback, signed by an authority in the folder dir. fresh reports whether the
// authority is new too, so that users must trust it first. The authority can only sign for these hosts, so trusting it is safe for all
// other hosts. CreateLocal uses the authority again as long as it covers the hosts and outlives the certificate.
func CreateLocal(dir string, hosts []string, now time.Time, random io.Reader) (fresh bool, err error) {
	names, addresses, err := split(hosts)
	if err != nil {
		return false, err
	}
	if err := system.MakeFolder(dir); err != nil {
		return false, err
	}
	a, err := openAuthority(dir)
	if err != nil {
		return false, err
	}
	if a == nil || !a.covers(names, addresses) || a.certificate.NotAfter.Before(now.Add(certificateLife)) || now.Before(a.certificate.NotBefore) {
		fresh = true
		if a, err = newAuthority(dir, names, addresses, now, random); err != nil {
			return fresh, err
		}
	}
	return fresh, a.issue(dir, names, addresses, now, random)
}

// split separates names from addresses, and adds the names and addresses of loopback.
func split(hosts []string) (names []string, addresses []netip.Addr, err error) {
	addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	for _, host := range append([]string{"localhost"}, hosts...) {
		if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
			addresses = append(addresses, a.Unmap())
		} else if host = strings.ToLower(host); IsHostName(host) {
			names = append(names, host)
		} else {
			return nil, nil, fmt.Errorf("%q: %w", host, ErrHost)
		}
	}
	slices.Sort(names)
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(names), slices.Compact(addresses), nil
}

// IsHostName reports whether name consists of labels of lower-case letters, digits and hyphens, separated by dots.
func IsHostName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// openAuthority returns the authority in a folder, or nil if the folder has none.
func openAuthority(dir string) (*authority, error) {
	certificate, err := readPEM(filepath.Join(dir, AuthorityFile), "CERTIFICATE")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := readPEM(filepath.Join(dir, AuthorityKeyFile), "PRIVATE KEY")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the user may have removed the key: CreateLocal then creates a new authority
	}
	if err != nil {
		return nil, err
	}
	a := &authority{}
	if a.certificate, err = x509.ParseCertificate(certificate); err != nil {
		return nil, fmt.Errorf("%s: %w", AuthorityFile, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AuthorityKeyFile, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !private.PublicKey.Equal(a.certificate.PublicKey) {
		return nil, fmt.Errorf("%s is not the private key of %s", AuthorityKeyFile, AuthorityFile)
	}
	a.key = private
	return a, nil
}

func (a *authority) covers(names []string, addresses []netip.Addr) bool {
	for _, name := range names {
		if !slices.Contains(a.certificate.PermittedDNSDomains, name) {
			return false
		}
	}
	for _, address := range addresses {
		if !slices.ContainsFunc(a.certificate.PermittedIPRanges, func(n *net.IPNet) bool { return n.Contains(address.AsSlice()) }) {
			return false
		}
	}
	return true
}

func newAuthority(dir string, names []string, addresses []netip.Addr, now time.Time, random io.Reader) (*authority, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Sightline"}, CommonName: "Sightline local authority, created " + now.UTC().Format(time.DateOnly)},
		NotBefore: now.Add(-Backdating), NotAfter: now.Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names,
	}
	for _, a := range addresses {
		template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())})
	}
	der, key, err := sign(template, nil, random)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, errors.Join(writeKey(filepath.Join(dir, AuthorityKeyFile), key), writeCertificate(filepath.Join(dir, AuthorityFile), der))
}

// issue writes a server's certificate and its key.
func (a *authority) issue(dir string, names []string, addresses []netip.Addr, now time.Time, random io.Reader) error {
	template := &x509.Certificate{
		Subject:   pkix.Name{Organization: []string{"Sightline"}, CommonName: names[0]},
		NotBefore: now.Add(-Backdating), NotAfter: now.Add(certificateLife), DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, a := range addresses {
		template.IPAddresses = append(template.IPAddresses, a.AsSlice())
	}
	der, key, err := sign(template, a, random)
	if err != nil {
		return err
	}
	return errors.Join(writeKey(filepath.Join(dir, KeyFile), key), writeCertificate(filepath.Join(dir, CertificateFile), der))
}

// sign creates a certificate with a new key. The authority by signs it. If by is nil, the new key signs it itself.
func sign(template *x509.Certificate, by *authority, random io.Reader) (der []byte, key *ecdsa.PrivateKey, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), random); err != nil {
		return nil, nil, err
	}
	if by == nil {
		by = &authority{template, key}
	}
	der, err = x509.CreateCertificate(random, template, by.certificate, key.Public(), by.key)
	return der, key, err
}

func writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(name, "PRIVATE KEY", 0o600, der)
}

func writeCertificate(name string, der []byte) error {
	return writePEM(name, "CERTIFICATE", 0o644, der)
}

func writePEM(name, kind string, mode fs.FileMode, der []byte) error {
	return system.ReplaceFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

func readPEM(name, kind string) ([]byte, error) {
	b, err := system.ReadFile(name, maxFile)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s is not a PEM file with a %s", name, strings.ToLower(kind))
	}
	return block.Bytes, nil
}
