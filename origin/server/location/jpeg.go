package location

import (
	"bytes"
	"encoding/binary"
)

// Markers of JPEG.
const (
	markerTEM  = 0x01
	markerSOF0 = 0xc0
	markerRST0 = 0xd0
	markerRST7 = 0xd7
	markerSOI  = 0xd8
	markerEOI  = 0xd9
	markerSOS  = 0xda
	markerEXP  = 0xdf
)

// jpeg reduces the JPEG in s, which begins with a start marker. It may have only tables, or a picture without its tables. jpeg looks for
// markers in the same way as package jpg, image/jpeg and libjpeg, so all of them decode the same pixels.
func (p *plan) jpeg(s span) { p.segments(s, true) }

// segments reduces the segments in s after the start marker. thumbnails reports whether a JPEG in a JFXX segment may stay.
func (p *plan) segments(s span, thumbnails bool) {
	data := p.data[:s.to]
	scan := false
	from := s.from + 2 // first byte after the last marker
	for at := from; at < s.to && p.step(2); {
		if scan {
			at = p.endOfScan(at, s.to)
			from = at
		} else if i := bytes.IndexByte(data[at:], 0xff); i >= 0 {
			p.step(int64(i))
			at += int64(i)
		} else {
			at = s.to
		}
		fill := at
		for at < s.to && data[at] == 0xff {
			at++
		}
		if at == s.to || !p.step(at-fill) {
			p.zero(from, fill)
			return
		}
		marker := data[at]
		at++
		if marker == 0 { // neither a marker nor part of a scan
			scan = false
			continue
		}
		p.zero(from, fill)
		from = at
		scan = false
		if marker == markerEOI {
			p.zero(at, s.to)
			return
		}
		if marker == markerTEM || markerRST0 <= marker && marker <= markerSOI || at+2 > s.to {
			continue
		}
		n := int64(binary.BigEndian.Uint16(data[at:]))
		if n < 2 {
			continue
		}
		body := span{at + 2, min(at+n, s.to)}
		p.segment(marker, body, thumbnails)
		scan, at, from = marker == markerSOS, body.to, body.to
	}
	p.zero(from, s.to)
}

// endOfScan returns the offset of the first marker at or after at that ends the data of a scan, or to.
func (p *plan) endOfScan(at, to int64) int64 {
	begin := at
	for at < to {
		part := p.data[at:min(to, at+checkEvery)]
		i := bytes.IndexByte(part, 0xff)
		if i < 0 {
			at += int64(len(part))
			if !p.step(at - begin) {
				return to
			}
			begin = at
			continue
		}
		at += int64(i) + 1
		for at < to && p.data[at] == 0xff {
			at++
		}
		if at < to && p.data[at] != 0 && (p.data[at] < markerRST0 || p.data[at] > markerRST7) {
			p.step(at - begin)
			return at - 1
		}
		if at-begin > checkEvery {
			if !p.step(at - begin) {
				return to
			}
			begin = at
		}
		at++
	}
	p.step(max(0, to-begin))
	return to
}

// segment reduces the body of a segment.
func (p *plan) segment(marker byte, s span, thumbnails bool) {
	body := p.data[s.from:s.to]
	begins := func(text string) bool { return bytes.HasPrefix(body, []byte(text)) }
	stays := int64(0) // number of bytes
	switch {
	case marker >= markerSOF0 && marker <= markerEXP, marker == 0xe2 && begins("ICC_PROFILE\x00"):
		return
	case marker == 0xe1 && begins(exifStart):
		p.step(int64(len(body)))
		at := s.from + int64(len(exifStart))
		p.replace(at, s.to, keepOrientation(p.data[at:s.to], int(s.to-at)))
		return
	case marker == 0xe0 && begins("JFIF\x00"):
		if stays = 14; len(body) >= 14 {
			stays += 3 * int64(body[12]) * int64(body[13]) // the thumbnail
		}
	case marker == 0xe0 && begins("JFXX\x00\x10\xff\xd8") && thumbnails: // a thumbnail in JPEG
		p.segments(span{s.from + 6, s.to}, false)
		return
	case marker == 0xe0 && (begins("JFXX\x00\x11") || begins("JFXX\x00\x13")): // a thumbnail without compression
		return
	case marker == 0xee && begins("Adobe"):
		stays = 12
	}
	p.zero(s.from+stays, s.to)
}
