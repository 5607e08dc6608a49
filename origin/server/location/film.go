package location

import (
	"encoding/binary"
	"iter"
	"slices"
)

// keptBoxes are the boxes of each box that players need; "" is the file itself. A box that is not a key here is kept as it is, with all
// that is in it.
var keptBoxes = map[string][]string{
	"":     {"ftyp", "styp", "moov", "moof", "mdat", "sidx", "mfra"},
	"moov": {"mvhd", "trak", "mvex"},
	"trak": {"tkhd", "edts", "tref", "tapt", "mdia"},
	"mdia": {"mdhd", "hdlr", "elng", "minf"},
	"minf": {"vmhd", "smhd", "gmhd", "nmhd", "hdlr", "dinf", "stbl"},
	"moof": {"mfhd", "traf"},
	"traf": {"tfhd", "tfdt", "trun", "sdtp", "sbgp", "sgpd", "subs", "saiz", "saio", "senc"},
}

// players show tracks with these handlers. The samples of others may be places: cameras write them as data, or as subtitles.
var players = []string{"vide", "soun"}

// box is a box of a film: size and kind, then the body.
type box struct {
	kind string // empty: the bytes here cannot be a box
	at   int64  // offset of the box in the file
	head int64  // bytes before the body
	body []byte
}

// IsFilm reports whether a file that begins with start is MP4, QuickTime or 3GP.
func IsFilm(start []byte) bool {
	return len(start) >= 8 && (string(start[4:8]) == "ftyp" || string(start[4:8]) == "moov")
}

// Film returns the edits that remove the place from an MP4, QuickTime or 3GP file, which keep its length; none for another file.
// Boxes that players do not need become boxes that they skip, full of zeros, and so do tracks without pictures or sound. The
// samples of such a track are zeroed, but for those that a movie fragment has.
func Film(data []byte) []Edit {
	if !IsFilm(data) {
		return nil
	}
	f := film{size: int64(len(data)), hidden: map[uint32]bool{}}
	f.reduce("", data, 0)
	if len(f.edits) == maxEdits {
		return []Edit{{Len: f.size}} // there are perhaps more, so nothing is sent
	}
	return f.edits
}

// film is a file and its edits.
type film struct {
	edits
	size   int64
	hidden map[uint32]bool // ids of removed tracks
}

// boxes yields the boxes in data, which begins at an offset of the file. The last may be cut short.
func boxes(data []byte, at int64) iter.Seq[box] {
	return func(yield func(box) bool) {
		for len(data) > 0 {
			b := box{at: at, body: data}
			n := uint64(len(data))
			if len(data) >= 8 {
				b.kind, b.head = string(data[4:8]), 8
				switch size := uint64(binary.BigEndian.Uint32(data)); {
				case size == 0 && b.kind != "\x00\x00\x00\x00": // up to the end
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

// find returns the body of a box in data, by the kinds of the boxes around it.
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

// reduce removes what players do not need from the body of a box of some kind.
func (f *film) reduce(kind string, body []byte, at int64) {
	for b := range boxes(body, at) {
		switch {
		case !slices.Contains(keptBoxes[kind], b.kind):
			f.remove(b)
		case b.kind == "trak" && !isPlayable(b.body):
			f.hidden[number(find(b.body, "tkhd"), idOffset(b.body))] = true
			f.samples(find(b.body, "mdia", "minf", "stbl"))
			f.remove(b)
		case b.kind == "traf" && f.hidden[number(find(b.body, "tfhd"), 4)]:
			f.remove(b)
		case keptBoxes[b.kind] != nil:
			f.reduce(b.kind, b.body, b.at+b.head)
		}
	}
}

// isPlayable reports whether players show a track.
func isPlayable(track []byte) bool {
	handler := find(track, "mdia", "hdlr")
	return len(handler) >= 12 && slices.Contains(players, string(handler[8:12]))
}

// idOffset is the offset of a track's id in its header, after two times.
func idOffset(track []byte) int {
	if header := find(track, "tkhd"); len(header) > 0 && header[0] == 1 {
		return 4 + 2*8
	}
	return 4 + 2*4
}

// number is the big-endian number at an offset, or 0 where b is shorter.
func number(b []byte, at int) uint32 {
	if len(b) < at+4 {
		return 0
	}
	return binary.BigEndian.Uint32(b[at:])
}

// remove makes a box one that players skip.
func (f *film) remove(b box) {
	if b.kind != "" {
		f.edit(Edit{At: b.at + 4, Len: 4, By: []byte("free")})
	}
	f.blank(b.at+b.head, int64(len(b.body)))
}

// samples zeroes the samples of a track, which has a table of them.
func (f *film) samples(table []byte) {
	sizes, chunks, runs := find(table, "stsz"), find(table, "stco"), find(table, "stsc")
	wide := 1 // numbers of an offset
	if chunks == nil {
		chunks, wide = find(table, "co64"), 2
	}
	each := int64(number(sizes, 4)) // 0: sizes has a number for each
	next := 12                      // sample's number in sizes
	perChunk, run := int64(0), 8    // of the run that has the chunk, and where the next run is in runs
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
