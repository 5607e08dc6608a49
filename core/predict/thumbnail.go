package predict

import (
	"bytes"
	"image"
	"image/jpeg"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// ThumbnailSide is the longest side of a thumbnail in pixels. A smaller picture keeps its size.
const ThumbnailSide = 320

// RenditionSide is the longest side in pixels of the JPEG that pages show instead of an original that their browser cannot draw.
const RenditionSide = 2048

// side returns the longest side of a Picture in pixels.
func (w Want) side() int {
	if w == WantRendition {
		return RenditionSide
	}
	return raster.MaxResultSide
}

// thumbnailQuality is the JPEG quality of a thumbnail, from 1 to 100. A photograph then takes about 12 KB.
const thumbnailQuality = 80

// pictureQuality is the JPEG quality of Analysis.Picture, from 1 to 100. A frame of a video shows no loss, and 1280 × 720 pixels take about
// 200 KB.
const pictureQuality = 92

// jpeg encodes a prepared picture as a JPEG. The standard library's encoder computes with
// integers, so the builds of one toolchain return the same bytes on every platform.
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
