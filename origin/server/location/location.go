// Package location removes the place where a photo or a film was taken from the bytes of its file.
//
//	JPEG   Exif keeps the orientation; XMP, IPTC, comments, other application segments, bytes between segments, and all after the
//	       picture are zeroed
//	PNG    eXIf keeps the orientation; text and unknown chunks become chunks that readers skip; all after the picture is zeroed
//	WebP   EXIF keeps the orientation; XMP and unknown chunks, also those of frames, and all after the picture, likewise
//	GIF    all extensions but those for the delay, the transparent colour and the loop become empty comments
//	TIFF   directories keep the entries that a decoder needs; all bytes that no such entry names are zeroed
//	MP4    also QuickTime and 3GP: user data, metadata, unknown boxes, and tracks without pictures or sound become boxes that
//	       players skip; their contents, and all media data but the samples of pictures and sound, are zeroed
//	HEIC   also AVIF: boxes and items that are neither pictures nor their properties likewise; Exif and XMP are items
//	JXL    boxes that decoders of JPEG XL do not need, compressed ones too, become boxes that decoders skip
//	raw    of cameras: directories of GPS become empty; XMP, IPTC, descriptions, comments, and places in the notes of makers that document
//	       them are zeroed; embedded JPEGs as above. All else stays, since programs need it to develop the sensor data
//	BMP    all after the pixels is zeroed, but for a colour profile
//
// Pixels, colour profiles and the number of bytes stay the same. So a reader can pass on any part of a file once it has the list of
// edits. Cameras write places in many forms, some in notes that only their maker documents. The package therefore keeps known parts and
// removes all others. It passes other formats on unchanged: Matroska, WebM, AVI and WMV, in which phones do not record films. It does
// not check whether a picture is valid.
//
// Files may be hostile. The work is in proportion to the size of the file, whatever its bytes are. A file that needs too many edits, or
// whose directories overlap, is zeroed as a whole.
package location

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/sightline-dev/sightline/core/predict/raster/raw"
)

const (
	maxEdits  = 1 << 12   // maximum number of edits of a file
	maxBytes  = 256 << 10 // maximum number of bytes that the edits of a file take
	editBytes = 40        // memory of an edit without its bytes
)

// Edit replaces Len bytes of a file, starting at offset At: first by Replacement, then by zeros. Replacement has at most Len bytes.
type Edit struct {
	At, Len     int64
	Replacement []byte
}

// Edits returns the edits that remove the place from a picture or a film. They are in the order of At, do not overlap, and keep the
// file's length. They do not refer to data. A file that needs more than maxEdits edits, or more than maxBytes of memory for them, is
// zeroed as a whole. Edits returns an error only if ctx ends.
func Edits(ctx context.Context, data []byte) ([]Edit, error) {
	p := newPlan(ctx, data)
	p.read()
	return p.result()
}

// read detects the format and adds the edits.
func (p *plan) read() {
	data, size := p.data, p.size()
	start := string(data[:min(len(data), 12)])
	_, isRaw := raw.Recognise(data)
	switch {
	case isRaw:
		p.raw()
	case has(start, 0, "\xff\xd8"):
		p.jpeg(span{0, size})
	case has(start, 0, "\x89PNG\r\n\x1a\n"):
		p.png()
	case has(start, 0, "RIFF") && has(start, 8, "WEBP"):
		p.webp()
	case has(start, 0, "GIF87a"), has(start, 0, "GIF89a"):
		p.gif()
	case has(start, 0, "II*\x00"), has(start, 0, "MM\x00*"):
		p.tiff()
	case has(start, 4, "JXL \r\n\x87\n"):
		p.jxl()
	case len(start) >= 8 && slices.Contains(firstBoxes, start[4:8]):
		p.film()
	case has(start, 0, "BM"):
		p.bmp()
	}
}

// has reports whether text is in start at offset at.
func has(start string, at int, text string) bool {
	return len(start) >= at+len(text) && start[at:at+len(text)] == text
}

// Apply applies the edits to p, which contains the bytes of the file from offset at.
func Apply(edits []Edit, p []byte, at int64) {
	end := at + int64(len(p))
	first := sort.Search(len(edits), func(i int) bool { return edits[i].At+edits[i].Len > at })
	for _, e := range edits[first:] {
		if e.At >= end {
			return
		}
		from, to := max(e.At, at), min(e.At+e.Len, end)
		n := copy(p[from-at:to-at], e.Replacement[min(from-e.At, int64(len(e.Replacement))):])
		clear(p[from-at+int64(n) : to-at])
	}
}

// Bytes returns the number of bytes that edits take in memory.
func Bytes(edits []Edit) int64 {
	n := int64(0)
	for _, e := range edits {
		n += editBytes + int64(len(e.Replacement))
	}
	return n
}

// zeroes is a block of zeros to compare with.
var zeroes [4096]byte

// zeroPrefix returns the number of zeros at the start of b.
func zeroPrefix(b []byte) int {
	n := 0
	for len(b)-n >= len(zeroes) && bytes.Equal(b[n:n+len(zeroes)], zeroes[:]) {
		n += len(zeroes)
	}
	for n < len(b) && b[n] == 0 {
		n++
	}
	return n
}

// zeroSuffix returns the number of zeros at the end of b.
func zeroSuffix(b []byte) int {
	n := len(b)
	for n >= len(zeroes) && bytes.Equal(b[n-len(zeroes):n], zeroes[:]) {
		n -= len(zeroes)
	}
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return len(b) - n
}
