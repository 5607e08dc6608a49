package training

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// digester computes the digest of a training, which the package comment specifies.
type digester struct {
	examples [][sha256.Size]byte
	scratch  []byte
}

// example adds an example of a problem with so many concepts.
func (d *digester) example(e *train.Example, concepts int) {
	b, _ := e.Embedding.AppendBinary(d.scratch[:0]) // never fails
	for c := range concepts {
		sign := train.Unknown
		if e.Labels != nil {
			sign = e.Labels[c]
		}
		b = append(b, byte(sign))
	}
	d.scratch = append(b, oneIf(e.Other))
	d.examples = append(d.examples, sha256.Sum256(d.scratch))
}

// sum returns the digest of a problem whose examples were added, for the network with the identity base.
func (d *digester) sum(p *train.Problem, base [sha256.Size]byte) (sum [sha256.Size]byte) {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("sightline training 1\n"), train.EngineVersion)
	b = append(append(b, base[:]...), oneIf(p.Exclusive), oneIf(p.Closed))
	b = le.AppendUint64(b, math.Float64bits(cmp.Or(p.Precision, train.DefaultPrecision)))
	b = le.AppendUint32(b, uint32(len(p.Concepts)))
	for _, id := range p.Concepts {
		b = append(le.AppendUint32(b, uint32(len(id))), id...)
	}
	b = append(b, backgroundDigest(p.Background)...)
	b = le.AppendUint32(b, uint32(len(d.examples)))
	slices.SortFunc(d.examples, func(x, y [sha256.Size]byte) int { return bytes.Compare(x[:], y[:]) })
	h := sha256.New()
	h.Write(b)
	for i := range d.examples {
		h.Write(d.examples[i][:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func backgroundDigest(background []predict.Embedding) []byte {
	h := sha256.New()
	var b []byte
	for i := range background {
		b, _ = background[i].AppendBinary(b[:0]) // never fails
		h.Write(b)
	}
	return h.Sum(nil)
}

func oneIf(is bool) byte {
	if is {
		return 1
	}
	return 0
}
