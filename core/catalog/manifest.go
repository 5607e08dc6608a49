package catalog

import (
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Manifest describes a trained version and its training, so that the training can be repeated bit for bit. Its bytes are an object, named
// by their hash in the version's record. Field 5 was a digest that depended on the order of the inputs.
//
//field:message manifest
//field:reserved 5
type Manifest struct {
	Version string          `wire:"1"`
	Base    [32]byte        `wire:"2"` // hash of the base model that the embeddings came from
	Seq     uint64          `wire:"3"` // place in the log at which the training set was taken
	Inputs  []TrainingInput `wire:"4"` // the training set, by ordinal
	Digest  [32]byte        `wire:"8"` // of the training, as package training makes it; zero: an older program trained
	Head    []byte          `wire:"6"` // the trained layer, as train encodes it
	Metrics []byte          `wire:"7"` // the evaluation, as train encodes it
	// Imported is set if the head was trained elsewhere: it has no inputs, no digest and no evaluation, and another network cannot have it.
	Imported bool  `wire:"9"`
	Extra    Extra `wire:"*"`
}

// UnevaluatedReason returns why a version whose metrics have no folds has no evaluation.
func (m *Manifest) UnevaluatedReason() string {
	if m.Imported {
		return "The version was imported. Only versions that are trained here are evaluated."
	}
	return "Evaluation needs a concept with two different pictures, and pictures without it."
}

// OutdatedReason returns a predicate for the status of a version that was made for a previous network.
func (m *Manifest) OutdatedReason() string {
	if m.Imported {
		return "was imported for a previous network; train or import another version"
	}
	return "was trained for a previous network and is being retrained"
}

// TrainingInput is one input of a training set. It is complete without the input, which may be deleted later.
type TrainingInput struct {
	Dot     log.Dot     `wire:"1"`
	Ord     uint32      `wire:"2"`
	Labels  []log.Label `wire:"3"` // those that mattered, by concept id
	ID      string      `wire:"4"` // empty in manifests of older programs
	Created log.HLC     `wire:"5"` // likewise zero
}

// digestOf reads the digest out of a manifest's bytes, and decodes nothing else.
//
//field:fields get
type digestOf struct {
	digest [32]byte `wire:"8"`
}

// Marshal returns the manifest's bytes.
func (m *Manifest) Marshal() []byte { return encodeManifest(nil, m) }

// UnmarshalManifest reads a manifest's bytes, which it keeps. Errors: field.ErrFormat.
func UnmarshalManifest(data []byte) (Manifest, error) { return decodeManifest(data) }

func manifestDigest(data []byte) (digest [32]byte, err error) {
	var x digestOf
	d := field.Decode(data)
	getDigestOf(d, &x)
	return x.digest, wrapError(d.Err(), "manifest")
}
