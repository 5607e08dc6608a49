package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
)

// pictures is a Hosted of one picture.
type pictures struct {
	p   Picture
	err error
	b   string
}

func (p pictures) Open(_ context.Context, name string) (Picture, error) {
	if name != "0123456789abcdef0123456789abcdef" {
		return Picture{}, fmt.Errorf("name: %w", blob.ErrNotFound)
	}
	out := p.p
	out.Size = int64(len(p.b))
	out.Body = io.NopCloser(&failing{strings.NewReader(p.b), p.err})
	return out, nil
}

// failing gives err in place of io.EOF, when it is not nil.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if errors.Is(err, io.EOF) && f.err != nil {
		err = f.err
	}
	return n, err
}

func TestHostedPicture(t *testing.T) {
	big := strings.Repeat("picture", 100_000)
	tests := []struct {
		name    string
		hosted  pictures
		headers map[string]string
	}{
		{"jpeg", pictures{p: Picture{ContentType: "image/jpeg", Tag: `"1"`}, b: big}, map[string]string{
			"Content-Type": "image/jpeg", "Cache-Control": "public, no-cache", "ETag": `"1"`, "Content-Security-Policy": hostedPolicy,
			"X-Content-Type-Options": "nosniff", "Content-Disposition": "", "Access-Control-Allow-Origin": "*",
		}},
		{"no raster picture", pictures{p: Picture{ContentType: "image/svg+xml"}, b: "<svg/>"}, map[string]string{
			"Content-Type": "application/octet-stream", "Content-Disposition": "attachment",
		}},
		{"empty", pictures{p: Picture{ContentType: "image/gif"}, b: ""}, map[string]string{"Content-Type": "image/gif"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			o.Hosted = tt.hosted
			_, address := start(t, o)
			const path = "/hosted/0123456789abcdef0123456789abcdef"
			res, err := http.Get("http://" + address + path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if b := text(t, res); res.StatusCode != 200 || b != tt.hosted.b {
				t.Errorf("GET = %d, %d bytes; want %d", res.StatusCode, len(b), len(tt.hosted.b))
			}
			for name, want := range tt.headers {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			answers, _ := exchange(t, address, "GET /hosted/../etc HTTP/1.1\r\nHost: h\r\n\r\nGET /hosted/ HTTP/1.1\r\nHost: h\r\n\r\n"+
				"DELETE "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
			if statusesOf(answers) != "404 404 405" {
				t.Errorf("other names: %s, want 404 404 405", statusesOf(answers))
			}
		})
	}
}

// deleted is a Hosted whose picture a test deletes.
type deleted struct {
	pictures
	gone atomic.Bool
}

func (d *deleted) Open(ctx context.Context, name string) (Picture, error) {
	if d.gone.Load() {
		return Picture{}, blob.ErrNotFound
	}
	return d.pictures.Open(ctx, name)
}

// TestCachesOfHostedPicturesAsk requests a picture as a cache does that has it. The answer is 304 without a body while the tag is the
// picture's, and 404 as soon as the picture is deleted. A cache may not answer without a request.
func TestCachesOfHostedPicturesAsk(t *testing.T) {
	o := options(&echo{})
	d := &deleted{pictures: pictures{p: Picture{ContentType: "image/jpeg", Tag: `"1"`}, b: "picture"}}
	o.Hosted = d
	_, address := start(t, o)
	ask := func(method, known string) (status int, body, cache, tag string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+address+"/hosted/0123456789abcdef0123456789abcdef", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if known != "" {
			req.Header.Set("If-None-Match", known)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode, text(t, res), res.Header.Get("Cache-Control"), res.Header.Get("ETag")
	}
	for _, tt := range []struct {
		method, known string
		status        int
		body          string
	}{
		{"GET", "", 200, "picture"},
		{"GET", `"1"`, 304, ""},
		{"HEAD", `"1"`, 304, ""},
		{"GET", `"0", W/"1"`, 304, ""},
		{"GET", `*`, 304, ""},
		{"GET", `"0"`, 200, "picture"},
		{"GET", `"10"`, 200, "picture"},
	} {
		status, body, cache, tag := ask(tt.method, tt.known)
		if status != tt.status || body != tt.body || cache != "public, no-cache" || tag != `"1"` {
			t.Errorf("%s with %s: %d %q, Cache-Control %q, ETag %s; want %d %q", tt.method, tt.known, status, body, cache, tag, tt.status, tt.body)
		}
	}
	d.gone.Store(true)
	for _, known := range []string{"", `"1"`, "*"} {
		if status, _, cache, _ := ask("GET", known); status != 404 || cache != "no-store" {
			t.Errorf("a deleted picture with %s: %d, Cache-Control %q; want 404 and no-store", known, status, cache)
		}
	}
}

func TestDamagedPictureArrivesShort(t *testing.T) {
	for _, n := range []int{1, 5, 100_000} {
		o := options(&echo{})
		o.Hosted = pictures{p: Picture{ContentType: "image/jpeg"}, b: strings.Repeat("p", n), err: blob.ErrCorrupt}
		_, address := start(t, o)
		res, err := http.Get("http://" + address + "/hosted/0123456789abcdef0123456789abcdef")
		if err != nil {
			continue // not even a header: as good
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil || len(b) >= n {
			t.Errorf("a damaged picture of %d bytes arrives with %d, %v", n, len(b), err)
		}
	}
}

func TestWholeReadsEveryWay(t *testing.T) {
	for _, size := range []int{1, 2, 3, 7, 100} {
		for _, n := range []int{0, 1, 2, 3, 50} {
			want := strings.Repeat("abc", n)[:n]
			w := whole{from: io.NopCloser(strings.NewReader(want))}
			var got []byte
			p := make([]byte, size)
			for {
				n, err := w.Read(p)
				got = append(got, p[:n]...)
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
					break
				}
			}
			if string(got) != want {
				t.Errorf("buffers of %d: %q, want %q", size, got, want)
			}
		}
	}
}
