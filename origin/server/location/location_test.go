package location

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// remove returns the file with the edits applied. It checks the properties that all edits have.
func remove(t testing.TB, file []byte) []byte {
	t.Helper()
	source := bytes.Clone(file)
	edits, err := Edits(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	clear(source) // the edits do not refer to it
	end := int64(0)
	for i, e := range edits {
		if e.At < end || e.Len <= 0 || e.At+e.Len > int64(len(file)) || int64(len(e.Replacement)) > e.Len {
			t.Fatalf("edit %d replaces %d bytes at %d by %d, the edit before ends at %d of %d", i, e.Len, e.At, len(e.Replacement), end, len(file))
		}
		end = e.At + e.Len
	}
	if len(edits) > maxEdits || Bytes(edits) > maxBytes {
		t.Fatalf("%d edits of %d bytes", len(edits), Bytes(edits))
	}
	got := bytes.Clone(file)
	Apply(edits, got, 0)
	parts := bytes.Clone(file)
	rng := rand.New(rand.NewPCG(uint64(len(file)), 1))
	for at := 0; at < len(parts); {
		n := min(1+rng.IntN(1+len(parts)/7), len(parts)-at)
		Apply(edits, parts[at:at+n], int64(at))
		at += n
	}
	if !bytes.Equal(parts, got) {
		t.Fatal("the edits of parts make another file")
	}
	return got
}

// frames decodes all pictures of a file: those of animations and pages too.
func frames(t testing.TB, format string, file []byte) []any {
	t.Helper()
	var out []any
	add := func(m any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	from := bytes.NewReader(file)
	switch format {
	case "jpeg":
		add(jpeg.Decode(from))
	case "png":
		add(png.Decode(from))
	case "gif":
		add(gif.DecodeAll(from))
	case "webp":
		if m, err := webp.Decode(from); err == nil { // it does not support animations
			out = append(out, m)
		}
	}
	d := raster.NewDecoder(raster.Limits{})
	if format == "gif" || format == "webp" {
		shots, err := d.Frames(file, 10*time.Millisecond)
		for err == nil {
			if _, err = shots.Next(); err == nil {
				m, err := shots.Image(raster.View{Width: 20, Height: 20})
				add(bytes.Clone(m.Pix), err)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	m, err := d.Decode(file, raster.View{Width: 20, Height: 20})
	add(m, err)
	return out
}

// pages decodes each page of a TIFF.
func pages(t testing.TB, file []byte) []any {
	t.Helper()
	order, at, _ := openTIFF(file)
	var out []any
	for range 1000 {
		one := bytes.Clone(file)
		order.PutUint32(one[4:], uint32(at))
		m, err := tiff.Decode(bytes.NewReader(one))
		if err != nil {
			m = image.NewGray(image.Rectangle{}) // the library does not support JPEG
		}
		out = append(append(out, m), frames(t, "tiff", one)...)
		if at += 2 + int64(len(directory(file, order, at))); at+4 > int64(len(file)) || order.Uint32(file[at:]) == 0 {
			break
		}
		at = int64(order.Uint32(file[at:]))
	}
	return out
}

// TestEditsRemoveLocation removes the place from files with the place in random parts. The pixels of all pictures and the length stay.
func TestEditsRemoveLocation(t *testing.T) {
	folder := t.TempDir()
	samples := map[string]int{}
	for seed := range uint64(200) {
		m := newMaker(t, seed)
		var file []byte
		var kept map[int]string
		format := []string{"jpeg", "png", "webp", "gif", "tiff", "mp4", "mov"}[seed%7]
		switch format {
		case "jpeg":
			file = m.jpeg()
		case "png":
			file = m.png()
		case "webp":
			file = m.webp()
		case "gif":
			file = m.gif()
		case "tiff":
			file = m.tiff([]int{1, 1, 10, 70}[m.IntN(4)])
		default:
			file, kept = m.film(map[string]string{"mp4": "isom", "mov": "qt  "}[format], m.IntN(2) == 0)
		}
		name := fmt.Sprintf("%d.%s", seed, format)
		if err := os.WriteFile(filepath.Join(folder, name), remove(t, file), 0o600); err != nil {
			t.Fatal(err)
		}
		got := remove(t, file)
		for _, text := range markers {
			samples[format] += bytes.Count(file, []byte(text))
			if i := bytes.Index(got, []byte(text)); i >= 0 {
				t.Fatalf("%s: the place is still at %d of %d: %q", name, i, len(got), got[max(0, i-60):i+len(text)])
			}
		}
		for at, want := range kept {
			if string(file[at:at+len(want)]) != want {
				t.Fatalf("%s: the maker put no sample at %d", name, at)
			}
			if string(got[at:at+len(want)]) != want {
				t.Fatalf("%s: the sample at %d is %q, want %q", name, at, got[at:at+len(want)], want)
			}
		}
		switch {
		case kept != nil:
		case format == "tiff":
			if !reflect.DeepEqual(pages(t, got), pages(t, file)) {
				t.Errorf("%s has other pixels", name)
			}
		case !reflect.DeepEqual(frames(t, format, got), frames(t, format, file)):
			t.Errorf("%s has other pixels", name)
		}
		if again := remove(t, got); !bytes.Equal(again, got) {
			t.Errorf("%s: a second time it is another file", name)
		}
	}
	t.Log("places:", samples)
	tool, err := exec.LookPath("exiftool")
	if err != nil {
		t.Log("exiftool is not installed")
		return
	}
	out, err := exec.CommandContext(t.Context(), tool, "-a", "-u", "-ee", "-G1", "-r", folder).Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	for _, text := range []string{"GPS", "48.858"} {
		if i := bytes.Index(out, []byte(text)); i >= 0 {
			t.Errorf("exiftool finds: %q", out[max(0, i-80):min(len(out), i+80)])
		}
	}
}

// TestFilesWithoutLocationStay checks that files without metadata stay the same, in known and unknown formats.
func TestFilesWithoutLocationStay(t *testing.T) {
	var j, p bytes.Buffer
	m := image.NewGray(image.Rect(0, 0, 30, 20))
	if err := errors.Join(jpeg.Encode(&j, m, nil), png.Encode(&p, m)); err != nil {
		t.Fatal(err)
	}
	var g bytes.Buffer
	if err := gif.Encode(&g, m, nil); err != nil {
		t.Fatal(err)
	}
	plain := riff("RIFF", []byte("WEBP"), riff("VP8L", onePixel))
	matroska := "\x1a\x45\xdf\xa3" + marker
	for _, file := range []string{"", "x", "GIF89a so on", "BM", j.String(), p.String(), g.String(), string(plain), matroska} {
		edits, err := Edits(t.Context(), []byte(file))
		if err != nil || len(edits) != 0 {
			t.Errorf("%.20q has edits %v, %v", file, edits, err)
		}
	}
}

// TestEditsEndWithContext cancels the work.
func TestEditsEndWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, file := range [][]byte{newMaker(t, 1).jpeg(), newMaker(t, 1).tiff(3), bytes.Repeat([]byte{0xff, 0xd8}, 1<<20)} {
		if edits, err := Edits(ctx, file); !errors.Is(err, context.Canceled) || edits != nil {
			t.Errorf("%d edits, %v", len(edits), err)
		}
	}
}

// TestPicturesKeepPixels removes the place from pictures of other programs, which keep their pixels.
func TestPicturesKeepPixels(t *testing.T) {
	root := testkit.Root(t)
	paths, err := filepath.Glob(filepath.Join(root, "core", "predict", "raster", "testdata", "*", "*.tif"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("%d pictures, %v", len(paths), err)
	}
	more, err := filepath.Glob(filepath.Join(root, "core", "predict", "raster", "testdata", "*.webp"))
	if err != nil || len(more) == 0 {
		t.Fatalf("%d pictures, %v", len(more), err)
	}
	d := raster.NewDecoder(raster.Limits{})
	for _, path := range append(paths, more...) {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := remove(t, file)
		want, err := d.Decode(file, raster.View{Width: 64, Height: 64})
		if err != nil {
			t.Fatal(path, err)
		}
		pix := bytes.Clone(want.Pix)
		m, err := d.Decode(got, raster.View{Width: 64, Height: 64})
		if err != nil || !bytes.Equal(m.Pix, pix) {
			t.Errorf("%s has other pixels: %v", path, err)
		}
	}
}

// TestFilmsKeepSamples removes the place from films of other programs. Their media data has only pictures and sound, so it stays.
func TestFilmsKeepSamples(t *testing.T) {
	folder := testkit.DataPath(t, "video")
	for _, name := range []string{"slides-h264.mp4", "slides-av1.mp4", "slides-hevc.mov", "phone-rotated.mov", "mpeg4.3gp", "audio-only.mp4", "uneven-times.mp4"} {
		file, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		p := newPlan(t.Context(), nil)
		want, got := p.children(file, "mdat")[0], p.children(remove(t, file), "mdat")[0]
		if len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s has other media data", name)
		}
		if p.children(p.children(remove(t, file), "moov")[0], "udta")[0] != nil {
			t.Errorf("%s has user data", name)
		}
	}
}
