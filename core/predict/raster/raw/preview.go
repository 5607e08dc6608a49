package raw

import (
	"bytes"
	"encoding/binary"
)

// maxWork bounds the search for previews next to the search for start markers itself, in segments of headers and entries of directories.
// A file of a camera needs fewer than 10,000.
const maxWork = 1 << 22

// maxSegments is the maximum number of segments before the first scan of a preview. A large profile or EXIF has up to 255.
const maxSegments = 400

// scan looks for previews.
type scan struct {
	b     []byte
	tiff  tiff // zero: the file has no directories
	loose bool // the first byte of a preview may have any value
	work  int
}

func newScan(b []byte, f Format) scan {
	s := scan{b: b, loose: f == mrw, work: maxWork}
	if t, ok := openTIFF(b, 0); ok {
		s.tiff = t
	}
	return s
}

// preview is an embedded JPEG.
type preview struct {
	from          int // offset of its first byte
	scan          int // offset of the data of its first scan
	width, height int
}

// next returns the first preview that begins at an offset or later, with its position. ok is false if the file has none, or if the work is
// over.
func (s *scan) next(at int) (p preview, ok bool) {
	for s.work > 0 {
		i := bytes.Index(s.b[min(at, len(s.b)):], []byte("\xd8\xff"))
		if i < 0 {
			break
		}
		at += i + 1 // the first byte after D8, which is FF
		if from := at - 2; from >= 0 && (s.loose || s.b[from] == 0xff) {
			if p = s.header(at); p.width > 0 {
				p.from = from
				return p, true
			}
		}
	}
	return preview{}, false
}

// largest returns the preview with the most pixels. Its width is 0 if the file has none.
func (s *scan) largest() (best preview) {
	for p, ok := s.next(0); ok; p, ok = s.next(p.from + 2) {
		if p.width*p.height > best.width*best.height && !s.isSensorData(p.from) {
			best = p
		}
	}
	return best
}

// header reads the segments of a JPEG at the offset after its start marker. The width is 0 if they are not those of a JPEG that begins
// with the headers of a lossy picture of 8 bits, by which chance bytes and sensor data differ from a preview.
func (s *scan) header(at int) (p preview) {
	tables := false
	for range maxSegments {
		if s.work--; s.work < 0 || at+4 > len(s.b) || s.b[at] != 0xff {
			return preview{}
		}
		marker, size := s.b[at+1], int(binary.BigEndian.Uint16(s.b[at+2:]))
		if size < 2 || at+2+size > len(s.b) {
			return preview{}
		}
		body := s.b[at+4 : at+2+size]
		at += 2 + size
		switch {
		case marker == 0xc0 || marker == 0xc1 || marker == 0xc2: // baseline, extended, progressive
			if p.width > 0 || len(body) < 6 || body[0] != 8 || len(body) != 6+3*int(body[5]) || body[5] != 1 && body[5] != 3 {
				return preview{}
			}
			p.height, p.width = int(binary.BigEndian.Uint16(body[1:])), int(binary.BigEndian.Uint16(body[3:]))
			if p.width == 0 || p.height == 0 {
				return preview{}
			}
		case marker == 0xda: // scan
			p.scan = at
			if !tables || p.width == 0 {
				return preview{}
			}
			return p
		case marker == 0xdb: // quantisation
			tables = true
		case marker == 0xc4 || marker == 0xdd || marker >= 0xe0 && marker <= 0xef || marker == 0xfe:
		default:
			return preview{}
		}
	}
	return preview{}
}

// endOfJPEG returns the offset after the end marker of the JPEG whose first scan's data is at an offset, or the end of the file.
func endOfJPEG(b []byte, at int) int {
	for {
		i := bytes.IndexByte(b[at:], 0xff)
		if i < 0 || at+i+2 > len(b) {
			return len(b)
		}
		at += i + 1
		switch marker := b[at]; {
		case marker == 0xd9:
			return at + 1
		case marker == 0xff:
		case marker == 0 || marker >= 0xd0 && marker <= 0xd7:
			at++
		default: // a segment between scans
			if at+3 > len(b) {
				return len(b)
			}
			at = min(at+1+int(binary.BigEndian.Uint16(b[at+1:])), len(b))
		}
	}
}
