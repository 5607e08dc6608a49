package raster

import (
	"errors"
	"slices"
)

// The inner loops under exported names. A host offers them to its guest, where raster calls the host's loops. They take the same
// arguments and panic if a slice is too short.

// AddRows sets sums[i] += Σ w[k]·pix[k·stride+i] for every i < len(sums).
func AddRows(sums []uint32, pix []byte, stride int, w []uint32) { addRows(sums, pix, stride, w) }

// Across sets out[i] to byte((Σ sums[first[i]+k]·w[i·taps+k] + half)·m >> 56) over k < taps, the
// sum in 32 bits.
func Across(out []byte, sums []uint32, first []int32, w []uint32, taps int, half, m uint64) {
	acrossGeneric(out, sums, first, w, taps, half, m)
}

// YCbCr converts a row of JFIF's YCbCr to RGB, (len(y), 3).
func YCbCr(dst, y, cb, cr []byte) {
	rowYCbCr(dst, 0, 3, &[4][]byte{y, cb, cr}, len(y))
}

// classes are the errors of a picture. A host tells a guest their numbers, starting at 1.
var classes = [...]error{ErrUnsupported, ErrTooLarge, ErrCorrupt, ErrExpired}

// ErrorNumber is the number of an error of [Decoder.Decode] for a guest: 1 unsupported, 2 too large, 3 corrupt, 4 expired, 5 another one.
func ErrorNumber(err error) int {
	i := slices.IndexFunc(classes[:], func(class error) bool { return errors.Is(err, class) })
	if i < 0 {
		i = len(classes)
	}
	return i + 1
}

// FormatNumber is the number of an [Info]'s Format: 1 jpeg, 2 png, 3 gif, 4 webp, 5 bmp, 6 tiff.
func FormatNumber(name string) int { return slices.Index(formatNames[:], name) }
