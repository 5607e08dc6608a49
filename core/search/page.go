package search

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// few is the maximum number of hits that are sorted rather than counted.
const few = 2048

// page returns a page of the inputs by falling score, equal ones by ordinal. For any number of hits
// and any page, it counts scores in a few passes and sorts only the page.
func (s scoredInputs) page(p Page, m *memory) Result {
	total := uint64(len(s.ords))
	if p.Offset >= total || p.N == 0 {
		return Result{}
	}
	from, to := int(p.Offset), int(p.Offset+min(p.N, total-p.Offset))
	if total > few {
		return Result{s.ranks(from, to, m)}
	}
	hits := make([]Hit, total)
	for i, ord := range s.ords {
		hits[i] = Hit{ord, float32(s.factor[i])}
	}
	slices.SortFunc(hits, byScore)
	return Result{slices.Clone(hits[from:to])}
}

func byScore(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Ord, b.Ord))
}

// rankKey returns a key that rises as scores fall.
func rankKey(score float32) uint32 {
	b := math.Float32bits(score + 0) // −0 becomes 0
	if b>>31 == 1 {
		return b
	}
	return b ^ math.MaxInt32
}

// place is the place of a rank: its key, and its number among equal keys.
type place struct {
	key uint32
	nth int // equal keys before it
}

// ranks returns the hits of the ranks from ≤ rank < to.
func (s scoredInputs) ranks(from, to int, m *memory) []Hit {
	keys, spare := m.ords.take(len(s.factor)), m.ords.take(len(s.factor))
	for i, f := range s.factor {
		keys[i] = rankKey(float32(f))
	}
	var first place
	if from > 0 {
		first = find(keys, spare, from)
	}
	last := find(keys, spare, to-1)
	hits := make([]Hit, 0, to-from)
	atFirst, atLast := 0, 0
	for i, key := range keys {
		if key < first.key || key > last.key {
			continue
		}
		before, behind := false, false // equal hits that rank before the first, and after the last
		if key == first.key {
			before = atFirst < first.nth
			atFirst++
		}
		if key == last.key {
			behind = atLast > last.nth
			atLast++
		}
		if !before && !behind {
			hits = append(hits, Hit{s.ords[i], float32(s.factor[i])})
		}
	}
	m.ords.give(keys)
	m.ords.give(spare)
	slices.SortFunc(hits, byScore)
	return hits
}

// find returns the key of a rank. It divides the range of the keys into 2,048 parts, counts the keys of each, and continues with the part
// that contains the rank's key, which it copies to spare, at least as long as keys.
func find(keys, spare []uint32, rank int) place {
	const digit = 11
	for {
		least, greatest := keys[0], keys[0]
		for _, key := range keys {
			least, greatest = min(least, key), max(greatest, key)
		}
		if least == greatest {
			return place{least, rank}
		}
		shift := max(bits.Len32(greatest-least), digit) - digit
		var counts [1 << digit]uint32
		for _, key := range keys {
			counts[(key-least)>>shift&(1<<digit-1)]++
		}
		part := 0
		for ; rank >= int(counts[part]); part++ {
			rank -= int(counts[part])
		}
		n := 0
		for _, key := range keys {
			spare[n] = key
			if int((key-least)>>shift) == part {
				n++
			}
		}
		keys = spare[:n]
	}
}
