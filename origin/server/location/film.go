package location

import (
	"encoding/binary"
	"iter"
	"slices"
)

// firstBoxes lists the boxes with which an MP4, QuickTime or 3GP file may begin.
var firstBoxes = []string{"ftyp", "styp", "moov", "moof", "mdat", "wide", "free", "skip", "pnot"}

// emptyBoxes lists the boxes that players skip. A removed box becomes "free" unless it is one of these.
var emptyBoxes = []string{"free", "skip", "wide"}

// neededBoxes lists, for each kind of box, the boxes in it that players need; "" is the file itself. A needed box that is not a key of the
// map stays unchanged with its whole content, but for mdat, hdlr and dref.
var neededBoxes = map[string][]string{
	"":     {"ftyp", "styp", "moov", "moof", "mdat", "sidx", "mfra"},
	"moov": {"mvhd", "trak", "mvex"},
	"trak": {"tkhd", "edts", "tref", "tapt", "mdia"},
	"edts": {"elst"},
	"tapt": {"clef", "prof", "enof"},
	"mdia": {"mdhd", "hdlr", "elng", "minf"},
	"minf": {"vmhd", "smhd", "gmhd", "nmhd", "hdlr", "dinf", "stbl"},
	"dinf": {"dref"},
	"stbl": {
		"stsd", "stts", "ctts", "cslg", "stsc", "stsz", "stz2", "stco", "co64", "stss", "stsh", "padb", "stdp", "sdtp", "sbgp", "sgpd",
		"subs", "saiz", "saio",
	},
	"mvex": {"mehd", "trex", "leva", "trep"},
	"moof": {"mfhd", "traf"},
	"traf": {"tfhd", "tfdt", "trun", "sdtp", "sbgp", "sgpd", "subs", "saiz", "saio", "senc"},
	"mfra": {"tfra", "mfro"},
}

// referenceBoxes lists the kinds of references to media data.
var referenceBoxes = []string{"url ", "urn ", "alis", "rsrc"}

// players lists the handlers of tracks that players show, among them sequences of pictures and their transparency. The samples of other
// tracks may contain places: cameras write them as data or subtitles.
var players = []string{"vide", "soun", "pict", "auxv"}

// box is a box of a film: size and kind, then the body.
type box struct {
	kind []byte // empty: the bytes are not a box
	at   int64  // offset of the box in the file
	head int64  // number of bytes before the body
	body []byte
}

// film is a file and the samples that stay.
type film struct {
	*plan
	tracks  map[int64]bool   // by the offset of a track: whether it stays
	hidden  map[uint32]bool  // ids of removed tracks
	sizes   map[uint32]int64 // sizes of the samples of fragments, by track, unless the fragment has them
	chunks  []chunk          // of all tracks
	kept    []span           // samples of pictures and sound, in order
	rebased map[int64]uint32 // by the offset of a number in a fragment: its new value
}

// film turns boxes that players do not need, and tracks without pictures or sound, into zeroed boxes that players skip. It also zeroes all
// media data but the samples of the other tracks and the items that are pictures.
func (p *plan) film() {
	f := &film{plan: p, tracks: map[int64]bool{}, hidden: map[uint32]bool{}, sizes: map[uint32]int64{}, rebased: map[int64]uint32{}}
	fragmented := false
	for b := range f.boxes(p.data, 0) {
		switch string(b.kind) {
		case "moov":
			f.movie(b)
		case "moof":
			fragmented = true
		case "meta":
			if f.isPictures(&b) {
				f.items(b)
			}
		}
	}
	if fragmented {
		for b := range f.boxes(p.data, 0) {
			if string(b.kind) == "moof" {
				f.fragment(b)
			}
		}
	}
	f.resolve()
	f.reduce("", p.data, 0)
}

