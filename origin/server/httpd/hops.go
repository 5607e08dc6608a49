package httpd

import (
	"iter"
	"net/textproto"
	"strings"
)

// optionsOf returns the names of header lines in the values of Connection, in their canonical form.
func optionsOf(values iter.Seq[string]) map[string]bool {
	named := map[string]bool{}
	for value := range values {
		for option := range strings.SplitSeq(value, ",") {
			named[textproto.CanonicalMIMEHeaderKey(strings.Trim(option, " \t"))] = true
		}
	}
	return named
}

// isEndToEnd reports whether a node passes on header lines with a canonical name. named are the names in Connection. It passes on neither
// lines that concern one connection (RFC 9110, section 7.6.1), nor those that this package writes or that only nodes exchange.
func isEndToEnd(name string, named map[string]bool) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Expect", "X-Forwarded-For",
		headerApplied:
		return false
	}
	return !strings.HasPrefix(name, "Proxy-") && !named[name]
}
