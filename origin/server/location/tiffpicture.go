package location

import (
	"math"
	"slices"
)

// Values of tagCompression.
const (
	compressionNone    = 1
	compressionOldJPEG = 6
	compressionJPEG    = 7
)

// picture keeps the strips or tiles of a directory.
func (t *tiffFile) picture(d *tiffDirectory) {
	compression := t.value(d, tagCompression, compressionNone)
	room := t.room(d)
	t.listed(d, tagStripOffsets, tagStripCounts, compression, room)
	t.listed(d, tagTileOffsets, tagTileCounts, compression, room)
	if n := t.values(d, tagJPEGTables); n.count > 4 {
		from := t.size() - int64(len(n.data))
		t.addJPEG(span{from, from + n.count})
	}
	if compression == compressionOldJPEG {
		t.oldJPEG(d)
	}
}

// room returns the number of bytes of a strip or tile without compression.
func (t *tiffFile) room(d *tiffDirectory) int64 {
	bits := t.values(d, tagBits)
	samples, most := max(1, bits.count, t.value(d, tagSamples, 1)), int64(1)
	for i := range bits.count {
		most = max(most, bits.at(i))
	}
	t.step(bits.count)
	height := t.value(d, tagHeight, 0)
	width, rows := t.value(d, tagWidth, 0), t.value(d, tagRowsPerStrip, height)
	if rows == 0 || rows > height {
		rows = height
	}
	if w := t.value(d, tagTileWidth, 0); w > 0 {
		width, rows = w, t.value(d, tagTileHeight, 0)
	}
	// A row may be rounded up to a chroma sample of 4 × 4 pixels.
	n := (float64(width)+4)*float64(samples)*float64(most)/8 + 1
	return int64(min(n*(float64(rows)+4), math.MaxInt32*2))
}

// listed keeps the strips or tiles that two entries list. room is the size of one without compression: some programs write a count that
// is too large.
func (t *tiffFile) listed(d *tiffDirectory, offsets, counts uint16, compression, room int64) {
	from, sizes := t.values(d, offsets), t.values(d, counts)
	n := from.count
	if sizes.count > 0 {
		n = min(n, sizes.count)
	}
	if t.strips -= n; t.strips < 0 {
		t.over = true
		return
	}
	for i := int64(0); i < n && t.step(8); i++ {
		at, size := from.at(i), room
		if sizes.count > 0 {
			size = sizes.at(i)
		}
		if compression == compressionNone {
			size = min(size, room)
		}
		s := t.cut(span{at, at + size})
		t.keep(s.from, s.to-s.from)
		if compression == compressionJPEG || compression == compressionOldJPEG {
			t.addJPEG(s)
		}
	}
}

// cut ends a strip where a directory or a value begins. The size of such a strip is wrong.
func (t *tiffFile) cut(s span) span {
	s.to = min(s.to, t.size())
	if i, _ := slices.BinarySearch(t.starts, s.from+1); i < len(t.starts) {
		s.to = min(s.to, t.starts[i])
	}
	return s
}

// addJPEG adds a JPEG to reduce. It ignores other bytes.
func (t *tiffFile) addJPEG(s span) {
	if s.to = min(s.to, t.size()); s.from+2 > s.to || string(t.data[s.from:s.from+2]) != "\xff\xd8" {
		return
	}
	if n := len(t.jpegs); n > 0 && t.jpegs[n-1] == s {
		return
	}
	t.jpegs = append(room(t.jpegs), s)
	t.over = t.over || len(t.jpegs) > maxJPEGs
}

// oldJPEG keeps what the entries of TIFF 6.0, section 22, name: a JPEG or its tables.
func (t *tiffFile) oldJPEG(d *tiffDirectory) {
	if at := t.value(d, tagOldJPEG, 0); at > 0 {
		size := t.value(d, tagOldJPEGCount, 0)
		if size == 0 {
			size = t.size()
		}
		s := t.cut(span{at, at + size})
		t.keep(s.from, s.to-s.from)
		t.addJPEG(s)
	}
	for _, tag := range []uint16{tagOldQuantization, tagOldDC, tagOldAC} {
		n := t.values(d, tag)
		if t.strips -= n.count; t.strips < 0 {
			t.over = true
			return
		}
		for i := int64(0); i < n.count && t.step(8); i++ {
			at, size := n.at(i), int64(64)
			if tag != tagOldQuantization { // the numbers of codes of 16 lengths, and the codes
				size = 16
				for j := at; j < min(at+16, t.size()); j++ {
					size += int64(t.data[j])
				}
				size = min(size, 16+256)
			}
			t.keep(at, size)
		}
	}
}
