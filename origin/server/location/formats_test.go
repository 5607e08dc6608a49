package location

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// bmpFile returns a picture of 3 × 2 pixels with a colour profile and text after them.
func bmpFile() []byte {
	b := append([]byte("BM"), make([]byte, 8)...)
	b = binary.LittleEndian.AppendUint32(b, 14+124)
	for _, v := range []uint32{124, 3, 2, 1 | 24<<16, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, make([]byte, 14+124-len(b))...)
	copy(b[14+56:], "DEBM")
	binary.LittleEndian.PutUint32(b[14+112:], 124+24+uint32(len(marker)))
	binary.LittleEndian.PutUint32(b[14+116:], 7)
	return fmt.Appendf(b, "%s%sprofile%s", strings.Repeat("p", 24), marker, marker)
}

func TestBMP(t *testing.T) {
	file := bmpFile()
	got := remove(t, file)
	want := bytes.ReplaceAll(file, []byte(marker), make([]byte, len(marker)))
	if !bytes.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestJPEGOfManyScans has comments and tables between scans. The data of scans may contain pairs that look like markers.
func TestJPEGOfManyScans(t *testing.T) {
	scan := func(data string) string { return string(segment(markerSOS, "\x01\x01\x00\x00\x3f\x00")) + data }
	parts := []string{
		"\xff\xd8", string(segment(0xc2, "frame")), string(segment(0xfe, marker)), scan("ab\xff\x00cd\xff\xd0ef\xff\xff\x00g"), "\xff\xff" + string(segment(0xc4, "table")),
		"stray", "\xff\x00", string(segment(0xe5, marker)), scan("second\xff\x00"), string(segment(0xdc, "\x00\x07")), string(segment(0x42, marker)), "\xff\xd9", marker,
	}
	blank := func(s string) string { return strings.Repeat("\x00", len(s)) }
	want := slices.Clone(parts)
	want[2], want[7], want[10] = "\xff\xfe\x00\x12"+blank(marker), "\xff\xe5\x00\x12"+blank(marker), "\xff\x42\x00\x12"+blank(marker)
	want[5], want[6], want[12] = blank("stray"), blank("12"), blank(marker)
	if got := remove(t, []byte(strings.Join(parts, ""))); string(got) != strings.Join(want, "") {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOrientationStays checks the orientation in Exif, which our decoder also reads from LONG.
func TestOrientationStays(t *testing.T) {
	for _, order := range []byteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, e := range []entry{{tag: 274, kind: 3, value: order.AppendUint16(nil, 6)}, {tag: 274, kind: 4, value: order.AppendUint32(nil, 6)}} {
			exif := tiffDir(tiffHeader(order, 8), order, []entry{{tag: 270, kind: 2, value: []byte(marker)}, e}, 0)
			got := remove(t, slices.Concat([]byte("\xff\xd8"), segment(0xe1, exifStart+string(exif)), []byte("\xff\xd9")))
			if o := orientationOf(got[12:]); o != 6 || bytes.Contains(got, []byte(marker[:4])) {
				t.Errorf("orientation %d in %q", o, got)
			}
		}
	}
	// A large eXIf.
	big := append([]byte(exifStart), newMaker(t, 1).exif(7)...)
	big = append(big, bytes.Repeat([]byte(marker), 1<<14)...)
	file := slices.Concat([]byte("\x89PNG\r\n\x1a\n"), pngChunk("eXIf", string(big)), pngChunk("IEND", ""))
	got := remove(t, file)
	if o := orientationOf(got[16:]); o != 7 || !bytes.Equal(got[8:8+12+len(big)], pngChunk("eXIf", string(got[16:16+len(big)]))) {
		t.Errorf("orientation %d in %q", o, got[:80])
	}
}

// TestPNGEnd has text in the last chunk, which should be empty.
func TestPNGEnd(t *testing.T) {
	start := "\x89PNG\r\n\x1a\n"
	got := remove(t, []byte(start+string(pngChunk("IEND", marker))+marker))
	if want := start + string(pngChunk("IEND", string(make([]byte, len(marker))))) + string(make([]byte, len(marker))); string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPNGUnknownChunks has text in chunks of unknown kinds that claim to be required, and in required chunks that are too long. Many
// decoders ignore such chunks.
func TestPNGUnknownChunks(t *testing.T) {
	for _, kind := range []string{"TEXT", "IEXT", "1234", "PLTE", "IHDR"} {
		text := strings.Repeat(marker, 50)
		file := slices.Concat([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", strings.Repeat("h", 13)), pngChunk(kind, text), pngChunk("IDAT", "d"), pngChunk("IEND", ""))
		want := bytes.Replace(file, pngChunk(kind, text), pngChunk(unread, string(make([]byte, len(text)))), 1)
		if got := remove(t, file); !bytes.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// TestGIFExtensions checks extensions of each length: a reader finds the trailer after them.
func TestGIFExtensions(t *testing.T) {
	head := "GIF89a\x01\x00\x01\x00\x00\x00\x00"
	for n := range 1100 {
		text := strings.Repeat("M", n)
		for _, e := range []string{"\x21\xfe" + string(gifBlocks(text)), "\x21\xff\x03abc" + string(gifBlocks(text)), "\x21\xff\x00" + string(gifBlocks(text)), string(gifXMP(text))} {
			got := remove(t, []byte(head+e+"\x3b"+text))[len(head):]
			at := 2
			for got[at] != 0 {
				block := got[at+1 : at+1+int(got[at])]
				if zeroPrefix(block) < len(block) {
					t.Fatalf("%d bytes: a block of %q", n, block)
				}
				at += 1 + len(block)
			}
			if e == "\x21\xff\x00\x00" {
				at++
			}
			if got[at+1] != gifTrailer || at+1 != len(e) || zeroPrefix(got[at+2:]) < n {
				t.Fatalf("%d bytes: %q becomes %q", n, e, got)
			}
		}
	}
}
