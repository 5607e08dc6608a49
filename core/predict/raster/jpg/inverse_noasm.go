//go:build (purego || !(amd64 || arm64)) && !(wasip1 && lent)

package jpg

func inverse8(dst []byte, stride int, b, quant *[64]int32) { inverse8Generic(dst, stride, b, quant) }

func inverse4(dst []byte, stride int, b, quant *[64]int32) { inverse4Generic(dst, stride, b, quant) }
