package search

import (
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/index"
)

// Group is a group of inputs that may be one picture.
type Group struct {
	Tier   Tier
	Inputs []Member // in the order of creation; the first MaxMembers of them
	Count  int      // number of all inputs of the group
}

// Member is an input of a group.
type Member struct {
	Ord   uint32
	Score float32 // similarity to the group's first input; 1 for that input
}

// Groups is a page of the known duplicates of an application.
type Groups struct {
	Groups     []Group // by tier, then by their first inputs
	Total      int     // number of groups on all pages
	Examined   uint64  // number of inputs, of Searchable, whose neighbours were searched; both are 0 if no tier needs them
	Searchable uint64
}

// MaxMembers is the maximum number of listed inputs of a group.
const MaxMembers = 100

const (
	// number of inputs whose neighbours a call searches, and number of neighbours stored for each
	examined, neighbours = 100, 6
	// leastKept is below every bound of similarity: unrelated pictures have 0.5.
	leastKept = 0.5
)

// FindGroups finds an application's duplicates of some tiers. It finds equal files all at once. For the others it searches each input's
// neighbours: a call does so for a limited number of inputs, the oldest first, and keeps the results in memory. Examined is the progress;
// another call continues.
//
// Inputs that were saved again are in one group if others link them. An input that is only similar to others is in one group: that of
// the oldest input that it is similar to. alike is the bound of [Duplicates].
func FindGroups(ctx context.Context, r catalog.Reader, x *index.Index, tiers []Tier, p Page, alike float64) (Groups, error) {
	k := kin{execution{ctx: ctx, r: r, v: x.At(r)}}
	var out Groups
	others := roaring.New() // all inputs of a file but the first
	err := r.SamePictures(func(ords []uint32) bool {
		others.AddMany(ords[1:])
		if slices.Contains(tiers, SameFile) {
			out.Groups = append(out.Groups, groupOf(SameFile, ords))
		}
		return true
	})
	if err != nil {
		return Groups{}, err
	}
	if slices.Contains(tiers, ReEncoded) || slices.Contains(tiers, Alike) {
		if err := k.addLinked(&out, others, tiers, alike); err != nil {
			return Groups{}, err
		}
	}
	slices.SortFunc(out.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Inputs[0].Ord, b.Inputs[0].Ord))
	})
	out.Total = len(out.Groups)
	from := min(p.Offset, uint64(out.Total))
	out.Groups = out.Groups[from:min(from+p.N, uint64(out.Total))]
	for i := range out.Groups {
		if err := k.score(&out.Groups[i]); err != nil {
			return Groups{}, err
		}
	}
	return out, nil
}

// groupOf returns a group of inputs, which are in the order of creation.
func groupOf(tier Tier, ords []uint32) Group {
	g := Group{Tier: tier, Count: len(ords)}
	for _, ord := range ords[:min(len(ords), MaxMembers)] {
		g.Inputs = append(g.Inputs, Member{ord, 1})
	}
	return g
}

// score sets the scores of a group's inputs.
func (k *kin) score(g *Group) error {
	if g.Tier == SameFile {
		return nil
	}
	first, ok, err := k.v.Embedding(g.Inputs[0].Ord)
	if err != nil || !ok {
		return err
	}
	for i := range g.Inputs[1:] {
		m := &g.Inputs[1+i]
		e, ok, err := k.v.Embedding(m.Ord)
		if err != nil {
			return err
		}
		if ok {
			m.Score = float32(similarity(first.Cosine(e)))
		}
	}
	return nil
}

// addLinked adds the groups of the tiers that need neighbours. The first of the inputs with one file represents all of them.
func (k *kin) addLinked(out *Groups, others *roaring.Bitmap, tiers []Tier, alike float64) error {
	among, err := k.v.AnalysedInputs()
	if err != nil {
		return err
	}
	among.AndNot(others)
	links := k.v.Links()
	left, err := k.examine(links, among)
	if err != nil {
		return err
	}
	out.Searchable = among.GetCardinality()
	out.Examined = out.Searchable - left
	if slices.Contains(tiers, ReEncoded) {
		out.Groups = append(out.Groups, joinPairs(pairs(links, among, ReEncoded, 0))...)
	}
	if slices.Contains(tiers, Alike) && alike > 0 {
		out.Groups = append(out.Groups, stars(pairs(links, among, Alike, float32(alike)))...)
	}
	return nil
}

// examine finds the links of some of the inputs whose links are unknown. It returns the number of inputs that are left.
func (k *kin) examine(links *index.Links, among *roaring.Bitmap) (left uint64, err error) {
	todo := among.Clone()
	links.RemoveKnown(todo)
	it := todo.Iterator()
	for n := 0; n < examined && it.HasNext(); n++ {
		ord := it.Next()
		e, ok, err := k.v.Embedding(ord)
		if err != nil {
			return 0, err
		}
		in, failed := k.r.Input(ord)
		if failed != nil {
			return 0, failed
		}
		var found []index.Link
		if ok {
			among.Remove(ord)
			near, err := k.near(&in, e, among, neighbours, neighbours)
			among.Add(ord)
			if err != nil {
				return 0, err
			}
			for _, d := range near {
				if d.Score >= leastKept {
					found = append(found, index.Link{Ord: d.Ord, Score: d.Score, Kind: int8(d.Tier)})
				}
			}
		}
		links.Put(ord, found)
	}
	n := todo.GetCardinality()
	return n - min(n, examined), nil
}

// pairs returns the links of a tier between inputs of among, with the older input of each link first.
func pairs(links *index.Links, among *roaring.Bitmap, tier Tier, least float32) [][2]uint32 {
	var out [][2]uint32
	links.Each(among, func(ord uint32, of []index.Link) {
		for _, l := range of {
			if Tier(l.Kind) == tier && l.Score >= least && among.Contains(l.Ord) {
				out = append(out, [2]uint32{min(ord, l.Ord), max(ord, l.Ord)})
			}
		}
	})
	slices.SortFunc(out, func(p, q [2]uint32) int { return cmp.Or(cmp.Compare(p[0], q[0]), cmp.Compare(p[1], q[1])) })
	return out
}

// joinPairs returns the groups of inputs that pairs connect, directly or through others.
func joinPairs(pairs [][2]uint32) []Group {
	up := map[uint32]uint32{} // an older input of the group, or itself
	root := func(ord uint32) uint32 {
		for {
			next, ok := up[ord]
			if !ok || next == ord {
				return ord
			}
			ord = next
		}
	}
	for _, p := range pairs {
		a, b := root(p[0]), root(p[1])
		up[max(a, b)], up[min(a, b)] = min(a, b), min(a, b)
	}
	members := map[uint32][]uint32{}
	for ord := range up {
		first := root(ord)
		up[ord] = first
		members[first] = append(members[first], ord)
	}
	return groupsOf(ReEncoded, members)
}

// stars returns groups of an input and the inputs that are similar to it.
func stars(pairs [][2]uint32) []Group {
	first, members := map[uint32]uint32{}, map[uint32][]uint32{}
	for _, p := range pairs {
		a, b := p[0], p[1]
		of, grouped := first[a]
		if _, other := first[b]; other || grouped && of != a {
			continue
		}
		if !grouped {
			first[a], members[a] = a, []uint32{a}
		}
		first[b], members[a] = a, append(members[a], b)
	}
	return groupsOf(Alike, members)
}

func groupsOf(tier Tier, members map[uint32][]uint32) []Group {
	out := make([]Group, 0, len(members))
	for _, ords := range members {
		slices.Sort(ords)
		out = append(out, groupOf(tier, ords))
	}
	return out
}
