package fetch

import (
	"net/netip"
	"slices"
)

// special4 lists the IPv4 blocks without public hosts: IANA's special-purpose registry (RFC 6890 and its successors), multicast and the
// reserved class. It also contains one public address that a cloud uses for its own service.
var special4 = prefixes(
	"0.0.0.0/8",          // this network
	"10.0.0.0/8",         // private
	"100.64.0.0/10",      // shared by carriers; a cloud's metadata at 100.100.100.200
	"127.0.0.0/8",        // loopback
	"168.63.129.16/32",   // a cloud's platform service, outside any special block
	"169.254.0.0/16",     // link-local, with the metadata services
	"172.16.0.0/12",      // private
	"192.0.0.0/24",       // protocol assignments, with 192.0.0.192, a cloud's metadata
	"192.0.2.0/24",       // documentation
	"192.31.196.0/24",    // AS112
	"192.52.193.0/24",    // automatic multicast tunnels
	"192.88.99.0/24",     // relays of 6to4
	"192.168.0.0/16",     // private
	"192.175.48.0/24",    // AS112
	"198.18.0.0/15",      // benchmarks
	"198.51.100.0/24",    // documentation
	"203.0.113.0/24",     // documentation
	"224.0.0.0/4",        // multicast
	"240.0.0.0/4",        // reserved
	"255.255.255.255/32", // broadcast
)

// global6 is the only IPv6 space that is routed as global unicast. Addresses outside it need no list: loopback, link-local, site-local,
// unique local, multicast and v4-compatible addresses, NAT64 (64:ff9b::/96 and 64:ff9b:1::/48), the discard block and segment routing.
var global6 = netip.MustParsePrefix("2000::/3")

// special6 lists the blocks inside global6 without public hosts.
var special6 = prefixes(
	"2001::/23",         // protocol assignments: Teredo, benchmarks, ORCHID, drone ids
	"2001:db8::/32",     // documentation
	"2002::/16",         // 6to4: carries an IPv4 address
	"2620:4f:8000::/48", // AS112
	"3ffe::/16",         // the retired 6bone
	"3fff::/20",         // documentation
)

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// isPublicAddr reports whether a is the address of a public host: global unicast and in no special block. An IPv4 address inside an IPv6
// address (::ffff:a.b.c.d) is checked as IPv4. All other embeddings of IPv4 addresses (NAT64, 6to4, Teredo, ISATAP, v4-compatible) are not
// public.
//
// The standard library's IsGlobalUnicast and IsPrivate cannot replace isPublicAddr: together they accept 192.0.0.192, 100.100.100.200 and
// all of these embeddings.
func isPublicAddr(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if a.Is4() {
		return !within(a, special4)
	}
	return global6.Contains(a) && !within(a, special6) && !isatap(a)
}

func within(a netip.Addr, blocks []netip.Prefix) bool {
	return slices.ContainsFunc(blocks, func(b netip.Prefix) bool { return b.Contains(a) })
}

// isatap reports whether the interface identifier is 0000:5efe or 0200:5efe, followed by an IPv4 address (RFC 5214).
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
