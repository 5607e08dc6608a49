package raster

import (
	"errors"
	"slices"
)

// A host provides these inner loops to its guest, where package raster calls the host's loops. They panic if a slice is too short.

// AddRows sets sums[i] += Σ w[k]·pix[k·stride+i] for every i < len(sums).
func AddRows(sums []uint32, pix []byte, stride int, w []uint32) { addRows(sums, pix, stride, w) }

// ResampleRow sets out[i] to byte((Σ sums[first[i]+k]·w[i·taps+k] + half)·m >> 56) over k < taps. It
// computes the sum in 32 bits and the product in 64.
func ResampleRow(out []byte, sums []uint32, first []int32, w []uint32, taps int, half, m uint64) {
	acrossGeneric(out, sums, first, w, taps, half, m)
}

// YCbCrToRGB converts a row of JFIF's YCbCr to RGB. It writes 3·len(y) bytes to dst.
func YCbCrToRGB(dst, y, cb, cr []byte) {
	rowYCbCr(dst, 0, 3, &[4][]byte{y, cb, cr}, len(y))
}

// classes lists the errors about a picture that have a number for guests: the index plus 1.
var classes = [...]error{ErrUnsupported, ErrTooLarge, ErrCorrupt, ErrExpired}

// ErrorNumber returns the number with which a host reports an error of [Decoder.Decode] to its guest: 1 unsupported, 2 too large,
// 3 corrupt, 4 expired, 5 any other.
func ErrorNumber(err error) int {
	i := slices.IndexFunc(classes[:], func(class error) bool { return errors.Is(err, class) })
	if i < 0 {
		i = len(classes)
	}
	return i + 1
}

// FormatNumber returns the number with which a host reports the Format of an [Info] to its guest: 1 jpeg, 2 png, 3 gif, 4 webp, 5 bmp,
// 6 tiff, 7 heic, 8 avif, 9 jxl, 10 raw.
func FormatNumber(name string) int { return slices.Index(formatNames[:], name) }
