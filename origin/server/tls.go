package server

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/knadh/koanf/v2"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/sightline-dev/sightline/origin/server/certificate"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TLSSettings has the source of the certificate. The zero value means plain HTTP.
type TLSSettings struct {
	Certificate, Key        string   // paths of PEM files
	Domains                 []string // names of the certificate to get by ACME
	Email, Cache, Directory string
	Shared                  autocert.Cache // certificates that several machines share; nil: they are in the folder Cache

	Authority *http.Client // client for the ACME server at Directory; nil: http.DefaultClient. Only tests set it
}

func (s *TLSSettings) on() bool { return s.Certificate != "" || len(s.Domains) > 0 }

func parseSecure(k *koanf.Koanf) (s TLSSettings, err error) {
	s = TLSSettings{
		Certificate: k.String("tls-cert"), Key: k.String("tls-key"), Email: k.String("acme-email"),
		Cache: k.String("acme-cache"), Directory: k.String("acme-directory"),
	}
	for _, domain := range parseWords(k, "acme-domain") {
		domain = strings.ToLower(strings.TrimSuffix(domain, "."))
		if _, err := netip.ParseAddr(domain); err == nil || !strings.Contains(domain, ".") || strings.ContainsAny(domain, " /:*@") {
			return s, Usagef("acme-domain: %q is not a fully qualified domain name", domain)
		}
		s.Domains = append(s.Domains, domain)
	}
	switch {
	case (s.Certificate == "") != (s.Key == ""):
		return s, Usagef("tls-cert and tls-key must be set together")
	case s.Certificate != "" && len(s.Domains) > 0:
		return s, Usagef("tls-cert and acme-domain cannot be combined")
	case len(s.Domains) == 0 && (s.Email != "" || s.Cache != "" || s.Directory != ""):
		return s, Usagef("acme-email, acme-cache and acme-directory: --acme-domain is required")
	}
	if u, err := url.Parse(s.Directory); s.Directory != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
		return s, Usagef("acme-directory: %q is not an https:// URL", s.Directory)
	}
	return s, nil
}

// open returns the TLS configuration, and the first name of its certificate that has no wildcard
// ("" if there is none). For plain HTTP c is nil. data is the data folder.
func (s *TLSSettings) open(data string, log *slog.Logger) (c *tls.Config, name string, err error) {
	if s.Certificate != "" {
		files, err := certificate.OpenFiles(s.Certificate, s.Key, system.Now, log)
		if err != nil {
			return nil, "", err
		}
		names := files.Current().Leaf.DNSNames
		if i := slices.IndexFunc(names, func(n string) bool { return !strings.Contains(n, "*") }); i >= 0 {
			name = names[i]
		}
		return &tls.Config{GetCertificate: files.Certificate}, name, nil
	}
	if len(s.Domains) == 0 {
		return nil, "", nil
	}
	cache := s.Cache
	if cache == "" {
		cache = filepath.Join(data, "acme")
	}
	store := s.Shared
	if store == nil {
		store = autocert.DirCache(cache)
	}
	manager := &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: store, HostPolicy: autocert.HostWhitelist(s.Domains...), Email: s.Email,
	}
	if s.Directory != "" {
		manager.Client = &acme.Client{DirectoryURL: s.Directory, HTTPClient: s.Authority}
	}
	getCertificate := logTLSFailures(manager.GetCertificate, s.Domains, system.Now, log)
	return &tls.Config{GetCertificate: getCertificate, NextProtos: []string{acme.ALPNProto}}, s.Domains[0], nil
}

// certificates is the type of tls.Config.GetCertificate.
type certificates = func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// logTLSFailures returns a function that calls get and logs its errors for the names in ours, at most
// once a minute, because every connection needs a certificate. It does not log errors for other
// names: clients of the Internet request them all the time.
func logTLSFailures(get certificates, ours []string, now func() time.Time, log *slog.Logger) certificates {
	var (
		mu   sync.Mutex
		last time.Time
	)
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := get(hello)
		if err != nil && slices.Contains(ours, strings.ToLower(hello.ServerName)) {
			mu.Lock()
			defer mu.Unlock()
			if at := now(); at.Sub(last) >= time.Minute {
				last = at
				log.Error("cannot get a certificate by ACME", "name", hello.ServerName, "error", err)
			}
		}
		return c, err
	}
}

// publicURL returns the URL of a server that listens on address. An HTTPS URL has the name of the certificate, if that is not empty.
func publicURL(address net.Addr, secure bool, name string) string {
	if !secure {
		return "http://" + address.String()
	}
	_, port, err := net.SplitHostPort(address.String())
	if err != nil || name == "" {
		return "https://" + address.String()
	}
	if port == "443" {
		return "https://" + name
	}
	return "https://" + net.JoinHostPort(name, port)
}

// strict reports whether the server makes browsers use only HTTPS for its name (HSTS). It does not for an IP address or a localhost name:
// browsers could then not open other servers of that name by HTTP.
func strict(publicURL string) bool {
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "https" {
		return false
	}
	_, notName := netip.ParseAddr(u.Hostname())
	return notName != nil && u.Hostname() != "localhost" && !strings.HasSuffix(u.Hostname(), ".localhost")
}
