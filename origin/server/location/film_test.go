package location

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestFilmSound checks the samples of sound whose size is unknown. A data track is between and after them.
func TestFilmSound(t *testing.T) {
	start := atom("ftyp", "qt  ")
	at := uint32(len(start) + 8)
	one := func(size uint32, entry []byte, bytes int) {
		t.Helper()
		sound := strings.Repeat("s", bytes)
		describe := atom("stsd", uint32(0), uint32(1), entry)
		table := atom("stbl", describe, atom("stsc", uint32(0), uint32(1), [3]uint32{1, 128, 1}), atom("stsz", uint32(0), size, uint32(256)),
			atom("stco", uint32(0), uint32(2), [2]uint32{at, at + uint32(bytes+len(marker))}))
		data := atom("stbl", atom("stsc", uint32(0), uint32(1), [3]uint32{1, 1, 1}), atom("stsz", uint32(0), uint32(len(marker)), uint32(2)),
			atom("stco", uint32(0), uint32(2), [2]uint32{at + uint32(bytes), at + uint32(2*bytes+len(marker))}))
		file := slices.Concat(start, atom("mdat", sound+marker+sound+marker), atom("moov", track(1, "soun", table), track(2, "meta", data)))
		got := remove(t, file)
		blank := strings.Repeat("\x00", len(marker))
		if want := sound + blank + sound + blank; string(got[at:int(at)+len(want)]) != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got[at:int(at)+len(want)], want)
		}
	}
	sound := func(kind string, version, channels, bits uint16, more ...any) []byte {
		return atom(kind, append([]any{[6]byte{}, uint16(1), version, [6]byte{}, channels, bits, uint32(0), uint32(0)}, more...)...)
	}
	one(1, sound("twos", 0, 2, 16), 128*4)
	one(4, sound("twos", 0, 2, 16), 128*4)
	one(1, sound("in24", 0, 2, 16), 128*6)
	one(1, sound("ima4", 1, 1, 16, [4]uint32{64, 34, 34, 2}), 128*2)
	one(1, sound("lpcm", 2, 3, 16, uint32(72), uint64(0), uint32(6), uint32(0x7f000000), uint32(32), uint32(0), uint32(24), uint32(1)), 128*24)
	one(50, nil, 128*50)
}

// TestFragmentsWithoutBase removes a track whose data shows where the data of the next track begins. The next track gets the offset.
func TestFragmentsWithoutBase(t *testing.T) {
	table := atom("stbl")
	movie := atom("moov", track(1, "meta", table), track(2, "vide", table), atom("mvex", atom("trex", uint32(0), uint32(2), [4]uint32{1, 0, 5, 0})))
	fragment := func(offset uint32) []byte {
		return atom("moof", atom("traf", atom("tfhd", uint32(16), uint32(1), uint32(len(marker))), atom("trun", uint32(1), uint32(2), offset)),
			atom("traf", atom("tfhd", uint32(0), uint32(2)), atom("trun", uint32(1), uint32(3), uint32(0)), atom("trun", uint32(4), uint32(1), uint32(0))))
	}
	size := uint32(len(fragment(0)) + 8)
	start := slices.Concat(atom("ftyp", "isom"), movie)
	got := remove(t, slices.Concat(start, fragment(size), atom("mdat", marker+marker+"11111222223333344444"+marker)))
	want := atom("traf", atom("tfhd", uint32(1<<17), uint32(2)), atom("trun", uint32(1), uint32(3), size+2*uint32(len(marker))), atom("trun", uint32(4), uint32(1), uint32(0)))
	if !bytes.Contains(got, want) || !bytes.Contains(got, []byte("\x0011111222223333344444\x00")) {
		t.Errorf("%q, want %q", got[len(start):], want)
	}
}

// TestFilmReferences has paths of files in references to media data. Programs write them also if the data is in the film itself.
func TestFilmReferences(t *testing.T) {
	film := func(text string) []byte {
		references := atom("dref", uint32(0), uint32(2), atom("alis", uint32(1), text), atom("url ", uint32(0), text), text)
		media := atom("mdia", atom("hdlr", uint64(0), "vide", [3]uint32{}), atom("minf", atom("dinf", references)))
		return slices.Concat(atom("ftyp", "qt  "), atom("moov", atom("trak", atom("tkhd", [3]uint32{}, uint32(1)), media)))
	}
	if got, want := remove(t, film(marker)), film(strings.Repeat("\x00", len(marker))); !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFilmBoxes checks the boxes of a reduced film.
func TestFilmBoxes(t *testing.T) {
	file, _ := newMaker(t, 3).film("isom", false)
	got := remove(t, file)
	kinds := func(data []byte) (kinds []string) {
		for b := range newPlan(t.Context(), nil).boxes(data, 0) {
			kinds = append(kinds, string(b.kind))
		}
		return kinds
	}
	movie := newPlan(t.Context(), nil).children(got, "moov")[0]
	if all := kinds(movie); !slices.Equal(all, []string{"mvhd", "free", "free", "free", "trak", "free", "trak"}) {
		t.Errorf("boxes of the movie %q", all)
	}
	if n := bytes.Count(got, []byte("kept")); n != 2 {
		t.Errorf("%d boxes are as they were, want 2", n)
	}
}
