package raster

import "image/color"

// Colours are converted after the resize, since few pixels are left then. An average of YCbCr is the YCbCr of the average, except where
// the conversion clamps. CMYK is averaged as amounts of ink.

// rowRGB is a rowWriter for one lane of interleaved RGB.
func rowRGB(dst []byte, at, step int, rows *[4][]byte, n int) {
	row := rows[0][:3*n]
	for i := 0; i < len(row); i += 3 {
		out := dst[at:][:3]
		out[0], out[1], out[2] = row[i], row[i+1], row[i+2]
		at += step
	}
}

// rowGray is a rowWriter for one lane of grey.
func rowGray(dst []byte, at, step int, rows *[4][]byte, n int) {
	for _, v := range rows[0][:n] {
		out := dst[at:][:3]
		out[0], out[1], out[2] = v, v, v
		at += step
	}
}

// rowPlanes is a rowWriter for one lane each of red, green and blue.
func rowPlanes(dst []byte, at, step int, rows *[4][]byte, n int) {
	r, g, b := rows[0][:n], rows[1][:n], rows[2][:n]
	for i, v := range r {
		out := dst[at:][:3]
		out[0], out[1], out[2] = v, g[i], b[i]
		at += step
	}
}

// A Matrix is the standard that defines the conversion of RGB to YCbCr.
type Matrix uint8

// The matrices. An unknown one is BT.709 for pictures of 720 lines and more, and BT.601 for others.
const (
	MatrixUnknown Matrix = iota
	BT601
	BT709
	BT2020
	Identity // no conversion: the planes are green, blue and red
)

// ycbcr converts YCbCr to RGB with 16 fractional bits. Cb and Cr count from 128.
//
//	R = luma·Y + offset              + redCr·Cr
//	G = luma·Y + offset - greenCb·Cb - greenCr·Cr
//	B = luma·Y + offset + blueCb·Cb
type ycbcr struct {
	luma, offset                    int32
	redCr, greenCb, greenCr, blueCb int32
}

// conversions has the limited and the full range of each matrix. The limited range rounds half up. The full range has
// the luma of color.YCbCrToRGB: it adds 257·Y instead of a half, which preserves every grey. BT.601 of full range has all
// constants of that function.
var conversions = [...][2]ycbcr{
	BT601: {
		{76309, 1<<15 - 16*76309, 104597, 25675, 53279, 132201},
		{0x10101, 0, 91881, 22554, 46802, 116130},
	},
	BT709: {
		{76309, 1<<15 - 16*76309, 117489, 13975, 34925, 138438},
		{0x10101, 0, 103206, 12276, 30679, 121609},
	},
	BT2020: {
		{76309, 1<<15 - 16*76309, 110014, 12277, 42626, 140363},
		{0x10101, 0, 96639, 10784, 37444, 123299},
	},
	Identity: {
		{luma: 76309, offset: 1<<15 - 16*76309},
		{luma: 0x10101},
	},
}

// jfif is the conversion of JFIF.
var jfif = &conversions[BT601][1]

// row is a rowWriter for lanes of YCbCr.
func (c *ycbcr) row(dst []byte, at, step int, rows *[4][]byte, n int) {
	cb, cr := rows[1][:n], rows[2][:n]
	k := *c
	for i, v := range rows[0][:n] {
		out := dst[at:][:3]
		yy := int32(v)*k.luma + k.offset
		b, r := int32(cb[i])-128, int32(cr[i])-128
		out[0] = clamp16(yy + k.redCr*r)
		out[1] = clamp16(yy - k.greenCb*b - k.greenCr*r)
		out[2] = clamp16(yy + k.blueCb*b)
		at += step
	}
}

// identity is a rowWriter for lanes of green, blue and red.
func (c *ycbcr) identity(dst []byte, at, step int, rows *[4][]byte, n int) {
	green, blue, red := rows[0][:n], rows[1][:n], rows[2][:n]
	for i, v := range red {
		out := dst[at:][:3]
		out[0] = clamp16(int32(v)*c.luma + c.offset)
		out[1] = clamp16(int32(green[i])*c.luma + c.offset)
		out[2] = clamp16(int32(blue[i])*c.luma + c.offset)
		at += step
	}
}

// gray is a rowWriter for a lane of Y only.
func (c *ycbcr) gray(dst []byte, at, step int, rows *[4][]byte, n int) {
	for _, v := range rows[0][:n] {
		out := dst[at:][:3]
		g := clamp16(int32(v)*c.luma + c.offset)
		out[0], out[1], out[2] = g, g, g
		at += step
	}
}

// rowYCbCr is a rowWriter for lanes of JFIF's YCbCr. It writes the bytes of color.YCbCrToRGB.
func rowYCbCr(dst []byte, at, step int, rows *[4][]byte, n int) {
	if step != 3 {
		jfif.row(dst, at, step, rows, n)
		return
	}
	y, cb, cr := rows[0][:n], rows[1][:n], rows[2][:n]
	done := ycbcrFast(dst[at:], y, cb, cr)
	jfif.row(dst, at+3*done, step, &[4][]byte{y[done:], cb[done:], cr[done:]}, n-done)
}

// clamp16 returns v >> 16, clamped to a byte.
func clamp16(v int32) byte {
	if uint32(v)&0xff000000 == 0 {
		return byte(v >> 16)
	}
	return byte(^(v >> 31))
}

// rowWebP is a rowWriter for lanes of WebP's YCbCr, which unlike JFIF's has limited range.
func rowWebP(dst []byte, at, step int, rows *[4][]byte, n int) {
	y, cb, cr := rows[0][:n], rows[1][:n], rows[2][:n]
	for i, v := range y {
		out := dst[at:][:3]
		out[0], out[1], out[2] = webpRGB(v, cb[i], cr[i])
		at += step
	}
}

// webpRGB converts BT.601 of limited range as libwebp does (src/dsp/yuv.h).
func webpRGB(y, cb, cr byte) (r, g, b byte) {
	yy, u, v := int32(y)*19077>>8, int32(cb), int32(cr)
	return clamp6(yy + v*26149>>8 - 14234),
		clamp6(yy - u*6419>>8 - v*13320>>8 + 8708),
		clamp6(yy + u*33050>>8 - 17685)
}

// clamp6 returns v >> 6, clamped to a byte.
func clamp6(v int32) byte {
	return byte(min(max(v>>6, 0), 255))
}

// rowCMYK is a rowWriter for lanes of Adobe's CMYK, in which 255 means no ink. It writes the bytes of color.CMYKToRGB.
func rowCMYK(dst []byte, at, step int, rows *[4][]byte, n int) {
	c, m, y, k := rows[0][:n], rows[1][:n], rows[2][:n], rows[3][:n]
	for i := range c {
		out := dst[at:][:3]
		out[0], out[1], out[2] = color.CMYKToRGB(255-c[i], 255-m[i], 255-y[i], 255-k[i])
		at += step
	}
}

// rowYCCK is a rowWriter for lanes of Adobe's YCCK: CMY, taken as RGB, is coded as YCbCr, and K is as in CMYK.
func rowYCCK(dst []byte, at, step int, rows *[4][]byte, n int) {
	y, cb, cr, k := rows[0][:n], rows[1][:n], rows[2][:n], rows[3][:n]
	for i := range y {
		out := dst[at:][:3]
		c, m, yl := color.YCbCrToRGB(y[i], cb[i], cr[i])
		out[0], out[1], out[2] = color.CMYKToRGB(c, m, yl, 255-k[i])
		at += step
	}
}
