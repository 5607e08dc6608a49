package raster

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"golang.org/x/image/tiff/lzw"

	"github.com/sightline-dev/sightline/core/predict/raster/jpg"
)

// golang.org/x/image/tiff refuses YCbCr and JPEG. This file reads both into planes, from TIFF 6.0
// (sections 20 and 21) and its technical note 2:
//
//   - YCbCr of 8 bits, its chroma at a half or a quarter in either direction, plain or compressed by LZW, deflate or PackBits;
//   - strips or tiles that are each a JPEG (compression 7): YCbCr, RGB or grey.
//
// A file of n bytes costs the work of decoding n bytes, and no more pixels than it declares: the bytes of all strips
// together are at most those of the file, and the reader knows a strip's pixels before it decompresses the strip.

// maxJPEGTables is the maximum length of the JPEG tables in bytes. Four tables of each kind need less.
const maxJPEGTables = 4096

// tiffPlanes holds the picture in planes, and the scratch memory to read it.
type tiffPlanes struct {
	file            tiffFile
	width, height   int
	segmentWidth    int // of a strip or tile, as stored
	segmentHeight   int // a last strip may have fewer rows
	across, down    int // strips or tiles
	tiled           bool
	compression     int
	photometric     int
	predicted       bool // each sample is the difference to the previous pixel's sample
	offsets, counts tiffValues
	tables          []byte // of all JPEGs, with a start marker and without an end marker
	n               int    // planes
	subX, subY      int    // pixels that a chroma sample covers; 0 until the first JPEG declares them
	blocks          int64  // of all scans of the JPEGs so far
	left            int64  // bytes of the file that no strip has used yet

	plane   [3]tiffPlane
	pix     []byte // of all planes
	segment []byte // a strip or tile, decompressed, or a JPEG with its tables
	inflate io.ReadCloser
}

// tiffPlane is one plane. It has whole units of subX × subY pixels.
type tiffPlane struct {
	pix           []byte
	stride        int
	width, height int // samples that lie in the picture
	subX, subY    int
}

// loadTIFFPlanes reads a TIFF of YCbCr or JPEG.
func (d *Decoder) loadTIFFPlanes(picture []byte, h *header) (loaded, error) {
	t := &d.tiff
	defer func() {
		if 16*int64(t.segmentWidth)*int64(t.segmentHeight) > 4*keepBytes { // memory that package jpg may keep for a strip
			d.jpeg = jpg.Decoder{}
		}
		*t = tiffPlanes{pix: t.pix, segment: t.segment}
	}()
	if err := t.open(picture, h); err != nil {
		return loaded{}, err
	}
	write, err := t.colours()
	if err != nil {
		return loaded{}, err
	}
	for i := range t.across * t.down {
		if d.limits.Expired() {
			return loaded{}, ErrExpired
		}
		if err := d.tiffSegment(i); err != nil {
			return loaded{}, err
		}
	}
	for i := range t.n {
		p := &t.plane[i]
		d.sources[i] = source{
			pix: p.pix, stride: p.stride, channels: 1, pitchX: p.subX, pitchY: p.subY, width: p.width, height: p.height,
		}
	}
	return loaded{t.n, write}, nil
}

