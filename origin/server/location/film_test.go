package location

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// atom returns a box of a film. Numbers are big-endian.
func atom(kind string, parts ...any) []byte {
	var b bytes.Buffer
	b.WriteString("size" + kind)
	for _, p := range parts {
		if text, ok := p.(string); ok {
			p = []byte(text)
		}
		_ = binary.Write(&b, binary.BigEndian, p) // writing numbers to memory cannot fail
	}
	binary.BigEndian.PutUint32(b.Bytes(), uint32(b.Len()))
	return b.Bytes()
}

// track returns a track with a table of its samples and optional further boxes.
func track(id uint32, handler string, table []byte, more ...any) []byte {
	media := atom("mdia", atom("mdhd"), atom("hdlr", uint64(0), handler), atom("minf", atom("gmhd", "kept"), table))
	return atom("trak", append([]any{atom("tkhd", [3]uint32{}, id), media}, more...)...)
}

// filmOf returns a film with the location in user data, metadata and unknown boxes, and in the samples of tracks. pictures maps the offset
// of each picture in the file to its text.
func filmOf() (file []byte, pictures map[int]string) {
	start := atom("ftyp", "isom", uint32(0))
	at := uint32(len(start) + 16)
	// The samples are three chunks of a data track, a long one and two short ones, and one chunk of a subtitle track.
	data := marker + "picture 1" + marker + marker + "picture 2" + marker + marker
	n := uint32(len(marker))
	runs := atom("stsc", uint32(0), uint32(2), [3]uint32{1, 1, 1}, [3]uint32{2, 2, 1})
	table := atom("stbl", runs, atom("stsz", uint32(0), uint32(0), uint32(5), [5]uint32{n, 1, 2*n - 1, 3, n - 3}),
		atom("stco", uint32(0), uint32(3), [3]uint32{at, at + n + 9, at + 3*n + 18}))
	subtitles := atom("stbl", atom("stsc", uint32(0), uint32(1), [3]uint32{1, 1, 1}), atom("stsz", uint32(0), n, uint32(1)),
		atom("co64", uint32(0), uint32(1), uint64(at+4*n+18)))
	user := atom("udta", atom("\xa9xyz", uint32(0), marker), atom("loci", uint32(0), marker))
	wide := append([]byte{0, 0, 0, 1}, "mdat"...)
	wide = append(binary.BigEndian.AppendUint64(wide, uint64(16+len(data))), data...)
	file = bytes.Join([][]byte{
		start, wide, atom("free", marker), atom("uuid", marker),
		atom("moov", atom("mvhd", "kept"), track(1, "vide", atom("stbl", "kept"), user, atom("meta", marker)), track(2, "meta", table), track(3, "sbtl", subtitles), user, atom("meta", marker)),
		atom("moof", atom("mfhd"), atom("traf", atom("tfhd", uint32(0), uint32(2)), marker), atom("traf", atom("tfhd", uint32(0), uint32(1)), atom("trun", "kept")), atom("meta", marker)),
		user, []byte("\x00\x00\x00\x04" + marker),
	}, nil)
	return file, map[int]string{int(at + n): "picture 1", int(at + 3*n + 9): "picture 2"}
}

// TestPlaceGoesFromFilms removes the location from a film. The boxes that players need and the pictures keep their offsets.
func TestPlaceGoesFromFilms(t *testing.T) {
	file, pictures := filmOf()
	got := remove(t, file, false)
	if n := bytes.Count(file, []byte(marker)); n != 18 {
		t.Fatalf("the film has %d places", n)
	}
	if i := bytes.Index(got, []byte(marker[:3])); i >= 0 || len(got) != len(file) {
		t.Errorf("%d bytes of %d, the place is still at %d", len(got), len(file), i)
	}
	for at, want := range pictures {
		if string(got[at:at+len(want)]) != want {
			t.Errorf("%q is at %d, want %q", got[at:at+len(want)], at, want)
		}
	}
	if n := bytes.Count(got, []byte("kept")); n != 4 {
		t.Errorf("%d boxes are as they were, want 4", n)
	}
	var kinds []string
	for b := range boxes(got, 0) {
		kinds = append(kinds, b.kind)
	}
	if want := []string{"ftyp", "mdat", "free", "free", "moov", "moof", "free", ""}; !slices.Equal(kinds, want) {
		t.Errorf("boxes %q, want %q", kinds, want)
	}
	kinds = nil
	for b := range boxes(find(got, "moov"), 0) {
		kinds = append(kinds, b.kind)
	}
	if want := []string{"mvhd", "trak", "free", "free", "free", "free"}; !slices.Equal(kinds, want) {
		t.Errorf("boxes of the movie %q, want %q", kinds, want)
	}
	if !bytes.Equal(remove(t, file, true), got) || !bytes.Equal(remove(t, got, false), got) {
		t.Error("byte by byte, or a second time, it is another film")
	}
}

// TestFilmOfManyParts has a film with more chunks to zero than the maximum number of edits. The whole film is zeroed.
func TestFilmOfManyParts(t *testing.T) {
	chunks := make([]uint32, maxEdits)
	for i := range chunks {
		chunks[i] = uint32(100 + 2*i)
	}
	table := atom("stbl", atom("stsc", uint32(0), uint32(1), [3]uint32{1, 1, 1}), atom("stsz", uint32(0), uint32(1), uint32(maxEdits)),
		atom("stco", uint32(0), uint32(maxEdits), chunks))
	file := slices.Concat(atom("ftyp", "qt  "), atom("mdat", make([]byte, 3*maxEdits)), atom("moov", track(1, "meta", table), atom("udta", marker)))
	if got := remove(t, file, false); !bytes.Equal(got, make([]byte, len(file))) {
		t.Errorf("the film is %q", got[:40])
	}
}
