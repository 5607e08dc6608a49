package raster

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"golang.org/x/image/tiff"
)

// pngHeader is a PNG with this header and hardly any pixels.
func pngHeader(w, h uint32, depth, colour, interlace byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, w)
	head = binary.BigEndian.AppendUint32(head, h)
	head = append(head, depth, colour, 0, 0, interlace)
	var idat bytes.Buffer
	z := zlib.NewWriter(&idat)
	z.Close()
	return slices.Concat([]byte("\x89PNG\r\n\x1a\n"), pngChunk("IHDR", head), pngChunk("IDAT", idat.Bytes()), pngChunk("IEND", nil))
}

// gifHeader returns a complete GIF with one frame that has almost no pixel data.
func gifHeader(w, h uint16) []byte {
	b := []byte("GIF89a")
	b = binary.LittleEndian.AppendUint16(b, w)
	b = binary.LittleEndian.AppendUint16(b, h)
	b = append(b, 0x80, 0, 0, 0, 0, 0, 255, 255, 255)
	return append(b, gifFrameBytes(w, h, 2, 0x44, 0x01)...)
}

// gifFrameBytes is a frame at the top left with these LZW codes.
func gifFrameBytes(w, h uint16, bits byte, codes ...byte) []byte {
	b := []byte{0x2c, 0, 0, 0, 0}
	b = binary.LittleEndian.AppendUint16(b, w)
	b = binary.LittleEndian.AppendUint16(b, h)
	b = append(b, 0, bits, byte(len(codes)))
	return append(append(b, codes...), 0)
}

// manyFrames is a GIF of n frames of one pixel.
func manyFrames(n int) []byte {
	b := gifHeader(1, 1)[:19]
	for range n {
		b = append(b, gifFrameBytes(1, 1, 2, 0x44, 0x01)...)
	}
	return append(b, 0x3b)
}

// bmpHeader declares pixels that do not follow.
func bmpHeader(w, h uint32, depth uint16) []byte {
	le := binary.LittleEndian
	b := append([]byte("BM"), make([]byte, 52)...)
	le.PutUint32(b[10:], 54)
	le.PutUint32(b[14:], 40)
	le.PutUint32(b[18:], w)
	le.PutUint32(b[22:], h)
	le.PutUint16(b[26:], 1)
	le.PutUint16(b[28:], depth)
	return b
}

// tiffHeader declares RGB of w × h in strips of rows, deflated from the bytes given.
func tiffHeader(w, h, rows uint32, compression uint16, data []byte) []byte {
	le := binary.LittleEndian
	entries := []struct {
		tag, kind uint16
		value     uint32
	}{
		{tagWidth, 4, w},
		{tagHeight, 4, h},
		{tagBits, 3, 8},
		{tagCompression, 3, uint32(compression)},
		{tagPhotometric, 3, 1},
		{273, 4, 0},
		{tagSamples, 3, 1},
		{tagRowsPerStrip, 4, rows},
		{279, 4, uint32(len(data))},
	}
	b := le.AppendUint32([]byte("II*\x00"), 8)
	b = le.AppendUint16(b, uint16(len(entries)))
	for _, e := range entries {
		if e.tag == 273 {
			e.value = uint32(8 + 2 + 12*len(entries) + 4)
		}
		b = le.AppendUint16(b, e.tag)
		b = le.AppendUint16(b, e.kind)
		b = le.AppendUint32(b, 1)
		b = le.AppendUint32(b, e.value)
	}
	return append(append(b, 0, 0, 0, 0), data...)
}

