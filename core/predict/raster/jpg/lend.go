package jpg

// Inverse8 writes the 8x8 samples of the coefficients b times quant, in transform order, to rows of dst that are stride bytes apart, and
// clears b. A host offers it to its guest.
func Inverse8(dst []byte, stride int, b, quant *[64]int32) { inverse8(dst, stride, b, quant) }

// Inverse4 is the same for the 4x4 samples of Scale 2; it clears the 16 coefficients it reads.
func Inverse4(dst []byte, stride int, b, quant *[64]int32) { inverse4(dst, stride, b, quant) }
