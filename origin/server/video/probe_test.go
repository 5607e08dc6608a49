package video

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/host"
)

// TestMemoryOfModule: the module returns ErrMemory for a film that needs more memory than it may use.
func TestMemoryOfModule(t *testing.T) {
	d := decoder(t, Options{})
	_, _ = first(d.Frames(t.Context(), writeFilm(t, newFilm(t, 1)), every(1000))) // compiles the module into the cache
	o := setup{Module: d.o.Module, Cache: d.o.Cache, Scratch: t.TempDir(), Key: d.o.Key, Memory: 24 << 20}
	command, err := o.compile(t.Context())
	if err != nil || command.WasCompiled() {
		t.Fatalf("it is not in the cache: %v", err)
	}
	for width, want := range map[int]error{48: nil, 2048: host.ErrMemory} {
		film := oneFile{writeFilm(t, newFilmOf(t, 1, width, width))}
		var out, log tail
		code, err := command.Run(t.Context(), []string{"ffmpeg", "-loglevel", "error", "-i", "/" + moduleInput, "-f", "rawvideo", "pipe:1"}, film, &out, &log)
		if !errors.Is(err, want) || (code == 0) != (want == nil) {
			t.Errorf("%d pixels wide: code %d, %v, want %v: %s", width, code, err, want, log.String())
		}
	}
}

// TestSystemDecoder decodes the films with the system's FFmpeg, if it has one. The planes are the same as the module's.
func TestSystemDecoder(t *testing.T) {
	ffmpeg, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("there is no ffmpeg")
	}
	d := decoder(t, Options{System: ffmpeg})
	for _, row := range rows(t, "outcomes.tsv") {
		if name := row[0]; name != "slides.gif" {
			shots, err := all(t, d, openFilm(t, testkit.DataPath(t, "video", name)), every(1000))
			if got := status(err); got != row[1] {
				t.Errorf("%s: status %s, want %s: %v", name, got, row[1], err)
			}
			i := 0
			for _, want := range rows(t, "planes.tsv") {
				if want[0] == name {
					if i >= len(shots) || shots[i].sum != want[9] {
						t.Errorf("%s: frame %d differs", name, i)
					}
					i++
				}
			}
		}
	}
	noneLeft(t, d)
}
