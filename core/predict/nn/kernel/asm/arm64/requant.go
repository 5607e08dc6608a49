package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// dupByte fills register v with the low part of a field.
func dupByte(f *arm64.File, field, v int, size string) {
	load(f, field, regTemp)
	f.V("dup v%d.%s, w%d", v, size, regTemp)
}

// toWords multiplies each of the registers of sums with the register that scale names, and rounds it to the nearest whole number,
// half to even. Numbers beyond int32 become its bounds.
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

// noZero marks sums without a zero point.
const noZero = -1

// narrow adds the words in register zero to two or four registers of dwords and makes bytes of them, in the first one. All steps
// saturate, so that the bounds 0 and 255 hold.
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
