package fetch

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct{ in, want string }{
		{"http://93.184.216.34/a.jpg", "http://93.184.216.34/a.jpg"},
		{"HTTPS://Example.COM/a%20b?x=1&y=%2F#top", "https://example.com/a%20b?x=1&y=%2F"},
		{"  http://example.com:80/  ", "http://example.com/"},
		{"http://example.com:443/", "http://example.com:443/"},
		{"https://example.com:443", "https://example.com"},
		{"https://example.com:80/", "https://example.com:80/"},
		{"http://[2606:2800:0220::1946]/", "http://[2606:2800:220::1946]/"},
		{"http://example.com./", "http://example.com./"},
		{"http://bücher.example/ü", "http://xn--bcher-kva.example/%C3%BC"},
		{"http://under_score.example/", "http://under_score.example/"},
		{"http://example.com:8080/", "http://example.com:8080/"},
		{"http://a1.b2c3/", "http://a1.b2c3/"},
	}
	p := Policy{Ports: []uint16{8080}}
	for _, tt := range tests {
		u, err := p.Parse(tt.in)
		if err != nil || u.String() != tt.want {
			t.Errorf("Parse(%q) = %v, %v; want %s", tt.in, u, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"http://example.com:8081/", "http://example.com:/", "http://example.com:080/", "http://example.com:99999/",
		"http://u@example.com/", "http://@example.com/", "ftp://example.com/", "http:example.com", "//example.com/",
		"http://exa mple.com/", "http://example.com\\@evil/", "http://example.com/\r\nHost: x", "http://127.1/", "http://0x7f.0x1/",
		"http://example.0xff/", "http://１２７.０.０.１/", "http://[1.1.1.1]/", "http://[::1%25eth0]/", "http://-x.test/",
		"http://" + strings.Repeat("a", 64) + ".test/", "http://" + strings.Repeat("a.", 130) + "test/",
		"http://example.com/" + strings.Repeat("a", maxURLBytes),
	} {
		if u, err := (Policy{}).Parse(in); !errors.Is(err, errURL) {
			t.Errorf("Parse(%.60q) = %v, %v; want it refused", in, u, err)
		}
	}
	for _, in := range []string{"http://example.com:8081/", "http://127.0.0.1:1/"} {
		if _, err := (Policy{AllowPrivate: true}).Parse(in); err != nil {
			t.Errorf("Parse(%q) with AllowPrivate = %v", in, err)
		}
	}
}

// FuzzURL searches for a URL that the policy accepts and that net/url or net/netip reads as another destination than the policy does.
func FuzzURL(f *testing.F) {
	for _, p := range payloads(f) {
		f.Add(p.url)
	}
	f.Add("http://93.184.216.34:80/a?b#c")
	f.Add("https://bücher.example/ü")
	f.Add("http://93.184.216.34/" + strings.Repeat("\xed", 3000)) // three times as long when encoded
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := (Policy{}).Parse(raw)
		if err != nil {
			return
		}
		text := u.String()
		again, err := url.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) gives %q, which net/url refuses: %v", raw, text, err)
		}
		if again.Host != u.Host || again.Scheme != u.Scheme || again.User != nil || again.Fragment != "" {
			t.Fatalf("Parse(%q) gives %q, which reads as %#v", raw, text, again)
		}
		once, err := (Policy{}).Parse(text)
		if err != nil || once.String() != text {
			t.Fatalf("Parse(%.200q) = %.200v, %v; want it unchanged", text, once, err)
		}
		if port := again.Port(); port != "" && port != "80" && port != "443" {
			t.Fatalf("Parse(%q) lets port %s through", raw, port)
		}
		host := again.Hostname()
		if strings.ContainsAny(host, "/\\@#? %") {
			t.Fatalf("Parse(%q) gives host %q", raw, host)
		}
		if _, err := netip.ParseAddr(host); err != nil && numeric(host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]) {
			t.Fatalf("Parse(%q) gives host %q, which an old resolver reads as an address", raw, host)
		}
	})
}
