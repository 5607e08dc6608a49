package inputs

import (
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/search"
)

// Duplicates lists the inputs that may show the same picture as another input: the same file, a re-encoded copy, or a
// similar picture.
func Duplicates(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	v, in, err := inputOfPath(x)
	if err != nil {
		return err
	}
	limit := int(min(p.Number*p.Size, maxDuplicates))
	found, err := search.Duplicates(x.Ctx, v.Reader, x.App.Partition.Index(), &in, limit, x.Net.Similarity.SameScene)
	if err != nil {
		return err
	}
	found = call.PageRows(found, p)
	var lines show.ConceptNames
	inputs := make([]catalog.Input, len(found))
	for i := range found {
		if inputs[i], err = lines.Load(x, v, found[i].Ord); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Grow(len(inputs)*show.InputBytes + x.Loaded)
		w.Objects("duplicates", len(inputs), func(i int) {
			w.Name("input")
			show.WriteInput(x, w, &lines, &inputs[i], nil)
			show.WriteFloat32(w, "score", found[i].Score)
			w.Text("tier", found[i].Tier.String())
		})
	})
}

// maxDuplicates is the maximum number of duplicates found for one input.
const maxDuplicates = call.MaxPerPage

// DuplicateGroups lists the groups of inputs that may show the same picture, by tier. While it must still search for neighbours, the
// answer has the number of searched inputs, and another request continues.
func DuplicateGroups(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	tiers, err := readTiers(x)
	if err != nil {
		return err
	}
	v := x.View()
	p.Size = min(p.Size, maxGroups)
	page := search.Page{Offset: uint64((p.Number - 1) * p.Size), N: uint64(p.Size)}
	found, err := search.FindGroups(x.Ctx, v.Reader, x.App.Partition.Index(), tiers, page, x.Net.Similarity.SameScene)
	if err != nil {
		return err
	}
	var lines show.ConceptNames
	inputs := make([][]catalog.Input, len(found.Groups))
	for i, g := range found.Groups {
		for _, m := range g.Inputs {
			in, err := lines.Load(x, v, m.Ord)
			if err != nil {
				return err
			}
			inputs[i] = append(inputs[i], in)
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		show.WriteInt(w, "total", found.Total)
		show.WriteInt(w, "examined", found.Examined)
		show.WriteInt(w, "of", found.Searchable)
		w.List("groups", len(found.Groups), func(i int) { writeGroup(x, w, &lines, &found.Groups[i], inputs[i]) })
	})
}

// maxGroups is the maximum number of groups on a page.
const maxGroups = 100

// readTiers reads the requested tiers. An absent parameter means all tiers.
func readTiers(x *call.Call) ([]search.Tier, error) {
	name := x.Param("tier")
	if name == "" {
		return []search.Tier{search.SameFile, search.ReEncoded, search.Alike}, nil
	}
	i := slices.Index(search.Tiers[:], name)
	if i < 0 {
		return nil, call.Refusef(search.ErrQuery, "tier: %q must be same_file, re_encoded or similar.", name)
	}
	return []search.Tier{search.Tier(i)}, nil
}

func writeGroup(x *call.Call, w *jsonio.Writer, lines *show.ConceptNames, g *search.Group, inputs []catalog.Input) {
	w.Object()
	w.Text("tier", g.Tier.String())
	show.WriteInt(w, "count", g.Count)
	w.Objects("inputs", len(inputs), func(i int) {
		w.Name("input")
		show.WriteInput(x, w, lines, &inputs[i], nil)
		show.WriteFloat32(w, "score", g.Inputs[i].Score)
	})
	w.End('}')
}
