package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// dupByte fills vector register v with the low bits of a field. size is the arrangement: 16b, 8h or 4s.
func dupByte(f *arm64.File, field, v int, size string) {
	load(f, field, regTemp)
	f.V("dup v%d.%s, w%d", v, size, regTemp)
}

// toWords multiplies the int32 elements of each register v of sums by register scale(v) and rounds the products to int32, half to even.
// Results beyond int32 become its bounds.
func toWords(f *arm64.File, sums []int, scale func(v int) int) {
	for _, v := range sums {
		f.V("scvtf v%d.4s, v%d.4s", v, v)
	}
	for _, v := range sums {
		f.V("fmul v%d.4s, v%d.4s, v%d.4s", v, v, scale(v))
	}
	for _, v := range sums {
		f.V("fcvtns v%d.4s, v%d.4s", v, v)
	}
}

// noZero is passed to narrow if the zero point is not added.
const noZero = -1

// narrow converts the dwords in two or four registers to bytes in the first of them, and adds the words in register zero. All steps
// saturate, so the results are clamped to 0 and 255.
func narrow(f *arm64.File, v []int, zero int) {
	for i := 0; i < len(v); i += 2 {
		f.V("sqxtn v%d.4h, v%d.4s", v[i], v[i])
		f.V("sqxtn2 v%d.8h, v%d.4s", v[i], v[i+1])
		if zero != noZero {
			f.V("sqadd v%d.8h, v%d.8h, v%d.8h", v[i], v[i], zero)
		}
	}
	f.V("sqxtun v%d.8b, v%d.8h", v[0], v[0])
	if len(v) == 4 {
		f.V("sqxtun2 v%d.16b, v%d.8h", v[0], v[2])
	}
}
