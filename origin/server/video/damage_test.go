package video

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

// sources returns small films of each container, for damage.
func sources(t testing.TB) [][]byte {
	t.Helper()
	all := [][]byte{newFilm(t, 12)}
	names, err := filepath.Glob("testdata/*.webm")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d films, %v", len(names), err)
	}
	shared, err := filepath.Glob(filepath.Join(filepath.Dir(testkit.Root(t)), "shared", "video", "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, shared...) {
		film, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, table := strings.CutSuffix(name, ".tsv"); !table && len(film) < 300_000 {
			all = append(all, film)
		}
	}
	return all
}

// damage returns a film with wrong or missing bits, bytes, numbers or parts.
func damage(film []byte, draw *rand.Rand) []byte {
	film = append([]byte(nil), film...)
	index := min(len(film), 2000) // start of an MP4 with its index first, of a WebM or of an AVI
	for range 1 + draw.IntN(4) {
		switch draw.IntN(6) {
		case 0:
			for range 1 + draw.IntN(40) {
				film[draw.IntN(len(film))] ^= 1 << draw.IntN(8)
			}
		case 1:
			film[draw.IntN(index)] = byte(draw.IntN(256))
		case 2:
			if at := draw.IntN(index); at+4 <= len(film) {
				binary.BigEndian.PutUint32(film[at:], []uint32{0, 1, 0x7fffffff, 0x80000000, 0xffffffff}[draw.IntN(5)])
			}
		case 3:
			film = film[:16+draw.IntN(max(1, len(film)-16))]
			index = min(index, len(film))
		case 4:
			from := draw.IntN(len(film))
			clear(film[from:min(len(film), from+draw.IntN(1000))])
		case 5:
			from, to := draw.IntN(len(film)), draw.IntN(len(film))
			copy(film[to:], film[from:min(len(film), from+draw.IntN(1000))])
		}
	}
	return film
}

// bench decodes several films in one session. The session's child has one file open, and bench writes each film into that file.
type bench struct {
	d    *Decoder
	file *os.File
	s    *session
	left int // films until a new session, because a session's processor time is limited
}

// frames decodes a film as [Decoder.Frames] does.
func (b *bench) frames(t testing.TB, film []byte, w api.Video, yield func(Frame) bool) error {
	t.Helper()
	if b.left--; b.s == nil || b.s.child.closed || b.left < 0 {
		b.close(t)
		s, err := b.d.start(t.Context(), raster.FFmpeg, b.file, b.d.o.Time)
		if err != nil {
			t.Fatal(err)
		}
		b.s, b.left = s, 30
	}
	b.s.left = b.d.o.Time
	if err := b.file.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.file.WriteAt(film, 0); err != nil {
		t.Fatal(err)
	}
	if err := recognise(b.file); err != nil {
		return err
	}
	found, err := b.s.probe(w)
	if err != nil {
		return err
	}
	return b.s.decode(found, w, yield)
}

// close ends the session and checks that it left no process and no file.
func (b *bench) close(t testing.TB) {
	t.Helper()
	if b.s != nil {
		b.s.close()
		noneLeft(t, b.d)
	}
}

// TestDamagedFilms decodes damaged copies of films. Each gives complete frames, then ends or fails with an error that users understand. It
// leaves no process and no file.
func TestDamagedFilms(t *testing.T) {
	d, films := decoder(t, Options{Time: DefaultTime / 9}), sources(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "film"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b := bench{d: d, file: file}
	outcomes := map[string]int{}
	for seed := range testkit.Seeds(t, 200, 10_000) {
		draw := rand.New(rand.NewPCG(seed, 26))
		film := damage(films[draw.IntN(len(films))], draw)
		frames := 0
		err := b.frames(t, film, every([]int{100, 1000, 10_000}[draw.IntN(3)]), func(f Frame) bool {
			size, err := f.Planes.Size()
			if err != nil || len(f.Planes.Pix) != size || f.Index != frames || f.Index >= f.Of {
				t.Errorf("frame %d of %d has %d bytes, want %d", f.Index, f.Of, len(f.Planes.Pix), size)
			}
			frames++
			return true
		})
		got := status(err)
		if outcomes[got]++; len(got) != 5 || err == nil && frames == 0 {
			t.Errorf("after %d frames: %v", frames, err)
		}
	}
	b.close(t)
	t.Log(outcomes)
}
