package identity

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/origin/server/certificate"
)

// maxPort is the highest node port, because the two ports after it belong to etcd.
const maxPort = 65535 - 2

// maxAddress is the maximum length of an address in bytes: a host name of 253 bytes, a colon and a port.
const maxAddress = 253 + 1 + 5

// Address is the address of a node port. [ParseAddress] returns valid ones. In JSON it is a text, HOST:PORT.
type Address struct {
	Host string // lower-case host name, or IP address without brackets
	Port uint16
}

// ParseAddress parses HOST:PORT. Other nodes must be able to connect to it, so the host is required, and is not an unspecified or multicast
// address. The port is at most 65533. The error is one sentence with the fix.
func ParseAddress(text string) (Address, error) {
	if len(text) > maxAddress {
		return Address{}, fmt.Errorf("address of %d characters is too long: use a host name of at most 253 characters", len(text))
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("address %q is not HOST:PORT: use a form such as 10.0.0.5:7000, node1.example:7000 or [fd00::5]:7000", text)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n < 1 || n > maxPort {
		return Address{}, fmt.Errorf("address %q has an invalid port: use one from 1 to %d, since etcd uses the two ports after it", text, maxPort)
	}
	if host, err = parseHost(host); err != nil {
		return Address{}, fmt.Errorf("address %q %w", text, err)
	}
	return Address{host, uint16(n)}, nil
}

// parseHost returns the usual form of a host name or an IP address. Its errors continue a sentence that has the address as its subject.
func parseHost(host string) (string, error) {
	if host == "" {
		return "", errors.New("has no host: use a name or IP address at which the other nodes reach this one")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		switch ip = ip.Unmap(); {
		case ip.IsUnspecified():
			return "", fmt.Errorf("has the host %s, which means every interface: use the one IP address at which the other nodes reach this one", host)
		case ip.IsMulticast():
			return "", errors.New("is a multicast address: use an IP address of this machine")
		case ip.Zone() != "":
			return "", fmt.Errorf("has the zone %q, which only this machine knows: use an IP address without a zone", ip.Zone())
		}
		return ip.String(), nil
	}
	host = strings.ToLower(host)
	last := host[strings.LastIndexByte(host, '.')+1:]
	if !certificate.IsHostName(host) || strings.Trim(last, "0123456789") == "" { // 10.0.0.256 is a mistyped IP address
		return "", fmt.Errorf("has the invalid host %q: use a host name or an IP address", host)
	}
	return host, nil
}

// String returns HOST:PORT, with brackets around an IPv6 address.
func (a Address) String() string { return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port))) }

// EtcdPeer returns the URL for etcd's other members: the port after the node port.
func (a Address) EtcdPeer() *url.URL { return a.etcd(1) }

// EtcdClient returns the URL for etcd's clients: the second port after the node port.
func (a Address) EtcdClient() *url.URL { return a.etcd(2) }

func (a Address) etcd(after uint16) *url.URL {
	return &url.URL{Scheme: "https", Host: Address{a.Host, a.Port + after}.String()}
}

// MarshalText implements [encoding.TextMarshaler].
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (a *Address) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAddress(string(text))
	return err
}

// check reports an address that ParseAddress did not return, such as the zero value.
func (a Address) check() error {
	parsed, err := ParseAddress(a.String())
	if err == nil && parsed != a {
		err = fmt.Errorf("address %q is not in its usual form %q", a, parsed)
	}
	return err
}
