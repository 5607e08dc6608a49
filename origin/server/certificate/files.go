// Package certificate provides a server's TLS certificates.
//
//	files ──▶ OpenFiles     two PEM files, read again when they change
//	        │ autocert (golang.org/x/crypto) is used as it is
//	none ───▶ CreateLocal   a certificate authority of one's own, good for a few names of this machine
package certificate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// maxFile is the maximum size of a PEM file.
const maxFile = 1 << 20

// recheck is the minimum time between two checks of the files.
const recheck = time.Second

// Files is a certificate in two files, which another program may replace while the server runs. It is safe for concurrent use.
type Files struct {
	certificate, key string
	now              func() time.Time
	log              *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	state   [2]state // state of both files at the last attempt to read them
	checked time.Time
}

// state identifies a version of a file.
type state struct {
	changed time.Time
	size    int64
}

// OpenFiles reads a PEM certificate chain, the server's certificate first, and its PEM private key.
func OpenFiles(certificate, key string, now func() time.Time, log *slog.Logger) (*Files, error) {
	f := &Files{certificate: certificate, key: key, now: now, log: log, checked: now()}
	var err error
	if f.state, err = f.look(); err != nil {
		return nil, err
	}
	f.current, err = f.read()
	return f, err
}

// Current returns the certificate of the last check.
func (f *Files) Current() *tls.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current
}

// Certificate implements tls.Config.GetCertificate. It checks the files at most once a second. While the two files do not match, for
// example between their replacements, it returns the previous certificate.
func (f *Files) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if now.Sub(f.checked) < recheck && !now.Before(f.checked) {
		return f.current, nil
	}
	f.checked = now
	state, err := f.look()
	if err == nil && state == f.state {
		return f.current, nil
	}
	fresh := state != f.state
	f.state = state
	var read *tls.Certificate
	if err == nil {
		read, err = f.read()
	}
	switch {
	case err == nil:
		f.current = read
		f.log.Info("certificate loaded", "names", read.Leaf.DNSNames, "until", read.Leaf.NotAfter.UTC().Format(time.RFC3339))
	case fresh: // report each change once
		f.log.Error("cannot load certificate files; still using the previous certificate", "error", err)
	}
	return f.current, nil
}

func (f *Files) look() (states [2]state, err error) {
	for i, name := range []string{f.certificate, f.key} {
		var e error
		states[i].changed, states[i].size, e = system.ModTimeAndSize(name)
		err = errors.Join(err, e)
	}
	return states, err
}

func (f *Files) read() (*tls.Certificate, error) {
	certificate, err := system.ReadFile(f.certificate, maxFile)
	if err != nil {
		return nil, err
	}
	key, err := system.ReadFile(f.key, maxFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", f.certificate, f.key, err)
	}
	return &pair, nil
}
