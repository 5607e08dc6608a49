package catalog

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// Manifest says what a trained version is and what made it, so that it can be made again bit
// for bit. Its bytes are an object, named by their hash in the version's record.
type Manifest struct {
	Version string
	Base    [32]byte  // hash of the base model that the embeddings came from
	Seq     uint64    // place in the log at which the training set was taken
	Inputs  []Trained // the training set, by ordinal
	Digest  [32]byte  // of the training, as package training makes it; zero: an older program trained
	Head    []byte    // the trained layer, as train encodes it
	Metrics []byte    // the evaluation, as train encodes it
	Extra   Extra
}

// Trained is one input of a training set. It is complete without the input, which may be deleted later.
type Trained struct {
	Dot     log.Dot
	Ord     uint32
	Labels  []log.Label // those that mattered, by concept id
	ID      string      // empty in manifests of older programs
	Created log.HLC     // likewise zero
}

// manifestDigestField is the number of Digest. Older programs wrote 5, which depended on the order of the inputs.
const manifestDigestField = 8

// Marshal returns the manifest's bytes.
func (m *Manifest) Marshal() []byte {
	var e field.Encoder
	e.Text(1, m.Version)
	e.Hash(2, m.Base[:])
	e.Uint(3, m.Seq)
	for i := range m.Inputs {
		t := &m.Inputs[i]
		at := e.Open(4)
		log.EncodeDot(&e, 1, t.Dot)
		e.Uint(2, uint64(t.Ord))
		for _, l := range t.Labels {
			log.EncodeLabel(&e, 3, l)
		}
		e.Text(4, t.ID)
		e.Uint(5, uint64(t.Created))
		e.Close(at)
	}
	e.Raw(6, m.Head)
	e.Raw(7, m.Metrics)
	e.Hash(manifestDigestField, m.Digest[:])
	return e.Bytes(m.Extra)
}

// UnmarshalManifest reads a manifest's bytes, which it keeps. Errors: field.ErrFormat.
func UnmarshalManifest(data []byte) (Manifest, error) {
	var m Manifest
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			m.Version = d.Text()
		case 2:
			d.Hash(m.Base[:])
		case 3:
			m.Seq = d.Uint()
		case 4:
			m.Inputs = append(m.Inputs, decodeTrained(d.Message()))
		case 6:
			m.Head = d.Raw()
		case 7:
			m.Metrics = d.Raw()
		case manifestDigestField:
			d.Hash(m.Digest[:])
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	if err := d.Err(); err != nil {
		return Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// manifestDigest reads the digest out of a manifest's bytes, and decodes nothing else.
func manifestDigest(data []byte) (digest [32]byte, err error) {
	d := field.Decode(data)
	for d.Next() {
		if d.Number == manifestDigestField {
			d.Hash(digest[:])
		}
	}
	return digest, named(d.Err(), "manifest")
}

func decodeTrained(d *field.Decoder) Trained {
	var t Trained
	for d.Next() {
		switch d.Number {
		case 1:
			t.Dot = log.DecodeDot(d.Message())
		case 2:
			t.Ord = d.Uint32()
		case 3:
			t.Labels = append(t.Labels, log.DecodeLabel(d.Message()))
		case 4:
			t.ID = d.Text()
		case 5:
			t.Created = log.HLC(d.Uint())
		}
	}
	return t
}
