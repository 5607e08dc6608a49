package raster

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// TestTIFFPlanes compares files with the pixels that libtiff 4.5.0 reads from them (TIFFReadRGBAImageOriented). libtiff wrote most files
// from one computed picture; Pillow 9.4 and ImageMagick 6.9 wrote the files with their names. No file has JPEG chroma of half the width,
// which libjpeg smooths and this package repeats. TestTIFFJPEG covers such files.
func TestTIFFPlanes(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "tiff", "*.tif"))
	check(t, err)
	if len(names) < 12 {
		t.Fatalf("%d files, want 12", len(names))
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			check(t, err)
			p, err := os.ReadFile(strings.TrimSuffix(name, ".tif") + ".png")
			check(t, err)
			m, err := png.Decode(bytes.NewReader(p))
			check(t, err)
			want := flatten(m)
			info, err := Inspect(b)
			if err != nil || info != (Info{"tiff", want.w, want.h, 1, 1}) {
				t.Fatalf("Inspect = %+v, %v, want %d × %d", info, err, want.w, want.h)
			}
			got, err := NewDecoder(Limits{}).Decode(b, View{Width: want.w, Height: want.h})
			check(t, err)
			tolerance := 1
			if strings.Contains(name, "jpeg") || strings.Contains(name, "range") {
				tolerance = 3
			}
			for i, v := range got.Pix {
				if d := int(v) - int(want.pix[i]); d < -tolerance || d > tolerance {
					t.Fatalf("pixel (%d, %d) channel %d = %d, want %d", i/3%want.w, i/3/want.w, i%3, v, want.pix[i])
				}
			}
		})
	}
}

// tiffOf returns a TIFF with these entries and with strips or tiles. An entry is LONG unless its value is bytes.
func tiffOf(order binary.AppendByteOrder, tags map[uint16]any, segments ...[]byte) []byte {
	b := []byte("II*\x00\x00\x00\x00\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*\x00\x00\x00\x00")
	}
	offsets, counts := []uint32{}, []uint32{}
	for _, s := range segments {
		offsets, counts = append(offsets, uint32(len(b))), append(counts, uint32(len(s)))
		b = append(b, s...)
	}
	at, n := uint16(tagStripOffsets), uint16(tagStripCounts)
	if tags[tagTileWidth] != nil {
		at, n = tagTileOffsets, tagTileCounts
	}
	all := map[uint16]any{at: offsets, n: counts}
	for tag, v := range tags {
		all[tag] = v
	}
	sorted := []uint16{}
	for tag := range all {
		sorted = append(sorted, tag)
	}
	slices.Sort(sorted)
	dir := order.AppendUint16(nil, uint16(len(sorted)))
	for _, tag := range sorted {
		kind, count, data := uint16(4), 1, []byte(nil)
		switch v := all[tag].(type) {
		case int:
			data = order.AppendUint32(nil, uint32(v))
		case []uint32:
			count = len(v)
			for _, v := range v {
				data = order.AppendUint32(data, v)
			}
		case []byte:
			kind, count, data = 7, len(v), v
		}
		dir = order.AppendUint32(order.AppendUint16(order.AppendUint16(dir, tag), kind), uint32(count))
		if len(data) <= 4 {
			dir = append(dir, append(data, 0, 0, 0, 0)[:4]...)
			continue
		}
		dir = order.AppendUint32(dir, uint32(len(b)))
		b = append(b, data...)
	}
	binary.Encode(b[4:], order.(binary.ByteOrder), uint32(len(b)))
	return append(append(b, dir...), 0, 0, 0, 0)
}

// ycbcrTags returns the tags of a picture of w × h pixels of YCbCr, and more.
func ycbcrTags(w, h, compression int, more map[uint16]any) map[uint16]any {
	tags := map[uint16]any{
		tagWidth: w, tagHeight: h, tagBits: []uint32{8, 8, 8}, tagCompression: compression, tagPhotometric: photometricYCbCr, tagSamples: 3,
	}
	for tag, v := range more {
		tags[tag] = v
	}
	return tags
}

