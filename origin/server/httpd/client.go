package httpd

import (
	"net/netip"
	"strings"

	"github.com/valyala/fasthttp"
)

// client returns the IP address of the client: the connection's peer or, if the peer is the operator's proxy, the address that it names.
//
//	X-Forwarded-For: any text of the client, 203.0.113.7
//	                                          └ written by the proxy itself, the last of the last line
//
// If the proxy names no address, the proxy counts as the client, so its clients share one limit. Another node of the cluster names its client
// in the same way.
func (s *Server) client(ctx *fasthttp.RequestCtx) netip.Addr {
	peer := address(ctx.RemoteAddr().String())
	if a, ok := s.forwarded(ctx, peer); ok {
		return a
	}
	return peer
}

// isLocal reports whether the client is on this machine. Behind a proxy the client is local only if the proxy names its address. A client of
// another node is never local.
func (s *Server) isLocal(ctx *fasthttp.RequestCtx) bool {
	if isFromNode(ctx) {
		return false
	}
	a := address(ctx.RemoteAddr().String())
	if s.o.BehindProxy {
		var ok bool
		if a, ok = s.forwarded(ctx, a); !ok {
			return false
		}
	}
	return a.IsLoopback()
}

// isFromNode reports whether another node of the cluster has forwarded a request.
func isFromNode(ctx *fasthttp.RequestCtx) bool { return connOf(ctx).gate.nodes }

// forwarded returns the address that another node or the operator's proxy names. ok is false if the peer is neither or names no address.
func (s *Server) forwarded(ctx *fasthttp.RequestCtx, peer netip.Addr) (client netip.Addr, ok bool) {
	if !isFromNode(ctx) && (!s.o.BehindProxy || !peer.IsLoopback() && !peer.IsPrivate()) {
		return netip.Addr{}, false
	}
	line := lastField(ctx.Request.Header.RawHeaders(), fasthttp.HeaderXForwardedFor)
	last := strings.Trim(line[strings.LastIndexByte(line, ',')+1:], " \t")
	if a, err := netip.ParseAddr(last); err == nil && a.Zone() == "" && !a.IsUnspecified() {
		return a.Unmap(), true
	}
	return netip.Addr{}, false
}

// address parses "ip:port", the form of a connection's ends. It returns the zero Addr for an invalid text.
func address(text string) netip.Addr {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// network returns the key of per-client limits: an IPv4 address, or the /64 network of an IPv6 address, since an IPv6 client may choose any
// address in it. It returns "" for the zero address.
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
