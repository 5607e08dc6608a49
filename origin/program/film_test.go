package program

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
	targets "github.com/sightline-dev/sightline/web/process"
)

// fakeDecoder returns a folder with a fake ffprobe and ffmpeg, which treat every file as a grey film of 4 × 2 pixels and five seconds. If
// probe or decode is not empty, it replaces the script of ffprobe or ffmpeg.
func fakeDecoder(t *testing.T, probe, decode string) string {
	t.Helper()
	dir := t.TempDir()
	packets := `{"pts":0},{"pts":1},{"pts":2},{"pts":3},{"pts":4},{"pts":5}`
	if probe == "" {
		probe = `printf '%s' '{"packets":[` + packets + `],"streams":[{"codec_name":"h264","width":4,"height":2,"pix_fmt":"yuv420p","time_base":"1/1"}]}'`
	}
	if decode == "" {
		decode = `printf YYYYYYYYUUVVYYYYYYYYUUVVYYYYYYYYUUVV`
	}
	for name, script := range map[string]string{"ffprobe": probe, "ffmpeg": decode} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "ffmpeg")
}

// film creates a file that the fake decoder accepts as a film.
func film(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "film")
	if err := os.WriteFile(name, []byte("\x00\x00\x00\x14ftypisom\x00\x00\x02\x00mp41"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func slides(t *testing.T) string {
	t.Helper()
	return filepath.Join(testkit.Root(t), "origin", "server", "video", "testdata", "slides.webm")
}

// TestPredictFilm predicts a film with the decoding module, and checks that the module is compiled only once.
func TestPredictFilm(t *testing.T) {
	testkit.SkipRace(t)
	targets.Make(t, "bin/ffmpreg.wasm.gz")
	cache := filepath.Join(testkit.Root(t), ".cache", "tests") // wazero has another version in a test's binary, so it needs another file
	t.Setenv("XDG_CACHE_HOME", cache)
	code, stdout, stderr := run(t, nil, "predict", "--video-module", filepath.Join(testkit.Root(t), "bin", video.ModuleFile), "--every", "2500ms", "--top", "2", slides(t))
	lines := strings.Split(stdout, "\n")
	if code != 0 || len(lines) != 4 { // the first run on a machine reports that it compiles
		t.Fatalf("%d\n%s%s", code, stdout, stderr)
	}
	for i, want := range []string{"  0:00.0  insect 0.9", "  0:02.5  animal 0.9", "  0:05.0  dish 0."} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %q, want %q", lines[i], want)
		}
	}
	info, err := os.Stat(filepath.Join(cache, "sightline"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the cache folder: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(cache, "sightline", server.DecoderCode, video.CodeNames()[0])); err != nil {
		t.Errorf("the compiled module: %v", err)
	}
}

// TestPredictFilmSources predicts one film from every kind of source, also together with pictures.
func TestPredictFilmSources(t *testing.T) {
	decoder := fakeDecoder(t, "", "")
	name := film(t)
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	defer server.Close()
	long := append(slices.Clone(content), make([]byte, 3*headBytes)...) // the type is recognised before the end of the file
	_, pictures := album(t)
	const lines = "  0:00  "
	for _, tt := range []struct {
		stdin io.Reader
		args  []string
		films int
	}{
		{nil, []string{name}, 1},
		{nil, []string{name, name}, 2},
		{nil, []string{filepath.Dir(name)}, 1},
		{bytes.NewReader(content), []string{"-"}, 1},
		{bytes.NewReader(long), []string{"-"}, 1},
		{nil, []string{"--allow-private-fetch", server.URL + "/film"}, 1},
		{nil, []string{pictures[0], name, pictures[1]}, 1},
	} {
		code, stdout, stderr := run(t, tt.stdin, append([]string{"predict", "--every", "2s", "--video-decoder", decoder}, tt.args...)...)
		if n := strings.Count(stdout, lines); code != 0 || n != tt.films || strings.Count(stdout, "  0:04  ") != n || strings.Contains(stdout, "0:05") {
			t.Errorf("%q: %d\n%s%s", tt.args, code, stdout, stderr)
		}
		if len(tt.args) > 1 && tt.args[0] != "--allow-private-fetch" && !strings.HasPrefix(stderr, fmt.Sprintf("%d pictures and videos, 0 failed, ", len(tt.args))) {
			t.Errorf("%q: the sum is %q", tt.args, stderr)
		}
	}
	code, stdout, stderr := run(t, bytes.NewReader(content), "predict", "--json", "--every", "2s", "--top", "1", "--video-decoder", decoder, "-")
	var o struct {
		Input struct {
			Data map[string]struct{ URL string }
		}
		Data struct {
			Frames []struct {
				FrameInfo map[string]int64 `json:"frame_info"`
				Data      struct{ Concepts []cli.Object }
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &o); err != nil || code != 0 {
		t.Fatalf("%d, %v: %s%s", code, err, stdout, stderr)
	}
	if len(o.Input.Data) != 1 || o.Input.Data["video"].URL != "-" || len(o.Data.Frames) != 3 {
		t.Errorf("Output: %s", stdout)
	}
	for i, f := range o.Data.Frames {
		if index, ok := f.FrameInfo["index"]; !ok || index != int64(i) || f.FrameInfo["time"] != int64(2000*i) || len(f.Data.Concepts) != 1 {
			t.Errorf("frame %d: %v", i, f)
		}
	}
}

// TestPredictAnimation predicts a GIF: as a picture, and with --every as a video, which needs no decoder.
func TestPredictAnimation(t *testing.T) {
	gif := filepath.Join(t.TempDir(), "a.gif")
	content := "GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\x00\x00\x00\x00\xff"
	for range 2 {
		content += "\x21\xf9\x04\x00\x96\x00\x00\x00\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00" // 1.5 s long
	}
	if err := os.WriteFile(gif, []byte(content+";"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := run(t, nil, "predict", "--model", "color", gif); code != 0 || strings.Contains(stdout, "0:0") {
		t.Errorf("as a picture: %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr := run(t, nil, "predict", "--model", "color", "--every", "500ms", gif)
	if want := []string{"  0:00.0  Red", "  0:00.5  Red", "  0:01.0  Red", "  0:01.5  Red"}; code != 0 || strings.Count(stdout, "\n") != len(want) {
		t.Errorf("as a video: %d\n%s%s", code, stdout, stderr)
	} else {
		for i, line := range strings.SplitAfter(strings.TrimSpace(stdout), "\n") {
			if !strings.HasPrefix("  "+strings.TrimSpace(line), want[i]) {
				t.Errorf("line %q, want %q", line, want[i])
			}
		}
	}
	_, pictures := album(t)
	if code, stdout, stderr := run(t, nil, "predict", "--every", "2s", pictures[1]); code != 0 || strings.Contains(stdout, "0:00") {
		t.Errorf("a photo with --every: %d\n%s%s", code, stdout, stderr)
	}
}

// TestPredictBadFilms predicts files that cannot be decoded. Standard error has the details of the status that the API returns.
func TestPredictBadFilms(t *testing.T) {
	testkit.SkipRace(t)
	name := film(t)
	missing := filepath.Join(t.TempDir(), video.ModuleFile)
	transport := filepath.Join(t.TempDir(), "film.ts")
	packet := append([]byte("G"), make([]byte, 187)...)
	if err := os.WriteFile(transport, bytes.Repeat(packet, 30), 0o600); err != nil {
		t.Fatal(err)
	}
	for label, tt := range map[string]struct {
		args   []string
		stdin  io.Reader
		code   int
		status string
		stderr string
	}{
		"damage":         {[]string{"--video-decoder", fakeDecoder(t, "", "printf YYYYYYYYUUVVY"), "--every", "2s", name}, nil, 1, "31300", name + ": video damaged after 0 s\n"},
		"no index":       {[]string{"--video-decoder", fakeDecoder(t, "exit 1", ""), name}, nil, 1, "31300", name + ": video damaged: its index is missing or cannot be read\n"},
		"no module":      {[]string{"--video-module", missing, name}, nil, 1, "31101", name + ": the decoding module " + missing + " is missing: install it there, or set --video-decoder\n"},
		"no decoder":     {[]string{"--video-decoder", missing, name}, nil, 1, "31101", name + ": the decoder " + filepath.Join(filepath.Dir(missing), "ffprobe") + " is missing\n"},
		"other format":   {[]string{transport}, nil, 1, "31101", transport + ": MPEG-TS: video format not supported: convert it to MP4\n"},
		"too many bytes": {[]string{"-"}, io.MultiReader(strings.NewReader("\x1a\x45\xdf\xa3\x87\x42\x82\x84webm"), io.LimitReader(zeros{}, 80<<20)), 1, "31105", "-: video of more than "},
		"one of several": {[]string{"--video-decoder", fakeDecoder(t, "exit 1", ""), name, filepath.Join(testkit.Root(t), "web", "samples", "35-slice-of-pizza.jpg")}, nil, 3, "31300", "2 pictures and videos, 1 failed"},
		"every 50ms":     {[]string{"--every", "50ms", name}, nil, 2, "", "--every 50ms: must be 100ms to 10m"},
		"every 11m":      {[]string{"--every", "11m", name}, nil, 2, "", "--every 11m0s: must be 100ms to 10m"},
		"every 1.0005s":  {[]string{"--every", "1.0005s", name}, nil, 2, "", "in whole milliseconds"},
	} {
		t.Run(label, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			code, stdout, stderr := run(t, tt.stdin, append([]string{"predict", "--json"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.stderr) || tt.status != "" && !strings.Contains(stdout, `"status":{"code":`+tt.status+",") {
				t.Errorf("%d %s\n%s", code, stdout, stderr)
			}
			if tt.status != "" && !strings.Contains(stdout, `"data":{"video":{"url":`) {
				t.Errorf("the Output does not echo a video: %s", stdout)
			}
		})
	}
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestInterruptEndsFilm ends the command while a decoder hangs.
func TestInterruptEndsFilm(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	if err := syscall.Mkfifo(began, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	decoder := fakeDecoder(t, "", "printf YYYYYYYYUUVV; echo >"+began+"; while :; do :; done")
	done := make(chan int)
	var stderr bytes.Buffer
	go func() {
		done <- cli.Run(ctx, New(), server.Env{Args: []string{"predict", "--video-decoder", decoder, film(t)}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr, Environ: func() []string { return nil }})
	}()
	if _, err := os.ReadFile(began); err != nil { // until the decoder has written to it
		t.Error(err)
	}
	cancel()
	if code := <-done; code != 1 || !strings.Contains(stderr.String(), "interrupted after 0 of 1 ") {
		t.Errorf("exit code %d and %q", code, &stderr)
	}
}

// TestCacheIsShared creates a decoder while another process compiles the module, and checks that its files stay.
func TestCacheIsShared(t *testing.T) {
	p := predictor{flags: &predictFlags{}, cache: t.TempDir()}
	scratch := filepath.Join(p.cache, server.DecoderCode, system.TempPrefix+"1")
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := p.newDecoder(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(scratch); err != nil {
		t.Error(err)
	}
}

// TestPrecompile compiles the decoders of videos and of JPEG XL in advance, in the user's folder or else in a data folder.
func TestPrecompile(t *testing.T) {
	targets.Make(t, "bin/ffmpreg.wasm.gz")
	targets.Make(t, "bin/jpegxl.wasm.gz")
	module := filepath.Join(testkit.Root(t), "bin", video.ModuleFile)
	cache := filepath.Join(testkit.Root(t), ".cache", "tests")
	for _, tt := range []struct {
		name, cache string
		args        []string
		code        int
		want        string
	}{
		{"the user's folder", cache, []string{"--video-module", module}, 0, filepath.Join(cache, "sightline", server.DecoderCode)},
		{"no folder", "", []string{"--video-module", module}, 1, "there is no folder for compiled modules"},
		{"no module", cache, []string{"--video-module", "/none"}, 1, "the decoding module /none is missing"},
	} {
		t.Setenv("XDG_CACHE_HOME", tt.cache)
		code, stdout, stderr := run(t, nil, append([]string{"precompile"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) {
			t.Errorf("%s: %d\n%s%s", tt.name, code, stdout, stderr)
		}
	}
	for _, name := range video.CodeNames() {
		if _, err := os.Stat(filepath.Join(cache, "sightline", server.DecoderCode, name)); err != nil {
			t.Error(err)
		}
	}
}