// open reads the directory and checks that this package supports the file.
func (t *tiffPlanes) open(picture []byte, h *header) error {
	f := openTIFF(picture)
	*t = tiffPlanes{
		file: f, width: h.width, height: h.height,
		compression: f.value(tagCompression, compressionNone), photometric: f.value(tagPhotometric, 0),
		n: 3, left: int64(len(picture)), pix: t.pix, segment: t.segment,
	}
	if t.photometric == photometricGray {
		t.n = 1
	}
	jpeg := t.compression == compressionJPEG
	samples, bits := f.value(tagSamples, 1), f.values(tagBits)
	for i := range min(bits.n, samples) {
		if bits.at(i) != 8 {
			return fmt.Errorf("%w: YCbCr or JPEG of %d bits", ErrUnsupported, bits.at(i))
		}
	}
	switch {
	case t.photometric != photometricYCbCr && t.photometric != photometricRGB && t.photometric != photometricGray:
		return fmt.Errorf("%w: JPEG of color model %d", ErrUnsupported, t.photometric)
	case samples != t.n || bits.n == 0:
		return fmt.Errorf("%w: %d samples of color model %d", ErrUnsupported, samples, t.photometric)
	case samples > 1 && f.value(tagPlanar, 1) != 1:
		return fmt.Errorf("%w: YCbCr or JPEG in separate planes", ErrUnsupported)
	case f.value(tagFillOrder, 1) != 1, f.value(tagSampleFormat, 1) != 1:
		return fmt.Errorf("%w: order of bits or sample format", ErrUnsupported)
	}
	if err := t.layOut(); err != nil {
		return err
	}
	if jpeg {
		tables := f.values(tagJPEGTables)
		if tables.n > maxJPEGTables || tables.n > 0 && (tables.size != 1 || tables.n < 4) {
			return fmt.Errorf("%w: JPEG tables of %d bytes", ErrCorrupt, tables.n)
		}
		t.tables = bytes.TrimSuffix(tables.data[:tables.n], []byte("\xff\xd9"))
		return nil
	}
	sampling := f.values(tagYCbCrSampling)
	subX, subY := 2, 2
	if sampling.n >= 2 && sampling.size < 8 {
		subX, subY = sampling.at(0), sampling.at(1)
	}
	switch t.compression {
	case compressionLZW, compressionDeflate, compressionOldDeflate:
		t.predicted = f.value(tagPredictor, 1) == 2
		if t.predicted && subX*subY > 1 {
			return fmt.Errorf("%w: predictor for subsampled YCbCr", ErrUnsupported)
		}
	case compressionNone, compressionPackBits:
	default:
		return fmt.Errorf("%w: YCbCr of compression %d", ErrUnsupported, t.compression)
	}
	return t.allocate(subX, subY)
}

// layOut reads the offsets and sizes of the strips or tiles.
func (t *tiffPlanes) layOut() error {
	f := &t.file
	offsets, counts := uint16(tagStripOffsets), uint16(tagStripCounts)
	t.segmentWidth, t.segmentHeight = t.width, f.value(tagRowsPerStrip, t.height)
	if w := f.value(tagTileWidth, 0); w != 0 {
		t.tiled = true
		t.segmentWidth, t.segmentHeight = w, f.value(tagTileHeight, 0)
		offsets, counts = tagTileOffsets, tagTileCounts
		if !isTileSide(t.segmentWidth, t.width) || !isTileSide(t.segmentHeight, t.height) {
			return fmt.Errorf("%w: tiles of %d × %d", ErrCorrupt, t.segmentWidth, t.segmentHeight)
		}
	} else if t.segmentHeight <= 0 || t.segmentHeight > t.height {
		t.segmentHeight = t.height
	}
	t.across = (t.width + t.segmentWidth - 1) / t.segmentWidth
	t.down = (t.height + t.segmentHeight - 1) / t.segmentHeight
	t.offsets, t.counts = f.values(offsets), f.values(counts)
	if n := t.across * t.down; min(t.offsets.n, t.counts.n) < n || t.offsets.size == 8 || t.counts.size == 8 {
		return fmt.Errorf("%w: %d strips or tiles, %d named", ErrCorrupt, n, min(t.offsets.n, t.counts.n))
	}
	return nil
}

// isTileSide reports whether a tile may have this side: a multiple of 16. In a small picture it may exceed the picture's side only by as
// much as golang.org/x/image/tiff allows, so that a strip takes memory in proportion to the picture.
func isTileSide(n, picture int) bool { return n > 0 && n%16 == 0 && n <= max(picture+16, 1024) }

