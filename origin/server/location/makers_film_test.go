package location

import (
	"bytes"
	"encoding/binary"
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
	media := atom("mdia", atom("mdhd"), atom("hdlr", uint64(0), handler, [3]uint32{}, marker), atom("minf", atom("gmhd", "kept"), table))
	return atom("trak", append([]any{atom("tkhd", [3]uint32{}, id), media}, more...)...)
}

// media is media data while it is made: the samples of tracks, and bytes between them.
type media struct {
	data    []byte
	samples map[string][]sample // by handler
	kept    map[int]string      // samples of pictures and sound by their offset in data
}

type sample struct{ at, size uint32 }

// media returns samples of a track of each kind in random order.
func (m *maker) media() media {
	out := media{samples: map[string][]sample{}, kept: map[int]string{}}
	for i := range 12 {
		if m.IntN(3) == 0 {
			out.data = append(out.data, m.place()...)
		}
		handler := []string{"vide", "soun", "meta", "sbtl"}[(i+m.IntN(2))%4]
		text := m.place()
		if handler == "vide" || handler == "soun" {
			text = "picture or sound"[m.IntN(8):]
			out.kept[len(out.data)] = text
		}
		out.samples[handler] = append(out.samples[handler], sample{uint32(len(out.data)), uint32(len(text))})
		out.data = append(out.data, text...)
	}
	return out
}

// table returns a table of samples. base is the offset of the media data in the file.
func (m *maker) table(samples []sample, base uint32) []byte {
	n := uint32(len(samples))
	sizes, offsets := []uint32{}, []uint32{}
	for _, s := range samples {
		sizes, offsets = append(sizes, s.size), append(offsets, base+s.at)
	}
	sizing, where := atom("stsz", uint32(0), uint32(0), n, sizes), atom("stco", uint32(0), n, offsets)
	if m.IntN(2) == 0 {
		small := []uint16{}
		for _, s := range sizes {
			small = append(small, uint16(s))
		}
		sizing = atom("stz2", uint32(0), uint32(16), n, small)
	}
	if m.IntN(2) == 0 {
		where = atom("co64", uint32(0), n)
		for _, at := range offsets {
			where = binary.BigEndian.AppendUint64(where, uint64(at))
		}
		binary.BigEndian.PutUint32(where, uint32(len(where)))
	}
	return atom("stbl", atom("stsd", uint64(0)), atom("stsc", uint32(0), uint32(1), [3]uint32{1, 1, 1}), sizing, where, atom("priv", m.place()))
}

// film returns a film with the place in user data, metadata and unknown boxes, in samples of tracks without pictures or sound, and between
// samples. kept has the samples of pictures and sound by their offset.
func (m *maker) film(brand string, fragmented bool) (file []byte, kept map[int]string) {
	start := atom("ftyp", brand, uint32(0))
	user := func(m *maker) []byte {
		return atom("udta", atom("\xa9xyz", uint32(0), m.place()), atom("loci", uint32(0), m.place()))
	}
	seed := m.Uint64()
	movie := func(base uint32, data media) []byte {
		m := newMaker(m.TB, seed) // so that the length does not depend on base
		boxes := []any{atom("mvhd"), user(m), atom("meta", m.place())}
		for i, handler := range []string{"meta", "vide", "sbtl", "soun"} {
			boxes = append(boxes, track(uint32(i+1), handler, m.table(data.samples[handler], base), user(m), atom("meta", m.place())))
		}
		if fragmented {
			boxes = append(boxes, atom("mvex", atom("trex", uint32(0), uint32(2), [4]uint32{1, 0, 7, 0}), atom("priv", m.place())))
		}
		return atom("moov", boxes...)
	}
	kept = map[int]string{}
	note := func(base int, data media) {
		for at, text := range data.kept {
			kept[base+at] = text
		}
	}
	data := m.media()
	if fragmented {
		file = append(start, movie(0, media{})...)
		for range 2 {
			data := m.media()
			seed := m.Uint64()
			fragment := newMaker(m.TB, seed).fragment(data, 0)
			fragment = newMaker(m.TB, seed).fragment(data, uint32(len(fragment)+8))
			note(len(file)+len(fragment)+8, data)
			file = append(append(file, fragment...), atom("mdat", data.data)...)
		}
	} else {
		wide := append([]byte{0, 0, 0, 1}, "mdat"...)
		wide = append(binary.BigEndian.AppendUint64(wide, uint64(16+len(data.data))), data.data...)
		if at := uint32(len(start) + 16); m.IntN(2) == 0 {
			note(int(at), data)
			file = bytes.Join([][]byte{start, wide, atom("free", m.place()), movie(at, data)}, nil)
		} else {
			at := len(start) + len(movie(0, data)) + 16
			file = bytes.Join([][]byte{start, movie(uint32(at), data), wide}, nil)
			note(at, data)
		}
	}
	return bytes.Join([][]byte{file, atom("uuid", m.place()), user(m), []byte("\x00\x00\x00\x04" + m.place())}, nil), kept
}

// fragment returns a fragment. offset is that of the media data, relative to the fragment.
func (m *maker) fragment(data media, offset uint32) []byte {
	boxes := []any{atom("mfhd")}
	for i, handler := range []string{"meta", "vide", "sbtl", "soun"} {
		runs := []any{atom("tfhd", uint32(1<<17), uint32(i+1))}
		for _, s := range data.samples[handler] {
			runs = append(runs, atom("trun", uint32(0x201), uint32(1), offset+s.at, s.size))
		}
		boxes = append(boxes, atom("traf", append(runs, m.place())...))
	}
	return atom("moof", append(boxes, atom("meta", m.place()))...)
}
