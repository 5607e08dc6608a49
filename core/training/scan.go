package training

import (
	"bytes"
	"cmp"
	"container/heap"
	"crypto/sha256"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/train"
)

// Maximum numbers of inputs of a training set. If there are more, it has those whose dots have the
// lowest hashes: a sample that is the same on every host.
const (
	maxLabelled   = 100_000 // with a label for one of the model's concepts
	maxOther      = 2_000   // labelled true with other concepts alone
	maxUnlabelled = 2_000   // without a true label
)

// member is one input of a training set.
type member struct {
	ord    uint32
	dot    log.Dot
	labels []log.Label // labels that count, by concept ID
	signs  []int8      // (concepts) labels in the form of train.Example; nil: all unknown
	other  bool        // labelled true with a concept of another model
	failed bool        // has labels but no analysed picture
}

// scan finds the members of a version's training set among all inputs of one view, in the order of
// their creation.
type scan struct {
	place  map[string]int // index of each of the version's concepts
	closed bool           // only labelled inputs are members
	from   uint32         // next ordinal
	pools  [3]sample      // labelled, other, unlabelled
}

const (
	labelled = iota
	other
	unlabelled
)

func newScan(v *catalog.Version) *scan {
	s := &scan{place: places(v.Concepts), closed: RelationOf(v.Config).Closed}
	for i, limit := range []int{maxLabelled, maxOther, maxUnlabelled} {
		s.pools[i].limit = limit
	}
	return s
}

// places returns the index of each concept.
func places(concepts []string) map[string]int {
	place := make(map[string]int, len(concepts))
	for i, id := range concepts {
		place[id] = i
	}
	return place
}

// step reads some inputs and reports whether all have been read.
func (s *scan) step(r catalog.Reader) (done bool, err error) {
	n := 0
	done = true
	err = r.Inputs(s.from, func(in catalog.Input) bool {
		if n == scanned {
			done = false
			return false
		}
		n++
		s.from = in.Ord + 1
		s.add(&in)
		return true
	})
	return done && err == nil, err
}

// add adds an input to its pool, unless a head cannot be trained on it.
func (s *scan) add(in *catalog.Input) {
	m := judge(in.Labels, s.place)
	m.ord, m.dot = in.Ord, in.Dot
	m.failed = in.Code != catalog.InputReady
	pool := labelled
	switch {
	case m.signs != nil:
	case s.closed || m.failed:
		return // useless for training
	case m.other:
		pool = other
	default:
		pool = unlabelled
	}
	s.pools[pool].add(m)
}

// judge returns the labels of an input for a model whose concepts have the indices in place.
func judge(labels []catalog.Label, place map[string]int) member {
	var m member
	for _, l := range labels {
		if l.Value == log.Removed {
			continue
		}
		i, ours := place[l.Concept]
		switch {
		case ours:
			if m.signs == nil {
				m.signs = make([]int8, len(place))
			}
			m.signs[i] = train.True
			if l.Value == log.False {
				m.signs[i] = train.False
			}
			m.labels = append(m.labels, l.Label)
		case l.Value == log.True && !m.other:
			m.other = true // one such label suffices
			m.labels = append(m.labels, l.Label)
		}
	}
	slices.SortFunc(m.labels, func(a, b log.Label) int { return cmp.Compare(a.Concept, b.Concept) })
	return m
}

// members returns the members of all pools, by ordinal.
func (s *scan) members() []member {
	var all []member
	for i := range s.pools {
		for _, d := range s.pools[i].items {
			all = append(all, d.member)
		}
		s.pools[i].items = nil
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Compare(a.ord, b.ord) })
	return all
}

// sample is a heap of the members with the lowest hashes. The highest of them is on top.
type sample struct {
	limit int
	items []sampleItem
}

type sampleItem struct {
	hash [8]byte // hash of the dot
	member
}

func (s *sample) add(m member) {
	d := sampleItem{member: m}
	sum := sha256.Sum256(m.dot.AppendKey(nil))
	copy(d.hash[:], sum[:])
	if len(s.items) < s.limit {
		heap.Push(s, d)
		return
	}
	if bytes.Compare(d.hash[:], s.items[0].hash[:]) < 0 {
		s.items[0] = d
		heap.Fix(s, 0)
	}
}

func (s *sample) Len() int { return len(s.items) }
func (s *sample) Less(i, j int) bool {
	return bytes.Compare(s.items[i].hash[:], s.items[j].hash[:]) > 0
}
func (s *sample) Swap(i, j int) { s.items[i], s.items[j] = s.items[j], s.items[i] }
func (s *sample) Push(d any)    { s.items = append(s.items, d.(sampleItem)) }
func (s *sample) Pop() any {
	last := s.items[len(s.items)-1]
	s.items = s.items[:len(s.items)-1]
	return last
}