// allocate makes the planes. A chroma sample covers subX × subY pixels.
func (t *tiffPlanes) allocate(subX, subY int) error {
	if !isSubsampling(subX) || !isSubsampling(subY) {
		return fmt.Errorf("%w: chroma subsampling of %d × %d", ErrUnsupported, subX, subY)
	}
	if t.down > 1 && t.segmentHeight%subY != 0 {
		return fmt.Errorf("%w: strips of %d rows, chroma for every %d", ErrUnsupported, t.segmentHeight, subY)
	}
	t.subX, t.subY = subX, subY
	unitsX, unitsY := (t.width+subX-1)/subX, (t.height+subY-1)/subY
	at := [4]int{0, unitsX * subX * unitsY * subY}
	at[2] = at[1] + unitsX*unitsY
	at[3] = at[2] + unitsX*unitsY
	t.pix = resize(t.pix, at[t.n])
	t.plane[0] = tiffPlane{pix: t.pix[:at[1]], stride: unitsX * subX, width: t.width, height: t.height, subX: 1, subY: 1}
	for i := 1; i < t.n; i++ {
		t.plane[i] = tiffPlane{pix: t.pix[at[i]:at[i+1]], stride: unitsX, width: unitsX, height: unitsY, subX: subX, subY: subY}
	}
	return nil
}

func isSubsampling(n int) bool { return n == 1 || n == 2 || n == 4 }

// tiffSegment reads a strip or tile into the planes.
func (d *Decoder) tiffSegment(i int) error {
	t := &d.tiff
	x, y := i%t.across*t.segmentWidth, i/t.across*t.segmentHeight
	rows := t.segmentHeight
	if !t.tiled {
		rows = min(rows, t.height-y)
	}
	at, n := int64(t.offsets.at(i)), int64(t.counts.at(i))
	if t.compression == compressionNone {
		n = min(n, int64(t.unitRow()*t.unitRows(rows)))
	}
	if t.left -= n; at+n > int64(len(t.file.b)) || t.left < 0 {
		return fmt.Errorf("%w: strip or tile %d", ErrCorrupt, i)
	}
	b := t.file.b[at : at+n]
	if t.compression == compressionJPEG {
		return d.tiffJPEG(b, x, y, rows)
	}
	need := t.unitRow() * t.unitRows(rows)
	var err error
	switch {
	case t.compression != compressionNone:
		t.segment = resize(t.segment, need)
		err = d.decompress(t.segment, b)
		b = t.segment
	case len(b) < need:
		err = fmt.Errorf("%w: strip or tile of %d bytes, needs %d", ErrCorrupt, len(b), need)
	}
	if err != nil {
		return err
	}
	if t.predicted {
		for ; len(b) > 0; b = b[t.unitRow():] {
			for i, row := 3, b[:t.unitRow()]; i < len(row); i++ {
				row[i] += row[i-3]
			}
		}
		b = t.segment
	}
	t.unpack(b, x, y)
	return nil
}

// unitRow returns the number of bytes of a row of units in a strip or tile. A unit is subX × subY samples of Y, one of Cb and one of Cr.
func (t *tiffPlanes) unitRow() int {
	return (t.segmentWidth + t.subX - 1) / t.subX * (t.subX*t.subY + 2)
}

func (t *tiffPlanes) unitRows(rows int) int { return (rows + t.subY - 1) / t.subY }

// unpack copies the units of a strip or tile at (x, y) that lie inside the picture.
func (t *tiffPlanes) unpack(b []byte, x, y int) {
	luma, cb, cr := &t.plane[0], &t.plane[1], &t.plane[2]
	size := t.subX*t.subY + 2
	x, y = x/t.subX, y/t.subY
	units := min(t.unitRow()/size, cb.width-x)
	for row := b; len(row) > 0 && y < cb.height; y++ {
		for i := range units {
			unit, at := row[i*size:], y*t.subY*luma.stride+(x+i)*t.subX
			for range t.subY {
				copy(luma.pix[at:][:t.subX], unit)
				at, unit = at+luma.stride, unit[t.subX:]
			}
			cb.pix[y*cb.stride+x+i], cr.pix[y*cr.stride+x+i] = unit[0], unit[1]
		}
		row = row[t.unitRow():]
	}
}

