//go:build wasip1 && lent

package jpg

// wasm/README.md describes these imports. If the host decodes complete pictures, the guest does not call them.

//go:wasmimport kernel inverse8
//go:noescape
func hostInverse8(dst *byte, stride int32, b, quant *[64]int32)

//go:wasmimport kernel inverse4
//go:noescape
func hostInverse4(dst *byte, stride int32, b, quant *[64]int32)

func inverse8(dst []byte, stride int, b, quant *[64]int32) {
	_ = dst[7*stride+7]
	hostInverse8(&dst[0], int32(stride), b, quant)
}

func inverse4(dst []byte, stride int, b, quant *[64]int32) {
	_ = dst[3*stride+3]
	hostInverse4(&dst[0], int32(stride), b, quant)
}
