package nn

import (
	"cmp"
	"slices"
)

// nest is a loop nest, outermost loop first, that copies an array to an array of the same logical shape with other strides.
// It has no loops of one turn. Function newNest orders the loops by the destination's strides and merges neighbours, so that
// the innermost loop is as long as the layouts allow.
type nest []loop

// loop has n turns. From turn to turn the destination advances by to elements and the source by from elements.
type loop struct{ n, to, from int }

// newNest returns the loop nest over shape. to and from are the strides of the destination and the source, one per dimension.
func newNest(shape, to, from []int) nest {
	var loops []loop
	for d, n := range shape {
		if n != 1 {
			loops = append(loops, loop{n, to[d], from[d]})
		}
	}
	slices.SortStableFunc(loops, func(a, b loop) int { return cmp.Compare(b.to, a.to) })
	var t nest
	for _, l := range loops {
		if k := len(t) - 1; k >= 0 && t[k].to == l.n*l.to && t[k].from == l.n*l.from {
			l.n *= t[k].n
			t[k] = l
			continue
		}
		t = append(t, l)
	}
	if len(t) == 0 {
		t = nest{{1, 1, 1}}
	}
	return t
}

// move copies elements of src to dst in the loops of t. It starts at element from of src and at element to of dst.
func move[T any](t nest, dst, src []T, to, from int) {
	l := t[0]
	switch {
	case len(t) > 1:
		for range l.n {
			move(t[1:], dst, src, to, from)
			to += l.to
			from += l.from
		}
	case l.to == 1 && l.from == 1:
		copy(dst[to:to+l.n], src[from:from+l.n])
	default:
		for range l.n {
			dst[to] = src[from]
			to += l.to
			from += l.from
		}
	}
}

// rowMajor returns the strides of a dense row-major array.
func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for d := len(shape) - 1; d >= 0; d-- {
		s[d] = n
		n *= shape[d]
	}
	return s
}
