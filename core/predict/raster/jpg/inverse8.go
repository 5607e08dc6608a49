package jpg

//go:generate go run ./asm/arm64 -out inverse_arm64.s -stubs stubs_arm64.go -pkg jpg

// inverse8Generic computes the inverse DCT of image/jpeg (Go 1.26), first of the rows and then of
// the columns, in fixed point on int32 that wraps. The algorithm is by Loeffler, Ligtenberg and Moschytz,
// "Practical Fast 1-D DCT Algorithms with 11 Multiplications" (1989). The order of additions is that of
// image/jpeg, where comments explain the precision of each step.
func inverse8Generic(dst []byte, stride int, b, quant *[64]int32) {
	for i := range b {
		b[i] *= quant[i]
	}
	for i := range 8 {
		inverseRow8((*[57]int32)(b[i:]))
	}
	for i := range 8 {
		inverseColumn8((*[8]int32)(b[8*i:]))
	}
	for y := range 8 {
		out := dst[y*stride : y*stride+8 : y*stride+8]
		for i := range 8 {
			out[i] = clamp(b[8*i+y])
		}
	}
	clear(b[:])
}

// Factors of the rotations in fixed point: round(v·2^bits). The number at the end of a name is bits.
const (
	sqrtHalfCos6x18 = 70936  // cos(6π/16)/√2, 18 bits
	sqrtHalfSin6x18 = 171254 // sin(6π/16)/√2, 18 bits
	sqrtHalfCos6x12 = 1108
	sqrtHalfSin6x12 = 2676
	cos3x12         = 3406
	sin3x12         = 2276
	cos1x12         = 4017
	sin1x12         = 799
	sqrtHalfx8      = 181
	sqrtHalfx14     = 11585
)

// rotate returns kcos·x0 + ksin·x1 and kcos·x1 - ksin·x0, with three multiplications instead of four.
func rotate(x0, x1, kcos, ksin int32) (y0, y1 int32) {
	sum := kcos * (x0 + x1)
	return sum + (ksin-kcos)*x1, sum - (kcos+ksin)*x0
}

// inverseRow8 transforms a row of a block: in transform order, these are the elements 0, 8, … 56 of b.
func inverseRow8(b *[57]int32) {
	x0, x1 := b[0]<<17+b[32]<<17, b[0]<<17-b[32]<<17
	x2, x3 := rotate(b[16], b[48], sqrtHalfCos6x18, -sqrtHalfSin6x18)
	x1, x2 = x1+x2, x1-x2
	x0, x3 = x0+x3, x0-x3

	x7, x4 := b[8]<<7+b[56]<<7, b[8]<<7-b[56]<<7
	x5, x6 := b[24]*sqrtHalfx8, b[40]*sqrtHalfx8
	x7, x5 = x7+x5, x7-x5
	x4, x6 = x4+x6, x4-x6
	x4, x7 = rotate(x4>>2, x7>>2, cos3x12, -sin3x12)
	x5, x6 = rotate(x5>>2, x6>>2, cos1x12, -sin1x12)

	b[0], b[56] = x0+x7, x0-x7
	b[8], b[48] = x1+x6, x1-x6
	b[16], b[40] = x2+x5, x2-x5
	b[24], b[32] = x3+x4, x3-x4
}

// inverseColumn8 transforms a column of a block.
func inverseColumn8(b *[8]int32) {
	dc := b[0] + 1<<19 // makes the shifts at the end round
	x0, x1 := (dc+b[4])>>2, (dc-b[4])>>2
	x2, x3 := rotate(b[2]>>13, b[6]>>13, sqrtHalfCos6x12, -sqrtHalfSin6x12)
	x1, x2 = x1+x2, x1-x2
	x0, x3 = x0+x3, x0-x3

	x7, x4 := b[1]+b[7], b[1]-b[7]
	x5, x6 := b[3]>>13*sqrtHalfx14, b[5]>>13*sqrtHalfx14
	x7, x5 = x7+x5, x7-x5
	x4, x6 = x4+x6, x4-x6
	x4, x7 = rotate(x4>>14, x7>>14, cos3x12, -sin3x12)
	x5, x6 = rotate(x5>>14, x6>>14, cos1x12, -sin1x12)

	b[0], b[7] = (x0+x7)>>18, (x0-x7)>>18
	b[1], b[6] = (x1+x6)>>18, (x1-x6)>>18
	b[2], b[5] = (x2+x5)>>18, (x2-x5)>>18
	b[3], b[4] = (x3+x4)>>18, (x3-x4)>>18
}
