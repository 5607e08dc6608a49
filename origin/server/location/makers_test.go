package location

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf16"
)

// marker is a text in every part that must be removed.
const marker = "48.8584N,2.2945E"

// wideMarker returns the marker as UTF-16.
func wideMarker(order binary.AppendByteOrder) string {
	var b []byte
	for _, r := range utf16.Encode([]rune(marker)) {
		b = order.AppendUint16(b, r)
	}
	return string(b)
}

// markers lists the marker in the encodings that files use.
var markers = []string{marker, wideMarker(binary.LittleEndian), wideMarker(binary.BigEndian)}

// maker makes files with the marker in random parts.
type maker struct {
	testing.TB
	*rand.Rand
}

func newMaker(t testing.TB, seed uint64) *maker {
	return &maker{t, rand.New(rand.NewPCG(seed, 1))}
}

// place returns a text with the marker.
func (m *maker) place() string {
	return "at " + markers[m.IntN(len(markers))] + string(make([]byte, m.IntN(3))) + "."
}

// some joins a random number of the parts in random order.
func (m *maker) some(parts ...[]byte) []byte {
	m.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return bytes.Join(parts[:1+m.IntN(len(parts))], nil)
}

func (m *maker) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// pixels returns a picture of at most 40 × 40 pixels, in colour or grey.
func (m *maker) pixels() image.Image {
	r := image.Rect(0, 0, 1+m.IntN(40), 1+m.IntN(40))
	grey, rgb := image.NewGray(r), image.NewRGBA(r)
	for y := range r.Max.Y {
		for x := range r.Max.X {
			c := color.RGBA{uint8(m.IntN(256)), uint8(15 * y), uint8(x * y), 255}
			grey.Set(x, y, c)
			rgb.Set(x, y, c)
		}
	}
	if m.IntN(3) == 0 {
		return grey
	}
	return rgb
}

// entry is an entry of a TIFF directory. A value of more than four bytes is stored after the directory.
type entry struct {
	tag, kind uint16
	value     []byte
	below     []entry // a directory instead of a value
}

var kindSizes = [...]int{0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4}

// tiffDir appends a directory, and then its values.
func tiffDir(b []byte, order byteOrder, entries []entry, next uint32) []byte {
	slices.SortStableFunc(entries, func(a, b entry) int { return int(a.tag) - int(b.tag) })
	at := len(b)
	b = order.AppendUint16(b, uint16(len(entries)))
	b = append(b, make([]byte, entryBytes*len(entries)+4)...)
	order.PutUint32(b[at+2+entryBytes*len(entries):], next)
	for i, e := range entries {
		f := at + 2 + entryBytes*i
		order.PutUint16(b[f:], e.tag)
		order.PutUint16(b[f+2:], e.kind)
		order.PutUint32(b[f+4:], uint32(len(e.value)/kindSizes[e.kind]))
		switch {
		case e.below != nil:
			order.PutUint32(b[f+4:], 1)
			order.PutUint32(b[f+8:], uint32(len(b)))
			b = tiffDir(b, order, e.below, 0)
		case len(e.value) <= 4:
			copy(b[f+8:], e.value)
		default:
			order.PutUint32(b[f+8:], uint32(len(b)))
			b = append(b, e.value...)
		}
	}
	return b
}

func tiffHeader(order byteOrder, at uint32) []byte {
	if order == byteOrder(binary.BigEndian) {
		return order.AppendUint32([]byte("MM\x00*"), at)
	}
	return order.AppendUint32([]byte("II*\x00"), at)
}

func (m *maker) order() byteOrder {
	if m.IntN(2) == 0 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// exif returns the Exif data of a photo with the place in every part that can contain one.
func (m *maker) exif(orientation uint16) []byte {
	order := m.order()
	return tiffDir(tiffHeader(order, 8), order, []entry{
		{tag: 270, kind: 2, value: []byte(m.place())},
		{tag: tagOrientation, kind: 3, value: order.AppendUint16(nil, orientation)},
		{tag: 34665, kind: 4, below: []entry{{tag: 37500, kind: 7, value: []byte("maker's note: " + m.place())}}},
		{tag: 34853, kind: 4, below: []entry{{tag: 1, kind: 2, value: []byte("N\x00")}, {tag: 2, kind: 2, value: []byte(m.place())}}},
	}, 0)
}

func segment(kind byte, payload string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xff, kind}, uint16(2+len(payload)))
	return append(b, payload...)
}

// jpeg returns a photo.
func (m *maker) jpeg() []byte {
	var b bytes.Buffer
	m.must(jpeg.Encode(&b, m.pixels(), nil))
	parts := func() []byte {
		return m.some(
			segment(0xe1, exifStart+string(m.exif(6))), segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta>"+m.place()),
			segment(0xe2, "ICC_PROFILE\x00\x01\x01a colour profile"), segment(0xe2, "MPF\x00"+m.place()), segment(0xe0, m.place()),
			segment(0xee, m.place()), segment(0xe0, "JFIF\x00\x01\x02\x00\x00\x01\x00\x01\x00\x00"+m.place()),
			segment(0xe0, "JFXX\x00\x10\xff\xd8"+string(segment(0xfe, m.place()))+"\xff\xd9"), segment(0xed, "Photoshop 3.0\x008BIM"+m.place()),
			segment(0xfe, m.place()), []byte(m.place()), append([]byte("\xff\xff\xff"), segment(0xfe, m.place())...), []byte("\xff\x00"+m.place()), segment(0xef, ""),
		)
	}
	data := b.Bytes()
	scan := bytes.Index(data, []byte{0xff, markerSOS})
	return bytes.Join([][]byte{
		data[:2], segment(0xfe, m.place()), parts(), data[2:scan], parts(), data[scan : len(data)-2], segment(0xfe, m.place()), data[len(data)-2:], parts(),
	}, nil)
}

