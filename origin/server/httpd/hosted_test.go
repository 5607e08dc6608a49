package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// pictures has one hosted picture. Its Open is a function for Options.Hosted.
type pictures struct {
	p   Picture
	err error // error of opening the picture
	b   string
}

func (p pictures) Open(_ context.Context, _ *api.Request, name string) (Picture, error) {
	if name != "0123456789abcdef0123456789abcdef" {
		return Picture{}, fmt.Errorf("name: %w", blob.ErrNotFound)
	}
	out := p.p
	out.Size = int64(len(p.b))
	out.Open = func(_ context.Context, _ *api.Request, from, to int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(p.b[from:to])), p.err
	}
	return out, nil
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
		{"video", pictures{p: Picture{ContentType: "video/mp4", Tag: `"0"`}, b: big}, map[string]string{
			"Content-Type": "video/mp4", "Content-Disposition": "", "Accept-Ranges": "bytes", "Content-Security-Policy": videoPolicy, "X-Content-Type-Options": "nosniff",
		}},
		{"video of another kind", pictures{p: Picture{ContentType: "video/mpeg"}, b: big}, map[string]string{
			"Content-Type": "application/octet-stream", "Content-Disposition": "attachment", "Content-Security-Policy": hostedPolicy,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(&echo{})
			o.Hosted = tt.hosted.Open
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

// deletablePictures has one hosted picture that a test can delete.
type deletablePictures struct {
	pictures
	deleted atomic.Bool
}

func (d *deletablePictures) Open(ctx context.Context, r *api.Request, name string) (Picture, error) {
	if d.deleted.Load() {
		return Picture{}, blob.ErrNotFound
	}
	return d.pictures.Open(ctx, r, name)
}

// TestCachesRevalidateHostedPictures requests a picture as a cache does that stores it. The answer is 304 without a body while the tag
// matches, and 404 as soon as the picture is deleted. A cache must not answer without a request.
func TestCachesRevalidateHostedPictures(t *testing.T) {
	o := options(&echo{})
	d := &deletablePictures{pictures: pictures{p: Picture{ContentType: "image/jpeg", Tag: `"1"`}, b: "picture"}}
	o.Hosted = d.Open
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
	d.deleted.Store(true)
	for _, known := range []string{"", `"1"`, "*"} {
		if status, _, cache, _ := ask("GET", known); status != 404 || cache != "no-store" {
			t.Errorf("a deleted picture with %s: %d, Cache-Control %q; want 404 and no-store", known, status, cache)
		}
	}
}

// TestHostedTypes checks that browsers may show every video that can be sent as base64.
func TestHostedTypes(t *testing.T) {
	for _, b := range []string{
		"\x00\x00\x00\x14ftypisom\x00\x00\x02\x00mp41", "\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00qt  ", "\x00\x00\x00\x14ftyp3gp4\x00\x00\x02\x003gp4",
		"\x00\x00\x00\x14ftyp3g2a\x00\x00\x02\x003g2a", "\x1a\x45\xdf\xa3\x87\x42\x82\x84webm", "\x1a\x45\xdf\xa3\x8b\x42\x82\x88matroska", "RIFF\x00\x00\x00\x00AVI LIST",
		"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c",
	} {
		film, err := raster.InspectVideo([]byte(b))
		if err != nil || !isRenderable(film.MediaType) {
			t.Errorf("%q: %q is not shown, %v", b, film.MediaType, err)
		}
	}
}

// TestRanges requests parts of a hosted picture or video, as a player does when the user seeks.
func TestRanges(t *testing.T) {
	film := strings.Repeat("0123456789", 10_000)
	const size = 100_000
	o := options(&echo{})
	o.Hosted = pictures{p: Picture{ContentType: "video/webm", Tag: `"1"`}, b: film}.Open
	_, address := start(t, o)
	for _, tt := range []struct {
		method, header, condition string
		status                    int
		from, to                  int // range of the bytes that are sent
	}{
		{"GET", "", "", 200, 0, size},
		{"GET", "bytes=0-", "", 206, 0, size},
		{"GET", "bytes=0-0", "", 206, 0, 1},
		{"GET", "Bytes=10-29", "", 206, 10, 30},
		{"GET", " bytes=99990- ", "", 206, 99_990, size},
		{"GET", "bytes=99999-99999", "", 206, 99_999, size},
		{"GET", "bytes=50000-999999999999999999", "", 206, 50_000, size},
		{"GET", "bytes=50000-99999999999999999999999", "", 206, 50_000, size},
		{"GET", "bytes=-5", "", 206, 99_995, size},
		{"GET", "bytes=-200000", "", 206, 0, size},
		{"GET", "bytes=100000-", "", 416, 0, 0},
		{"GET", "bytes=99999999999999999999999-", "", 416, 0, 0},
		{"GET", "bytes=-0", "", 416, 0, 0},
		{"GET", "bytes=5-4", "", 200, 0, size},
		{"GET", "bytes=-", "", 200, 0, size},
		{"GET", "bytes=", "", 200, 0, size},
		{"GET", "bytes=a-b", "", 200, 0, size},
		{"GET", "bytes=+1-2", "", 200, 0, size},
		{"GET", "bytes=--1", "", 200, 0, size},
		{"GET", "frames=0-1", "", 200, 0, size},
		{"GET", "bytes=0-1,5-6", "", 200, 0, size},
		{"GET", "bytes=10-19", `"1"`, 206, 10, 20},
		{"GET", "bytes=10-19", `"0"`, 200, 0, size},
		{"GET", "bytes=10-19", `W/"1"`, 200, 0, size},
		{"GET", "bytes=10-19", "Thu, 26 Nov 2026 04:00:00 GMT", 200, 0, size},
		{"GET", "bytes=100000-", `"0"`, 200, 0, size},
		{"HEAD", "", "", 200, 0, size},
		{"HEAD", "bytes=0-0", "", 200, 0, size}, // RFC 9110, section 14.2: Range is only for GET
	} {
		req, err := http.NewRequest(tt.method, "http://"+address+"/hosted/0123456789abcdef0123456789abcdef", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if tt.header != "" {
			req.Header.Set("Range", tt.header)
		}
		if tt.condition != "" {
			req.Header.Set("If-Range", tt.condition)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b := text(t, res)
		res.Body.Close()
		body, place := film[tt.from:tt.to], ""
		switch tt.status {
		case 206:
			place = fmt.Sprintf("bytes %d-%d/%d", tt.from, tt.to-1, size)
		case 416:
			place = fmt.Sprintf("bytes */%d", size)
		}
		length := int64(len(body))
		if tt.method == "HEAD" {
			body = ""
		}
		h := res.Header
		if res.StatusCode != tt.status || b != body || res.ContentLength != length || h.Get("Content-Range") != place || h.Get("Accept-Ranges") != "bytes" ||
			h.Get("Content-Security-Policy") != videoPolicy || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("ETag") != `"1"` {
			t.Errorf("%s %q, If-Range %q: %d with %d of %d bytes, Content-Range %q; want %d with %d bytes, %q; %v",
				tt.method, tt.header, tt.condition, res.StatusCode, len(b), res.ContentLength, h.Get("Content-Range"), tt.status, len(body), place, h)
		}
	}
}

// TestMatchingTagWithRangeIs304 sends If-None-Match with Range. If the tag matches, the cache has the complete picture, and the answer is
// 304.
func TestMatchingTagWithRangeIs304(t *testing.T) {
	o := options(&echo{})
	o.Hosted = pictures{p: Picture{ContentType: "image/jpeg", Tag: `"1"`}, b: "picture"}.Open
	_, address := start(t, o)
	const head = "GET /hosted/0123456789abcdef0123456789abcdef HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n"
	answers, _ := exchange(t, address, head+"If-None-Match: \"1\"\r\n\r\n"+head+"If-None-Match: \"0\"\r\n\r\n")
	if statusesOf(answers) != "304 206" {
		t.Errorf("%s, want 304 206", statusesOf(answers))
	}
}

// TestHostedRefusals requests a picture that cannot be opened. A damaged one arrives short, or not at all.
func TestHostedRefusals(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("plan: %w", api.ErrBusy), "503"},
		{fmt.Errorf("get: %w", blob.ErrUnavailable), "503"},
		{fmt.Errorf("deleted: %w", blob.ErrNotFound), "404"},
		{errors.New("disk"), "500"},
		{fmt.Errorf("hash: %w", blob.ErrCorrupt), "cut off"},
	} {
		o := options(&echo{})
		o.Hosted = pictures{p: Picture{ContentType: "image/jpeg"}, b: "picture", err: tt.err}.Open
		_, address := start(t, o)
		res, err := http.Get("http://" + address + "/hosted/0123456789abcdef0123456789abcdef")
		got := "cut off"
		if err == nil {
			if _, err = io.ReadAll(res.Body); err == nil {
				got = strconv.Itoa(res.StatusCode)
			}
			_ = res.Body.Close()
		}
		if got != tt.want {
			t.Errorf("%v: %s, want %s", tt.err, got, tt.want)
		}
	}
}

// TestHostedRates exceeds the two rates below /hosted/. Other networks and other paths are not affected, and the rate comes back.
func TestHostedRates(t *testing.T) {
	o := options(&echo{})
	o.Hosted = pictures{p: Picture{ContentType: "image/jpeg", Tag: `"1"`}, b: strings.Repeat("p", 4096)}.Open
	const path = "/hosted/0123456789abcdef0123456789abcdef"
	get := func(l *pipeListener, ip, request string) string {
		c := l.dial(ip)
		defer c.Close()
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", request)
		b, _ := io.ReadAll(c)
		status, _, _ := strings.Cut(strings.TrimPrefix(string(b), "HTTP/1.1 "), " ")
		return status
	}
	for _, tt := range []struct {
		name    string
		rates   HostedRates
		request string
		passing int    // requests that pass at once
		then    string // status of the next answer
	}{
		{"requests", HostedRates{Requests: 0.5}, "HEAD " + path, 10, "429"},
		{"unknown names", HostedRates{Requests: 0.5}, "GET /hosted/x", 10, "429"},
		{"bytes", HostedRates{Bytes: 1024}, "GET " + path, 5, "429"}, // 20 KB at once
		{"none", HostedRates{}, "GET " + path, 200, "200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := o
			o.HostedRates, o.Metrics = tt.rates, prometheus.NewRegistry()
			inBubble(t, o, func(t *testing.T, _ *Server, l *pipeListener) {
				for i := range tt.passing {
					if got := get(l, "192.0.2.1", tt.request); got != "200" && got != "404" {
						t.Fatalf("request %d: %s", i, got)
					}
				}
				if got := get(l, "192.0.2.1", tt.request); got != tt.then {
					t.Errorf("the next request: %s, want %s", got, tt.then)
				}
				if got := get(l, "192.0.2.2", tt.request); got != "200" && got != "404" {
					t.Errorf("another network: %s", got)
				}
				if got := get(l, "192.0.2.1", "GET /v2/x"); got != "200" {
					t.Errorf("another path: %s", got)
				}
				time.Sleep(4 * time.Second) // virtual
				if got := get(l, "192.0.2.1", tt.request); got != "200" && got != "404" {
					t.Errorf("four seconds later: %s", got)
				}
			})
		})
	}
}