// webpHeader is a VP8X file with a VP8L header and nothing behind it.
func webpHeader(canvasW, canvasH, w, h int) []byte {
	b := []byte("RIFF\x00\x00\x00\x00WEBP")
	canvasW, canvasH = canvasW-1, canvasH-1
	b = appendChunk(b, "VP8X", []byte{
		0, 0, 0, 0,
		byte(canvasW), byte(canvasW >> 8), byte(canvasW >> 16), byte(canvasH), byte(canvasH >> 8), byte(canvasH >> 16),
	})
	b = appendChunk(b, "VP8L", append([]byte{0x2f}, binary.LittleEndian.AppendUint32(nil, uint32(w-1)|uint32(h-1)<<14)...))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// jpegSize overwrites the size in the frame header.
func jpegSize(b []byte, w, h uint16) []byte {
	b = slices.Clone(b)
	for _, marker := range []string{"\xff\xc0\x00", "\xff\xc2\x00"} {
		if at := bytes.Index(b, []byte(marker)); at >= 0 {
			binary.BigEndian.PutUint16(b[at+5:], h)
			binary.BigEndian.PutUint16(b[at+7:], w)
		}
	}
	return b
}

// manyScans is a JPEG with its first scan n times.
func manyScans(t testing.TB, n int) []byte {
	b := asJPEG(t, grey(noisy(16, 16)))
	at := bytes.Index(b, []byte("\xff\xda"))
	return slices.Concat(b[:at], bytes.Repeat(b[at:len(b)-2], n), b[len(b)-2:])
}

// progressive turns a grey baseline JPEG into the header of a progressive one.
func progressive(b []byte) []byte {
	return bytes.Replace(b, []byte("\xff\xc0\x00\x0b"), []byte("\xff\xc2\x00\x0b"), 1)
}

// deflateZeros returns n zero bytes, compressed.
func deflateZeros(n int) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(make([]byte, n))
	z.Close()
	return b.Bytes()
}

