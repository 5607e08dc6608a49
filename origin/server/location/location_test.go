package location

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// marker is a text in every part that must be removed.
const marker = "48.8584N,2.2945E"

// entry is an entry of a TIFF directory. A value of more than four bytes is stored after the directory.
type entry struct {
	tag, kind uint16
	value     []byte
	below     []entry // a directory instead of a value
}

// directory appends a directory and its values to b.
func directory(b []byte, order byteOrder, base int, entries []entry, next uint32) []byte {
	at := len(b)
	b = order.AppendUint16(b, uint16(len(entries)))
	b = append(b, make([]byte, entryBytes*len(entries)+4)...)
	order.PutUint32(b[at+2+entryBytes*len(entries):], next)
	for i, e := range entries {
		f := at + 2 + entryBytes*i
		order.PutUint16(b[f:], e.tag)
		order.PutUint16(b[f+2:], e.kind)
		order.PutUint32(b[f+4:], uint32(len(e.value)/int(sizes[e.kind])))
		switch {
		case e.below != nil:
			order.PutUint32(b[f+4:], 1)
			order.PutUint32(b[f+8:], uint32(len(b)-base))
			b = directory(b, order, base, e.below, 0)
		case len(e.value) <= 4:
			copy(b[f+8:], e.value)
		default:
			order.PutUint32(b[f+8:], uint32(len(b)-base))
			b = append(b, e.value...)
		}
	}
	return b
}

// exif returns the Exif data of a photo with a location in every part that can contain one.
func exif(order byteOrder, orientation uint16) []byte {
	b := []byte("II*\x00")
	if order == byteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	return directory(b, order, 0, []entry{
		{tag: 270, kind: 2, value: []byte(marker)},
		{tag: tagOrientation, kind: 3, value: order.AppendUint16(nil, orientation)},
		{tag: tagExif, kind: 4, below: []entry{{tag: 37500, kind: 7, value: []byte("maker's note: " + marker)}}},
		{tag: tagGPS, kind: 4, below: []entry{{tag: 2, kind: 5, value: []byte(marker + marker[:8])}}},
	}, 0)
}

func pixels() image.Image {
	m := image.NewRGBA(image.Rect(0, 0, 24, 16))
	for y := range 16 {
		for x := range 24 {
			m.Set(x, y, color.RGBA{uint8(10 * x), uint8(15 * y), uint8(x * y), 255})
		}
	}
	return m
}

func segment(kind byte, payload string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xff, kind}, uint16(2+len(payload)))
	return append(b, payload...)
}

// photo returns a JPEG file with a location in every part that can contain one. profile is a part that must stay.
func photo(t testing.TB, exif []byte) (file, profile []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, pixels(), nil); err != nil {
		t.Fatal(err)
	}
	profile = segment(0xe2, "ICC_PROFILE\x00\x01\x01a colour profile")
	parts := [][]byte{
		{0xff, 0xd8},
		segment(0xe0, "JFIF\x00\x01\x02\x00\x00\x01\x00\x01\x00\x00"), segment(0xe1, "Exif\x00\x00"+string(exif)),
		segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta>"+marker), profile, segment(0xe2, "MPF\x00"+marker),
		segment(0xed, "Photoshop 3.0\x008BIM"+marker), segment(0xfe, marker),
		b.Bytes()[2:], []byte("\x00\x00\x00\x18ftypmp42" + marker), segment(0xe1, "Exif\x00\x00"+marker),
	}
	return bytes.Join(parts, nil), profile
}

func chunk(kind, data string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func pngFile(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, pixels()); err != nil {
		t.Fatal(err)
	}
	const head = 8 + 25
	end := b.Len() - 12
	return bytes.Join([][]byte{
		b.Bytes()[:head], chunk("gAMA", "\x00\x00\xb1\x8f"), chunk("eXIf", string(exif(binary.BigEndian, 6))), chunk("tEXt", "Comment\x00"+marker), chunk("prIv", marker),
		b.Bytes()[head:end], chunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+marker), b.Bytes()[end:], []byte(marker),
	}, nil)
}