// boxes yields the boxes in data, which begins at offset at of the file. The last box may be truncated.
func (p *plan) boxes(data []byte, at int64) iter.Seq[box] {
	return func(yield func(box) bool) {
		for len(data) > 0 && p.step(8) {
			b := box{at: at, body: data}
			n := uint64(len(data))
			if len(data) >= 8 {
				b.kind, b.head = data[4:8], 8
				switch size := uint64(binary.BigEndian.Uint32(data)); {
				case size == 0 && string(b.kind) != "\x00\x00\x00\x00": // size 0: the box extends to the end
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

// children returns the bodies of boxes in data: for each kind, the first box. It reads data once.
func (p *plan) children(data []byte, kinds ...string) [][]byte {
	bodies := make([][]byte, len(kinds))
	for b := range p.boxes(data, 0) {
		for i, k := range kinds {
			if bodies[i] == nil && string(b.kind) == k {
				bodies[i] = b.body
			}
		}
	}
	return bodies
}

// reduce removes the boxes that players do not need from body, the body of a box of the given kind. at is the body's offset in the file.
func (f *film) reduce(kind string, body []byte, at int64) {
	needed := neededBoxes[kind]
	for b := range f.boxes(body, at) {
		from, to := b.at+b.head, b.at+b.head+int64(len(b.body))
		if !isOneOf(b.kind, needed) ||
			string(b.kind) == "trak" && !f.tracks[b.at] ||
			string(b.kind) == "traf" && f.hidden[number(f.children(b.body, "tfhd")[0], 4)] {
			if kind == "" && f.isPictures(&b) {
				f.reduceItems(b)
			} else {
				f.skip(b)
			}
			continue
		}
		switch string(b.kind) {
		case "mdat":
			f.media(span{from, to})
		case "hdlr":
			f.zero(from+24, to) // the name
		case "dref":
			f.references(span{from, to})
		case "tfhd", "trun":
			f.rebase(from)
		default:
			if len(b.body) > 0 && neededBoxes[string(b.kind)] != nil {
				f.reduce(string(b.kind), b.body, from)
			}
		}
	}
}

// skip turns a box into a zeroed box that readers skip.
func (p *plan) skip(b box) {
	if len(b.kind) > 0 && !isOneOf(b.kind, emptyBoxes) {
		p.put(b.at+4, []byte("free"))
	}
	p.zero(b.at+b.head, b.at+b.head+int64(len(b.body)))
}

// isOneOf reports whether a kind of box is in a list.
func isOneOf(kind []byte, list []string) bool {
	for _, k := range list {
		if k == string(kind) {
			return true
		}
	}
	return false
}

// media zeroes the bytes of media data that are not samples. The samples are in order.
func (f *film) media(s span) {
	i, _ := slices.BinarySearchFunc(f.kept, s.from, func(k span, at int64) int {
		if k.to <= at {
			return -1
		}
		return 1
	})
	at := s.from
	for ; i < len(f.kept) && f.kept[i].from < s.to && f.step(16); i++ {
		f.zero(at, f.kept[i].from)
		at = f.kept[i].to
	}
	f.zero(at, s.to)
}

// references zeroes the names of files in references to media data. A player that has only this file cannot use them.
func (f *film) references(s span) {
	for b := range f.boxes(f.data[min(s.from+8, s.to):s.to], s.from+8) {
		from := b.at
		if isOneOf(b.kind, referenceBoxes) {
			from += b.head + 4 // the flags stay
		}
		f.zero(from, b.at+b.head+int64(len(b.body)))
	}
}

// number returns the big-endian number at offset at, or 0 if b is too short.
func number(b []byte, at int) uint32 {
	if len(b) < at+4 {
		return 0
	}
	return binary.BigEndian.Uint32(b[at:])
}

// wide returns the big-endian number of 64 bits at offset at, at most 2^62, or 0 if b is too short.
func wide(b []byte, at int) int64 {
	if len(b) < at+8 {
		return 0
	}
	return int64(min(binary.BigEndian.Uint64(b[at:]), 1<<62))
}
