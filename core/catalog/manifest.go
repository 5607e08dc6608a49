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
	Digest  [32]byte  // of the training set's embeddings and labels, in that order
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
	e.Hash(5, m.Digest[:])
	e.Raw(6, m.Head)
	e.Raw(7, m.Metrics)
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
		case 5:
			d.Hash(m.Digest[:])
		case 6:
			m.Head = d.Raw()
		case 7:
			m.Metrics = d.Raw()
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
