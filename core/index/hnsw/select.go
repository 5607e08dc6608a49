package hnsw

import (
	"slices"

	"github.com/sightline-dev/sightline/core/index/hnsw/kernel"
)

// picking is the scratch of pick.
type picking struct {
	picked, pruned []key
	rest           []key
	slots          []uint32
	near           []uint32
}

// pick is the heuristic of the paper (algorithm 4). keys are candidates for links of one node, nearest first. It takes a candidate unless a
// previously taken one is nearer to it than the node is, or is a twin of it and of the node. It stops after m taken ones. s.picked gets the
// taken candidates and s.pruned the others, in the order of keys.
//
// It asks each taken candidate which others it occludes, so that one call of the kernel measures many distances.
func (s *scratch) pick(v *kernel.Vectors, keys []key, m int) {
	s.picked, s.pruned = s.picked[:0], s.pruned[:0]
	s.rest = append(s.rest[:0], keys...)
	s.slots = s.slots[:0]
	for _, k := range keys {
		s.slots = append(s.slots, slotOf(k))
	}
	rest, slots := s.rest, s.slots
	for len(rest) > 0 && len(s.picked) < m {
		candidate := rest[0]
		s.picked = append(s.picked, candidate)
		row := v.Row(slots[0])
		rest, slots = rest[1:], slots[1:]
		if len(s.picked) == m {
			break
		}
		if cap(s.near) < len(slots) {
			s.near = make([]uint32, 2*len(slots))
		}
		near := s.near[:len(slots)]
		v.Distances(near, &row, slots)
		n := 0
		for i, k := range rest {
			if d := distanceOf(k); near[i] < d || near[i] == d && d == distanceOf(candidate) {
				s.pruned = append(s.pruned, k)
				continue
			}
			rest[n], slots[n] = k, slots[i]
			n++
		}
		rest, slots = rest[:n], slots[:n]
	}
	slices.Sort(s.pruned)
}

// choose appends to dst up to m slots of keys, nearest first: those that pick takes, then the nearest others, so that no node has too few
// links.
func (s *scratch) choose(dst []uint32, v *kernel.Vectors, keys []key, m int) []uint32 {
	s.pick(v, keys, m)
	for _, k := range s.picked {
		dst = append(dst, slotOf(k))
	}
	for _, k := range s.pruned[:min(len(s.pruned), m-len(s.picked))] {
		dst = append(dst, slotOf(k))
	}
	return dst
}