func riff(kind string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, len(data)&1)...)
}

// onePixel is a lossless WebP picture of one pixel.
var onePixel = []byte("\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07")

func webpFile() []byte {
	body := bytes.Join([][]byte{
		[]byte("WEBP"), riff("VP8X", []byte{1<<3 | 1<<2, 0, 0, 0, 0, 0, 0, 0, 0, 0}), riff("VP8L", onePixel),
		riff("EXIF", exif(binary.LittleEndian, 8)), riff("XMP ", []byte("<x:xmpmeta>"+marker)), riff("priv", []byte(marker+"x")),
	}, nil)
	return append(riff("RIFF", body), marker...)
}

func tiffFile(t testing.TB, order byteOrder) []byte {
	t.Helper()
	short := func(v uint16) []byte { return order.AppendUint16(nil, v) }
	b := []byte("II*\x00")
	if order == byteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8+24*16)
	for i := range 24 * 16 {
		b = append(b, byte(i))
	}
	return directory(b, order, 0, []entry{
		{tag: 256, kind: 3, value: short(24)},
		{tag: 257, kind: 3, value: short(16)},
		{tag: 258, kind: 3, value: short(8)},
		{tag: 259, kind: 3, value: short(1)},
		{tag: 262, kind: 3, value: short(1)},
		{tag: 273, kind: 4, value: order.AppendUint32(nil, 8)},
		{tag: tagOrientation, kind: 3, value: short(3)},
		{tag: 277, kind: 3, value: short(1)},
		{tag: 278, kind: 3, value: short(16)},
		{tag: 279, kind: 4, value: order.AppendUint32(nil, 24*16)},
		{tag: tagXMP, kind: 1, value: []byte("<x:xmpmeta>" + marker)},
		{tag: tagIPTC, kind: 7, value: []byte(marker)},
		{tag: tagPhotoshop, kind: 7, value: []byte(marker)},
		{tag: tagExif, kind: 4, below: []entry{{tag: 37500, kind: 7, value: []byte(marker)}, {tag: tagInterop, kind: 4, below: []entry{{tag: 1, kind: 2, value: []byte(marker)}}}}},
		{tag: tagGPS, kind: 4, below: []entry{{tag: 2, kind: 2, value: []byte(marker)}}},
	}, 0)
}

