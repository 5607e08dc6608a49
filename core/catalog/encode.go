package catalog

import (
	"encoding/binary"
	"math"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// RecordSize returns the size of the input's record in bytes.
func (in *Input) RecordSize() int { return len(encodeInput(nil, in)) }

// born returns the stamp of the record's creation. Encoding omits stamps that equal it.

func (in *Input) born() log.Stamp  { return log.Stamp{At: in.Created, Writer: in.Dot.Writer} }
func (c *Concept) born() log.Stamp { return log.Stamp{At: c.Created, Writer: c.Dot.Writer} }
func (m *Model) born() log.Stamp   { return log.Stamp{At: m.Created, Writer: m.Dot.Writer} }

// born returns zero, since a version keeps the stamps of its model's settings.
func (v *Version) born() log.Stamp { return log.Stamp{} }

// putFloats writes float32 values, little-endian.
func putFloats(e *field.Encoder, number int, v []float32) {
	if v == nil {
		return
	}
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	e.Raw(number, b)
}

func getFloats(d *field.Decoder) []float32 {
	b := d.Raw()
	if len(b)%4 != 0 {
		d.Malformed("values")
		return nil
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