// TestBombs checks that hostile pictures give a clear error in little time and memory.
func TestBombs(t *testing.T) {
	small := asJPEG(t, noisy(16, 16))
	smallGrey := asJPEG(t, grey(noisy(16, 16)))
	tests := []struct {
		name    string
		picture []byte
		want    error
	}{
		{"jpeg 65535 × 65535", jpegSize(small, 65535, 65535), ErrTooLarge},
		{"png 65535 × 65535", pngHeader(65535, 65535, 8, 6, 0), ErrTooLarge},
		{"gif 65535 × 65535", gifHeader(65535, 65535), ErrTooLarge},
		{"webp 65535 × 65535", webpHeader(65535, 65535, 16384, 16384), ErrTooLarge},
		{"bmp 65535 × 65535", bmpHeader(65535, 65535, 24), ErrTooLarge},
		{"tiff 65535 × 65535", tiffHeader(65535, 65535, 65535, 8, deflateZeros(100)), ErrTooLarge},
		{"png of 68 bytes, 30000 × 1300", pngHeader(30000, 1300, 8, 6, 0), ErrCorrupt},
		{"png 2³¹-1", pngHeader(1<<31-1, 1<<31-1, 16, 6, 0), ErrTooLarge},
		{"png beyond 2³¹", pngHeader(1<<31, 1, 8, 0, 0), ErrCorrupt},
		{"png without pixels", pngHeader(0, 7, 8, 0, 0), ErrCorrupt},
		{"png 16 bit", pngHeader(6000, 4000, 16, 6, 0), ErrTooLarge},
		{"png interlaced", pngHeader(6000, 5000, 8, 6, 1), ErrTooLarge},
		{"gif of 34 bytes, 6000 × 6000", gifHeader(6000, 6000), ErrCorrupt},
		{"gif 30001 × 1", gifHeader(30001, 1), ErrTooLarge},
		{"gif of 10,000 frames", manyFrames(10_000), ErrTooLarge},
		{"webp 20.1 MP", webpHeader(16384, 1230, 16384, 1230), ErrTooLarge},
		{"webp 8000 × 2000", webpHeader(8000, 2000, 8000, 2000), ErrCorrupt},
		{"webp without its canvas", webpHeader(64, 64, 16000, 2500), ErrCorrupt},
		{"bmp -2³¹ high", bmpHeader(1, 1<<31, 24), ErrUnsupported},
		{"bmp 20.1 MP", bmpHeader(20100, 1000, 1), ErrTooLarge},
		{"bmp 4000 × 4000", bmpHeader(4000, 4000, 24), ErrCorrupt},
		{"tiff one strip of 16 MP", tiffHeader(4000, 4000, 4000, 8, deflateZeros(1e6)), ErrTooLarge},
		{"tiff uncompressed", tiffHeader(4000, 4000, 1, 1, nil), ErrCorrupt},
		{"tiff 2³²-1", tiffHeader(1<<32-1, 1<<32-1, 1, 1, nil), ErrTooLarge},
		{"jpeg 201 MP", jpegSize(small, 20100, 10000), ErrTooLarge},
		{"jpeg progressive 64.8 MP", jpegSize(progressive(smallGrey), 8050, 8050), ErrTooLarge},
		{"jpeg of 65 scans", manyScans(t, 65), ErrTooLarge},
		{"jpeg scans × blocks", jpegSize(manyScans(t, 60), 7900, 7900), ErrTooLarge},
		{"jpeg 190 MP without pixels", jpegSize(small, 19000, 10000), ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			took, grown, err := cost(func() error {
				_, err := NewDecoder(Limits{}).Decode(tt.picture, View{Width: 224, Height: 224, Centre: 15, Box: true})
				return err
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
			if testkit.Timing() && took > 2*time.Second {
				t.Errorf("took %v, want at most 2 s", took)
			}
			if grown > 64<<20 {
				t.Errorf("took %d MB, want at most 64", grown>>20)
			}
		})
	}
}

// cost runs f and returns its duration and the sum of its allocations. The memory that it held at one time is at most this sum.
func cost(f func() error) (time.Duration, uint64, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := f()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, err
}

// tall is a JPEG of n times the height of b, which has one row of MCUs: each row is a
// restart interval, so all can be the same bytes.
func tall(b []byte, w, h, n int) []byte {
	at := bytes.Index(b, []byte("\xff\xda"))
	scan := at + 2 + int(binary.BigEndian.Uint16(b[at+2:]))
	out := slices.Concat(jpegSize(b[:at], uint16(w), uint16(h*n)), []byte{0xff, 0xdd, 0, 4}) // DRI
	out = binary.BigEndian.AppendUint16(out, uint16((w+15)/16))
	out = append(out, b[at:scan]...)
	for i := range n {
		if i > 0 {
			out = append(out, 0xff, 0xd0+byte(i-1)&7)
		}
		out = append(out, b[scan:len(b)-2]...)
	}
	return append(out, 0xff, 0xd9)
}

// TestBigPicture checks that a large but honest photo, of 108 MP and nearly 20 MB, decodes in little memory.
func TestBigPicture(t *testing.T) {
	strip := phone(12000, 16)
	var one bytes.Buffer
	check(t, jpeg.Encode(&one, strip, &jpeg.Options{Quality: 85}))
	b := tall(one.Bytes(), 12000, 16, 562)
	if len(b) < 15_000_000 || len(b) > 20_000_000 {
		t.Fatalf("%d bytes: not the picture that was meant", len(b))
	}
	var got Image
	_, grown, err := cost(func() (err error) {
		got, err = NewDecoder(Limits{}).Decode(b, View{Width: 224, Height: 224, Centre: 15, Box: true})
		return err
	})
	check(t, err)
	if got.Width != 224 || grown > 64<<20 {
		t.Errorf("108 MP: width %d with %d MB, want 224 with at most 64 MB", got.Width, grown>>20)
	}
	// Far down it is the strip again.
	want, err := NewDecoder(Limits{}).Decode(one.Bytes(), View{Width: 1500, Height: 2})
	check(t, err)
	edge := Crop{Top: 500 * 16 / 8992.0, Bottom: 501 * 16 / 8992.0, Right: 1}
	part, err := NewDecoder(Limits{}).Decode(b, View{Width: 1500, Height: 2, Crop: edge})
	check(t, err)
	if !slices.Equal(part.Pix, want.Pix) {
		t.Error("a strip far down differs from the same strip alone")
	}
}

// TestDecoderKeepsLittleMemory checks how much memory a decoder keeps after large pictures.
func TestDecoderKeepsLittleMemory(t *testing.T) {
	large := image.NewPaletted(image.Rect(0, 0, 3000, 2000), color.Palette{color.Black, color.White})
	one := asGIF(t, large)
	descriptor := 13 + int(3<<(1+one[10]&7))
	twice := slices.Concat(one[:len(one)-1], one[descriptor:])
	photo := tall(asJPEG(t, phone(3000, 16)), 3000, 16, 125)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	d := NewDecoder(Limits{})
	for _, b := range [][]byte{one, photo} {
		_, err := d.Decode(b, View{MaxSide: 3000})
		check(t, err)
	}
	frames, err := readFrames(d, twice, 100*time.Millisecond, View{MaxSide: 40})
	check(t, err)
	if frames != 2 {
		t.Fatalf("%d frames, want 2", frames)
	}
	_, err = d.Decode(photo, View{Width: 224, Height: 224})
	check(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if retained := int64(after.HeapAlloc) - int64(before.HeapAlloc); testkit.Timing() && retained > 8<<20 {
		t.Errorf("keeps %d MB, want at most 8", retained>>20)
	}
	runtime.KeepAlive(d)
}

func TestLimitsGiven(t *testing.T) {
	picture := asPNG(t, noisy(40, 30))
	photo := asJPEG(t, noisy(40, 30))
	tests := []struct {
		name    string
		l       Limits
		picture []byte
		want    error
	}{
		{"bytes", Limits{Bytes: int64(len(picture))}, picture, nil},
		{"bytes exceeded", Limits{Bytes: int64(len(picture)) - 1}, picture, ErrTooLarge},
		{"pixels", Limits{Pixels: 1200}, picture, nil},
		{"pixels exceeded", Limits{Pixels: 1199}, picture, ErrTooLarge},
		{"side", Limits{Side: 40}, picture, nil},
		{"side exceeded", Limits{Side: 39}, picture, ErrTooLarge},
		{"tight pixels", Limits{TightPixels: 1200}, asBMP(t, noisy(40, 30)), nil},
		{"tight pixels exceeded", Limits{TightPixels: 1199}, asBMP(t, noisy(40, 30)), ErrTooLarge},
		{"baseline", Limits{BaselinePixels: 1200}, photo, nil},
		{"baseline exceeded", Limits{BaselinePixels: 1199}, photo, ErrTooLarge},
		{"pixels after scaling", Limits{Pixels: 20 * 15}, photo, nil},
		{"pixels after scaling exceeded", Limits{Pixels: 20*15 - 1}, photo, ErrTooLarge},
		{"scans × blocks", Limits{ScanBlocks: 36}, photo, nil}, // 3 × 2 MCUs of 6
		{"scans × blocks exceeded", Limits{ScanBlocks: 35}, photo, ErrTooLarge},
		{"scans × blocks of tiles", Limits{ScanBlocks: 36}, jpegTIFF(t, noisy(40, 30)), nil},
		{"scans × blocks of tiles exceeded", Limits{ScanBlocks: 35}, jpegTIFF(t, noisy(40, 30)), ErrTooLarge},
		{"frames", Limits{Frames: 5}, manyFrames(5), nil},
		{"frames exceeded", Limits{Frames: 4}, manyFrames(5), ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewDecoder(tt.l).Decode(tt.picture, View{Width: 20, Height: 15})
			if !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
		})
	}
}

// TestExpired checks every decoder with a deadline that passes at its first, second … look at the clock. It ends with ErrExpired, or had
// nothing left to do.
func TestExpired(t *testing.T) {
	m := noisy(300, 200)
	pictures := map[string][]byte{
		"jpeg": asJPEG(t, m), "png": asPNG(t, m), "gif": asGIF(t, toPaletted(m)), "bmp": asBMP(t, m),
		"tiff": asTIFF(t, m, tiff.Deflate), "tiff plain": asTIFF(t, m, tiff.Uncompressed),
		"tiff jpeg": jpegTIFF(t, m), "tiff lzw": fixture(t, "tiff/lzw-21-tiles.tif"),
		"webp": fixture(t, "lossy.webp"), "webp alpha": fixture(t, "alpha.webp"),
	}
	for name, b := range pictures {
		t.Run(name, func(t *testing.T) {
			for until := 0; ; until++ {
				looks := 0
				d := NewDecoder(Limits{Expired: func() bool { looks++; return looks > until }})
				_, err := d.Decode(b, View{Width: 64, Height: 64})
				if err == nil && looks <= until {
					if until == 0 {
						t.Error("never looked at the clock")
					}
					return
				}
				if !errors.Is(err, ErrExpired) {
					t.Fatalf("Decode at look %d of %d = %v, want %v", until+1, looks, err, ErrExpired)
				}
			}
		})
	}
}

// TestTruncated checks that every shortened picture gives an error or the whole picture: the end of some files is not needed.
func TestTruncated(t *testing.T) {
	m := noisy(24, 18)
	pictures := map[string][]byte{
		"jpeg": asJPEG(t, m), "png": asPNG(t, m), "gif": asGIF(t, toPaletted(m)), "bmp": asBMP(t, m),
		"tiff": asTIFF(t, m, tiff.Uncompressed), "tiff jpeg": jpegTIFF(t, m),
		"webp": fixture(t, "lossless.webp"), "webp alpha": fixture(t, "alpha.webp"),
	}
	v := View{Width: 6, Height: 6}
	for name, b := range pictures {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(Limits{})
			full, err := d.Decode(b, v)
			check(t, err)
			want := slices.Clone(full.Pix)
			refused := 0
			for n := range b {
				got, err := d.Decode(b[:n], v)
				switch {
				case err == nil && !slices.Equal(got.Pix, want):
					t.Fatalf("the first %d of %d bytes give another picture", n, len(b))
				case err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported):
					t.Fatalf("the first %d of %d bytes: %v", n, len(b), err)
				case err != nil:
					refused++
				}
			}
			if refused < len(b)*9/10 {
				t.Errorf("%d of %d shortened files were refused", refused, len(b))
			}
		})
	}
}

