package httpd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/sightline-dev/sightline/core/api"
)

// sized answers with the type and the size that the query names. The answer of /v2/vary has another Vary already.
type sized struct{ echo }

func (s *sized) Serve(_ context.Context, r *api.Request) api.Response {
	kind, size := "application/json; charset=UTF-8", 0
	if r.Path == "/v2/picture" {
		kind = "image/jpeg"
	}
	_, _ = fmt.Sscan(r.Query, &size)
	res := api.Response{Status: 200, ContentType: kind, Body: listOf(size)}
	if r.Path == "/v2/vary" {
		res.Header = []api.Field{{Name: "Vary", Value: "Authorization"}}
	}
	return res
}

// listOf returns a body of a size that resembles a list.
func listOf(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"id":"IMG_%04d","status":{"code":30000,"description":"Download complete"}},`, i)
	}
	b.Truncate(size)
	return b.Bytes()
}

// TestEncode: JSON answers of at least 1,400 bytes to credentials in headers are compressed as the client accepts it. A client that accepts
// no coding gets the same bytes uncompressed. Other answers stay as they are.
func TestEncode(t *testing.T) {
	h := &sized{}
	o := options(h)
	o.Mounts = append([]Mount{{Prefix: "/console", Handler: h, SameOrigin: true}, {Prefix: "/pages", Handler: h, Static: true}}, o.Mounts...)
	_, address := start(t, o)
	for _, tt := range []struct {
		path, accept string
		size         int
		coding, vary string
	}{
		{"/v2/list", "gzip, deflate", 50_000, "gzip", "Accept-Encoding"},
		{"/v2/list", "gzip, deflate, br, zstd", 50_000, "zstd", "Accept-Encoding"},
		{"/v2/list", "gzip;q=0.5, zstd;q=0", 1400, "gzip", "Accept-Encoding"},
		{"/v2/vary", "gzip", 1400, "gzip", "Accept-Encoding, Authorization"},
		{"/v2/list", "", 50_000, "", "Accept-Encoding"},
		{"/v2/list", "identity, gzip;q=0", 50_000, "", "Accept-Encoding"},
		{"/v2/list", "gzip", 1399, "", ""},
		{"/v2/picture", "gzip", 50_000, "", ""},
		{"/console/list", "gzip", 50_000, "", ""},
		{"/pages/list", "gzip", 50_000, "", ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			name := fmt.Sprintf("%s %s %d %q", method, tt.path, tt.size, tt.accept)
			req, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://%s%s?%d", address, tt.path, tt.size), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept-Encoding", tt.accept)
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if res.Header.Get("Content-Encoding") != tt.coding || res.Header.Get("Vary") != tt.vary || len(res.Header["Vary"]) > 1 {
				t.Errorf("%s: coding %q, Vary %q", name, res.Header.Get("Content-Encoding"), res.Header["Vary"])
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || res.ContentLength < int64(len(body)) {
				t.Errorf("%s: length %d, %d bytes, %v", name, res.ContentLength, len(body), err)
			}
			if tt.coding != "" && len(body) > tt.size/3 {
				t.Errorf("%s: %d bytes", name, len(body))
			}
			if method == "GET" && !bytes.Equal(decoded(t, tt.coding, body), listOf(tt.size)) {
				t.Errorf("%s: other bytes", name)
			}
		}
	}
}

// decoded returns a body without its coding.
func decoded(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	var err error
	switch coding {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1)); err == nil {
			defer d.Close()
			r = d
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEncodeNeedsMemory: an answer is not compressed if no memory is left for its compressed copy.
func TestEncodeNeedsMemory(t *testing.T) {
	o := options(&sized{})
	o.AnswerBudget = 600_000 // a caller may have half of it
	_, address := start(t, o)
	answers, rest := exchange(t, address, "GET /v2/list?250000 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n")
	if rest != "" || len(answers) != 1 || answers[0].StatusCode != 200 || answers[0].Header.Get("Content-Encoding") != "" || len(text(t, answers[0])) != 250_000 {
		t.Errorf("%d answers, %s", len(answers), rest)
	}
}

// TestRefusalHeaders: a refused method is answered with the header Allow, and a refused coding with Accept-Encoding.
func TestRefusalHeaders(t *testing.T) {
	o := options(&echo{})
	o.Hosted = func(context.Context, *api.Request, string) (Picture, error) { return Picture{}, nil }
	_, address := start(t, o)
	for request, want := range map[string]string{
		"TRACE /v2/inputs":     "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
		"POST /healthz":        "GET, HEAD",
		"DELETE /hosted/a.png": "GET, HEAD",
		"POST /v2/inputs\r\nContent-Encoding: gzip\r\n": "identity",
	} {
		line, more, _ := strings.Cut(request, "\r\n")
		answers, rest := exchange(t, address, line+" HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"+more+"\r\n")
		if rest != "" || len(answers) != 1 {
			t.Fatalf("%q: %d answers, %s", request, len(answers), rest)
		}
		if got := answers[0].Header.Get("Allow") + answers[0].Header.Get("Accept-Encoding"); got != want {
			t.Errorf("%q: %d with %q, want %q", request, answers[0].StatusCode, got, want)
		}
	}
}
