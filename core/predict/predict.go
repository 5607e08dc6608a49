// Package predict turns a picture into an embedding and into the outputs of the public
// models: concepts with values, food, colours.
//
//	bundles ──Load──▶ Set (models, names, one compiled network; immutable, shared)
//	                    │
//	                    ▼ NewAnalyser (one thread's scratch)
//	picture ──raster──▶ 224×224 RGB ──nn, int8──▶ pooled features ─┬─▶ embedding ──▶ 256 int16 · scale
//	   │                                                           └─▶ 1000 logits
//	   │                    softmax, class sums, heads on the embedding, sigmoid ──▶ General, Food
//	   └────raster──▶ at most 128×128 RGB ──OKLab, nearest of 140 names──▶ Colors
//
// All results are the same bytes on every host: the network's last steps are integer sums with one rounding each, and the later steps are
// float64 in a fixed order without fused operations, with the exponentials and logarithms of package elementary.
//
// A frame of a video arrives as planes or as a picture of an animation. The later steps of its analysis are the same as for a picture.
//
// The network's README describes how outputs become values: a concept's value is a calibrated
// probability, see values.go. Package raster crops and resizes pictures.
//
// The package writes no JSON, fetches nothing, and trains nothing.
package predict

import (
	"errors"

	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// ErrBundle is returned by Load for a bundle that is incomplete, damaged or inconsistent.
// The message names the bundle, the file and what is wrong with it.
var ErrBundle = errors.New("invalid bundle")

// ErrEngine is returned by Load for a bundle made for a newer engine than this one.
var ErrEngine = errors.New("bundle needs a newer engine")

// ErrEmbedding is returned by [Embedding.UnmarshalBinary] for bytes that are not an encoded embedding.
var ErrEmbedding = errors.New("malformed embedding")

// ErrNetwork is returned when the network's output is not an embedding because it holds a NaN or an infinity. It means a damaged or
// unsuitable network, never a bad picture.
var ErrNetwork = errors.New("network returned no usable output")

// EngineVersion is the version of this package's arithmetic. A bundle states the lowest version that it needs.
const EngineVersion = 1

// Want selects the parts of an [Analysis] to compute; parts combine with |.
type Want uint8

// The parts of an analysis.
const (
	WantConcepts  Want = 1 << iota // Embedding, General and Food; costs one run of the network
	WantColors                     // Colors
	WantThumb                      // Thumb
	WantCells                      // Cells; costs one run of the network, and one of its end for each cell
	WantPicture                    // Picture, in full size
	WantRendition                  // Picture, with sides of at most RenditionSide pixels unless WantPicture is set, too
	WantExif                       // Exif; reads the file's metadata and decodes nothing
)

// NeedsPixels reports whether a picture must be decoded. It is false for its metadata alone, which any file has.
func (w Want) NeedsPixels() bool { return w != WantExif }

// Analysis is the result of analysing a picture. The slices belong to the caller.
type Analysis struct {
	Has       Want      // the parts that are filled
	Embedding Embedding // embedding of the centred square
	General   []float32 // (concepts of the general model) values in 0…1, in its order
	Food      []float32 // (concepts of the food model) values in 0…1, in its order
	Colors    []ColorShare
	Thumb     []byte // JPEG with sides of at most ThumbnailSide pixels, the same bytes on every host
	Cells     Cells  // cells of the centred square
	Picture   []byte // JPEG, upright
	Exif      exif.Data
}
