package catalog

import (
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Manifest describes a trained version and its training, so that the training can be repeated bit for bit. It is stored as an object,
// whose hash is in the version's record. Field 5 was a digest that depended on the order of the inputs.
//
//field:message manifest
//field:reserved 5
type Manifest struct {
	Version string          `wire:"1"`
	Base    [32]byte        `wire:"2"` // hash of the base model that made the embeddings
	Seq     uint64          `wire:"3"` // log position of the training set
	Inputs  []TrainingInput `wire:"4"` // the training set, by ordinal
	Digest  [32]byte        `wire:"8"` // digest of the training by package training; zero: an older program trained
	Head    []byte          `wire:"6"` // trained layer, encoded by train
	Metrics []byte          `wire:"7"` // evaluation, encoded by train
	// Imported is set if the head was trained elsewhere. It has no inputs, digest or evaluation. Another network cannot retrain it.
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

// OutdatedReason returns the predicate of a sentence about a version for a previous network.
func (m *Manifest) OutdatedReason() string {
	if m.Imported {
		return "was imported for a previous network; train or import another version"
	}
	return "was trained for a previous network and is being retrained"
}

// TrainingInput is one input of a training set. It does not depend on the input's record, which may be deleted later.
type TrainingInput struct {
	Dot     log.Dot     `wire:"1"`
	Ord     uint32      `wire:"2"`
	Labels  []log.Label `wire:"3"` // labels that affected the training, by concept id
	ID      string      `wire:"4"` // empty in manifests of older programs
	Created log.HLC     `wire:"5"` // zero in manifests of older programs
}

// digestOf decodes the digest of a manifest and skips the other fields.
//
//field:fields get
type digestOf struct {
	digest [32]byte `wire:"8"`
}

// Marshal returns the manifest's bytes.
func (m *Manifest) Marshal() []byte { return encodeManifest(nil, m) }

// UnmarshalManifest decodes a manifest. The manifest keeps references to data. The error is field.ErrFormat.
func UnmarshalManifest(data []byte) (Manifest, error) { return decodeManifest(data) }

func manifestDigest(data []byte) (digest [32]byte, err error) {
	var x digestOf
	d := field.Decode(data)
	getDigestOf(d, &x)
	return x.digest, wrapError(d.Err(), "manifest")
}
