// Package kernel stores the vectors of a graph and measures the distances from one query to many of them in one call.
//
// A vector is dim int16 and one float32 scale; cosines are dot·scale·scale. The two bytes of each int16 are stored apart, so that a walk
// over the graph touches half of the memory:
//
//	q = 256·h + l      h = q>>8, −128…127      l = q&255, 0…255
//
//	high  ┌ row 0: h h h h … ┐ rows of a whole number of 64-byte lines, aligned to them,
//	      ├ row 1: h h h h … ┤ padded with zeros, in chunks of 4096 rows that never move
//	low   ┌ row 0: l l l l … ┐ (the first one doubles until it is whole)
//	meta  ┌ row 0: −510·Σh, scale ┐
//
// [Vectors.Distances] reads high and meta alone. It takes each byte for the middle of the
// values that share it, 256·h + 128 = 128·(2h+1), which has half of the rounding error that h
// itself would have:
//
//	A    = Σ (2a+1)(2b+1) = 4·Σ a·b + 2·Σa + 2·Σb + dim, over the high bytes a and b
//	s    = float32(float32(float32(A)·scaleB) · float32(scaleA·2⁴³)), the cosine times 2²⁹
//	dist = 2³⁰ − roundToEven(clamp(s, ±1.5·2²⁹))
//
// which falls as the cosine rises and is the same whole number on every host. [Vectors.Dots]
// reads both bytes and is exact.
//
// The levels compute the same numbers: generic (plain Go, the definition), avx2 and
// avx512vnni on amd64, neon and dotprod on arm64. The level is chosen once at start by CPU feature. VNNI multiplies unsigned by
// signed bytes, so the form is Σ (a+128)·b = Σ a·b + 128·Σb and the 510 = 512 − 2 in meta.
//
// The package knows nothing of graphs: rows are numbers below the argument of [Vectors.Grow].
package kernel

import (
	"fmt"
	"unsafe"

	"github.com/sightline-dev/sightline/core/cpu"
)

//go:generate go run ./asm/arm64 -out kernel_arm64.s -stubs stubs_arm64.go -pkg kernel

// Levels selects the implementation of this package's functions. All levels give the same results.
var Levels = cpu.Choose(cpu.AVX2, cpu.AVX512VNNI, cpu.NEON, cpu.DotProd, cpu.Lent)

// MaxDim is the maximum number of dimensions. With more, sums could exceed 32 bits.
const MaxDim = 2048

const (
	one   = 1 << 29       // a cosine of 1
	limit = 1.5 * one     // beyond any cosine of unit vectors
	far   = 2 * one       // the distance at a right angle
	unit  = 1 << 43       // 128·128·one: the scale of a product of high bytes
	two8  = int32(1) << 8 // the weight of a high byte
	mid   = int32(510)    // see the package's documentation
)

// OrthogonalDistance is the distance of vectors at a right angle, and of every vector to the zero vector.
const OrthogonalDistance = uint32(far)

// meta has the numbers that a distance needs besides the bytes of a row.
type meta struct {
	offset int32   // −510·Σh
	scale  float32 // scale of the vector
}

// Vectors is a growing array of vectors. Calls that only read may run at the same time. A call that changes it must
// run alone.
type Vectors struct {
	dim       int
	high, low table
	meta      []meta
}

// NewVectors returns an empty array of vectors of dim elements, a multiple of 32 up to
// [MaxDim].
func NewVectors(dim int) (*Vectors, error) {
	if dim <= 0 || dim%32 != 0 || dim > MaxDim {
		return nil, fmt.Errorf("vectors of %d dimensions: want a multiple of 32 up to %d", dim, MaxDim)
	}
	rows := table{stride: (dim + line - 1) / line * line}
	return &Vectors{dim: dim, high: rows, low: rows}, nil
}

// Dim returns the number of dimensions.
func (v *Vectors) Dim() int { return v.dim }

// Grow extends the array to at least rows rows. New rows hold the zero vector.
func (v *Vectors) Grow(rows int) {
	v.high.grow(rows, 0)
	v.low.grow(rows, 0)
	if n := v.high.rows; len(v.meta) < n {
		grown := make([]meta, n, n+n/8)
		if n <= cap(v.meta) {
			grown = v.meta[:n]
		}
		copy(grown, v.meta)
		v.meta = grown
	}
}

// highOf and lowOf return the high and the low bytes of a row.
func (v *Vectors) highOf(row uint32) []int8 {
	return unsafe.Slice((*int8)(v.high.at(row)), v.high.stride)
}

