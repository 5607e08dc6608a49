//go:build !purego

package jpg

import "unsafe"

// inverseArgs holds the operands of the assembly. Every field has 8 bytes, and the fields are in the
// order of the registers in asm/arm64/main.go.
type inverseArgs struct {
	dst      *byte
	stride   int
	b, quant *[64]int32
	factors  unsafe.Pointer
}

// inverseFactors holds the factors of one rotation in each row: kcos, ksin-kcos and kcos+ksin, see rotate. The fourth
// numbers are another factor of the rows, another of the columns, an unused zero, and the number that makes the shifts at the end round.
var inverseFactors = [4][4]int32{
	{sqrtHalfCos6x18, -sqrtHalfSin6x18 - sqrtHalfCos6x18, sqrtHalfCos6x18 - sqrtHalfSin6x18, sqrtHalfx8},
	{sqrtHalfCos6x12, -sqrtHalfSin6x12 - sqrtHalfCos6x12, sqrtHalfCos6x12 - sqrtHalfSin6x12, sqrtHalfx14},
	{cos3x12, -sin3x12 - cos3x12, cos3x12 - sin3x12, 0},
	{cos1x12, -sin1x12 - cos1x12, cos1x12 - sin1x12, 1 << 19},
}

// inverseFactors4 holds the two factors of inverse4, and the two numbers that make its shifts round.
var inverseFactors4 = [4]int32{10703, 4433, 1 << 10, 1 << 17}

// inverse8 does what inverse8Generic does, for four rows and then four columns at a time.
func inverse8(dst []byte, stride int, b, quant *[64]int32) {
	_ = dst[7*stride+7]
	args := inverseArgs{&dst[0], stride, b, quant, unsafe.Pointer(&inverseFactors)}
	inverse8NEON((*byte)(unsafe.Pointer(&args)))
}

// inverse4 does what inverse4Generic does, for four rows and then four columns at a time.
func inverse4(dst []byte, stride int, b, quant *[64]int32) {
	_ = dst[3*stride+3]
	args := inverseArgs{&dst[0], stride, b, quant, unsafe.Pointer(&inverseFactors4)}
	inverse4NEON((*byte)(unsafe.Pointer(&args)))
}
