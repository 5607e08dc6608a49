// Package location removes the place where a photo or a film was taken from the bytes of its file.
//
//	JPEG   Exif keeps the orientation; XMP, IPTC, comments, other application segments and all after the picture are zeroed
//	PNG    eXIf keeps the orientation; text and unknown chunks become chunks that readers skip; all after the picture is zeroed
//	WebP   EXIF keeps the orientation; XMP and unknown chunks, and all after the picture, likewise
//	TIFF   Exif, GPS, XMP, IPTC and Photoshop entries are removed, and their values zeroed
//	MP4    also QuickTime and 3GP: user data, metadata, unknown boxes, and tracks without pictures or sound become boxes that
//	       players skip; their contents and samples are zeroed
//
// Pixels, colour profiles and the number of bytes stay the same, so a reader can pass a file on while it reads. Cameras write places in
// many forms, some in notes that only their maker documents. The package therefore keeps known parts and removes all others. It passes
// other formats on unchanged: GIF and BMP, which cameras do not write, and Matroska, WebM, AVI and WMV, in which phones do not record
// films. It does not check whether a picture is valid.
package location

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// maxPart is the maximum number of bytes of a part that a reader can hold: a JPEG segment with its marker.
const maxPart = 2 + 1<<16

// rest is a number of bytes larger than any file.
const rest = 1 << 62

// reader passes a file on without its place. It returns as many bytes as its source, and ends with the source's error.
type reader struct {
	from  *bufio.Reader
	begun bool
	next  func() // prepares the next bytes
	ready []byte // bytes to return first
	copy  int64  // number of bytes to copy next
	zero  int64  // number of bytes to zero after them
	sum   uint32 // CRC of the zeroed bytes of a PNG chunk and its kind
	sums  bool   // the CRC follows the zeroed bytes
	left  int64  // remaining bytes of a WebP file by its header
}

// NewReader returns a reader that removes the place from a JPEG, PNG or WebP file, and passes any other file on unchanged. A TIFF file
// needs [TIFF], and an MP4 file [Film], because their parts have no fixed order.
func NewReader(from io.Reader) io.Reader { return &reader{from: bufio.NewReaderSize(from, maxPart)} }

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (n int, err error) {
	if !r.begun {
		r.begin()
	}
	for n < len(p) && err == nil {
		to := p[n:]
		k := 0
		switch {
		case len(r.ready) > 0:
			k = copy(to, r.ready)
			r.ready = r.ready[k:]
		case r.copy > 0:
			k, err = r.from.Read(to[:min(int64(len(to)), r.copy)])
			r.copy -= int64(k)
		case r.zero > 0:
			k, err = r.from.Read(to[:min(int64(len(to)), r.zero)])
			r.zero -= int64(k)
			clear(to[:k])
			if r.sums {
				r.sum = crc32.Update(r.sum, crc32.IEEETable, to[:k])
			}
		case r.sums:
			r.sums = false
			r.ready = r.take(4)
			copy(r.ready, binary.BigEndian.AppendUint32(nil, r.sum))
		default:
			r.next()
		}
		n += k
	}
	if n > 0 && err == io.EOF {
		err = nil // the next call returns io.EOF again
	}
	return n, err
}

// begin detects the format.
func (r *reader) begin() {
	r.begun = true
	start, _ := r.from.Peek(12)
	switch {
	case bytes.HasPrefix(start, []byte("\xff\xd8")):
		r.copy, r.next = 2, r.jpeg
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		r.copy, r.next = 8, r.png
	case len(start) == 12 && string(start[:4]) == "RIFF" && string(start[8:]) == "WEBP":
		r.copy, r.next, r.left = 12, r.webp, int64(binary.LittleEndian.Uint32(start[4:]))-4
	default:
		r.copy = rest
	}
}

// take returns the next n bytes, or fewer at the end of the file.
func (r *reader) take(n int64) []byte {
	b, _ := r.from.Peek(int(n))
	b = slices.Clone(b)
	_, _ = r.from.Discard(len(b))
	return b
}

// end zeroes all bytes after the picture.
func (r *reader) end() { r.zero = rest }

