package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxURLBytes is the maximum length of a URL; browsers and proxies have similar limits.
const maxURLBytes = 8 << 10

// errURL is returned for a URL that the policy refuses.
var errURL = errors.New("the URL is not allowed")

// Policy checks whether a URL may be fetched, before its host name is resolved.
type Policy struct {
	AllowPrivate bool     // any address and any port; only for tests and closed networks
	Ports        []uint16 // allowed in addition to 80 and 443
}

// Parse reads rawURL by stricter rules than net/url, so that no other reader of the same text sees another host in it. It permits http or
// https, no user information, no backslash, space or control character, and an allowed port. The host must be a plain IP address or a name
// of letters, digits, hyphens and underscores whose last label is not a number. Parse maps international names to ASCII, and removes spaces
// around the URL.
func (p Policy) Parse(rawURL string) (*url.URL, error) {
	rawURL = strings.Trim(rawURL, " ")
	if err := plain(rawURL); err != nil {
		return nil, err
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", errURL, err)
	}
	return p.parse(u)
}

// plain refuses text that different readers of URLs interpret differently.
func plain(rawURL string) error {
	if len(rawURL) > maxURLBytes {
		return fmt.Errorf("%w: %d bytes are too many", errURL, len(rawURL))
	}
	for _, c := range []byte(rawURL) {
		if c <= ' ' || c == 0x7f || c == '\\' {
			return fmt.Errorf("%w: it contains byte %#02x", errURL, c)
		}
	}
	return nil
}

// parse checks a URL that net/url has read and returns its canonical form.
func (p Policy) parse(u *url.URL) (*url.URL, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: scheme %q is not http or https", errURL, u.Scheme)
	case u.Opaque != "":
		return nil, fmt.Errorf("%w: it has no host", errURL)
	case u.User != nil:
		return nil, fmt.Errorf("%w: it contains a user name", errURL)
	}
	host, err := canonicalHost(u.Hostname(), strings.HasPrefix(u.Host, "["))
	if err != nil {
		return nil, err
	}
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	if err := p.port(port); err != nil {
		return nil, err
	}
	out := *u
	out.Fragment, out.RawFragment = "", ""
	out.Host = host
	if port != defaultPort(u.Scheme) {
		out.Host += ":" + strconv.Itoa(int(port))
	}
	if err := plain(out.String()); err != nil { // encoding may have lengthened it
		return nil, err
	}
	return &out, nil
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	if text == "" {
		if strings.HasSuffix(u.Host, ":") {
			return 0, fmt.Errorf("%w: empty port", errURL)
		}
		return defaultPort(u.Scheme), nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' {
		return 0, fmt.Errorf("%w: %q is not a port", errURL, text)
	}
	return uint16(n), nil
}

func defaultPort(scheme string) uint16 {
	if scheme == "https" {
		return 443
	}
	return 80
}

// port refuses a port that is not allowed.
func (p Policy) port(n uint16) error {
	if p.AllowPrivate || n == 80 || n == 443 || slices.Contains(p.Ports, n) {
		return nil
	}
	return fmt.Errorf("%w: port %d is not permitted", errURL, n)
}

// canonicalHost returns host in the form for a dial: an IP literal, in brackets if it is IPv6, or an ASCII name in lower case.
func canonicalHost(host string, bracketed bool) (string, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		switch {
		case a.Zone() != "":
			return "", fmt.Errorf("%w: it contains an IPv6 zone", errURL)
		case a.Is4() == bracketed:
			return "", fmt.Errorf("%w: brackets need an IPv6 address", errURL)
		case bracketed:
			return "[" + a.String() + "]", nil
		}
		return a.String(), nil
	}
	if bracketed || strings.Contains(host, "%") {
		return "", fmt.Errorf("%w: invalid host %q", errURL, host)
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		// Names with an underscore, such as "a_b", are invalid in IDNA but resolve.
		ascii = strings.ToLower(host)
	}
	if err := checkName(ascii); err != nil {
		return "", err
	}
	return ascii, nil
}

// checkName accepts only names of the DNS. It refuses every name that an old resolver may read as a number ("127.1", "0x7f.1",
// "2130706433").
func checkName(name string) error {
	trimmed := strings.TrimSuffix(name, ".")
	if trimmed == "" || len(trimmed) > 253 {
		return fmt.Errorf("%w: invalid host %q", errURL, name)
	}
	labels := strings.Split(trimmed, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.Trim(label, nameBytes) != "" {
			return fmt.Errorf("%w: invalid host %q", errURL, name)
		}
	}
	if last := labels[len(labels)-1]; numeric(last) {
		return fmt.Errorf("%w: host %q ends in a number", errURL, name)
	}
	return nil
}

const nameBytes = "abcdefghijklmnopqrstuvwxyz0123456789-_"

// numeric reports whether inet_aton would read label as a number: decimal, octal or 0x….
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
