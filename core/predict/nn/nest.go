package nn

import (
	"cmp"
	"slices"
)

// nest is a loop nest that copies an array to one of the same logical shape and other strides, outermost loop first. Loops
// of one turn are dropped, the others ordered by the destination's strides and neighbours merged, so that the innermost loop
// is as long as the layouts allow.
type nest []loop

// loop is n turns, with so many elements between the turns in the destination and in the source.
type loop struct{ n, to, from int }

// newNest orders the loops over shape. The strides have one element a dimension.
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

// move copies src, from element from, to dst, from element to, in the loops of t.
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
