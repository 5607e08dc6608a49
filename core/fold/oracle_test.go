package fold_test

import (
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
)

// oracle is the naive model of the rules about inputs: it keeps every write that was ever
// made, decides by looking through all of them, and has no store.
type oracle struct {
	inputs   []*being // in the order of creation, dead ones too
	sites    map[log.Site]uint64
	horizon  log.HLC
	barrier  log.HLC
	concepts map[string]bool
}

// being is an input and its life.
type being struct {
	dot     log.Dot
	id      string
	create  *log.InputCreate
	code    int
	dead    bool
	picture blob.Hash
	labels  []write[log.Label]
	places  []write[*log.Point]
}

type write[T any] struct {
	at log.Stamp
	v  T
}

// newest is the last of the writes of the highest stamp.
func newest[T any](writes []write[T]) (out write[T], ok bool) {
	for _, w := range writes {
		if !ok || !w.at.Less(out.at) {
			out, ok = w, true
		}
	}
	return out, ok
}

func newOracle() *oracle {
	return &oracle{sites: map[log.Site]uint64{}, concepts: map[string]bool{}}
}

func (o *oracle) live(is func(b *being) bool) *being {
	for _, b := range o.inputs {
		if !b.dead && is(b) {
			return b
		}
	}
	return nil
}

func (o *oracle) byDot(dot log.Dot) *being {
	return o.live(func(b *being) bool { return b.dot == dot })
}

// fold returns the verdict's code, 0 for an operation that it has no opinion on.
func (o *oracle) fold(op *log.Op, id string) fold.Code {
	if o.sites[op.Dot.Site] >= op.Dot.Seq {
		return fold.Duplicate
	}
	o.sites[op.Dot.Site] = op.Dot.Seq
	switch b := op.Body.(type) {
	case *log.InputCreate:
		return o.create(op, b, id)
	case *log.InputLabels:
		return o.label(op, o.byDot(b.Input), b.Labels)
	case *log.InputGeo:
		x := o.byDot(b.Input)
		if x == nil {
			return fold.Gone
		}
		if op.At < o.horizon {
			return fold.Stale
		}
		last, ok := newest(x.places)
		x.places = append(x.places, write[*log.Point]{op.Stamp(), b.Geo})
		if ok && op.Stamp().Less(last.at) {
			return fold.Superseded
		}
		return fold.OK
	case *log.InputFetched:
		x := o.byDot(b.Input)
		switch {
		case x == nil:
			return fold.Gone
		case x.code != catalog.InputPending:
			return fold.Superseded
		}
		x.code, x.picture = b.Code, b.Blob
		return fold.OK
	case *log.InputDelete:
		x := o.byDot(b.Input)
		if x == nil {
			return fold.Gone
		}
		x.dead = true
		return fold.OK
	case *log.InputDeleteAll:
		for _, x := range o.inputs {
			x.dead = true
		}
		if b.Barrier {
			o.barrier = max(o.barrier, op.At)
		}
		return fold.OK
	case *log.Horizon:
		o.horizon = max(o.horizon, b.At)
		return fold.OK
	}
	return 0
}

func (o *oracle) create(op *log.Op, b *log.InputCreate, id string) fold.Code {
	if op.At < o.barrier {
		return fold.Gone
	}
	broken := func(x *being) bool { return x.code != catalog.InputPending && x.code != catalog.InputReady }
	if b.ID != "" {
		id = b.ID
	}
	same := o.live(func(x *being) bool { return x.id == id })
	if same != nil && !broken(same) {
		if b.MergeIfEqual && same.create.URL == b.URL && same.create.Crop == b.Crop && same.picture == b.Blob {
			return o.label(op, same, b.Labels)
		}
		return fold.Duplicate
	}
	sharing := func(x *being) bool { return b.URL != "" && !b.AllowDuplicate && x.create.URL == b.URL }
	if o.live(func(x *being) bool { return sharing(x) && !broken(x) }) != nil {
		return fold.Duplicate
	}
	for _, x := range o.inputs {
		x.dead = x.dead || x == same || sharing(x)
	}
	x := &being{dot: op.Dot, id: id, create: b, code: catalog.InputPending, picture: b.Blob}
	if !b.Blob.IsZero() {
		x.code = catalog.InputReady
	}
	for _, l := range b.Labels {
		if l.Value != log.Removed {
			x.labels = append(x.labels, write[log.Label]{op.Stamp(), l})
		}
	}
	if b.Geo != nil {
		x.places = append(x.places, write[*log.Point]{op.Stamp(), b.Geo})
	}
	o.inputs = append(o.inputs, x)
	o.use(b.Labels)
	return fold.OK
}

func (o *oracle) use(labels []log.Label) {
	for _, l := range labels {
		if l.Value != log.Removed && l.Concept != "ai_1" {
			o.concepts[l.Concept] = true
		}
	}
}

func (o *oracle) label(op *log.Op, x *being, labels []log.Label) fold.Code {
	if x == nil {
		return fold.Gone
	}
	if op.At < o.horizon {
		return fold.Stale
	}
	code := fold.Superseded
	for _, l := range labels {
		last, ok := newest(x.of(l.Concept))
		if !ok || !op.Stamp().Less(last.at) {
			code = fold.OK
		}
		x.labels = append(x.labels, write[log.Label]{op.Stamp(), l})
	}
	if code == fold.OK {
		o.use(labels)
	}
	return code
}

func (x *being) of(concept string) (out []write[log.Label]) {
	for _, w := range x.labels {
		if w.v.Concept == concept {
			out = append(out, w)
		}
	}
	return out
}

// shown are the labels that users see, by concept.
func (x *being) shown() (out []log.Label) {
	for _, concept := range []string{"ai_1", "x", "y", "z"} {
		if w, ok := newest(x.of(concept)); ok && w.v.Value != log.Removed {
			out = append(out, w.v)
		}
	}
	return out
}

func (x *being) place() *log.Point {
	w, _ := newest(x.places)
	return w.v
}

// compare holds the state to the oracle.
func (o *oracle) compare(w *world) {
	w.Helper()
	var living []*being
	for _, x := range o.inputs {
		if !x.dead {
			living = append(living, x)
		}
	}
	i := 0
	err := w.reader().Inputs(0, func(in catalog.Input) bool {
		if i == len(living) {
			w.Fatalf("input %q of %v should be dead", in.ID, in.Dot)
		}
		x := living[i]
		i++
		var shown []log.Label
		for _, l := range in.Labels {
			if l.Value != log.Removed {
				shown = append(shown, l.Label)
			}
		}
		if in.Dot != x.dot || in.ID != x.id || in.Code != x.code || !slices.Equal(shown, x.shown()) {
			w.Fatalf("input %q of %v at %d with %v, want %q of %v at %d with %v",
				in.ID, in.Dot, in.Code, shown, x.id, x.dot, x.code, x.shown())
		}
		if a, b := in.Geo, x.place(); (a == nil) != (b == nil) || a != nil && *a != *b {
			w.Fatalf("input %q is at %v, want %v", in.ID, a, b)
		}
		return true
	})
	if err != nil || i != len(living) {
		w.Fatalf("%d live inputs, %v, want %d", i, err, len(living))
	}
	for c := range o.concepts {
		if _, err := w.reader().Concept(c); err != nil {
			w.Fatal(err)
		}
	}
}
