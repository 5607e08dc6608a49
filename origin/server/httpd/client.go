package httpd

import (
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// client returns the address of the caller: the connection's peer or, if that is our proxy, the address that it names.
//
//	X-Forwarded-For: any text of the client, 203.0.113.7
//	                                          └ written by the proxy itself, the last of the last line
//
// A proxy that names nobody counts as the client: a shared limit errs on the safe side.
func (s *Server) client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer := address(ctx.RemoteAddr().String())
	if !s.o.BehindProxy || !peer.IsLoopback() && !peer.IsPrivate() {
		return peer
	}
	line := lastField(ctx.Request.Header.RawHeaders(), fasthttp.HeaderXForwardedFor)
	last := strings.Trim(line[strings.LastIndexByte(line, ',')+1:], " \t")
	if a, err := netip.ParseAddr(last); err == nil && a.Zone() == "" && !a.IsUnspecified() {
		return a.Unmap()
	}
	return peer
}

// address reads "ip:port", as connections name their ends. It returns the zero Addr for an invalid text.
func address(text string) netip.Addr {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// network is the text that limits are kept by: an IPv4 address, or the /64 that an IPv6 client
// may choose its addresses from. It is empty for no address.
func network(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return ""
	case a.Is4():
		return a.String()
	}
	p, err := a.Prefix(64)
	if err != nil {
		return a.String()
	}
	return p.String()
}