// decompress fills dst from b. It stops when dst is full.
func (d *Decoder) decompress(dst, b []byte) error {
	t := &d.tiff
	if t.compression == compressionPackBits {
		return unpackBits(dst, b)
	}
	from := &guardedReader{expired: d.limits.Expired}
	from.r.Reset(b)
	var r io.ReadCloser
	var err error
	switch {
	case t.compression == compressionLZW:
		r = lzw.NewReader(from, lzw.MSB, 8)
	case t.inflate == nil:
		t.inflate, err = zlib.NewReader(from)
		r = t.inflate
	default:
		err = t.inflate.(zlib.Resetter).Reset(from, nil)
		r = t.inflate
	}
	if err == nil {
		_, err = io.ReadFull(r, dst)
		err = errors.Join(err, r.Close())
	}
	if from.stopped {
		return ErrExpired
	}
	if err != nil {
		return fmt.Errorf("%w: %v", ErrCorrupt, err)
	}
	return nil
}

// unpackBits fills dst from b, compressed by PackBits (section 9).
func unpackBits(dst, b []byte) error {
	for len(dst) > 0 {
		if len(b) < 2 {
			return fmt.Errorf("%w: PackBits end early", ErrCorrupt)
		}
		switch n := int(int8(b[0])); {
		case n >= 0:
			n = min(n+1, len(dst))
			if len(b) < 1+n {
				return fmt.Errorf("%w: PackBits end early", ErrCorrupt)
			}
			copy(dst, b[1:1+n])
			dst, b = dst[n:], b[1+n:]
		case n == -128:
			b = b[1:]
		default:
			n = min(1-n, len(dst))
			for i := range n {
				dst[i] = b[1]
			}
			dst, b = dst[n:], b[2:]
		}
	}
	return nil
}

// tiffJPEG reads a strip or tile of JPEG. The given number of rows may lie inside the picture.
func (d *Decoder) tiffJPEG(b []byte, x, y, rows int) error {
	t := &d.tiff
	if len(t.tables) > 0 && len(b) > 2 {
		t.segment = append(append(t.segment[:0], t.tables...), b[2:]...)
		b = t.segment
	}
	c, err := jpg.ReadConfig(b)
	if err != nil {
		return jpegError(err)
	}
	if c.Components != t.n || c.Width != t.segmentWidth || c.Height < rows || c.Height > t.segmentHeight {
		return fmt.Errorf("%w: JPEG of %d × %d with %d components, not %d × %d with %d",
			ErrCorrupt, c.Width, c.Height, c.Components, t.segmentWidth, rows, t.n)
	}
	if t.blocks += int64(c.Scans) * jpegBlocks(c); t.blocks > d.limits.ScanBlocks || c.Scans > d.limits.Scans {
		return fmt.Errorf("%w: %d scans of a strip or tile take too long to decode", ErrTooLarge, c.Scans)
	}
	subX, subY := 1, 1
	if t.n > 1 {
		subX, subY = c.HSamp[0]/max(1, c.HSamp[1]), c.VSamp[0]/max(1, c.VSamp[1])
	}
	if t.subX == 0 {
		err = t.allocate(subX, subY)
	} else if t.subX != subX || t.subY != subY {
		err = fmt.Errorf("%w: JPEGs of two chroma subsamplings", ErrCorrupt)
	}
	if err != nil {
		return err
	}
	planes, err := d.jpeg.Decode(b, jpg.Options{
		Expired: d.limits.Expired, MaxScans: d.limits.Scans, MaxBytes: tiffBytes(d.limits) - int64(len(t.pix)),
	})
	if err != nil {
		return jpegError(err)
	}
	for i := range t.n {
		to, from := &t.plane[i], &planes.P[i]
		x, y := x/to.subX, y/to.subY
		for row := range min(from.Height, to.height-y) {
			copy(to.pix[(y+row)*to.stride+x:][:min(from.Width, to.width-x)], from.Pix[row*from.Stride:])
		}
	}
	return nil
}

