package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
	now := time.Now().Add(time.Hour) // the clock stands; deadlines that it sets must not have passed
	big := strings.Repeat("picture", 100_000)
	tests := []struct {
		name    string
		hosted  pictures
		headers map[string]string
	}{
		{"jpeg", pictures{p: Picture{ContentType: "image/jpeg"}, b: big}, map[string]string{
			"Content-Type": "image/jpeg", "Cache-Control": "public, max-age=3600, immutable", "Content-Security-Policy": hostedPolicy,
			"X-Content-Type-Options": "nosniff", "Content-Disposition": "", "Access-Control-Allow-Origin": "*",
		}},
		{"soon gone", pictures{p: Picture{ContentType: "image/png", Expires: now.Add(90 * time.Second)}, b: "x"}, map[string]string{
			"Content-Type": "image/png", "Cache-Control": "public, max-age=90, immutable",
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
			o.Now = func() time.Time { return now }
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