// ycbcrUnits returns the units of rows y0…y1-1 of m. Samples beyond its edges repeat the last row and column.
func ycbcrUnits(m *image.YCbCr, y0, y1 int) []byte {
	subX, subY := subsampling(m.SubsampleRatio)
	var b []byte
	for y := y0; y < y1; y += subY {
		for x := 0; x < m.Rect.Dx(); x += subX {
			for i := range subX * subY {
				b = append(b, m.Y[m.YOffset(min(x+i%subX, m.Rect.Dx()-1), min(y+i/subX, m.Rect.Dy()-1))])
			}
			b = append(b, m.Cb[m.COffset(x, y)], m.Cr[m.COffset(x, y)])
		}
	}
	return b
}

// ycbcrTIFF returns m as a TIFF of uncompressed strips, each with the given number of rows.
func ycbcrTIFF(m *image.YCbCr, rows, orientation int) []byte {
	w, h := m.Rect.Dx(), m.Rect.Dy()
	var strips [][]byte
	for y := 0; y < h; y += rows {
		strips = append(strips, ycbcrUnits(m, y, min(y+rows, h)))
	}
	subX, subY := subsampling(m.SubsampleRatio)
	return tiffOf(binary.LittleEndian, ycbcrTags(w, h, compressionNone, map[uint16]any{
		tagRowsPerStrip: rows, tagYCbCrSampling: []uint32{uint32(subX), uint32(subY)}, exif.TagOrientation: orientation,
	}), strips...)
}

// TestTIFFYCbCr compares with planes that are averaged before the conversion, in every orientation.
func TestTIFFYCbCr(t *testing.T) {
	m := image.NewYCbCr(image.Rect(0, 0, 41, 33), image.YCbCrSubsampleRatio420)
	for _, plane := range [][]byte{m.Y, m.Cb, m.Cr} {
		for i := range plane {
			plane[i] = byte(i * i / 7)
		}
	}
	d := NewDecoder(Limits{})
	for o := 1; o <= 8; o++ {
		b, reference := ycbcrTIFF(m, 8, o), replicateChroma(m).upright(o)
		for _, v := range views {
			got, err := d.Decode(b, v)
			check(t, err)
			if diff := difference(got, reference.view(v).fromYCbCr()); diff != "" {
				t.Errorf("orientation %d, %+v: %s", o, v, diff)
			}
		}
	}
}

// jpegTIFF returns a TIFF of JPEG tiles of 16 × 16 pixels that image/jpeg wrote, with separate tables.
func jpegTIFF(t testing.TB, m image.Image) []byte {
	var tiles [][]byte
	var tables []byte
	for y := 0; y < m.Bounds().Dy(); y += 16 {
		for x := 0; x < m.Bounds().Dx(); x += 16 {
			tile := image.NewNRGBA(image.Rect(0, 0, 16, 16))
			for i := range 256 {
				tile.Set(i%16, i/16, m.At(x+i%16, y+i/16))
			}
			b := asJPEG(t, tile)
			from, to := bytes.Index(b, []byte("\xff\xdb")), bytes.Index(b, []byte("\xff\xc0"))
			tables = slices.Concat(b[:to], []byte("\xff\xd9"))
			tiles = append(tiles, slices.Concat(b[:from], b[to:]))
		}
	}
	return tiffOf(binary.BigEndian, ycbcrTags(m.Bounds().Dx(), m.Bounds().Dy(), compressionJPEG, map[uint16]any{
		tagTileWidth: 16, tagTileHeight: 16, tagJPEGTables: huffmanToo(tables, tiles),
	}), tiles...)
}

// huffmanToo moves the Huffman tables from the tiles to the separate tables. image/jpeg writes them after the frame header.
func huffmanToo(tables []byte, tiles [][]byte) []byte {
	for i, b := range tiles {
		from, to := bytes.Index(b, []byte("\xff\xc4")), bytes.Index(b, []byte("\xff\xda"))
		if i == 0 {
			tables = slices.Concat(tables[:len(tables)-2], b[from:to], tables[len(tables)-2:])
		}
		tiles[i] = slices.Concat(b[:from], b[to:])
	}
	return tables
}

