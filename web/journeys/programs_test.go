//go:build !wasip1

package journeys

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"image"
	"image/draw"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// static checks that programs start on any machine of their architecture: they need no other file, and no instruction that the oldest
// processors of the architecture lack.
func static(t *testing.T, programs ...string) {
	t.Helper()
	for _, path := range programs {
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := map[string]string{}
		for _, s := range info.Settings {
			set[s.Key] = s.Value
		}
		if set["CGO_ENABLED"] != "0" && os.Getenv("CI") == "" {
			t.Skip("make sets CGO_ENABLED=0, and here it is not")
		}
		if level, ok := set["GOAMD64"]; set["CGO_ENABLED"] != "0" || ok && level != "v1" {
			t.Errorf("%s is built with CGO_ENABLED=%s and GOAMD64=%s, want 0 and v1", info.Path, set["CGO_ENABLED"], level)
		}
		if set["GOOS"] != "linux" {
			continue
		}
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range file.Progs {
			if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
				t.Errorf("%s is loaded by another program: %v", info.Path, p.Type)
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// writeFilm writes the film that the browser's camera shows, and returns its path. Its frames are the middle of a sample that no model
// of the journeys is trained on.
func writeFilm(t *testing.T) string {
	t.Helper()
	file, err := os.Open(filepath.Join(testkit.Root(t), "web", "samples", "23-pelicans.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sample, err := jpeg.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	frame := image.NewRGBA(image.Rect(0, 0, 288, 288)) // whole blocks, and no larger than the samples
	draw.Draw(frame, frame.Rect, sample, image.Pt(5, 5), draw.Src)
	var film bytes.Buffer
	for range 2 {
		if err := jpeg.Encode(&film, frame, &jpeg.Options{Quality: 90}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "film.mjpeg")
	if err := os.WriteFile(path, film.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
