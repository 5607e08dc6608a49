package predict

import (
	"slices"

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

// keepFile is the maximum size of the buffer for a file that an analyser keeps. Thumbnails need less.
const keepFile = 256 << 10

// jpeg encodes a prepared picture as a JPEG. The bytes are the same on every platform.
func (a *Analyser) jpeg(img raster.Image, quality int) []byte {
	a.file = a.encoder.Append(a.file[:0], img.Pix, img.Width, img.Height, quality)
	file := slices.Clone(a.file)
	if cap(a.file) > keepFile {
		a.file = nil
	}
	return file
}
