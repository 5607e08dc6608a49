package search

import (
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/index"
)

// scoredInputs has inputs, each with the product of its factors so far.
type scoredInputs struct {
	ords   []uint32 // ascending
	factor []float64
}

// memory holds buffers of a query that the next query overwrites. A million matches take 20 MB, which cost more to allocate and collect
// than the search itself. Buffers that are not returned are garbage. It is not safe for concurrent use.
type memory struct {
	ords    buffers[uint32]
	values  buffers[float32]
	factors buffers[float64]
	flags   buffers[bool]
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// buffers holds free buffers of one element type.
type buffers[T any] struct{ free [][]T }

// maxFree is the maximum number of free buffers of a type.
const maxFree = 4

// take returns n elements with arbitrary values.
func (b *buffers[T]) take(n int) []T {
	for i, buf := range b.free {
		if cap(buf) >= n {
			last := len(b.free) - 1
			b.free[i] = b.free[last]
			b.free = b.free[:last]
			return buf[:n]
		}
	}
	return make([]T, n, n+n/8) // room for growth of the application
}

// give returns a buffer of take to the free buffers. It also accepts other slices, which it then owns.
func (b *buffers[T]) give(buf []T) {
	switch {
	case cap(buf) == 0:
	case len(b.free) < maxFree:
		b.free = append(b.free, buf)
	default:
		small := 0
		for i := range b.free {
			if cap(b.free[i]) < cap(b.free[small]) {
				small = i
			}
		}
		if cap(b.free[small]) < cap(buf) {
			b.free[small] = buf
		}
	}
}

func (m *memory) give(s scoredInputs) {
	m.ords.give(s.ords)
	m.factors.give(s.factor)
}

func (m *memory) allocate(n int) scoredInputs { return scoredInputs{m.ords.take(n), m.factors.take(n)} }

// copyValues returns a copy of v.
func (m *memory) copyValues(v index.InputValues) scoredInputs {
	s := m.allocate(len(v.Ords))
	copy(s.ords, v.Ords)
	for i, value := range v.Values {
		s.factor[i] = float64(value)
	}
	return s
}

// ones returns a copy of ords, each with the factor 1.
func (m *memory) ones(ords []uint32) scoredInputs {
	s := m.allocate(len(ords))
	copy(s.ords, ords)
	for i := range s.factor {
		s.factor[i] = 1
	}
	return s
}

// holds returns n elements that are true.
func (m *memory) holds(n int) []bool {
	flags := m.flags.take(n)
	for i := range flags {
		flags[i] = true
	}
	return flags
}

// times multiplies the factors of s, in place, by those of o and returns the inputs of o, which must all be in s.
func (s scoredInputs) times(o scoredInputs) scoredInputs {
	if len(s.ords) == len(o.ords) {
		for i, f := range o.factor {
			s.factor[i] *= f
		}
		return s
	}
	n, j := 0, 0
	for i, ord := range s.ords {
		for j < len(o.ords) && o.ords[j] < ord {
			j++
		}
		if j < len(o.ords) && o.ords[j] == ord {
			s.ords[n], s.factor[n] = ord, s.factor[i]*o.factor[j]
			n++
		}
	}
	return scoredInputs{s.ords[:n], s.factor[:n]}
}

// atLeast returns, in place, the inputs whose score, rounded as hits show it, is at least least.
func (s scoredInputs) atLeast(least float32) scoredInputs {
	if least <= 0 {
		return s
	}
	n := 0
	for i, f := range s.factor {
		if float32(f) >= least {
			s.ords[n], s.factor[n] = s.ords[i], f
			n++
		}
	}
	return scoredInputs{s.ords[:n], s.factor[:n]}
}

// scale multiplies every factor by the input's value, or by 0 if it has none. All inputs with a value must be
// in s. If allMet is not nil, scale clears it where there is no value and where the value's met is false.
func (s scoredInputs) scale(values scoredInputs, met, allMet []bool) {
	if len(values.ords) == len(s.ords) {
		for i, f := range values.factor {
			s.factor[i] *= f
		}
		for i := range allMet {
			allMet[i] = allMet[i] && met[i]
		}
		return
	}
	j := 0
	for i, ord := range s.ords {
		if j == len(values.ords) || values.ords[j] != ord {
			s.factor[i] = 0
			if allMet != nil {
				allMet[i] = false
			}
			continue
		}
		s.factor[i] *= values.factor[j]
		if allMet != nil {
			allMet[i] = allMet[i] && met[j]
		}
		j++
	}
}

// or returns the inputs of both, each with its larger value.
func (s scoredInputs) or(v index.InputValues) scoredInputs {
	if slices.Equal(s.ords, v.Ords) {
		for i, value := range v.Values {
			s.factor[i] = max(s.factor[i], float64(value))
		}
		return s
	}
	out := scoredInputs{make([]uint32, 0, len(s.ords)+len(v.Ords)), make([]float64, 0, len(s.ords)+len(v.Ords))}
	i, j := 0, 0
	for i < len(s.ords) || j < len(v.Ords) {
		switch {
		case j == len(v.Ords) || i < len(s.ords) && s.ords[i] < v.Ords[j]:
			out.ords, out.factor = append(out.ords, s.ords[i]), append(out.factor, s.factor[i])
			i++
		case i == len(s.ords) || v.Ords[j] < s.ords[i]:
			out.ords, out.factor = append(out.ords, v.Ords[j]), append(out.factor, float64(v.Values[j]))
			j++
		default:
			out.ords = append(out.ords, s.ords[i])
			out.factor = append(out.factor, max(s.factor[i], float64(v.Values[j])))
			i++
			j++
		}
	}
	return out
}
