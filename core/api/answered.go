package api

import (
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// loadInput reads an input that the answer lists. It does not read on for an answer that the host has no memory for, unless the call has
// written and shows the inputs' ids.
func loadInput(x *call.Call, v *partition.View, ord uint32) (catalog.Input, error) {
	if err := x.Room(); err != nil {
		return catalog.Input{}, err
	}
	in, err := v.Input(ord)
	if err == nil {
		holdInput(x, &in)
		err = nameSameFile(x, v, &in)
	}
	return in, err
}

// labelBytes is less than a label takes in an answer, without its concept's id and name, and about what it takes in memory.
const labelBytes = 60

// holdInput counts what an input that the answer lists takes.
func holdInput(x *call.Call, in *catalog.Input) {
	if !x.Shows(auth.ConceptsGet) {
		in.Labels = nil
	}
	labels := 0
	for i := range in.Labels {
		labels += labelBytes + len(in.Labels[i].Concept)
	}
	meta := in.Meta.JSON()
	if x.Fits(len(meta) + labels) {
		if len(in.Meta) > 1 {
			in.Meta = catalog.Meta{{JSON: meta}}
		}
		return
	}
	in.Labels, in.Meta = nil, catalog.Meta{{JSON: x.Blank(len(meta) + labels)}}
}

// weighConfig returns the settings of an operation, counted.
func weighConfig(x *call.Call, list []log.Setting) []log.Setting {
	list = slices.Clone(list)
	for i := range list {
		list[i].JSON = x.Weigh(list[i].JSON)
	}
	return list
}

// weighOp counts an operation that the answer shows.
func weighOp(x *call.Call, op *log.Op) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		shown := *b
		shown.Meta = x.Weigh(b.Meta)
		op.Body = &shown
	case *log.InputMeta:
		shown := *b
		shown.Writes = slices.Clone(b.Writes)
		for i := range shown.Writes {
			shown.Writes[i].JSON = x.Weigh(shown.Writes[i].JSON)
		}
		op.Body = &shown
	case *log.ModelCreate:
		shown := *b
		shown.Config = weighConfig(x, b.Config)
		op.Body = &shown
	case *log.ModelPatch:
		shown := *b
		shown.Config = weighConfig(x, b.Config)
		op.Body = &shown
	case *log.Feedback:
		shown := *b
		shown.JSON = x.Weigh(b.JSON)
		op.Body = &shown
	}
}
