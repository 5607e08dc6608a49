package video

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
	targets "github.com/sightline-dev/sightline/web/process"

	"github.com/sightline-dev/sightline/core/api"
)

// TestMain runs the tests, unless the test binary is started as a decoder's process, as its parent, or as a fake FFmpeg: see fake.
func TestMain(m *testing.M) {
	switch name := filepath.Base(os.Args[0]); {
	case name == "ffprobe" || name == "ffmpeg":
		os.Exit(fake(name))
	case len(os.Args) > 1 && os.Args[1] == asParent:
		os.Exit(parent(os.Args[2:]))
	case len(os.Args) == 2 && os.Args[1] == Command:
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// decoder returns a decoder with the module. All tests, also those of the command predict, share its compilation in .cache/tests.
func decoder(t testing.TB, o Options) *Decoder {
	t.Helper()
	if o.System == "" && o.Module == "" {
		targets.Make(t, "bin/ffmpreg.wasm.gz")
		targets.Make(t, "bin/jpegxl.wasm.gz")
		o.Module = filepath.Join(testkit.Root(t), "bin", ModuleFile)
	}
	if o.System == "" && o.Cache == "" {
		name := filepath.Join(testkit.Root(t), ".cache", "tests", "sightline")
		folder, err := system.OpenFolder(name)
		if err == nil {
			o.Key, err = system.LoadKey(folder, "decoder.key")
			err = errors.Join(err, folder.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		o.Cache, o.Scratch = filepath.Join(name, "decoder"), t.TempDir()
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openFilm opens a film and closes it at the end of the test.
func openFilm(t testing.TB, name string) *os.File {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// every returns a request for a frame every ms milliseconds.
func every(ms int) api.Video { return api.Video{SampleMS: ms, MaxFrames: 600} }

// shot is a frame with the hash of its pixels, for comparisons.
type shot struct {
	Frame
	sum string // SHA-256 of its planes
}

// all decodes a film and returns its frames.
func all(t testing.TB, d *Decoder, film *os.File, w api.Video) (shots []shot, err error) {
	t.Helper()
	for f, err := range d.Frames(t.Context(), film, w) {
		if err != nil {
			return shots, err
		}
		sum := sha256.Sum256(f.Planes.Pix)
		f.Planes.Pix = nil
		shots = append(shots, shot{f, hex.EncodeToString(sum[:])})
	}
	return shots, nil
}

// status returns the item status of a decoding that ended with err.
func status(err error) string {
	for kind, status := range map[error]string{nil: "10000", raster.ErrUnsupported: "31101", raster.ErrTooLarge: "31105", raster.ErrCorrupt: "31300"} {
		if err == kind || kind != nil && errors.Is(err, kind) {
			return status
		}
	}
	return err.Error()
}

// rows reads a table of the test films, without its header line.
func rows(t testing.TB, name string) (all [][]string) {
	t.Helper()
	text, err := os.ReadFile(testkit.DataPath(t, "video", name))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return all[1:]
}

// TestFilms decodes the test films and compares their planes and status with the tables.
func TestFilms(t *testing.T) {
	planes := map[string][][]string{}
	for _, row := range rows(t, "planes.tsv") {
		planes[row[0]] = append(planes[row[0]], row)
	}
	d := decoder(t, Options{})
	films := slices.DeleteFunc(rows(t, "outcomes.tsv"), func(row []string) bool { return row[0] == "slides.gif" }) // it needs no decoder
	first := []string{"ten-bit-vp9.webm", "phone-rotated.mov", "truncated.mp4", "two-hours.mp4", "edit-list.mp4", "bomb-36mp.mp4", "size-change.ts", "audio-only.mp4"}
	slices.SortStableFunc(films, func(a, b []string) int {
		return cmp.Compare(uint(slices.Index(first, a[0])), uint(slices.Index(first, b[0]))) // uint(-1), for other films, is the maximum
	})
	for _, row := range films[:testkit.Size(t, 4, 8, 23, 23)] {
		name := row[0]
		t.Run(name, func(t *testing.T) {
			shots, err := all(t, d, openFilm(t, testkit.DataPath(t, "video", name)), every(1000))
			t.Logf("%d frames, %v", len(shots), err)
			if got := status(err); got != row[1] {
				t.Fatalf("status %s, want %s: %v", got, row[1], err)
			}
			if want := planes[name]; err == nil && len(shots) != len(want) {
				t.Fatalf("%d frames, want %d", len(shots), len(want))
			}
			for i, want := range planes[name] {
				p := shots[i].Planes
				matrix := map[string]raster.Matrix{"bt709": raster.BT709, "bt470bg": raster.BT601, "smpte170m": raster.BT601, "unknown": raster.MatrixUnknown}[want[6]]
				rotation := map[string]int{"0": 1, "90": 6}[want[8]]
				if got := strconv.FormatInt(shots[i].TimeMS, 10); shots[i].sum != want[9] || got != want[1] || shots[i].Index != i || shots[i].Of != len(shots) ||
					strconv.Itoa(p.Width) != want[3] || strconv.Itoa(p.Height) != want[4] || p.Matrix != matrix || p.Full != (want[7] == "full") || p.Rotation != rotation {
					t.Errorf("frame %+v, want %v", shots[i], want)
				}
			}
		})
	}
}

// TestModuleIsNotLinked checks that go.mod does not name the module's Go package, which is under the GPL-3.
func TestModuleIsNotLinked(t *testing.T) {
	source, _, _ := strings.Cut(moduleSource, "@")
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(testkit.Root(t), name))
		if err != nil || strings.Contains(string(text), source) {
			t.Errorf("%s names %s: %v", name, source, err)
		}
	}
}
