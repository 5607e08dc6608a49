package nn

import (
	"cmp"
	"slices"
)

// maxOperands is the most arrays one nest walks together: a destination and a source.
const maxOperands = 2

// nest is a loop nest over arrays of equal logical shape but different strides, with unit
// dimensions dropped, loops ordered by the destination's strides and neighbours merged, so that
// the innermost loop is as long as the layouts allow.
//
//	for i0 < n[0] { for i1 < n[1] { … inner loop of n[last], stride s[last][operand] } }
type nest struct {
	n []int
	s [][maxOperands]int
}

// newNest orders the loops over shape. strides[k] are operand k's, one per dimension, in
// elements. Operand 0 is the destination.
func newNest(shape []int, strides ...[]int) *nest {
	t := &nest{}
	type loop struct {
		n int
		s [maxOperands]int
	}
	var loops []loop
	for d, n := range shape {
		if n == 1 {
			continue
		}
		l := loop{n: n}
		for k := range strides {
			l.s[k] = strides[k][d]
		}
		loops = append(loops, l)
	}
	slices.SortStableFunc(loops, func(a, b loop) int { return cmp.Compare(b.s[0], a.s[0]) })
	for _, l := range loops {
		if k := len(t.n) - 1; k >= 0 && merges(t.s[k], l.s, l.n) {
			t.n[k] *= l.n
			t.s[k] = l.s
			continue
		}
		t.n = append(t.n, l.n)
		t.s = append(t.s, l.s)
	}
	if len(t.n) == 0 {
		t.n, t.s = []int{1}, [][maxOperands]int{{1, 1}}
	}
	return t
}

// merges reports whether a loop with strides outer around n steps of inner is one longer loop.
func merges(outer, inner [maxOperands]int, n int) bool {
	for k := range outer {
		if outer[k] != n*inner[k] {
			return false
		}
	}
	return true
}

// inner returns the length and strides of the innermost loop.
func (t *nest) inner() (n int, s [maxOperands]int) {
	k := len(t.n) - 1
	return t.n[k], t.s[k]
}

// cursor stands at one iteration of the outer loops; off are the operands' offsets there.
type cursor struct {
	off  [maxOperands]int
	at   [8]int
	done bool
}

// nextAround moves c on by one iteration of the loops around the inner innermost ones, odometer fashion.
func (t *nest) nextAround(c *cursor, inner int) {
	for d := len(t.n) - 1 - inner; d >= 0; d-- {
		c.at[d]++
		for k := range c.off {
			c.off[k] += t.s[d][k]
		}
		if c.at[d] < t.n[d] {
			return
		}
		for k := range c.off {
			c.off[k] -= t.n[d] * t.s[d][k]
		}
		c.at[d] = 0
	}
	c.done = true
}

// start returns a cursor at the first iteration; base are the operands' offsets of element 0.
// A nest with an empty dimension is done at once.
func (t *nest) start(base ...int) (c cursor) {
	copy(c.off[:], base)
	for _, n := range t.n {
		if n == 0 {
			c.done = true
		}
	}
	return c
}

// move copies src to dst element by element as t says.
func move[T any](t *nest, dst, src []T, dstBase, srcBase int) {
	n, s := t.inner()
	lines, step := 1, [maxOperands]int{}
	around := min(2, len(t.n))
	if around == 2 {
		lines, step = t.n[len(t.n)-2], t.s[len(t.n)-2]
	}
	for c := t.start(dstBase, srcBase); !c.done; t.nextAround(&c, around) {
		to, from := c.off[0], c.off[1]
		for range lines {
			if s[0] == 1 && s[1] == 1 {
				copy(dst[to:to+n], src[from:from+n])
			} else {
				d, x := to, from
				for range n {
					dst[d] = src[x]
					d += s[0]
					x += s[1]
				}
			}
			to += step[0]
			from += step[1]
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
