package location

import (
	"encoding/binary"
	"iter"
	"slices"
)

// neededBoxes lists, for each kind of box, the boxes in it that players need; "" is the file itself. A needed box that is not a key of the
// map stays unchanged with its whole content.
var neededBoxes = map[string][]string{
	"":     {"ftyp", "styp", "moov", "moof", "mdat", "sidx", "mfra"},
	"moov": {"mvhd", "trak", "mvex"},
	"trak": {"tkhd", "edts", "tref", "tapt", "mdia"},
	"mdia": {"mdhd", "hdlr", "elng", "minf"},
	"minf": {"vmhd", "smhd", "gmhd", "nmhd", "hdlr", "dinf", "stbl"},
	"moof": {"mfhd", "traf"},
	"traf": {"tfhd", "tfdt", "trun", "sdtp", "sbgp", "sgpd", "subs", "saiz", "saio", "senc"},
}

// players lists the handlers of tracks that players show. The samples of other tracks may contain places: cameras write them as data or
// subtitles.
var players = []string{"vide", "soun"}

// box is a box of a film: size and kind, then the body.
type box struct {
	kind string // empty: the bytes are not a box
	at   int64  // offset of the box in the file
	head int64  // number of bytes before the body
	body []byte
}

// IsFilm reports whether a file that begins with start is MP4, QuickTime or 3GP.
func IsFilm(start []byte) bool {
	return len(start) >= 8 && (string(start[4:8]) == "ftyp" || string(start[4:8]) == "moov")
}

// Film returns the edits that remove the place from an MP4, QuickTime or 3GP file. The edits keep the file's length. For another file Film
// returns nil. Boxes that players do not need, and tracks without pictures or sound, become zeroed boxes that players skip. The samples of
// such a track are zeroed too, except for those in movie fragments.
func Film(data []byte) []Edit {
	if !IsFilm(data) {
		return nil
	}
	f := film{size: int64(len(data)), hidden: map[uint32]bool{}}
	f.reduce("", data, 0)
	if len(f.edits) == maxEdits {
		return []Edit{{Len: f.size}} // there may be more edits, so the whole file is zeroed
	}
	return f.edits
}

// film is a file and its edits.
type film struct {
	edits
	size   int64
	hidden map[uint32]bool // ids of removed tracks
}

// boxes yields the boxes in data, which begins at offset at of the file. The last box may be truncated.
func boxes(data []byte, at int64) iter.Seq[box] {
	return func(yield func(box) bool) {
		for len(data) > 0 {
			b := box{at: at, body: data}
			n := uint64(len(data))
			if len(data) >= 8 {
				b.kind, b.head = string(data[4:8]), 8
				switch size := uint64(binary.BigEndian.Uint32(data)); {
				case size == 0 && b.kind != "\x00\x00\x00\x00": // size 0: the box extends to the end
				case size == 1 && len(data) >= 16:
					b.head = 16
					n = min(n, binary.BigEndian.Uint64(data[8:]))
				default:
					n = min(n, size)
				}
			}
			if n < uint64(b.head) {
				b, n = box{at: at}, uint64(len(data))
			}
			b.body = data[b.head:n]
			if !yield(b) {
				return
			}
			data, at = data[n:], at+int64(n)
		}
	}
}

// find returns the body of a box in data. kinds are the kinds of the enclosing boxes and, last, of the box itself. If there is no match,
// find returns nil.
func find(data []byte, kinds ...string) []byte {
	for b := range boxes(data, 0) {
		if b.kind != kinds[0] {
			continue
		}
		if len(kinds) == 1 {
			return b.body
		}
		return find(b.body, kinds[1:]...)
	}
	return nil
}

// reduce removes the boxes that players do not need from body, the body of a box of the given kind. at is the body's offset in the file.
func (f *film) reduce(kind string, body []byte, at int64) {
	for b := range boxes(body, at) {
		switch {
		case !slices.Contains(neededBoxes[kind], b.kind):
			f.remove(b)
		case b.kind == "trak" && !isPlayable(b.body):
			f.hidden[number(find(b.body, "tkhd"), idOffset(b.body))] = true
			f.samples(find(b.body, "mdia", "minf", "stbl"))
			f.remove(b)
		case b.kind == "traf" && f.hidden[number(find(b.body, "tfhd"), 4)]:
			f.remove(b)
		case neededBoxes[b.kind] != nil:
			f.reduce(b.kind, b.body, b.at+b.head)
		}
	}
}

// isPlayable reports whether players show a track.
func isPlayable(track []byte) bool {
	handler := find(track, "mdia", "hdlr")
	return len(handler) >= 12 && slices.Contains(players, string(handler[8:12]))
}

// idOffset returns the offset of a track's id in its header, after two times.
func idOffset(track []byte) int {
	if header := find(track, "tkhd"); len(header) > 0 && header[0] == 1 {
		return 4 + 2*8
	}
	return 4 + 2*4
}

// number returns the big-endian number at offset at, or 0 if b is too short.
func number(b []byte, at int) uint32 {
	if len(b) < at+4 {
		return 0
	}
	return binary.BigEndian.Uint32(b[at:])
}

// remove turns a box into one that players skip.
func (f *film) remove(b box) {
	if b.kind != "" {
		f.edit(Edit{At: b.at + 4, Len: 4, By: []byte("free")})
	}
	f.blank(b.at+b.head, int64(len(b.body)))
}

// samples zeroes the samples of a track. table is the track's stbl box.
func (f *film) samples(table []byte) {
	sizes, chunks, runs := find(table, "stsz"), find(table, "stco"), find(table, "stsc")
	wide := 1 // 32-bit words of a chunk's offset
	if chunks == nil {
		chunks, wide = find(table, "co64"), 2
	}
	each := int64(number(sizes, 4)) // size of each sample; 0: sizes lists each size
	next := 12                      // offset of the next sample's size in sizes
	perChunk, run := int64(0), 8    // of the current run, and the offset of the next run in runs
	for i, at := 1, 8; at+4*wide <= len(chunks); i, at = i+1, at+4*wide {
		if run+12 <= len(runs) && number(runs, run) <= uint32(i) {
			perChunk, run = int64(number(runs, run+4)), run+12
		}
		offset := int64(number(chunks, at))
		if wide == 2 {
			offset = offset<<32 | int64(number(chunks, at+4))
		}
		length := min(perChunk, f.size) * each
		for n := perChunk; each == 0 && n > 0 && next+4 <= len(sizes); n, next = n-1, next+4 {
			length += int64(number(sizes, next))
		}
		f.blank(offset, min(length, f.size-offset))
	}
}
