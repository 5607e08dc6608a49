package location

import (
	"bytes"
	"compress/zlib"
	"image"
	"image/jpeg"
)

// tiff returns a file with a number of pages. Each has private entries with the place, and there is the place between all parts.
func (m *maker) tiff(pages int) []byte {
	order := m.order()
	b := tiffHeader(order, 0)
	link := 4 // where the offset of the next directory is stored
	for range pages {
		var page []entry
		b, page = m.page(append(b, m.place()...), order)
		if m.IntN(2) == 0 {
			var below []entry
			b, below = m.page(b, order)
			page = append(page, entry{tag: tagSubIFDs, kind: 4, below: below})
		}
		if m.IntN(2) == 0 {
			at := len(b)
			b = tiffDir(append(b, m.place()...), order, []entry{{tag: 2, kind: 2, value: []byte(m.place())}}, 0)
			page = append(page, entry{tag: 34853, kind: 4, value: order.AppendUint32(nil, uint32(at+len(m.place())))})
		}
		page = append(page, []entry{
			{tag: 33550, kind: 12, value: make([]byte, 24)},
			{tag: 33723, kind: 7, value: []byte(m.place())},
			{tag: 33922, kind: 12, value: []byte(marker + "........")},
			{tag: 34377, kind: 7, value: []byte(m.place())},
			{tag: 34665, kind: 4, below: []entry{{tag: 37500, kind: 7, value: []byte(m.place())}}},
			{tag: tagICC, kind: 7, value: []byte("a colour profile")},
			{tag: 34737, kind: 2, value: []byte(m.place())},
			{tag: 50740, kind: 1, value: []byte(m.place())},
			{tag: 65000, kind: 2, value: []byte(m.place())},
		}...)
		b = append(b, make([]byte, len(b)&1)...)
		order.PutUint32(b[link:], uint32(len(b)))
		link = len(b) + 2 + entryBytes*len(page)
		b = tiffDir(b, order, page, 0)
	}
	return append(b, m.place()...)
}

// page appends the strips of a page, and returns its entries.
func (m *maker) page(b []byte, order byteOrder) ([]byte, []entry) {
	short := func(v int) []byte { return order.AppendUint16(nil, uint16(v)) }
	const width, height, rows = 16, 24, 8
	compression := []int{1, 8, compressionJPEG}[m.IntN(3)]
	var offsets, counts []byte
	for range height / rows {
		b = append(b, m.place()...)
		at := len(b)
		strip := image.NewGray(image.Rect(0, 0, width, rows))
		for i := range strip.Pix {
			strip.Pix[i] = uint8(m.IntN(256))
		}
		switch compression {
		case 1:
			b = append(b, strip.Pix...)
		case 8:
			var z bytes.Buffer
			w := zlib.NewWriter(&z)
			_, err := w.Write(strip.Pix)
			m.must(err)
			m.must(w.Close())
			b = append(b, z.Bytes()...)
		default:
			var j bytes.Buffer
			m.must(jpeg.Encode(&j, strip, nil))
			b = append(append(append(b, j.Bytes()[:2]...), segment(0xfe, m.place())...), j.Bytes()[2:]...)
			b = append(b, m.place()...) // after the end of the picture, and part of the strip
		}
		offsets = order.AppendUint32(offsets, uint32(at))
		counts = order.AppendUint32(counts, uint32(len(b)-at))
	}
	return b, []entry{
		{tag: 254, kind: 4, value: make([]byte, 4)},
		{tag: tagWidth, kind: 3, value: short(width)},
		{tag: tagHeight, kind: 3, value: short(height)},
		{tag: tagBits, kind: 3, value: short(8)},
		{tag: tagCompression, kind: 3, value: short(compression)},
		{tag: 262, kind: 3, value: short(1)},
		{tag: 270, kind: 2, value: []byte(m.place())},
		{tag: 271, kind: 2, value: []byte(m.place())},
		{tag: tagStripOffsets, kind: 4, value: offsets},
		{tag: tagOrientation, kind: 3, value: short(1 + m.IntN(8))},
		{tag: tagSamples, kind: 3, value: short(1)},
		{tag: tagRowsPerStrip, kind: 3, value: short(rows)},
		{tag: tagStripCounts, kind: 4, value: counts},
		{tag: 282, kind: 5, value: bytes.Repeat([]byte(marker), 50)},
		{tag: 283, kind: 2, value: []byte(m.place())},
		{tag: 305, kind: 2, value: []byte(m.place())},
		{tag: 339, kind: 3, value: short(1)},
	}
}
