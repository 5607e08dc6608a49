// Package selftest is what a module has to show before it serves: that it folds a log to the
// state that everybody else folds it to.
//
//	Log() ──▶ the module that is tried ──▶ digest ─┐
//	  └─────▶ the program that tries it ─▶ digest ─┴─ equal, or it does not serve
//
// The log is small and has an operation of each kind that a rule stands behind, by two sites whose clocks
// disagree. Rules of a version never change, so its digest is the same for ever.
package selftest

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/sync/wire"
)

// app is whose log it is.
var app = catalog.AppID{15: 1}

// writer numbers and stamps operations.
type writer struct {
	ops  []log.Op
	last [3]uint64 // sequences, by site
}

// add adds an operation of a site, at a second of its clock.
func (w *writer) add(site log.Site, second uint64, body log.Body) log.Dot {
	w.last[site]++
	dot := log.Dot{Site: site, Seq: w.last[site]}
	w.ops = append(w.ops, log.Op{Dot: dot, At: log.HLC(1_700_000_000_000+1000*second) << 16, By: "selftest", Body: body})
	return dot
}

// Log is the log's entries from the first on, as a block.
func Log() []byte {
	w := &writer{}
	inputs := w.inputs()
	w.models()
	w.add(log.Origin, 900, &log.Horizon{At: log.HLC(1_700_000_000_000+1000*500) << 16})
	for i, in := range inputs { // those of the first half are stale
		w.add(2, 450+100*uint64(i%2), &log.InputLabels{Input: in, Labels: []log.Label{{Concept: "late", Value: log.True}}})
	}
	return wire.EncodeOps(w.ops)
}

// inputs writes what inputs are about.
func (w *writer) inputs() (dots []log.Dot) {
	for i := range 24 {
		site := log.Site(1 + i%2)
		dots = append(dots, w.add(site, uint64(i), &log.InputCreate{
			ID: fmt.Sprint("input ", i-i%7/6), URL: fmt.Sprintf("https://example.org/%d", i), Blob: blob.Sum([]byte{byte(i)}), ContentType: "image/png",
			Crop: raster.Crop{Bottom: 1, Right: 1 - float64(i%4)/8}, Labels: []log.Label{{Concept: "first", Value: log.Value(i % 3)}},
			Meta: fmt.Appendf(nil, `{"n":%d,"deep":{"list":[%d],"text":"ü"}}`, i, i), Geo: &log.Point{Longitude: float64(i), Latitude: -1.5},
		}))
	}
	for i, in := range dots {
		site, second := log.Site(2-i%2), uint64(100+7*i%50) // clocks go back and forth
		w.add(site, second, &log.InputLabels{Input: in, Labels: []log.Label{{Concept: "first", Value: log.Value((i + 1) % 3)}, {Concept: "second", Value: log.True}}})
		w.add(site, second, &log.InputMeta{Input: in, Writes: []log.MetaWrite{
			{Path: []string{"deep", "list"}, Action: log.MetaAppend, JSON: fmt.Appendf(nil, "[%d]", i)}, {Path: []string{"n"}, Action: log.MetaRemove}, {Path: []string{"new"}, JSON: []byte(`{"a":1}`)},
		}})
		switch i % 6 {
		case 1:
			w.add(site, second, &log.InputGeo{Input: in})
		case 3:
			w.add(site, second, &log.InputDelete{Input: in})
		case 5:
			w.add(site, second, &log.OutputsPatch{Input: in, Edits: []log.OutputEdit{{Concept: "first", Value: 0.25}}})
		}
	}
	pending := w.add(2, 200, &log.InputCreate{ID: "pending", URL: "https://example.org/pending"})
	w.add(log.Origin, 201, &log.InputFetched{Input: pending, Code: 30000, Blob: blob.Sum([]byte("fetched")), ContentType: "image/jpeg"})
	return dots
}

// models writes what models, concepts and workflows are about.
func (w *writer) models() {
	for i, id := range []string{"first", "second", "first"} {
		w.add(log.Site(1+i%2), uint64(300+i), &log.ConceptCreate{ID: id, Name: "Concept " + id, Language: "en"})
	}
	w.add(2, 299, &log.ConceptName{ID: "second", Name: "Renamed"})
	name := "Its name"
	model := w.add(2, 310, &log.ModelCreate{
		ID: "model", Name: "A model", Version: "v1", Concepts: []string{"first", "second"},
		Config: []log.Setting{{Name: "closed_environment", JSON: []byte("true")}},
	})
	w.add(log.Origin, 305, &log.ModelPatch{Model: model, Name: &name, Remove: []string{"second"}, Add: []string{"third"}, Version: "v2"})
	train := w.add(2, 320, &log.VersionTrain{Model: model, Version: "v3"})
	w.add(2, 330, &log.VersionResult{Model: model, Version: "v3", Train: train, Code: catalog.VersionTrained, Manifest: blob.Sum([]byte("manifest"))})
	w.add(log.Origin, 340, &log.VersionDelete{Model: model, Version: "v1"})
	other := w.add(log.Origin, 341, &log.ModelCreate{ID: "other", Name: "Another", Version: "w1"})
	w.add(2, 342, &log.ModelDelete{Model: other})
	w.add(2, 343, &log.WorkflowCreate{ID: "flow", Nodes: []log.WorkflowNode{{ID: "n", Model: "model", Version: "v3"}}})
	w.add(log.Origin, 344, &log.Feedback{Model: "model", Version: "v3", JSON: []byte(`{"event":"annotation"}`)})
	w.add(2, 345, &log.Refused{Reason: "scope: blob"})
	w.add(log.Origin, 346, &log.NetworkSwitch{Base: [32]byte{7}})
}

// Digest folds the entries of a block, from the first of a log on, and returns the digest of the state. The error is
// that of a block that is none.
func Digest(block []byte) ([32]byte, error) {
	entries, err := wire.DecodeEntries(block, 0)
	if err != nil {
		return [32]byte{}, err
	}
	store := memkv.New()
	tx := kv.NewOverlay(store)
	f := fold.New(app)
	for len(entries) > 0 && err == nil {
		n := min(len(entries), 32)
		tx.Reset(store)
		if err = f.Begin(tx); err != nil {
			break
		}
		for i := range entries[:n] {
			if _, err = f.Apply(&entries[i]); err != nil {
				return [32]byte{}, err
			}
		}
		f.End()
		err = store.Apply(tx.Batch())
		entries = entries[n:]
	}
	if err != nil {
		return [32]byte{}, err
	}
	return fold.Digest(store, app)
}
