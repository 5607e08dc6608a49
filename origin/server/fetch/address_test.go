package fetch

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/doyensec/safeurl"

	"github.com/sightline-dev/sightline/core/testkit"
)

func TestPublic(t *testing.T) {
	tests := []struct {
		address string
		want    bool
	}{
		{"93.184.216.34", true},
		{"1.1.1.1", true},
		{"9.255.255.255", true},
		{"11.0.0.0", true},
		{"100.63.255.255", true},
		{"100.128.0.0", true},
		{"172.15.255.255", true},
		{"172.32.0.0", true},
		{"192.0.1.0", true},
		{"192.167.255.255", true},
		{"198.17.255.255", true},
		{"198.20.0.0", true},
		{"223.255.255.255", true},
		{"168.63.129.15", true},
		{"168.63.129.17", true},
		{"2606:2800:220:1:248:1893:25c8:1946", true},
		{"2001:200::1", true},
		{"2003::1", true},
		{"3fff:1000::1", true},
		{"::ffff:93.184.216.34", true},

		{"0.0.0.0", false},
		{"10.255.255.255", false},
		{"100.64.0.0", false},
		{"100.100.100.200", false},
		{"100.127.255.255", false},
		{"127.0.0.1", false},
		{"168.63.129.16", false},
		{"169.254.169.254", false},
		{"172.16.0.0", false},
		{"172.31.255.255", false},
		{"192.0.0.192", false},
		{"192.168.0.0", false},
		{"198.19.255.255", false},
		{"224.0.0.0", false},
		{"239.255.255.255", false},
		{"240.0.0.0", false},
		{"255.255.255.255", false},
		{"::", false},
		{"::1", false},
		{"::ffff:10.0.0.1", false},
		{"::127.0.0.1", false},
		{"64:ff9b::5db8:d822", false},
		{"64:ff9b:1::1", false},
		{"100::1", false},
		{"1fff:ffff::1", false},
		{"4000::1", false},
		{"2001::1", false},
		{"2001:1ff:ffff::1", false},
		{"2001:db8::1", false},
		{"2002:5db8:d822::1", false},
		{"2620:4f:8000::1", false},
		{"3ffe::1", false},
		{"3fff:fff:ffff::1", false},
		{"fc00::1", false},
		{"fe80::1", false},
		{"fec0::1", false},
		{"ff02::1", false},
		{"2400:cb00::5efe:7f00:1", false},
		{"2400:cb00::200:5efe:7f00:1", false},
		{"2400:cb00::1%eth0", false},
	}
	for _, tt := range tests {
		if got := isPublicAddr(netip.MustParseAddr(tt.address)); got != tt.want {
			t.Errorf("Public(%s) = %v, want %v", tt.address, got, tt.want)
		}
	}
	if isPublicAddr(netip.Addr{}) {
		t.Error("Public(no address) = true")
	}
}

// known are the blocks that isPublicAddr refuses and the oracle, safeurl v0.2.2, accepts.
var known = prefixes(
	"168.63.129.16/32", "192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", // IPv4
	"::/3",     // v4-compatible, NAT64's local prefix, and unassigned blocks
	"4000::/2", // unassigned
	"8000::/1", // site-local and unassigned
	"2620:4f:8000::/48", "3ffe::/16", "3fff::/20",
)

// TestPublicAgainstOracles checks both sides of every block's borders and 200,000 random addresses. isPublicAddr refuses each address that
// safeurl or net/netip considers unsafe. An address that only isPublicAddr refuses is in the list of known differences.
func TestPublicAgainstOracles(t *testing.T) {
	testkit.SkipRace(t)
	const seed = 20261121
	blocked := safeurlOracle(t)
	check := func(a netip.Addr) {
		t.Helper()
		ours, theirs := isPublicAddr(a), blocked(a)
		if ours && theirs {
			t.Errorf("%v: safeurl refuses it, we do not", a)
		}
		if ours && (!a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast()) {
			t.Errorf("%v: net/netip knows it is special, we do not", a)
		}
		if !ours && !theirs && !within(a.Unmap(), known) && !isatap(a) {
			t.Errorf("%v: only we refuse it, for no known reason", a)
		}
	}
	for _, blocks := range [][]netip.Prefix{special4, special6, known, {global6}} {
		for _, b := range blocks {
			first := b.Masked().Addr()
			last := lastOf(b)
			for _, a := range []netip.Addr{first, first.Prev(), first.Next(), last, last.Prev(), last.Next()} {
				if a.IsValid() {
					check(a)
				}
			}
		}
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		var b4 [4]byte
		var b16 [16]byte
		for i := range b4 {
			b4[i] = byte(rnd.Uint32())
		}
		for i := range b16 {
			b16[i] = byte(rnd.Uint32())
		}
		if rnd.IntN(2) == 0 { // near the top of 2000::/3, which has the special blocks
			b16[0] = 0x20 | b16[0]&0x1f&byte(rnd.Uint32())
			b16[1] &= byte(rnd.Uint32() & (rnd.Uint32() >> 8))
		}
		check(netip.AddrFrom4(b4))
		check(netip.AddrFrom16(b16))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := range b {
		for bit := range 8 {
			if i*8+bit >= p.Bits() {
				b[i] |= 0x80 >> bit
			}
		}
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// safeurlOracle returns a function that reports whether safeurl's dialler refuses an address. It connects a datagram socket and sends
// nothing, so no packet leaves the machine.
func safeurlOracle(t *testing.T) func(netip.Addr) bool {
	config := safeurl.GetConfigBuilder().EnableIPv6(true).SetAllowedPorts(80).Build()
	dial := safeurl.Client(config).Client.Transport.(*http.Transport).DialContext
	blocked := func(a netip.Addr) bool {
		c, err := dial(context.Background(), "udp", net.JoinHostPort(a.String(), "80"))
		if err == nil {
			_ = c.Close()
			return false
		}
		var no *safeurl.AllowedIPError
		return errors.As(err, &no)
	}
	if !blocked(netip.MustParseAddr("10.0.0.1")) || blocked(netip.MustParseAddr("1.1.1.1")) {
		t.Fatal("the oracle does not tell a private address from a public one")
	}
	return blocked
}
