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
// Everything is the same bytes on every host: the network's last steps are integer sums with
// one rounding each, and what follows is float64 in a fixed order without fused operations,
// with exponentials and logarithms of our own (package elementary).
//
// A frame of a video comes as planes or as a picture of an animation. Its analysis is the same from there on.
//
// How outputs become values is the network's own README: a concept's value is a calibrated
// probability, see values.go. How pictures are cut and resized is package raster.
//
// The package writes no JSON, fetches nothing, and trains nothing.
package predict

import "errors"

// ErrBundle is returned by Load for a bundle that is incomplete, damaged or inconsistent.
// The message names the bundle, the file and what is wrong with it.
var ErrBundle = errors.New("invalid bundle")

// ErrEngine is returned by Load for a bundle made for a newer engine than this one.
var ErrEngine = errors.New("bundle needs a newer engine")

// ErrEmbedding is returned by [Embedding.UnmarshalBinary] for bytes that no embedding has.
var ErrEmbedding = errors.New("malformed embedding")

// ErrNetwork is returned when the network gives something that is no embedding (not a number,
// or infinite). It means a damaged or unsuitable network, never a bad picture.
var ErrNetwork = errors.New("network returned no usable output")

// Engine is the version of what this package computes. A bundle names the lowest it needs.
const Engine = 1

// Want says which parts of an [Analysis] to compute; parts combine with |.
type Want uint8

// The parts of an analysis.
const (
	WantConcepts Want = 1 << iota // Embedding, General and Food: one run of the network
	WantColors                    // Colors
	WantThumb                     // Thumb
	WantCells                     // Cells: one run of the network, and its end for each cell
	WantPicture                   // Picture
)

// Analysis is what a picture came to. The slices belong to the caller.
type Analysis struct {
	Has       Want      // the parts that are filled
	Embedding Embedding // of the centred square
	General   []float32 // (concepts of the general model) values in 0…1, in its order
	Food      []float32 // (concepts of the food model) values in 0…1, in its order
	Colors    []ColorShare
	Thumb     []byte // JPEG of at most ThumbnailSide a side, the same bytes on every host
	Cells     Cells  // of the centred square
	Picture   []byte // JPEG in full size, upright
}