func remove(t testing.TB, file []byte, one bool) []byte {
	t.Helper()
	from := io.Reader(bytes.NewReader(file))
	if one {
		from = iotest.OneByteReader(from)
	}
	r := NewReader(from)
	if edits := append(TIFF(file), Film(file)...); edits != nil {
		r = NewEditReader(from, edits)
	}
	if one {
		r = iotest.OneByteReader(r)
	}
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func decodeImage(t testing.TB, file []byte, decode func(io.Reader) (image.Image, error)) image.Image {
	t.Helper()
	m, err := decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestPlaceGoes removes the location from a file of every format. The pixels, the colour profile, the orientation and the length stay.
func TestPlaceGoes(t *testing.T) {
	little, profile := photo(t, exif(binary.LittleEndian, 6))
	big, _ := photo(t, exif(binary.BigEndian, 6))
	orientation := func(order byteOrder, v uint16) []byte {
		b := order.AppendUint16(nil, tagOrientation)
		b = order.AppendUint32(order.AppendUint16(b, 3), 1)
		return order.AppendUint16(b, v)
	}
	for _, tt := range []struct {
		name   string
		file   []byte
		decode func(io.Reader) (image.Image, error)
		has    [][]byte
	}{
		{"jpeg", little, jpeg.Decode, [][]byte{profile, orientation(binary.LittleEndian, 6)}},
		{"jpeg, big endian", big, jpeg.Decode, [][]byte{profile, orientation(binary.LittleEndian, 6)}},
		{"png", pngFile(t), png.Decode, [][]byte{chunk("gAMA", "\x00\x00\xb1\x8f"), orientation(binary.LittleEndian, 6)}},
		{"webp", webpFile(), webp.Decode, [][]byte{orientation(binary.LittleEndian, 8)}},
		{"tiff", tiffFile(t, binary.LittleEndian), tiff.Decode, [][]byte{orientation(binary.LittleEndian, 3)}},
		{"tiff, big endian", tiffFile(t, binary.BigEndian), tiff.Decode, [][]byte{orientation(binary.BigEndian, 3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !bytes.Contains(tt.file, []byte(marker)) {
				t.Fatal("the file has no place")
			}
			got := remove(t, tt.file, false)
			if len(got) != len(tt.file) {
				t.Errorf("%d bytes of %d", len(got), len(tt.file))
			}
			if i := bytes.Index(got, []byte(marker[:8])); i >= 0 {
				t.Errorf("the place is still at %d: %q", i, got[max(0, i-40):i+16])
			}
			for _, part := range tt.has {
				if !bytes.Contains(got, part) {
					t.Errorf("%q is not in the file any more", part)
				}
			}
			want, m := decodeImage(t, tt.file, tt.decode), decodeImage(t, got, tt.decode)
			if m.Bounds() != want.Bounds() {
				t.Fatalf("%v, want %v", m.Bounds(), want.Bounds())
			}
			for y := range m.Bounds().Dy() {
				for x := range m.Bounds().Dx() {
					if m.At(x, y) != want.At(x, y) {
						t.Fatalf("pixel %d, %d is %v, want %v", x, y, m.At(x, y), want.At(x, y))
					}
				}
			}
			if !bytes.Equal(remove(t, tt.file, true), got) {
				t.Error("read byte by byte it is another file")
			}
			if !bytes.Equal(remove(t, got, false), got) {
				t.Error("a second time it is another file")
			}
		})
	}
}

// TestFilesWithoutPlaceStay checks that files without metadata stay the same, in known and unknown formats.
func TestFilesWithoutPlaceStay(t *testing.T) {
	var j, p bytes.Buffer
	if err := errors.Join(jpeg.Encode(&j, pixels(), nil), png.Encode(&p, pixels())); err != nil {
		t.Fatal(err)
	}
	plain := riff("RIFF", append([]byte("WEBP"), riff("VP8L", onePixel)...))
	for _, file := range []string{"", "x", "GIF89a and so on", "BM", j.String(), p.String(), string(plain)} {
		if got := remove(t, []byte(file), false); string(got) != file {
			t.Errorf("%.20q becomes %.20q", file, got)
		}
	}
}

// TestDamageArrives ends a file with an error. The reader must get that error, because a damaged picture ends this way.
func TestDamageArrives(t *testing.T) {
	file, _ := photo(t, exif(binary.LittleEndian, 1))
	damaged := errors.New("damaged")
	for n := range len(file) + 1 {
		got, err := io.ReadAll(NewReader(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(damaged))))
		if !errors.Is(err, damaged) || len(got) != n {
			t.Fatalf("%d bytes of %d and %v", len(got), n, err)
		}
	}
}

// FuzzRemove removes the location from arbitrary bytes. The length stays, and removing it again changes nothing.
func FuzzRemove(f *testing.F) {
	file, _ := photo(f, exif(binary.LittleEndian, 6))
	seeds := [][]byte{file, pngFile(f), webpFile(), tiffFile(f, binary.LittleEndian), tiffFile(f, binary.BigEndian)}
	film, _ := filmOf()
	seeds = append(seeds, film)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range seeds {
		f.Add(s)
		for range 20 {
			cut := bytes.Clone(s[:rng.IntN(len(s)+1)])
			for range 3 {
				if len(cut) > 12 {
					cut[12+rng.IntN(len(cut)-12)] = byte(rng.IntN(256))
				}
			}
			f.Add(cut)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		got := remove(t, file, false)
		if len(got) != len(file) {
			t.Fatalf("%d bytes of %d", len(got), len(file))
		}
		if one := remove(t, file, true); !bytes.Equal(one, got) {
			t.Fatal("read byte by byte it is another file")
		}
		if len(TIFF(file)) == 0 && !IsFilm(file) && !bytes.Equal(remove(t, got, false), got) {
			t.Fatal("a second time it is another file")
		}
	})
}
