package location

import (
	"encoding/binary"
	"math"
	"slices"
)

// movie reads the tables of a movie's tracks.
func (f *film) movie(movie box) {
	for b := range f.boxes(movie.body, movie.at+movie.head) {
		switch string(b.kind) {
		case "mvex":
			for b := range f.boxes(b.body, 0) {
				if string(b.kind) != "trex" {
					continue
				}
				f.sizes[number(b.body, 4)] = int64(number(b.body, 16))
				f.over = f.over || len(f.sizes) > maxTracks
			}
		case "trak":
			f.track(b)
		}
	}
}

// maxTracks is the maximum number of tracks of a film.
const maxTracks = 1 << 10

// track reads the headers and the table of a track.
func (f *film) track(b box) {
	if len(f.tracks) == maxTracks {
		f.over = true
		return
	}
	track := f.children(b.body, "tkhd", "mdia")
	media := f.children(track[1], "hdlr", "minf")
	handler := ""
	if len(media[0]) >= 12 {
		handler = string(media[0][8:12])
	}
	f.tracks[b.at] = slices.Contains(players, handler)
	if !f.tracks[b.at] {
		id := number(track[0], 4+2*4) // after two times
		if len(track[0]) > 0 && track[0][0] == 1 {
			id = number(track[0], 4+2*8)
		}
		f.hidden[id] = true
	}
	f.table(f.children(media[1], "stbl")[0], handler)
}

// chunk is a part of the media data with samples of one track.
type chunk struct {
	span
	most int64 // latest possible end: the tables of sound may not have its length
}

// keep adds a chunk of n bytes, or of up to most bytes. It stays unless n and most are 0.
func (f *film) keep(at, n, most int64) {
	if at < 0 || at >= f.size() {
		return
	}
	rest := f.size() - at
	c := chunk{span{at, at + min(max(n, 0), rest)}, at + min(max(n, most, 0), rest)}
	if i := len(f.chunks) - 1; i >= 0 && n > 0 && c.most == c.to {
		if last := &f.chunks[i]; last.to == c.from && last.most == last.to && last.from < last.to {
			last.to, last.most = c.to, c.to
			return
		}
	}
	f.chunks = append(room(f.chunks), c)
	f.over = f.over || len(f.chunks) > maxSpans
}

// sampleSizes reads the sizes of a track's samples in their order.
type sampleSizes struct {
	each int64 // size of each sample; 0: list has the sizes
	left int64 // number of samples
	list []byte
	bits int // of a size in list
	next int // bits of list that were read
}

// sizesOf returns the sizes in a box stsz or stz2.
func sizesOf(large, small []byte) sampleSizes {
	if b := large; len(b) >= 12 {
		return sampleSizes{each: int64(number(b, 4)), left: int64(number(b, 8)), list: b[12:], bits: 32}
	}
	if b := small; len(b) >= 12 && slices.Contains([]byte{4, 8, 16}, b[7]) {
		return sampleSizes{left: int64(number(b, 8)), list: b[12:], bits: int(b[7])}
	}
	return sampleSizes{}
}

// take returns the size of the next n samples together, and their number, which is smaller at the end of the list.
func (s *sampleSizes) take(n int64) (bytes, samples int64) {
	n = min(n, s.left)
	if n == 0 {
		return 0, 0
	}
	if s.each > 0 {
		s.left -= n
		return min(n, math.MaxInt32) * s.each, n // fits 63 bits
	}
	n = min(n, int64((8*len(s.list)-s.next)/s.bits))
	s.left -= n
	for range n {
		b := s.list[s.next/8:]
		switch s.bits {
		case 32:
			bytes += int64(binary.BigEndian.Uint32(b))
		case 16:
			bytes += int64(binary.BigEndian.Uint16(b))
		case 8:
			bytes += int64(b[0])
		default:
			bytes += int64(b[0] >> (4 - s.next%8) & 15)
		}
		s.next += s.bits
	}
	return bytes, n
}

