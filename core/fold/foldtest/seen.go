package foldtest

import (
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// CheckSeen checks that an operation names the values that its maker saw in a state. It knows labels, metadata, places and deletions of
// inputs that the state has.
func CheckSeen(r catalog.Reader, op *log.Op) error {
	in, err := r.InputByDot(log.SubjectDot(op.Body))
	if err != nil {
		return nil //nolint:nilerr // there is nothing to see
	}
	b := being{labels: map[string]write[log.Value]{}, meta: in.Meta, place: write[*log.Point]{in.GeoAt, in.Geo}}
	for _, l := range in.Labels {
		b.labels[l.Concept] = write[log.Value]{l.At, l.Value}
	}
	want, got := []log.Seen{}, func(int) log.Seen { return nil }
	switch body := op.Body.(type) {
	case *log.InputLabels:
		got = body.Seen.Of
		for _, l := range body.Labels {
			want = append(want, shown(r, in.Dot, map[register]write[string]{{catalog.LabelRegister, l.Concept}: b.servingLabel(l.Concept)}))
		}
	case *log.InputGeo:
		got = func(int) log.Seen { return body.Seen }
		want = append(want, shown(r, in.Dot, map[register]write[string]{{kind: catalog.PlaceRegister}: b.servingPlace()}))
	case *log.InputMeta:
		got = body.Seen.Of
		for _, w := range body.Writes {
			all := map[register]write[string]{}
			for _, path := range b.metaPaths(w.Path) {
				if w.Action != log.MetaAppend {
					all[register{catalog.MetaRegister, pathText(path)}] = b.servingMeta(path)
				}
			}
			want = append(want, shown(r, in.Dot, all))
		}
	case *log.InputDelete:
		newest := in.GeoAt.MadeAt()
		for _, l := range in.Labels {
			newest = max(newest, l.At.MadeAt())
		}
		for _, part := range in.Meta {
			newest = max(newest, part.At.MadeAt())
		}
		if body.Seen != newest {
			return fmt.Errorf("operation %v %T has seen %x, want %x", op.Dot, op.Body, body.Seen, newest)
		}
	}
	for i := range want {
		if !slices.Equal(got(i), want[i]) {
			return fmt.Errorf("write %d of operation %v %T has seen %x, want %x", i, op.Dot, op.Body, got(i), want[i])
		}
	}
	return nil
}

// shown returns the sorted names of the values that serve in registers of an input, and of those in their contradictions.
func shown(r catalog.Reader, input log.Dot, serving map[register]write[string]) (names log.Seen) {
	for _, w := range serving {
		if w.at != (log.Stamp{}) {
			names = append(names, w.at.Name())
		}
	}
	err := r.Contradictions(func(c catalog.Contradiction) bool {
		if _, ok := serving[registerOf(&c.Register)]; ok && c.Dot == input {
			for _, v := range c.Values {
				names = append(names, v.At.Name())
			}
		}
		return true
	})
	if err != nil {
		panic(err) // reading from memory does not fail
	}
	slices.Sort(names)
	return slices.Compact(names)
}
