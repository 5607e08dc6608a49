//go:build !purego

package jpg

import "unsafe"

// inverseArgs holds the operands of the assembly: fields of 8 bytes in the order of the
// registers of asm/arm64/main.go.
type inverseArgs struct {
	dst      *byte
	stride   int
	b, quant *[64]int32
	factors  unsafe.Pointer
}

// inverseFactors holds for each rotation its cosine, its sine less that, and their sum. The fourth
// numbers are other factors of rows and of columns, none, and what rounds the shifts at the end.
var inverseFactors = [4][4]int32{
	{sqrtHalfCos6x18, -sqrtHalfSin6x18 - sqrtHalfCos6x18, sqrtHalfCos6x18 - sqrtHalfSin6x18, sqrtHalfx8},
	{sqrtHalfCos6x12, -sqrtHalfSin6x12 - sqrtHalfCos6x12, sqrtHalfCos6x12 - sqrtHalfSin6x12, sqrtHalfx14},
	{cos3x12, -sin3x12 - cos3x12, cos3x12 - sin3x12, 0},
	{cos1x12, -sin1x12 - cos1x12, cos1x12 - sin1x12, 1 << 19},
}

// inverseFactors4 holds the factors of inverse4 and what rounds its shifts.
var inverseFactors4 = [4]int32{10703, 4433, 1 << 10, 1 << 17}

// inverse8 is inverse8Generic, four rows and then four columns at a time.
func inverse8(dst []byte, stride int, b, quant *[64]int32) {
	_ = dst[7*stride+7]
	args := inverseArgs{&dst[0], stride, b, quant, unsafe.Pointer(&inverseFactors)}
	inverse8NEON((*byte)(unsafe.Pointer(&args)))
}

// inverse4 is inverse4Generic, four rows and then four columns at a time.
func inverse4(dst []byte, stride int, b, quant *[64]int32) {
	_ = dst[3*stride+3]
	args := inverseArgs{&dst[0], stride, b, quant, unsafe.Pointer(&inverseFactors4)}
	inverse4NEON((*byte)(unsafe.Pointer(&args)))
}