func pngChunk(kind, data string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	b = append(append(b, kind...), data...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

func (m *maker) png() []byte {
	var b bytes.Buffer
	m.must(png.Encode(&b, m.pixels()))
	const head = 8 + 25
	end := b.Len() - 12
	parts := func() []byte {
		return m.some(pngChunk("tEXt", "Comment\x00"+m.place()), pngChunk("prIv", m.place()), pngChunk("tIME", "1234567"),
			pngChunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+m.place()), pngChunk("zTXt", m.place()), pngChunk("sPLT", m.place()),
			pngChunk("zzZz", ""))
	}
	first := m.some(pngChunk("gAMA", "\x00\x00\xb1\x8f"), pngChunk("eXIf", string(m.exif(3))), parts(), pngChunk("hIST", m.place()+string(make([]byte, 600))))
	return bytes.Join([][]byte{b.Bytes()[:head], first, b.Bytes()[head:end], parts(), b.Bytes()[end:], []byte(m.place())}, nil)
}

func riff(kind string, parts ...[]byte) []byte {
	data := bytes.Join(parts, nil)
	b := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(data)))
	b = append(b, data...)
	return append(b, make([]byte, len(data)&1)...)
}

// onePixel is a lossless WebP picture of one pixel.
var onePixel = []byte("\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07")

// webp returns a still picture or an animation of two frames.
func (m *maker) webp() []byte {
	parts := func() []byte {
		return m.some(riff("EXIF", m.exif(8)), riff("XMP ", []byte("<x:xmpmeta>"+m.place())), riff("priv", []byte(m.place()+"x")))
	}
	if m.IntN(2) == 0 {
		body := bytes.Join([][]byte{
			[]byte("WEBP"), riff("VP8X", []byte{1<<3 | 1<<2, 0, 0, 0, 0, 0, 0, 0, 0, 0}), riff("ICCP", []byte("profile")), riff("VP8L", onePixel), parts(),
		}, nil)
		return append(riff("RIFF", body), m.place()...)
	}
	frame := func() []byte {
		head := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 0, 0, 0}
		return riff("ANMF", head, riff("priv", []byte(m.place())), riff("VP8L", onePixel), riff("unkn", []byte(m.place())))
	}
	body := bytes.Join([][]byte{
		[]byte("WEBP"), riff("VP8X", []byte{1<<3 | 1<<2 | 1<<1, 0, 0, 0, 0, 0, 0, 0, 0, 0}), riff("ANIM", make([]byte, 6)), frame(), frame(), parts(),
	}, nil)
	return append(riff("RIFF", body), m.place()...)
}

// gifBlocks returns data blocks and the empty block.
func gifBlocks(data string) []byte {
	var b []byte
	for c := range slices.Chunk([]byte(data), 255) {
		b = append(append(b, byte(len(c))), c...)
	}
	return append(b, 0)
}

// gifXMP returns XMP, which GIF stores without blocks. The bytes after it lead any reader to an empty block.
func gifXMP(text string) []byte {
	b := append([]byte("\x21\xff\x0bXMP DataXMP"), text...)
	b = append(b, 1)
	for i := range 256 {
		b = append(b, byte(255-i))
	}
	return append(b, 0)
}

// gif returns an animation of three frames.
func (m *maker) gif() []byte {
	parts := func() []byte {
		return m.some(
			gifXMP("<x:xmpmeta>"+marker+string(bytes.Repeat([]byte("~"), m.IntN(400)))+marker), append([]byte{0x21, gifComment}, gifBlocks(m.place())...),
			append([]byte{0x21, gifComment}, gifBlocks(string(bytes.Repeat([]byte(m.place()), 1+m.IntN(60))))...),
			append([]byte{0x21, gifPlainText, 12}, append(make([]byte, 12), gifBlocks(m.place())...)...),
			append([]byte("\x21\xff\x0bICCRGBG1012"), gifBlocks(m.place())...), append([]byte("\x21\xff\x0bNETSCAPE2.0"), gifBlocks(m.place())...),
		)
	}
	const tables = 13 + 3*4
	loop := []byte("\x21\xff\x0bNETSCAPE2.0\x03\x01\x05\x00\x05\x02\x01\x02\x03\x04\x00")
	file := [][]byte{nil, loop, parts()}
	for range 3 {
		palette := color.Palette{color.Black, color.White, color.RGBA{255, 0, 0, 255}, color.RGBA{}}
		f := image.NewPaletted(image.Rect(0, 0, 20, 15), palette)
		for i := range f.Pix {
			f.Pix[i] = uint8(m.IntN(4))
		}
		var b bytes.Buffer
		m.must(gif.EncodeAll(&b, &gif.GIF{
			Image: []*image.Paletted{f}, Delay: []int{20 + m.IntN(9)}, Disposal: []byte{gif.DisposalBackground},
			Config: image.Config{ColorModel: palette, Width: 20, Height: 15},
		}))
		file[0] = b.Bytes()[:tables]
		file = append(file, b.Bytes()[tables:b.Len()-1], parts())
	}
	return bytes.Join(append(file, []byte{gifTrailer}, []byte(m.place())), nil)
}
