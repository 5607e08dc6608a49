package predict

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dim is the number of dimensions of an embedding.
const Dim = 256

// EmbeddingBytes is the length of an encoded embedding, in bytes.
const EmbeddingBytes = 2*Dim + 4

const maxQ = math.MaxInt16

// Embedding is a unit vector that the network computes from a picture, stored as 256 int16 and one scale: element i of the vector is
// Q[i]·Scale. It may be copied.
//
// NewEmbedding makes it from the network's floats e, with the same bytes on every host:
//
//	m     = max |e[i]|
//	Q[i]  = e[i] / m × 32767 in float64, rounded to the nearest integer, halves away from zero
//	n     = Σ Q[i]², exact in 64 bits
//	Scale = float32(1 / √n)
//
// So the largest |Q[i]| is 32767, the length of Q·Scale differs from 1 by at most 2⁻²⁴, and its cosine with e is above 1 − 10⁻⁸. If all
// e[i] are 0, the result is the zero embedding with Scale 0, which has the cosine 0 with every embedding.
type Embedding struct {
	Q     [Dim]int16
	Scale float32
}

// NewEmbedding quantises e, a vector of any length. It returns ErrNetwork if e does not have Dim elements or if one of them is not finite.
func NewEmbedding(e []float32) (Embedding, error) {
	if len(e) != Dim {
		return Embedding{}, fmt.Errorf("embedding of %d elements, want %d: %w", len(e), Dim, ErrNetwork)
	}
	m := 0.0
	for i, v := range e {
		a := math.Abs(float64(v))
		if !(a <= math.MaxFloat32) {
			return Embedding{}, fmt.Errorf("embedding element %d is %v: %w", i, v, ErrNetwork)
		}
		if a > m {
			m = a
		}
	}
	var out Embedding
	if m == 0 {
		return out, nil
	}
	for i, v := range e {
		out.Q[i] = int16(math.Round(float64(float64(float64(v)/m) * maxQ)))
	}
	out.Scale = scaleOf(&out.Q)
	return out, nil
}

// scaleOf returns the Scale of an embedding with the elements q: 1 over the length of q, or 0 if all elements are 0.
func scaleOf(q *[Dim]int16) float32 {
	n := int64(0)
	for _, v := range q {
		n += int64(v) * int64(v)
	}
	if n == 0 {
		return 0
	}
	return float32(1 / math.Sqrt(float64(n)))
}

// Dot returns Σ a.Q[i]·b.Q[i] exactly. Its absolute value is at most 256·32767² < 2³⁸.
func (a *Embedding) Dot(b *Embedding) int64 {
	sum := int64(0)
	for i, v := range &a.Q {
		sum += int64(int32(v) * int32(b.Q[i]))
	}
	return sum
}

// Cosine returns the cosine of the angle between a and b: float64(Dot)·a.Scale·b.Scale, multiplied in this order and clipped to −1…1. It
// returns 0 if a or b is the zero embedding.
func (a *Embedding) Cosine(b *Embedding) float64 {
	c := float64(float64(float64(a.Dot(b))*float64(a.Scale)) * float64(b.Scale))
	return min(1, max(-1, c))
}

// Unit appends the unit vector to dst and returns the extended slice. Each element is float32(Q[i])·Scale, rounded once.
func (a *Embedding) Unit(dst []float32) []float32 {
	for _, v := range &a.Q {
		dst = append(dst, float32(float32(v)*a.Scale))
	}
	return dst
}

// AppendBinary appends the 516 bytes of a to b: Q as 256 little-endian int16 at offset 0, and Scale as a little-endian float32 at offset
// 512. The error is always nil.
func (a *Embedding) AppendBinary(b []byte) ([]byte, error) {
	for _, v := range &a.Q {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(a.Scale)), nil
}

// MarshalBinary returns the 516 bytes that AppendBinary appends.
func (a *Embedding) MarshalBinary() ([]byte, error) {
	return a.AppendBinary(make([]byte, 0, EmbeddingBytes))
}

// UnmarshalBinary decodes the bytes that MarshalBinary returns. It returns ErrEmbedding and does not change a if the length is wrong, if
// the largest |Q[i]| is neither 32767 nor 0, or if Scale does not match Q. NewEmbedding never returns such an embedding.
func (a *Embedding) UnmarshalBinary(b []byte) error {
	if len(b) != EmbeddingBytes {
		return fmt.Errorf("%d bytes, want %d: %w", len(b), EmbeddingBytes, ErrEmbedding)
	}
	var e Embedding
	largest := int32(0)
	for i := range e.Q {
		v := int16(binary.LittleEndian.Uint16(b[2*i:]))
		e.Q[i] = v
		largest = max(largest, int32(v), -int32(v))
	}
	if largest != maxQ && largest != 0 {
		return fmt.Errorf("largest element is %d: %w", largest, ErrEmbedding)
	}
	e.Scale = scaleOf(&e.Q)
	if bits := binary.LittleEndian.Uint32(b[2*Dim:]); bits != math.Float32bits(e.Scale) {
		return fmt.Errorf("scale %x does not match the vector: %w", bits, ErrEmbedding)
	}
	*a = e
	return nil
}
