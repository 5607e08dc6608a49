package jpg

// InverseDCT8 writes the 8x8 samples of a block to dst, in rows that are stride bytes apart, and clears b. The coefficients of the block
// are b times quant, both in transform order. A host provides InverseDCT8 to its guest.
func InverseDCT8(dst []byte, stride int, b, quant *[64]int32) { inverse8(dst, stride, b, quant) }

// InverseDCT4 does the same for the 4x4 samples of Scale 2. It reads and clears only the first 16 coefficients.
func InverseDCT4(dst []byte, stride int, b, quant *[64]int32) { inverse4(dst, stride, b, quant) }
