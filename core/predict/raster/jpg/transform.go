package jpg

import "encoding/binary"

// transform holds the parameters of a scale. Transform order is column by column of the side x side lowest coefficients. A vector
// register then takes the same coefficient of every row, and the first pass needs no transposition.
type transform struct {
	side     int        // samples along a side of a block: 8, 4, 2 or 1
	per      int        // number of used coefficients: side x side
	lastCoef uint       // last used coefficient in zig-zag order
	place    *[64]uint8 // by zig-zag order: index of the coefficient in transform order; per if it is not used
	// inverse writes the side x side samples of a block to dst and clears b.
	inverse func(dst []byte, stride int, b, quant *[64]int32)
	// flat does the same for a block that has only the first coefficient; f is this coefficient times its quantiser.
	flat func(dst []byte, stride int, f int32)
}

var transforms = [4]transform{
	{side: 8, per: 64, lastCoef: 63, inverse: inverse8, flat: flat8},
	{side: 4, per: 16, lastCoef: 24, inverse: inverse4, flat: flat4},
	{side: 2, per: 4, lastCoef: 4, inverse: inverse2, flat: flat2},
	{side: 1, per: 1, lastCoef: 0, inverse: inverse1, flat: flat1},
}

func init() {
	for i := range transforms {
		t := &transforms[i]
		t.place = new([64]uint8)
		for zig, u := range unzig {
			row, col := int(u>>3), int(u&7)
			if row < t.side && col < t.side {
				t.place[zig] = uint8(col*t.side + row)
			} else {
				t.place[zig] = uint8(t.per)
			}
		}
	}
}

// transformOf returns the transform for scale 1, 2, 4 or 8.
func transformOf(scale int) *transform {
	i := 0
	for ; scale > 1; scale /= 2 {
		i++
	}
	return &transforms[i]
}

// inOrder returns table in the transform order of t. table is in the transform order of Scale 1.
func (t *transform) inOrder(table *[64]int32) (q [64]int32) {
	for i := range t.side {
		copy(q[i*t.side:(i+1)*t.side], table[8*i:])
	}
	return q
}

// clamp returns v+128, limited to 0 … 255.
func clamp(v int32) byte {
	if v < -128 {
		return 0
	}
	if v > 127 {
		return 255
	}
	return byte(v + 128)
}

// flat8 does what inverse8 does for the one coefficient f: all 64 samples are equal.
func flat8(dst []byte, stride int, f int32) {
	v := uint64(clamp((f<<17+1<<19)>>20)) * 0x0101010101010101
	for y := range 8 {
		binary.LittleEndian.PutUint64(dst[y*stride:], v)
	}
}

// flat4 does what inverse4 does for the one coefficient f.
func flat4(dst []byte, stride int, f int32) {
	v := uint32(clamp((((f<<13+1<<10)>>11)<<13+1<<17)>>18)) * 0x01010101
	for y := range 4 {
		binary.LittleEndian.PutUint32(dst[y*stride:], v)
	}
}

// flat2 does what inverse2 does for the one coefficient f.
func flat2(dst []byte, stride int, f int32) {
	v := uint16(clamp((f+4)>>3)) * 0x0101
	binary.LittleEndian.PutUint16(dst, v)
	binary.LittleEndian.PutUint16(dst[stride:], v)
}

// flat1 writes one sample, the mean of a block.
func flat1(dst []byte, _ int, f int32) { dst[0] = clamp((f + 4) >> 3) }

func inverse1(dst []byte, _ int, b, quant *[64]int32) {
	flat1(dst, 0, b[0]*quant[0])
	b[0] = 0
}

// inverse2 writes the 2x2 samples of a block for Scale 4.
func inverse2(dst []byte, stride int, b, quant *[64]int32) {
	f00, f10, f01, f11 := b[0]*quant[0]+4, b[1]*quant[1], b[2]*quant[2], b[3]*quant[3]
	dst[0], dst[1] = clamp((f00+f01+f10+f11)>>3), clamp((f00-f01+f10-f11)>>3)
	dst[stride], dst[stride+1] = clamp((f00+f01-f10-f11)>>3), clamp((f00-f01-f10+f11)>>3)
	b[0], b[1], b[2], b[3] = 0, 0, 0, 0
}

// inverse4Generic writes the 4x4 samples of a block for Scale 2. The package documentation has the formula.
func inverse4Generic(dst []byte, stride int, b, quant *[64]int32) {
	for i := range 4 {
		y0, y1, y2, y3 := inverseRow4(b[i]*quant[i], b[4+i]*quant[4+i], b[8+i]*quant[8+i], b[12+i]*quant[12+i])
		b[i], b[4+i], b[8+i], b[12+i] = (y0+1<<10)>>11, (y1+1<<10)>>11, (y2+1<<10)>>11, (y3+1<<10)>>11
	}
	for i := range 4 {
		x := b[4*i : 4*i+4 : 4*i+4]
		y0, y1, y2, y3 := inverseRow4(x[0], x[1], x[2], x[3])
		dst[i], dst[stride+i] = clamp((y0+1<<17)>>18), clamp((y1+1<<17)>>18)
		dst[2*stride+i], dst[3*stride+i] = clamp((y2+1<<17)>>18), clamp((y3+1<<17)>>18)
		clear(x)
	}
}

// inverseRow4 returns the inverse DCT of four coefficients, times 2√2 and 1<<13.
func inverseRow4(x0, x1, x2, x3 int32) (y0, y1, y2, y3 int32) {
	e0, e1 := (x0+x2)<<13, (x0-x2)<<13
	o0, o1 := 10703*x1+4433*x3, 4433*x1-10703*x3
	return e0 + o0, e1 + o1, e1 - o1, e0 - o0
}