// table reads the chunks of a track. The samples of a track of pictures or sound stay.
func (f *film) table(table []byte, handler string) {
	isKept := slices.Contains(players, handler)
	boxes := f.children(table, "stco", "co64", "stsz", "stz2", "stsc", "stsd")
	offsets, size := boxes[0], 4
	if offsets == nil {
		offsets, size = boxes[1], 8
	}
	if len(offsets) < 8 {
		return
	}
	n := int(min(int64(number(offsets, 4)), int64((len(offsets)-8)/size)))
	if len(f.chunks)+n > maxSpans {
		f.over = true
		return
	}
	f.chunks = slices.Grow(f.chunks, n)
	sizes, frames, runs := sizesOf(boxes[2], boxes[3]), f.soundFrames(boxes[5]), boxes[4]
	run := 8 // offset of the next run in runs
	perChunk := int64(0)
	for i := range n {
		at := int64(number(offsets, 8+size*i))
		if size == 8 {
			at = wide(offsets, 8+size*i)
		}
		begin := run + sizes.next/8
		for run+12 <= len(runs) && number(runs, run) <= uint32(i+1) {
			perChunk, run = int64(number(runs, run+4)), run+12
		}
		bytes, samples := sizes.take(perChunk)
		if !f.step(int64(size + run + sizes.next/8 - begin)) {
			return
		}
		most := bytes
		if handler == "soun" && sizes.each > 0 {
			most = frames.bytes(samples)
		}
		if !isKept {
			bytes, most = 0, 0
		}
		f.keep(at, bytes, most)
	}
}

// soundFrames has the ways to compute the length of a chunk of sound. QuickTime declares a size of 1 for each sample of sound, so the
// length depends on the format of the samples.
type soundFrames []struct{ samples, bytes int64 }

// bytes returns the largest possible length of samples.
func (frames soundFrames) bytes(samples int64) int64 {
	n := int64(0)
	for _, f := range frames {
		n = max(n, (samples+f.samples-1)/f.samples*f.bytes)
	}
	return n
}

// sampleBytes lists formats of sound with the bytes of a sample, which their description does not have.
var sampleBytes = map[string]int64{"in24": 3, "in32": 4, "fl32": 4, "fl64": 8}

// soundFrames reads the descriptions of a track's sound. It ignores absurd numbers, so products stay below 2^63.
func (f *film) soundFrames(description []byte) (frames soundFrames) {
	const most = 1 << 24
	add := func(samples, bytes uint32) {
		if samples > 0 && samples < most && bytes > 0 && bytes < most {
			frames = append(frames, struct{ samples, bytes int64 }{int64(samples), int64(bytes)})
		}
	}
	for b := range f.boxes(description[min(8, len(description)):], 0) {
		if len(frames) > 16 {
			break
		}
		e := b.body
		if len(e) < 28 {
			continue
		}
		channels, bits := uint32(binary.BigEndian.Uint16(e[16:])), uint32(binary.BigEndian.Uint16(e[18:]))
		add(1, channels*max(uint32(sampleBytes[string(b.kind)]), bits/8))
		switch binary.BigEndian.Uint16(e[8:]) {
		case 1:
			add(number(e, 28), number(e, 36))
		case 2:
			add(number(e, 60), number(e, 56))
		}
	}
	return frames
}

// resolve puts the samples in order. A chunk of unknown length ends before the next chunk of any track.
func (f *film) resolve() {
	if !f.step(int64(24 * len(f.chunks))) {
		return
	}
	f.chunks = sorted(f.chunks, func(c chunk) int64 { return c.from })
	next := f.size() // the next offset where a chunk begins
	for i := len(f.chunks) - 1; i >= 0; i-- {
		c := &f.chunks[i]
		if i+1 < len(f.chunks) && f.chunks[i+1].from > c.from {
			next = f.chunks[i+1].from
		}
		c.to = max(c.to, min(c.most, next))
	}
	n := 0
	for _, c := range f.chunks {
		if c.from < c.to {
			n++
		}
	}
	f.kept = make([]span, 0, n)
	for _, c := range f.chunks {
		if c.from < c.to {
			f.kept = appendSpan(f.kept, c.span)
		}
	}
	f.chunks = nil
}