func (v *Vectors) lowOf(row uint32) []uint8 {
	return unsafe.Slice((*uint8)(v.low.at(row)), v.high.stride)
}

// Set stores a vector in row: dim elements q and their scale. The scale is 1 over the vector's length, or 0 for the zero vector. Set
// replaces any other scale (negative, above 1, not a number) by 0. It returns the squares of q.
func (v *Vectors) Set(row uint32, q []int16, scale float32) Squares {
	sum, squares := split(v.highOf(row), v.lowOf(row), q[:v.dim])
	v.meta[row] = meta{-mid * sum, cleanScale(scale)}
	return squares
}

// Squares are sums of squares over the elements of a vector.
type Squares struct {
	All  int64 // squares of the elements
	Rest int64 // squares of the differences between the elements and the middle values that Distances takes for them
}

// SquaresOf returns the squares of q.
func SquaresOf(q []int16) (s Squares) {
	for _, x := range q {
		s.All += int64(x) * int64(x)
		rest := int64(x&255) - 128
		s.Rest += rest * rest
	}
	return s
}

// Clear sets a row to the zero vector.
func (v *Vectors) Clear(row uint32) {
	clear(v.highOf(row))
	clear(v.lowOf(row))
	v.meta[row] = meta{}
}

func cleanScale(scale float32) float32 {
	if scale > 0 && scale <= 1 {
		return scale
	}
	return 0
}

func sum(h []int8) int32 {
	s := int32(0)
	for _, x := range h {
		s += int32(x)
	}
	return s
}

// Query is a vector to measure from: a vector of the caller ([Query.Set]) or a row of the array ([Vectors.Row]).
type Query struct {
	codes  []int8  // (stride) high bytes
	full   []int16 // (stride) all bits; empty for a row
	offset int32   // 2·Σh + dim
	scale  float32
}

// Set makes z the query q and reuses the slices of an earlier Set. It copies q.
func (z *Query) Set(v *Vectors, q []int16, scale float32) {
	if len(z.full) != v.high.stride {
		z.codes, z.full = make([]int8, v.high.stride), make([]int16, v.high.stride)
	}
	copy(z.full, q[:v.dim])
	for i, x := range q[:v.dim] {
		z.codes[i] = int8(x >> 8)
	}
	z.offset = 2*sum(z.codes) + int32(v.dim)
	z.scale = cleanScale(scale)
}

// Row returns a row as a query. The query reads the row's memory: it is valid until the next Set or Grow.
func (v *Vectors) Row(row uint32) Query {
	m := v.meta[row]
	return Query{codes: v.highOf(row), offset: m.offset/-mid*2 + int32(v.dim), scale: m.scale}
}

// Distances sets dst[i] to the distance from z to rows[i], computed from the high bytes. dst must be as long as rows.
func (v *Vectors) Distances(dst []uint32, z *Query, rows []uint32) {
	if len(dst) != len(rows) || len(z.codes) != v.high.stride {
		panic("kernel: lengths differ")
	}
	checkRows(rows, v.high.rows)
	if isGeneric(rows) {
		v.distancesGeneric(dst, z, rows)
		return
	}
	v.distances(dst, z, rows)
}

// Dots sets dst[i] to the exact dot product of z and rows[i], computed from all 16 bits. z must come from [Query.Set].
func (v *Vectors) Dots(dst []int64, z *Query, rows []uint32) {
	if len(dst) != len(rows) || len(z.full) != v.high.stride {
		panic("kernel: lengths differ")
	}
	checkRows(rows, v.high.rows)
	if isGeneric(rows) {
		v.dotsGeneric(dst, z, rows)
		return
	}
	v.dots(dst, z, rows)
}

// isGeneric reports whether plain Go measures rows. The other levels take the address of the first row, so plain Go also handles empty
// rows.
func isGeneric(rows []uint32) bool { return len(rows) == 0 || Levels.Current() == cpu.Generic }

// checkRows panics when a row does not exist: assembly and hosts trust their arguments.
func checkRows(rows []uint32, below int) {
	largest := uint32(0)
	for _, r := range rows {
		largest = max(largest, r)
	}
	if len(rows) > 0 && int(largest) >= below {
		panic("kernel: row out of range")
	}
}

// Cosine converts the exact dot product of z and row to the cosine. It multiplies by the two scales in this order, in float64, and clips
// the result to −1…1.
func (v *Vectors) Cosine(dot int64, z *Query, row uint32) float64 {
	c := float64(float64(float64(dot)*float64(z.scale)) * float64(v.meta[row].scale))
	return min(1, max(-1, c))
}
