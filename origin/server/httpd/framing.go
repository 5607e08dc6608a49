package httpd

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// maxFields is the maximum number of header lines. The size of the read buffer limits the bytes.
const maxFields = 100

// framing is the part of a header that determines the end of its body.
type framing struct {
	contentLength, transferEncoding, host int
	single                                [len(single)]bool // single header lines that have occurred
}

// single lists further header lines that must not occur twice. Otherwise a program that reads the first and one that reads the last line
// would see another user, another origin or another request.
var single = [...]string{
	"authorization", "x-clarifai-session-token", "cookie", "origin", "sec-fetch-site", "x-sightline-csrf", "content-type", "expect",
}

// checkFraming refuses a request whose header two programs could read differently: a proxy between the server and the client may see
// another body, another host or another user in it. The library alone accepts both lengths at once, "identity", folded lines, spaces in
// names and repeated credentials.
//
// header is the block of header lines with its final empty line, unchanged; http11 reports whether the request line claims HTTP/1.1.
func checkFraming(header []byte, http11 bool) error {
	var f framing
	for n := 0; len(header) > 0; n++ {
		end := bytes.IndexByte(header, '\n')
		if end < 1 || header[end-1] != '\r' {
			return fmt.Errorf("%w: a header line does not end with CR LF", errFraming)
		}
		line := header[:end-1]
		header = header[end+1:]
		if len(line) == 0 {
			if len(header) > 0 {
				return fmt.Errorf("%w: text after the end of the header", errFraming)
			}
			break
		}
		if n == maxFields {
			return fmt.Errorf("%w: more than %d header lines", errFraming, maxFields)
		}
		if err := f.line(line); err != nil {
			return err
		}
	}
	return f.verdict(http11)
}

// line checks one header line and counts it.
func (f *framing) line(line []byte) error {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok || len(name) == 0 {
		return fmt.Errorf("%w: a header line has no name", errFraming)
	}
	for _, c := range name {
		if !httpguts.IsTokenRune(rune(c)) {
			return fmt.Errorf("%w: invalid byte %#02x in the name of a header line", errFraming, c)
		}
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("%w: invalid byte %#02x in a header line", errFraming, c)
		}
	}
	text := strings.Trim(string(value), " \t")
	lower := strings.ToLower(string(name))
	if i := slices.Index(single[:], lower); i >= 0 {
		if f.single[i] {
			return fmt.Errorf("%w: two %s lines", errFraming, single[i])
		}
		f.single[i] = true
	}
	switch lower {
	case "content-length":
		f.contentLength++
		if len(text) == 0 || len(text) > 15 || strings.Trim(text, "0123456789") != "" {
			return fmt.Errorf("%w: invalid Content-Length", errFraming)
		}
	case "transfer-encoding":
		f.transferEncoding++
		if !strings.EqualFold(text, "chunked") {
			return fmt.Errorf("%w: Transfer-Encoding is not chunked", errFraming)
		}
	case "host":
		f.host++
		if text == "" || strings.ContainsAny(text, " \t,/\\@?#") {
			return fmt.Errorf("%w: invalid Host", errFraming)
		}
	case "expect":
		if !strings.EqualFold(text, "100-continue") {
			return errExpectation
		}
	case "connection":
		return checkConnection(text)
	case "content-encoding":
		if text != "" && !strings.EqualFold(text, "identity") {
			return errEncoding
		}
	case "content_length", "transfer_encoding": // some gateways convert hyphens to underscores
		return fmt.Errorf("%w: underscore in %s", errFraming, name)
	}
	return nil
}

// checkConnection refuses Connection options that ask the next hop to drop a header line that the server needs.
func checkConnection(value string) error {
	for option := range strings.SplitSeq(value, ",") {
		option = strings.ToLower(strings.Trim(option, " \t"))
		switch option {
		case "content-length", "transfer-encoding", "host", "x-forwarded-for":
			return fmt.Errorf("%w: Connection names a required header line", errFraming)
		}
		if slices.Contains(single[:], option) {
			return fmt.Errorf("%w: Connection names a required header line", errFraming)
		}
	}
	return nil
}

// verdict checks the combination of all header lines.
func (f *framing) verdict(http11 bool) error {
	switch {
	case f.contentLength > 1, f.transferEncoding > 1, f.host > 1:
		return fmt.Errorf("%w: a header line is repeated that must occur once", errFraming)
	case f.contentLength > 0 && f.transferEncoding > 0:
		return fmt.Errorf("%w: both Content-Length and Transfer-Encoding", errFraming)
	case f.transferEncoding > 0 && !http11:
		return fmt.Errorf("%w: Transfer-Encoding needs HTTP/1.1", errFraming)
	case http11 && f.host == 0:
		return fmt.Errorf("%w: Host is missing", errFraming)
	}
	return nil
}

// checkTarget refuses an invalid path. It returns the encoded path and query of an origin-form or absolute-form target.
func checkTarget(method, target string) (path, query string, err error) {
	if target == "*" && method == "OPTIONS" {
		return "*", "", nil
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '\\' {
			return "", "", fmt.Errorf("%w: invalid byte %#02x in the URL", errFraming, c)
		}
	}
	if !strings.HasPrefix(target, "/") {
		lower := strings.ToLower(target[:min(8, len(target))])
		rest := ""
		switch {
		case strings.HasPrefix(lower, "http://"):
			rest = target[len("http://"):]
		case lower == "https://":
			rest = target[len("https://"):]
		default:
			return "", "", fmt.Errorf("%w: the URL has no path", errFraming)
		}
		slash := strings.IndexAny(rest, "/?")
		if slash == 0 || strings.Contains(rest[:max(slash, 0)], "@") {
			return "", "", fmt.Errorf("%w: the URL has no path", errFraming)
		}
		target = "/"
		if slash > 0 {
			target = "/" + strings.TrimPrefix(rest[slash:], "/")
		}
	}
	path, query, _ = strings.Cut(target, "?")
	return path, query, nil
}

// lines yields the names and the values of the lines of a header that has passed [checkFraming].
func lines(header []byte) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for len(header) > 0 {
			line, rest, _ := bytes.Cut(header, []byte("\r\n"))
			header = rest
			name, value, ok := bytes.Cut(line, []byte{':'})
			if ok && !yield(string(name), strings.Trim(string(value), " \t")) {
				return
			}
		}
	}
}

// fields yields the values of the lines with a given name, in a header that has passed [checkFraming].
func fields(header []byte, name string) iter.Seq[string] {
	return func(yield func(value string) bool) {
		for len(header) > 0 {
			line, rest, _ := bytes.Cut(header, []byte("\r\n"))
			header = rest
			n, v, ok := bytes.Cut(line, []byte{':'})
			if ok && len(n) == len(name) && strings.EqualFold(string(n), name) && !yield(strings.Trim(string(v), " \t")) {
				return
			}
		}
	}
}

// field returns the value of the first line with the given name, or "" if the header has none.
func field(header []byte, name string) string {
	for value := range fields(header, name) {
		return value
	}
	return ""
}

// lastField returns the value of the last line with the given name, or "" if the header has none.
func lastField(header []byte, name string) (value string) {
	for value = range fields(header, name) {
	}
	return value
}
