package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// DType is the element type of a tensor. The numbers are the schema's.
type DType int32

// Element types that Read accepts.
const (
	Float32 DType = 1
	Uint8   DType = 2
	Int8    DType = 3
	Uint16  DType = 4
	Int16   DType = 5
	Int32   DType = 6
	Int64   DType = 7
	Bool    DType = 9
	Float16 DType = 10
	Float64 DType = 11
	Uint32  DType = 12
	Uint64  DType = 13
)

var dtypes = map[DType]struct {
	name string
	size int
}{
	Float32: {"float32", 4},
	Uint8:   {"uint8", 1},
	Int8:    {"int8", 1},
	Uint16:  {"uint16", 2},
	Int16:   {"int16", 2},
	Int32:   {"int32", 4},
	Int64:   {"int64", 8},
	Bool:    {"bool", 1},
	Float16: {"float16", 2},
	Float64: {"float64", 8},
	Uint32:  {"uint32", 4},
	Uint64:  {"uint64", 8},
}

// Size returns the bytes of one element, 0 for a type that is not accepted.
func (d DType) Size() int { return dtypes[d].size }

func (d DType) String() string {
	if t, ok := dtypes[d]; ok {
		return t.name
	}
	return fmt.Sprintf("type %d", int32(d))
}

// Tensor is a constant: a weight, a bias, a shape.
type Tensor struct {
	Name  string
	Type  DType
	Shape []int  // no negative dimension; empty for a scalar
	Data  []byte // elements, little-endian, row-major; its length is Len()·Type.Size(). May be borrowed from the file: do not write
}

// Len returns the number of elements. Of a tensor that Read returned it never overflows.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Float32s returns a copy of the elements of a Float32 tensor; for another type it is nil.
func (t *Tensor) Float32s() []float32 {
	if t.Type != Float32 {
		return nil
	}
	v := make([]float32, len(t.Data)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
	}
	return v
}

// Int8s returns the elements of an Int8 tensor, borrowed; for another type it is nil.
func (t *Tensor) Int8s() []int8 {
	if t.Type != Int8 {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(t.Data))), len(t.Data))
}

// Int32s returns a copy of the elements of a tensor of any integer type of at most 32 bits
// but Uint32; for another type it is nil.
func (t *Tensor) Int32s() []int32 {
	switch t.Type {
	case Uint8, Int8, Uint16, Int16, Int32, Bool:
	default:
		return nil
	}
	wide := t.Int64s()
	v := make([]int32, len(wide))
	for i, x := range wide {
		v[i] = int32(x)
	}
	return v
}

// Int64s returns a copy of the elements of a tensor of any integer type but Uint64, widened;
// for another type it is nil.
func (t *Tensor) Int64s() []int64 {
	var at func(i int) int64
	d := t.Data
	switch t.Type {
	case Uint8, Bool:
		at = func(i int) int64 { return int64(d[i]) }
	case Int8:
		at = func(i int) int64 { return int64(int8(d[i])) }
	case Uint16:
		at = func(i int) int64 { return int64(binary.LittleEndian.Uint16(d[2*i:])) }
	case Int16:
		at = func(i int) int64 { return int64(int16(binary.LittleEndian.Uint16(d[2*i:]))) }
	case Int32:
		at = func(i int) int64 { return int64(int32(binary.LittleEndian.Uint32(d[4*i:]))) }
	case Uint32:
		at = func(i int) int64 { return int64(binary.LittleEndian.Uint32(d[4*i:])) }
	case Int64:
		at = func(i int) int64 { return int64(binary.LittleEndian.Uint64(d[8*i:])) }
	default:
		return nil
	}
	v := make([]int64, len(d)/t.Type.Size())
	for i := range v {
		v[i] = at(i)
	}
	return v
}

// FromFloat32s returns a Float32 tensor with a copy of v. It panics when v does not fill shape.
func FromFloat32s(name string, shape []int, v []float32) *Tensor {
	d := make([]byte, 0, 4*len(v))
	for _, x := range v {
		d = binary.LittleEndian.AppendUint32(d, math.Float32bits(x))
	}
	return newTensor(name, Float32, shape, d)
}

// FromInt8s returns an Int8 tensor with a copy of v. It panics when v does not fill shape.
func FromInt8s(name string, shape []int, v []int8) *Tensor {
	d := make([]byte, len(v))
	for i, x := range v {
		d[i] = byte(x)
	}
	return newTensor(name, Int8, shape, d)
}

// FromInt32s returns an Int32 tensor with a copy of v. It panics when v does not fill shape.
func FromInt32s(name string, shape []int, v []int32) *Tensor {
	d := make([]byte, 0, 4*len(v))
	for _, x := range v {
		d = binary.LittleEndian.AppendUint32(d, uint32(x))
	}
	return newTensor(name, Int32, shape, d)
}

// FromInt64s returns an Int64 tensor with a copy of v. It panics when v does not fill shape.
func FromInt64s(name string, shape []int, v []int64) *Tensor {
	d := make([]byte, 0, 8*len(v))
	for _, x := range v {
		d = binary.LittleEndian.AppendUint64(d, uint64(x))
	}
	return newTensor(name, Int64, shape, d)
}

func newTensor(name string, t DType, shape []int, data []byte) *Tensor {
	v := &Tensor{Name: name, Type: t, Shape: append([]int{}, shape...), Data: data}
	if len(data) != v.Len()*t.Size() {
		panic(fmt.Sprintf("onnx: %d bytes for a %v tensor %v", len(data), t, shape))
	}
	return v
}