func TestSniff(t *testing.T) {
	tests := []struct {
		name    string
		picture string
		message string
		want    error
	}{
		{"heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "no pictures as items", ErrCorrupt},
		{"avif among others", "\x00\x00\x00\x1cftypmif1\x00\x00\x00\x00mif1avifmiaf", "avif: ", ErrCorrupt},
		{"video", "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2", "MP4 video: picture format not supported: send it as data.video", ErrUnsupported},
		{"video that we do not read", "OggS", "Ogg video: picture format not supported: convert it to MP4", ErrUnsupported},
		{"svg", "<?xml version=\"1.0\"?>\n<!-- x --><svg xmlns=\"http://www.w3.org/2000/svg\"/>", "SVG", ErrUnsupported},
		{"svg with a mark", "\xef\xbb\xbf  <SVG/>", "SVG", ErrUnsupported},
		{"jpeg xl", "\xff\x0a\xfa\x1f", "jxl: ", ErrCorrupt},
		{"jpeg xl in boxes", "\x00\x00\x00\x0cJXL \r\n\x87\n", "jxl: ", ErrCorrupt},
		{"jpeg 2000", "\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000", ErrUnsupported},
		{"camera raw", "\x00\x00\x00\x18ftypcrx \x00\x00\x00\x01crx isom", "CR3", ErrUnsupported},
		{"photoshop", "8BPS\x00\x01", "Photoshop", ErrUnsupported},
		{"icon", "\x00\x00\x01\x00\x01\x00", "ICO", ErrUnsupported},
		{"pdf", "%PDF-1.7", "PDF", ErrUnsupported},
		{"bigtiff", "II+\x00\x08\x00\x00\x00", "BigTIFF", ErrUnsupported},
		{"text", "hello", "JPEG, PNG", ErrUnsupported},
		{"cut short", "\xff\xd8", "JPEG, PNG", ErrUnsupported},
		{"short box", "\x00\x00\x00\x00ftyp", "MP4", ErrUnsupported},
		{"nothing", "", "no bytes", ErrCorrupt},
		{"jpeg and nothing", "\xff\xd8\xff", "jpeg", ErrCorrupt},
		{"png and nothing", "\x89PNG\r\n\x1a\n", "png", ErrCorrupt},
		{"gif and nothing", "GIF89a", "gif", ErrCorrupt},
		{"webp and nothing", "RIFF\x04\x00\x00\x00WEBP", "webp", ErrCorrupt},
		{"bmp and nothing", "BM", "bmp", ErrCorrupt},
		{"text like a bmp", "BMW 320d, oil in March", "unknown file type", ErrUnsupported},
		{"short text like a bmp", "BMW 320d\n", "unknown file type", ErrUnsupported},
		{"tiff and nothing", "MM\x00*\x00\x00\x00\x08", "tiff", ErrCorrupt},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Inspect([]byte(tt.picture))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.message) {
				t.Errorf("Inspect = %v, want %v that says %q", err, tt.want, tt.message)
			}
			if _, other := NewDecoder(Limits{}).Decode([]byte(tt.picture), View{MaxSide: 1}); other == nil || other.Error() != err.Error() {
				t.Errorf("Decode = %v, Inspect = %v", other, err)
			}
		})
	}
}
