package video

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/proof"
)

// sources returns films to damage: small ones of each container.
func sources(t testing.TB) [][]byte {
	t.Helper()
	all := [][]byte{newFilm(t, 12)}
	names, err := filepath.Glob("testdata/*.webm")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d films, %v", len(names), err)
	}
	shared, err := filepath.Glob(filepath.Join(filepath.Dir(proof.Root(t)), "shared", "video", "*.*"))
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

// damage returns a film with bits, bytes, numbers or parts that are wrong or missing.
func damage(film []byte, draw *rand.Rand) []byte {
	film = append([]byte(nil), film...)
	index := min(len(film), 2000) // of an MP4 with its index at the front, of a WebM, of an AVI
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
			film = film[:16+draw.IntN(len(film)-16)]
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

// TestDamagedFilms decodes damaged copies of films. Each gives whole frames, and then nothing or an error that people
// understand, and leaves no process and no file.
func TestDamagedFilms(t *testing.T) {
	d, films := decoder(t, Options{Time: DefaultTime / 9}), sources(t)
	outcomes := map[string]int{}
	for seed := range uint64(proof.Size(t, 2, 6, 200, 10_000)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			draw := rand.New(rand.NewPCG(seed, 26))
			film := damage(films[draw.IntN(len(films))], draw)
			frames := 0
			for f, err := range d.Frames(t.Context(), writeFilm(t, film), every([]int{100, 1000, 10_000}[draw.IntN(3)])) {
				if err != nil {
					got := status(err)
					if outcomes[got]++; len(got) != 5 {
						t.Errorf("after %d frames: %v", frames, err)
					}
					return
				}
				size, err := f.Planes.Size()
				if err != nil || len(f.Planes.Pix) != size || f.Index != frames || f.Index >= f.Of {
					t.Errorf("frame %d of %d has %d bytes, want %d", f.Index, f.Of, len(f.Planes.Pix), size)
				}
				frames++
			}
			outcomes["10000"]++
			if frames == 0 {
				t.Error("no frame and no error")
			}
		})
		if t.Failed() {
			t.Fatalf("failed at seed %d", seed)
		}
	}
	noneLeft(t, d)
	t.Log(outcomes)
}
