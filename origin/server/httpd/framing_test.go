package httpd

import (
	"strings"
	"testing"
)

// second is a request that hides in the body of another. If the server answers it, the attack worked.
const second = "GET /second HTTP/1.1\r\nHost: h\r\n\r\n"

func head(lines ...string) string {
	return "POST /v2/x HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// corpus has raw requests, and the statuses of their answers in order. The server must not read the connection after a request that it
// refuses.
var corpus = []struct{ name, raw, want string }{
	// Valid requests must work. Otherwise the other cases prove nothing.
	{"no body", "GET /v2/models HTTP/1.1\r\nHost: h\r\n\r\n", "200"},
	{"two in a pipeline", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n" + second, "200 200"},
	{"length", head("Host: h", "Content-Length: 5") + "hello", "200"},
	{"length then pipeline", head("Host: h", "Content-Length: 5") + "hello" + second, "200 200"},
	{"chunked", head("Host: h", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n", "200"},
	{"chunked then pipeline", head("Host: h", "Transfer-Encoding: chunked") + "5\r\nhello\r\n0\r\n\r\n" + second, "200 200"},
	{"chunked in capitals", head("Host: h", "transfer-encoding: CHUNKED") + "0\r\n\r\n" + second, "200 200"},
	{"chunk extension", head("Host: h", "Transfer-Encoding: chunked") + "5;a=b\r\nhello\r\n0\r\n\r\n", "200"},
	{"trailer", head("Host: h", "Transfer-Encoding: chunked") + "0\r\nX-Sum: 1\r\n\r\n" + second, "200 200"},
	{"length zero", head("Host: h", "Content-Length: 0") + second, "200 200"},
	{"post without length", head("Host: h") + second, "200 200"},
	{"get with a body", "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" + second, "200 200"},
	{"delete with a body", "DELETE / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}" + second, "200 200"},
	{"close", "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + second, "200"},
	{"one Authorization", head("Host: h", "Authorization: Key a", "Content-Length: 0"), "200"},
	{"absolute form", "GET http://other/v2/models?page=1 HTTP/1.1\r\nHost: h\r\n\r\n", "200"},
	{"asterisk", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "200"},
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n" + second, "200"},
	{"value with tab", head("Host: h", "X: a\tb", "Content-Length: 0"), "200"},
	{"value of other letters", head("Host: h", "X: \xc3\xa9", "Content-Length: 0"), "200"},

	// Both lengths, or one of them twice.
	{"CL then TE", head("Host: h", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + second, "400"},
	{"TE then CL", head("Host: h", "Transfer-Encoding: chunked", "Content-Length: 5") + "0\r\n\r\n" + second, "400"},
	{"CL zero and TE", head("Host: h", "Content-Length: 0", "Transfer-Encoding: chunked") + "0\r\n\r\n" + second, "400"},
	{"two equal CL", head("Host: h", "Content-Length: 5", "Content-Length: 5") + "hello" + second, "400"},
	{"two other CL", head("Host: h", "Content-Length: 5", "Content-Length: 40") + "hello" + second, "400"},
	{"CL list", head("Host: h", "Content-Length: 5, 5") + "hello" + second, "400"},
	{"two TE", head("Host: h", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + "0\r\n\r\n" + second, "400"},
	{"TE chunked and identity", head("Host: h", "Transfer-Encoding: chunked", "Transfer-Encoding: identity") + "0\r\n\r\n" + second, "400"},

	// Transfer-Encoding that is not exactly "chunked".
	{"TE identity", head("Host: h", "Transfer-Encoding: identity") + second, "400"},
	{"TE identity with CL", head("Host: h", "Transfer-Encoding: identity", "Content-Length: 5") + "hello" + second, "400"},
	{"TE gzip, chunked", head("Host: h", "Transfer-Encoding: gzip, chunked") + "0\r\n\r\n" + second, "400"},
	{"TE chunked, gzip", head("Host: h", "Transfer-Encoding: chunked, gzip") + "0\r\n\r\n" + second, "400"},
	{"TE chunked, chunked", head("Host: h", "Transfer-Encoding: chunked, chunked") + "0\r\n\r\n" + second, "400"},
	{"TE xchunked", head("Host: h", "Transfer-Encoding: xchunked") + "0\r\n\r\n" + second, "400"},
	{"TE quoted", head("Host: h", `Transfer-Encoding: "chunked"`) + "0\r\n\r\n" + second, "400"},
	{"TE with parameter", head("Host: h", "Transfer-Encoding: chunked;q=1") + "0\r\n\r\n" + second, "400"},
	{"TE empty", head("Host: h", "Transfer-Encoding:") + second, "400"},
	{"TE with vertical tab", head("Host: h", "Transfer-Encoding: \x0bchunked") + "0\r\n\r\n" + second, "400"},
	{"TE with NUL", head("Host: h", "Transfer-Encoding: chunked\x00") + "0\r\n\r\n" + second, "400"},
	{"TE in HTTP/1.0", "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second, "400"},
	{"underscore in TE", head("Host: h", "Transfer_Encoding: chunked", "Content-Length: 5") + "hello" + second, "400"},

	// Content-Length that is not only digits.
	{"CL plus", head("Host: h", "Content-Length: +5") + "hello" + second, "400"},
	{"CL minus", head("Host: h", "Content-Length: -5") + "hello" + second, "400"},
	{"CL hex", head("Host: h", "Content-Length: 0x5") + "hello" + second, "400"},
	{"CL point", head("Host: h", "Content-Length: 5.0") + "hello" + second, "400"},
	{"CL with inner space", head("Host: h", "Content-Length: 5 5") + "hello" + second, "400"},
	{"CL empty", head("Host: h", "Content-Length:") + second, "400"},
	{"CL word", head("Host: h", "Content-Length: five") + second, "400"},
	{"CL past 64 bits", head("Host: h", "Content-Length: 18446744073709551621") + "hello" + second, "400"},
	{"CL past the limit", head("Host: h", "Content-Length: 4294967296") + strings.Repeat(second, 300), "413"},
	{"underscore in CL", head("Host: h", "Content_Length: 30") + second, "400"},

	// Names, folding, line ends.
	{"space before the colon", head("Host: h", "Content-Length : 5") + "hello" + second, "400"},
	{"tab before the colon", head("Host: h", "Transfer-Encoding\t: chunked") + "0\r\n\r\n" + second, "400"},
	{"space in a name", head("Host: h", "Content Length: 5") + "hello" + second, "400"},
	{"space before a name", head("Host: h", "X: y", " Content-Length: 5") + second, "400"},
	{"folded line", head("Host: h", "X: a", "\tTransfer-Encoding: chunked") + second, "400"},
	{"folded TE", head("Host: h", "Transfer-Encoding:", " chunked") + "0\r\n\r\n" + second, "400"},
	{"first line folded", "POST / HTTP/1.1\r\n Host: h\r\n\r\n" + second, "400"},
	{"no colon", head("Host: h", "Nonsense") + second, "400"},
	{"empty name", head("Host: h", ": value") + second, "400"},
	{"NUL in a name", head("Host: h", "Content-\x00Length: 5") + "hello" + second, "400"},
	{"NUL in a value", head("Host: h", "X: a\x00b") + second, "400"},
	{"bare CR in a value", head("Host: h", "X: a\rContent-Length: 5") + second, "400"},
	{"bare LF between lines", "POST / HTTP/1.1\r\nHost: h\nContent-Length: 5\r\n\r\nhello" + second, "400"},
	{"bare LF ends the header", "POST / HTTP/1.1\r\nHost: h\r\n\nContent-Length: 5\r\n\r\nhello" + second, "400"},
	{"letters of other scripts in a name", head("Host: h", "C\xc3\xb6ntent: 5") + second, "400"},
	{"101 lines", head(append([]string{"Host: h"}, strings.Split(strings.Repeat("X: y\n", 99)+"X: y", "\n")...)...) + second, "400"},
	{"header of 17 KB", head("Host: h", "X: "+strings.Repeat("y", 17<<10)) + second, "431"},

	// Host, credentials, and headers that another hop may drop.
	{"no Host", "GET / HTTP/1.1\r\nX: y\r\n\r\n" + second, "400"},
	{"two Hosts", head("Host: h", "Host: other", "Content-Length: 0") + second, "400"},
	{"two equal Hosts", head("Host: h", "Host: h", "Content-Length: 0") + second, "400"},
	{"empty Host", head("Host: ", "Content-Length: 0") + second, "400"},
	{"Host with a path", head("Host: h/path", "Content-Length: 0") + second, "400"},
	{"Host with a user", head("Host: u@h", "Content-Length: 0") + second, "400"},
	{"Host list", head("Host: h, other", "Content-Length: 0") + second, "400"},
	{"two Authorizations", head("Host: h", "Authorization: Key a", "Authorization: Key b", "Content-Length: 0") + second, "400"},
	{"Connection names Authorization", head("Host: h", "Authorization: Key a", "Connection: keep-alive, authorization", "Content-Length: 0") + second, "400"},
	{"two session tokens", head("Host: h", "X-Clarifai-Session-Token: a", "X-Clarifai-Session-Token: b", "Content-Length: 0") + second, "400"},
	{"two Cookies", head("Host: h", "Cookie: a=1", "cookie: b=2", "Content-Length: 0") + second, "400"},
	{"two Origins", head("Host: h", "Origin: http://a", "Origin: http://h", "Content-Length: 0") + second, "400"},
	{"two Content-Types", head("Host: h", "Content-Type: text/plain", "Content-Type: application/json", "Content-Length: 0") + second, "400"},
	{"Connection names Cookie", head("Host: h", "Cookie: a=1", "Connection: cookie", "Content-Length: 0") + second, "400"},
	{"Connection names X-Forwarded-For", head("Host: h", "Connection: X-Forwarded-For", "Content-Length: 0") + second, "400"},
	{"two X-Forwarded-For", head("Host: h", "X-Forwarded-For: a", "X-Forwarded-For: b", "Content-Length: 0"), "200"},
	{"Connection names Content-Length", head("Host: h", "Connection: Content-Length", "Content-Length: 5") + "hello" + second, "400"},

	// Expect.
	{"Expect with a body", head("Host: h", "Expect: 100-continue", "Content-Length: 5") + "hello" + second, "200 200"},
	{"Expect of 4 GB", head("Host: h", "Expect: 100-continue", "Content-Length: 4294967296") + second, "413"},
	{"Expect something else", head("Host: h", "Expect: 200-ok", "Content-Length: 5") + "hello" + second, "417"},
	{"Expect with CL and TE", head("Host: h", "Expect: 100-continue", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" + second, "400"},
	{"two Expects", head("Host: h", "Expect: 100-continue", "Expect: 100-continue", "Content-Length: 5") + "hello" + second, "400"},

	// Chunks.
	{"chunk size empty", head("Host: h", "Transfer-Encoding: chunked") + "\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk size with 0x", head("Host: h", "Transfer-Encoding: chunked") + "0x5\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk size with plus", head("Host: h", "Transfer-Encoding: chunked") + "+5\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk size negative", head("Host: h", "Transfer-Encoding: chunked") + "-5\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk size past 64 bits", head("Host: h", "Transfer-Encoding: chunked") + "10000000000000005\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk size ends in LF", head("Host: h", "Transfer-Encoding: chunked") + "5\nhello\r\n0\r\n\r\n" + second, "400"},
	{"LF in a chunk extension", head("Host: h", "Transfer-Encoding: chunked") + "5;a\nb\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk too short", head("Host: h", "Transfer-Encoding: chunked") + "7\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk too long", head("Host: h", "Transfer-Encoding: chunked") + "3\r\nhello\r\n0\r\n\r\n" + second, "400"},
	{"chunk without its end", head("Host: h", "Transfer-Encoding: chunked") + "5\r\nhelloXX0\r\n\r\n" + second, "400"},
	{"trailer that frames", head("Host: h", "Transfer-Encoding: chunked") + "0\r\nContent-Length: 5\r\n\r\n" + second, "400"},
	{"chunks past the limit", head("Host: h", "Transfer-Encoding: chunked") + strings.Repeat("10000\r\n"+strings.Repeat("x", 1<<16)+"\r\n", 17) + "0\r\n\r\n", "413"},

	// The request line.
	{"method unknown", "BREW / HTTP/1.1\r\nHost: h\r\n\r\n" + second, "405"},
	{"TRACE", "TRACE / HTTP/1.1\r\nHost: h\r\n\r\n" + second, "405"},
	{"CONNECT", "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n" + second, "405"},
	{"method in small letters", "get / HTTP/1.1\r\nHost: h\r\n\r\n" + second, "405"},
	{"version 2", "GET / HTTP/2.0\r\nHost: h\r\n\r\n" + second, "505"},
	{"version missing", "GET /\r\nHost: h\r\n\r\n" + second, "400"},
	{"version malformed", "GET / HTTP/1.1x\r\nHost: h\r\n\r\n" + second, "400"},
	{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
	{"space in the address", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"control byte in the address", "GET /a\x01b HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"fragment in the address", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"backslash in the address", "GET /a\\b HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"address without a slash", "GET models HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"address of another scheme", "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"address with a user", "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n" + second, "400"},
	{"gzip body", head("Host: h", "Content-Encoding: gzip", "Content-Length: 5") + "hello" + second, "415"},
	{"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "400"},
}

// TestHostileFraming sends the corpus. The server must not answer a request twice, accept an invalid request or refuse a valid one.
func TestHostileFraming(t *testing.T) {
	if len(corpus) < 67 {
		t.Fatalf("the corpus has %d cases, want at least 67", len(corpus))
	}
	h := &echo{}
	o := options(h)
	o.MaxBody = 1 << 20
	_, address := start(t, o)
	wrong := 0
	for _, tt := range corpus {
		t.Run(tt.name, func(t *testing.T) {
			answers, rest := exchange(t, address, tt.raw)
			if got := statusesOf(answers); got != tt.want || rest != "" {
				wrong++
				t.Errorf("answers %q %s, want %q", got, rest, tt.want)
			}
			for _, a := range answers {
				if body := text(t, a); a.StatusCode >= 400 && !strings.Contains(body, `{"status":{"code":`) {
					t.Errorf("%d without the envelope: %q", a.StatusCode, body)
				}
			}
		})
	}
	t.Logf("%d cases, %d wrong", len(corpus), wrong)
}

func TestCheckTarget(t *testing.T) {
	tests := []struct{ target, path, query string }{
		{"/v2/models?page=2", "/v2/models", "page=2"},
		{"//v2/a%2Fb", "//v2/a%2Fb", ""},
		{"http://h/x?y", "/x", "y"},
		{"HTTPS://h", "/", ""},
		{"http://h?y=1", "/", "y=1"},
		{"/a?b?c", "/a", "b?c"},
	}
	for _, tt := range tests {
		path, query, err := checkTarget("GET", tt.target)
		if path != tt.path || query != tt.query || err != nil {
			t.Errorf("checkTarget(%q) = %q, %q, %v; want %q, %q", tt.target, path, query, err, tt.path, tt.query)
		}
	}
	for _, target := range []string{"", "*", "x", "http:///x", "http://", "gopher://h/", "/\xff"} {
		if path, _, err := checkTarget("GET", target); err == nil && target != "http://" {
			t.Errorf("checkTarget(%q) = %q, want an error", target, path)
		}
	}
}

// FuzzFraming checks that a request that passes has at most one length, also for lenient parsers.
func FuzzFraming(f *testing.F) {
	for _, tt := range corpus {
		if _, header, ok := strings.Cut(tt.raw, "\r\n"); ok {
			if end := strings.Index(header, "\r\n\r\n"); end >= 0 {
				f.Add([]byte(header[:end+4]), true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, header []byte, http11 bool) {
		if checkFraming(header, http11) != nil {
			return
		}
		lengths := 0
		for _, line := range strings.FieldsFunc(string(header), func(r rune) bool { return r == '\r' || r == '\n' }) {
			name, _, _ := strings.Cut(line, ":")
			switch strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-") {
			case "content-length", "transfer-encoding":
				lengths++
			}
		}
		if lengths > 1 {
			t.Fatalf("%q passes with %d lengths", header, lengths)
		}
		if strings.Contains(string(header), "\n ") || strings.Contains(string(header), "\n\t") {
			t.Fatalf("%q passes with a folded line", header)
		}
	})
}