// TestTIFFJPEG compares with the tiles that image/jpeg decodes.
func TestTIFFJPEG(t *testing.T) {
	m := noisy(41, 33)
	b := jpegTIFF(t, m)
	f := openTIFF(b)
	tables, offsets, counts := f.values(tagJPEGTables), f.values(tagTileOffsets), f.values(tagTileCounts)
	var tiles []flat
	for i := range offsets.n {
		tile := b[offsets.at(i):][:counts.at(i)]
		p, err := jpeg.Decode(bytes.NewReader(slices.Concat(tables.data[:tables.n-2], tile[2:])))
		check(t, err)
		tiles = append(tiles, replicateChroma(p.(*image.YCbCr)))
	}
	want := newFlat(41, 33, func(x, y int) [3]byte { return tiles[y/16*3+x/16].at(x%16, y%16) })
	d := NewDecoder(Limits{})
	for _, v := range append(views, View{Width: 41, Height: 33}) {
		got, err := d.Decode(b, v)
		check(t, err)
		if diff := difference(got, want.view(v).fromYCbCr()); diff != "" {
			t.Errorf("%+v: %s", v, diff)
		}
	}
}

// TestTIFFPlanesRefused checks that unsupported files and files with false headers give the right error and take little memory.
func TestTIFFPlanesRefused(t *testing.T) {
	m := image.NewYCbCr(image.Rect(0, 0, 16, 16), image.YCbCrSubsampleRatio444)
	strip := ycbcrUnits(m, 0, 16)
	photo := asJPEG(t, noisy(16, 16))
	one := map[uint16]any{tagYCbCrSampling: []uint32{1, 1}}
	with := func(more map[uint16]any) map[uint16]any {
		out := map[uint16]any{tagYCbCrSampling: []uint32{1, 1}}
		for tag, v := range more {
			out[tag] = v
		}
		return out
	}
	shared := func(compression int, segment []byte) []byte {
		at := make([]uint32, 64)
		n := make([]uint32, 64)
		for i := range at {
			at[i], n[i] = 8, uint32(len(segment))
		}
		return tiffOf(binary.LittleEndian, ycbcrTags(16, 1024, compression, map[uint16]any{
			tagYCbCrSampling: []uint32{1, 1}, tagRowsPerStrip: 16, tagStripOffsets: at, tagStripCounts: n,
		}), segment)
	}
	var deflated bytes.Buffer
	z := zlib.NewWriter(&deflated)
	z.Write(strip)
	z.Close()
	le := binary.LittleEndian
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"as it should be", tiffOf(le, ycbcrTags(16, 16, 1, one), strip), nil},
		{"deflated", tiffOf(le, ycbcrTags(16, 16, 8, one), deflated.Bytes()), nil},
		{"JPEG", tiffOf(le, ycbcrTags(16, 16, 7, nil), photo), nil},
		{"old JPEG", tiffOf(le, ycbcrTags(16, 16, 6, one), photo), ErrUnsupported},
		{"16 bits", tiffOf(le, ycbcrTags(16, 16, 1, with(map[uint16]any{tagBits: []uint32{16, 16, 16}})), strip, strip), ErrUnsupported},
		{"separate planes", tiffOf(le, ycbcrTags(16, 16, 1, with(map[uint16]any{tagPlanar: 2})), strip), ErrUnsupported},
		{"four samples", tiffOf(le, ycbcrTags(16, 16, 1, with(map[uint16]any{tagSamples: 4})), strip), ErrUnsupported},
		{"JPEG of CMYK", tiffOf(le, ycbcrTags(16, 16, 7, map[uint16]any{tagPhotometric: 5}), photo), ErrUnsupported},
		{"subsampling of 3", tiffOf(le, ycbcrTags(16, 16, 1, map[uint16]any{tagYCbCrSampling: []uint32{3, 1}}), strip), ErrUnsupported},
		{
			"strips across chroma",
			tiffOf(le, ycbcrTags(16, 16, 1, map[uint16]any{tagRowsPerStrip: 15}), strip[:384], strip[:384]), ErrUnsupported,
		},
		{"too few bytes", tiffOf(le, ycbcrTags(16, 16, 1, one), strip[:700]), ErrCorrupt},
		{"too few deflated", tiffOf(le, ycbcrTags(16, 17, 8, one), deflated.Bytes()), ErrCorrupt},
		{"one strip of two", tiffOf(le, ycbcrTags(16, 16, 1, with(map[uint16]any{tagRowsPerStrip: 8})), strip), ErrCorrupt},
		{"JPEG of another size", tiffOf(le, ycbcrTags(17, 16, 7, nil), photo), ErrCorrupt},
		{"JPEG too low", tiffOf(le, ycbcrTags(16, 17, 7, nil), photo), ErrCorrupt},
		{"JPEG too high", tiffOf(le, ycbcrTags(16, 15, 7, nil), photo), ErrCorrupt},
		{"grey JPEG", tiffOf(le, ycbcrTags(16, 16, 7, nil), asJPEG(t, grey(noisy(16, 16)))), ErrCorrupt},
		{"long tables", tiffOf(le, ycbcrTags(16, 16, 7, map[uint16]any{tagJPEGTables: make([]byte, 4097)}), photo), ErrCorrupt},
		{"strips share bytes", shared(8, deflated.Bytes()), ErrCorrupt},
		{"JPEGs share bytes", shared(7, photo), ErrCorrupt},
		{"tiles of 17", tiffOf(le, ycbcrTags(16, 16, 8, with(map[uint16]any{tagTileWidth: 17, tagTileHeight: 16})), strip), ErrCorrupt},
		{
			"tile of 65520 × 1024",
			tiffOf(le, ycbcrTags(16, 16, 8, with(map[uint16]any{tagTileWidth: 65520, tagTileHeight: 1024})), strip), ErrCorrupt,
		},
		{
			"tile of 65520 × 65520",
			tiffOf(le, ycbcrTags(16, 16, 7, map[uint16]any{tagTileWidth: 65520, tagTileHeight: 65520}), photo), ErrTooLarge,
		},
		{"65535 × 65535", tiffOf(le, ycbcrTags(65535, 65535, 7, nil), photo), ErrTooLarge},
		{"no white", tiffOf(le, ycbcrTags(16, 16, 1, with(map[uint16]any{tagReferenceRange: []uint32{9, 9}})), strip), ErrCorrupt},
		{"65 scans", tiffOf(le, ycbcrTags(16, 16, 7, nil), manyColourScans(t, 65)), ErrTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, grown, err := cost(func() error {
				_, err := NewDecoder(Limits{}).Decode(tt.b, View{Width: 8, Height: 8})
				return err
			})
			if !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
			if grown > 16<<20 {
				t.Errorf("took %d MB, want at most 16", grown>>20)
			}
		})
	}
}

// manyColourScans returns a JPEG of three components with its scan repeated n times.
func manyColourScans(t testing.TB, n int) []byte {
	b := asJPEG(t, noisy(16, 16))
	at := bytes.Index(b, []byte("\xff\xda"))
	return slices.Concat(b[:at], bytes.Repeat(b[at:len(b)-2], n), b[len(b)-2:])
}

// TestTIFFUnpackBits decodes the example of section 9 of the TIFF specification and refuses every truncated one.
func TestTIFFUnpackBits(t *testing.T) {
	packed := []byte("\xfe\xaa\x02\x80\x00\x2a\xfd\xaa\x03\x80\x00\x2a\x22\x80\xf7\xaa")
	want := []byte("\xaa\xaa\xaa\x80\x00\x2a\xaa\xaa\xaa\xaa\x80\x00\x2a\x22\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa")
	for n := range want {
		got := make([]byte, n)
		check(t, unpackBits(got, packed))
		if !bytes.Equal(got, want[:n]) {
			t.Errorf("%d bytes = %x, want %x", n, got, want[:n])
		}
	}
	for n := range packed {
		if err := unpackBits(make([]byte, len(want)), packed[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
}
