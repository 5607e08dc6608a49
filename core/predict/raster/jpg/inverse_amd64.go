//go:build !purego

package jpg

import "github.com/sightline-dev/sightline/core/cpu"

//go:generate go run ./asm -out inverse_amd64.s -stubs stubs_amd64.go -pkg jpg

var hasAVX2 = cpu.Has(cpu.AVX2)

// inverse8 does what inverse8Generic does. With AVX2 it computes eight rows, and then eight columns, at a time.
func inverse8(dst []byte, stride int, b, quant *[64]int32) {
	if !hasAVX2 {
		inverse8Generic(dst, stride, b, quant)
		return
	}
	_ = dst[7*stride+7]
	inverse8AVX2(&dst[0], stride, b, quant)
}

// inverse4 does what inverse4Generic does. With AVX2 it computes four rows, and then four columns, at a time.
func inverse4(dst []byte, stride int, b, quant *[64]int32) {
	if !hasAVX2 {
		inverse4Generic(dst, stride, b, quant)
		return
	}
	_ = dst[3*stride+3]
	inverse4AVX2(&dst[0], stride, b, quant)
}