// jpeg prepares a segment, or the bytes up to the next marker. It looks for markers in the same way as decoders, also between scans.
func (r *reader) jpeg() {
	b, _ := r.from.Peek(4)
	switch {
	case len(b) < 4 && (len(b) < 2 || b[0] != 0xff || b[1] != 0xd9):
		r.copy = rest
		return
	case b[0] != 0xff:
		buffered, _ := r.from.Peek(r.from.Buffered())
		r.copy = int64(len(buffered))
		if i := bytes.IndexByte(buffered, 0xff); i > 0 {
			r.copy = int64(i)
		}
		return
	}
	n := int64(2) // length including the marker
	if len(b) == 4 {
		n += int64(binary.BigEndian.Uint16(b[2:]))
	}
	switch m := b[1]; {
	case m == 0xd9:
		r.copy, r.next = 2, r.end
	case m == 0xff: // a marker may have any number of these before it
		r.copy = 1
	case m <= 0x01 || m >= 0xd0 && m <= 0xd8 || n < 4:
		r.copy = 2
	case m == 0xe1 && n >= 10 && r.starts(4, "Exif\x00\x00"):
		r.ready = r.take(n)
		keepOrientation(r.ready[10:])
	case m == 0xe2 && r.starts(4, "ICC_PROFILE\x00"), m == 0xe0, m == 0xee, m < 0xe0, m > 0xef && m != 0xfe:
		r.copy = n
	default:
		r.ready, r.zero = r.take(4), n-4
	}
}

// starts reports whether text follows at offset at of the unread bytes.
func (r *reader) starts(at int, text string) bool {
	b, _ := r.from.Peek(at + len(text))
	return len(b) == at+len(text) && string(b[at:]) == text
}

// ancillary lists the PNG chunks that a decoder can do without and that affect the look of the pixels. Chunks whose kind begins with a
// capital letter are required, and stay as well.
var ancillary = []string{
	"tRNS", "gAMA", "cHRM", "sRGB", "iCCP", "cICP", "mDCV", "cLLI", "sBIT", "bKGD", "pHYs", "hIST", "sPLT", "acTL", "fcTL", "fdAT",
}

// unread is an ancillary, private kind of PNG chunk, which every reader skips.
const unread = "skIp"

// png prepares a PNG chunk.
func (r *reader) png() {
	b, _ := r.from.Peek(8)
	if len(b) < 8 {
		r.copy = rest
		return
	}
	n, kind := int64(binary.BigEndian.Uint32(b)), string(b[4:])
	switch {
	case kind == "IEND":
		r.copy, r.next = 12+n, r.end
	case kind == "eXIf" && 12+n <= maxPart:
		r.ready = r.take(12 + n)
		data := r.ready[8:min(8+n, int64(len(r.ready)))]
		keepOrientation(data)
		sum := crc32.ChecksumIEEE(r.ready[4 : 8+len(data)])
		copy(r.ready[8+len(data):], binary.BigEndian.AppendUint32(nil, sum))
	case kind[0] >= 'a' && !slices.Contains(ancillary, kind):
		r.ready = r.take(8)
		copy(r.ready[4:], unread)
		r.zero, r.sum, r.sums = n, crc32.ChecksumIEEE([]byte(unread)), true
	default:
		r.copy = 12 + n
	}
}

// webp prepares a WebP chunk.
func (r *reader) webp() {
	b, _ := r.from.Peek(8)
	if len(b) < 8 || r.left < 8 {
		r.end()
		return
	}
	n := 8 + int64(binary.LittleEndian.Uint32(b[4:]))
	n += n & 1
	r.left -= n
	switch kind := string(b[:4]); {
	case kind == "VP8X" && n <= maxPart:
		r.ready = r.take(n)
		if len(r.ready) > 8 {
			r.ready[8] &^= 1 << 2 // clear the flag for XMP
		}
	case kind == "EXIF" && n <= maxPart:
		r.ready = r.take(n)
		keepOrientation(bytes.TrimPrefix(r.ready[8:], []byte("Exif\x00\x00")))
	case slices.Contains([]string{"VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF", "ICCP"}, kind):
		r.copy = n
	default:
		r.ready, r.zero = r.take(8), n-8
		copy(r.ready, "JUNK")
	}
}
