package predict

import (
	"bytes"
	"image"
	"image/jpeg"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ThumbnailSide is the longest side of a thumbnail in pixels. A smaller picture keeps its size.
const ThumbnailSide = 320

// thumbnailQuality is that of the JPEG, 1 to 100: about 12 KB for a photograph.
const thumbnailQuality = 80

// pictureQuality is that of Analysis.Picture, at which a frame of a video shows no loss: about 200 KB for 1280 × 720.
const pictureQuality = 92

// jpeg encodes a prepared picture. The encoder is the standard library's, whose
// arithmetic is in integers, so every host that this toolchain builds gives the same bytes.
func (a *Analyser) jpeg(img raster.Image, quality int) ([]byte, error) {
	n := img.Width * img.Height
	if cap(a.rgba) < 4*n {
		a.rgba = make([]byte, 4*n)
	}
	pix := a.rgba[:4*n]
	for i := range n {
		pix[4*i], pix[4*i+1], pix[4*i+2], pix[4*i+3] = img.Pix[3*i], img.Pix[3*i+1], img.Pix[3*i+2], 0xff
	}
	m := &image.RGBA{Pix: pix, Stride: 4 * img.Width, Rect: image.Rect(0, 0, img.Width, img.Height)}
	var b bytes.Buffer
	b.Grow(n/4 + 1024)
	err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality})
	return b.Bytes(), err
}
