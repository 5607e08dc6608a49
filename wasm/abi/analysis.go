package abi

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// analysis is the result of analysing a picture. Without the part WantConcepts it has no embedding and no values. Without WantCells it has
// no cells.
//
//field:fields put get
type analysis struct {
	Has       predict.Want         `wire:"1"`                        // the parts that are filled
	Embedding []byte               `wire:"2,type=bytes (516)"`       // see predict.Embedding
	General   []float32            `wire:"3,func=Floats,type=bytes"` // float32, little-endian
	Food      []float32            `wire:"4,func=Floats,type=bytes"` // float32, little-endian
	Colors    []predict.ColorShare `wire:"5"`
	Thumb     []byte               `wire:"6,copy"` // JPEG
	Cells     predict.Cells        `wire:"7,func=ValidCells,type={Cells}"`
	Picture   []byte               `wire:"8,copy"` // JPEG in full size
	Taken     exif.Time            `wire:"9"`      // of the picture's file
	Place     exif.Place           `wire:"10"`     // of the picture's file
}

// cells are the cells of an analysis.
//
//field:fields put get
type cells struct {
	predict.Cells `wire:"+0"`
}

func putValidCells(e *field.Encoder, number int, c *predict.Cells) {
	if c.Height > 0 {
		at := e.Open(number)
		putCells(e, &cells{*c})
		e.Close(at)
	}
}

func getValidCells(d *field.Decoder) predict.Cells {
	var c cells
	at := d.Open()
	getCells(d, &c)
	d.Close(at)
	if !c.Valid() {
		d.Malformed("cells")
	}
	return c.Cells
}

// AppendAnalysis returns an analysis as an envelope. The envelope reuses the memory of buf and overwrites its content.
func AppendAnalysis(buf []byte, a *predict.Analysis) []byte {
	x := analysis{Has: a.Has, Colors: a.Colors, Taken: a.Exif.Taken, Place: a.Exif.Place}
	if a.Has&predict.WantConcepts != 0 {
		x.Embedding, _ = a.Embedding.MarshalBinary() // never returns an error
		x.General, x.Food = set(a.General), set(a.Food)
	}
	if len(a.Thumb) > 0 {
		x.Thumb = a.Thumb
	}
	if a.Has&predict.WantCells != 0 {
		x.Cells = a.Cells
	}
	if len(a.Picture) > 0 {
		x.Picture = a.Picture
	}
	e := encoder(slices.Grow(buf[:0], 64+predict.EmbeddingBytes+4*(len(a.General)+len(a.Food))+len(a.Thumb)+len(a.Picture)+4*len(a.Cells.Rows)))
	putAnalysis(e, &x)
	return e.Bytes(nil)
}

// set returns v, or an empty slice for nil, since putFloats does not write nil.
func set(v []float32) []float32 {
	if v == nil {
		return []float32{}
	}
	return v
}

// ParseAnalysis reads the output of AppendAnalysis into new memory. It returns field.ErrFormat, wrapped, for invalid bytes, including
// embeddings that NewEmbedding never returns, so that data of another instance satisfy this one's rules.
func ParseAnalysis(data []byte) (predict.Analysis, error) {
	var x analysis
	d := field.Decode(data)
	getAnalysis(d, &x)
	a := predict.Analysis{
		Has: x.Has, General: x.General, Food: x.Food, Colors: x.Colors, Thumb: x.Thumb, Cells: x.Cells, Picture: x.Picture,
		Exif: exif.Data{Taken: x.Taken, Place: x.Place},
	}
	if x.Embedding != nil && a.Embedding.UnmarshalBinary(x.Embedding) != nil {
		d.Malformed("embedding")
	}
	if (x.Embedding != nil) != (a.Has&predict.WantConcepts != 0) || (a.Cells.Height > 0) != (a.Has&predict.WantCells != 0) {
		d.Malformed("parts")
	}
	return a, envelope("analysis", d)
}

// asWritten reports whether float32 have the same bytes in memory as in an envelope.
var asWritten = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// memory returns the bytes of v without copying them.
func memory(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// putFloats writes float32, little-endian, unless v is nil.
func putFloats(e *field.Encoder, number int, v []float32) {
	if v != nil {
		e.Raw(number, floats(v))
	}
}

// floats returns the encoding of v. It may share v's memory.
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
