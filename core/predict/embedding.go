package predict

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Dim is the number of dimensions of an embedding.
const Dim = 256

// EmbeddingBytes is the length of a marshalled embedding.
const EmbeddingBytes = 2*Dim + 4

const maxQ = math.MaxInt16

// Embedding is a unit vector out of the backbone, kept as 256 int16 and one scale: the
// vector is Q[i]·Scale. It is a value; copy it freely.
//
// It is made from the network's floats e so that every host gets the same bytes:
//
//	m     = max |e[i]|
//	Q[i]  = e[i] / m × 32767 in float64, rounded to the nearest integer, halves away from zero
//	n     = Σ Q[i]², exact in 64 bits
//	Scale = float32(1 / √n)
//
// The largest |Q[i]| is therefore 32767, the length of Q·Scale is 1 within 2⁻²⁴ relative, and
// the cosine with e is above 1 − 10⁻⁸. All zeros give the zero embedding with Scale 0, which
// is similar to nothing.
type Embedding struct {
	Q     [Dim]int16
	Scale float32
}

// NewEmbedding quantises e, which has Dim elements and any length but infinite. It returns
// ErrNetwork for another number of elements and for elements that are not finite.
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

// scaleOf is the one scale that belongs to q.
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

// Dot returns Σ a.Q[i]·b.Q[i], exact; |Dot| ≤ 256·32767² < 2³⁸.
func (a *Embedding) Dot(b *Embedding) int64 {
	sum := int64(0)
	for i, v := range &a.Q {
		sum += int64(int32(v) * int32(b.Q[i]))
	}
	return sum
}

// Cosine returns the cosine of the angle between a and b: float64(Dot)·a.Scale·b.Scale,
// multiplied in this order and clipped to −1…1. It is 0 when either is the zero embedding.
func (a *Embedding) Cosine(b *Embedding) float64 {
	c := float64(float64(float64(a.Dot(b))*float64(a.Scale)) * float64(b.Scale))
	return min(1, max(-1, c))
}

// Unit appends the unit vector to dst and returns it: float32(Q[i])·Scale, one rounding each.
func (a *Embedding) Unit(dst []float32) []float32 {
	for _, v := range &a.Q {
		dst = append(dst, float32(float32(v)*a.Scale))
	}
	return dst
}

// AppendBinary appends the 516 bytes of a: Q as 256 little-endian int16 at 0, Scale as a
// little-endian float32 at 512. The error is always nil.
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

// UnmarshalBinary reads what MarshalBinary wrote. It returns ErrEmbedding, and leaves a as it
// was, for another length, for a Q that NewEmbedding never gives (the largest |Q[i]| must be
// 32767, or all must be 0) and for a Scale that is not the one that belongs to Q.
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