// colours returns the writer for the picture's planes.
func (t *tiffPlanes) colours() (rowWriter, error) {
	switch {
	case t.photometric == photometricGray:
		return rowGray, nil
	case t.photometric == photometricRGB:
		return rowPlanes, nil
	case t.compression == compressionJPEG:
		return rowYCbCr, nil // the JPEG declares its colours
	}
	return t.file.ycbcr()
}

// ycbcr returns the writer for the file's weights of red, green and blue in Y, and for the codes of black and white in
// each plane, section 20. If the file has no weights or codes, JFIF's apply.
func (f *tiffFile) ycbcr() (rowWriter, error) {
	const one = 1 << 16
	weights := [3]int64{19595, 38470, 7471} // 0.299, 0.587 and 0.114
	codes := [6]int64{0, 255 * one, 128 * one, 255 * one, 128 * one, 255 * one}
	same := true
	for i, v := 0, f.values(tagYCbCrWeights); i < min(3, v.n); i++ {
		same = same && max(v.fixedPoint(i)-weights[i], weights[i]-v.fixedPoint(i)) <= 1
		weights[i] = v.fixedPoint(i)
	}
	v := f.values(tagReferenceRange)
	for i := 0; i < min(6, v.n); i++ {
		code := v.fixedPoint(i)
		if v.size < 8 {
			code = int64(v.at(i)) * one
		}
		same = same && code == codes[i]
		codes[i] = code
	}
	if same {
		return rowYCbCr, nil
	}
	red, green, blue := weights[0], weights[1], weights[2]
	if green == 0 || max(red, green, blue) > one {
		return nil, fmt.Errorf("%w: weights of YCbCr", ErrCorrupt)
	}
	for i, code := range codes {
		if code > 1<<16*one || i%2 == 1 && code <= codes[i-1] {
			return nil, fmt.Errorf("%w: black and white of YCbCr", ErrCorrupt)
		}
	}
	// Each table holds the addend of a code to a colour, in 16.16.
	var luma, redCr, blueCb, greenCr, greenCb [256]int32
	for i := range 256 {
		y := scaleFixed(int64(i)*one-codes[0], 255, codes[1]-codes[0])
		cb := scaleFixed(int64(i)*one-codes[2], 127, codes[3]-codes[2])
		cr := scaleFixed(int64(i)*one-codes[4], 127, codes[5]-codes[4])
		r, b := 2*(one-red)*cr/one, 2*(one-blue)*cb/one
		luma[i], redCr[i], blueCb[i] = within(y+one/2), within(r), within(b)
		greenCr[i], greenCb[i] = within(-red*r/green), within(-blue*b/green)
	}
	return func(dst []byte, at, step int, rows *[4][]byte, n int) {
		for i, y := range rows[0][:n] {
			cb, cr := rows[1][i], rows[2][i]
			out := dst[at:][:3]
			out[0] = clamp16(luma[y] + redCr[cr])
			out[1] = clamp16(luma[y] + greenCr[cr] + greenCb[cb])
			out[2] = clamp16(luma[y] + blueCb[cb])
			at += step
		}
	}, nil
}

// scaleFixed returns v·top/span in 16.16, at most ±4096, for v and span in 16.16.
func scaleFixed(v, top, span int64) int64 {
	return min(max(v*top<<16/span, -4096<<16), 4096<<16)
}

// within limits v so that a sum of three fits 32 bits.
func within(v int64) int32 { return int32(min(max(v, -1<<29), 1<<29)) }
