package abi

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
)

// AppendAnalysis writes what a picture came to, in an envelope:
//
//	1 has        uint       the parts that are filled
//	2 embedding  bytes      predict.Embedding's 516, with the part WantConcepts
//	3 general    bytes      float32, little-endian
//	4 food       bytes      likewise
//	5 color*     {1 id, 2 name, 3 hex, 4 raw hex, 5 value float32}
//	6 thumb      bytes      JPEG
//	7 cells      {1 height, 2 width, 3 classes, 4 rows (float32, little-endian), 5 box (as a job's crop)}, with the part WantCells
//	8 picture    bytes      JPEG
func AppendAnalysis(buf []byte, a *predict.Analysis) []byte {
	e := encoder(slices.Grow(buf[:0], 64+predict.EmbeddingBytes+4*(len(a.General)+len(a.Food))+len(a.Thumb)+len(a.Picture)+4*len(a.Cells.Rows)))
	e.Uint(1, uint64(a.Has))
	if a.Has&predict.WantConcepts != 0 {
		b, _ := a.Embedding.MarshalBinary() // has no error
		e.Raw(2, b)
		e.Raw(3, floats(a.General))
		e.Raw(4, floats(a.Food))
	}
	for i := range a.Colors {
		c := &a.Colors[i]
		at := e.Open(5)
		e.Text(1, c.W3C.ID)
		e.Text(2, c.W3C.Name)
		e.Text(3, c.W3C.Hex)
		e.Text(4, c.RawHex)
		e.Float32(5, c.Value)
		e.Close(at)
	}
	if len(a.Thumb) > 0 {
		e.Raw(6, a.Thumb)
	}
	if a.Has&predict.WantCells != 0 {
		at := e.Open(7)
		e.Uint(1, uint64(a.Cells.Height))
		e.Uint(2, uint64(a.Cells.Width))
		e.Uint(3, uint64(a.Cells.Classes))
		e.Raw(4, floats(a.Cells.Rows))
		e.Raw(5, appendCrop(nil, a.Cells.Box))
		e.Close(at)
	}
	if len(a.Picture) > 0 {
		e.Raw(8, a.Picture)
	}
	return e.Bytes(nil)
}

// ParseAnalysis reads what AppendAnalysis wrote, as memory of its own. It returns
// field.ErrFormat, wrapped, for what it never writes, embeddings that NewEmbedding never gives
// among it: what comes from another instance is held to what this one would store.
func ParseAnalysis(data []byte) (predict.Analysis, error) {
	var a predict.Analysis
	embedded := false
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			a.Has = getWant(d)
		case 2:
			if a.Embedding.UnmarshalBinary(d.Raw()) != nil {
				d.Malformed("embedding")
			}
			embedded = true
		case 3:
			a.General = getFloats(d)
		case 4:
			a.Food = getFloats(d)
		case 5:
			a.Colors = append(a.Colors, getColor(d.Message()))
		case 6:
			a.Thumb = append([]byte(nil), d.Raw()...)
		case 7:
			a.Cells = getCells(d.Message())
			if !a.Cells.Valid() {
				d.Malformed("cells")
			}
		case 8:
			a.Picture = append([]byte(nil), d.Raw()...)
		}
	}
	if embedded != (a.Has&predict.WantConcepts != 0) || (a.Cells.Height > 0) != (a.Has&predict.WantCells != 0) {
		d.Malformed("parts")
	}
	return a, envelope("analysis", d)
}

func getCells(d *field.Decoder) (c predict.Cells) {
	for d.Next() {
		switch d.Number {
		case 1:
			c.Height = int(d.Uint32())
		case 2:
			c.Width = int(d.Uint32())
		case 3:
			c.Classes = int(d.Uint32())
		case 4:
			c.Rows = getFloats(d)
		case 5:
			c.Box = getCrop(d)
		}
	}
	return c
}

func getColor(d *field.Decoder) (c predict.ColorShare) {
	for d.Next() {
		switch d.Number {
		case 1:
			c.W3C.ID = d.Text()
		case 2:
			c.W3C.Name = d.Text()
		case 3:
			c.W3C.Hex = d.Text()
		case 4:
			c.RawHex = d.Text()
		case 5:
			c.Value = d.Float32()
		}
	}
	return c
}

// asWritten reports whether float32 lie in memory as they are written.
var asWritten = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory is the bytes of v.
func memory(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// floats is v as it is written; it may be v's own memory.
func floats(v []float32) []byte {
	if asWritten && len(v) > 0 {
		return memory(v)
	}
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

func getFloats(d *field.Decoder) []float32 {
	b := d.Raw()
	if len(b)%4 != 0 {
		d.Malformed("values")
		return nil
	}
	v := make([]float32, len(b)/4)
	if asWritten {
		copy(memory(v), b)
		return v
	}
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}
