package fold_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

func TestCreate(t *testing.T) {
	w := newWorld(t)
	body := &log.InputCreate{
		ID: "a", URL: "http://x/a", Blob: blob.Sum(nil), ContentType: "image/png", Hosted: [16]byte{1},
		Crop: raster.Crop{Bottom: 1, Right: 0.5}, Meta: []byte(`{"k": 1 }`), Geo: &log.Point{Longitude: -1, Latitude: 2},
		Labels: []log.Label{{Concept: "dog", Value: log.False}, {Concept: "cat", Value: log.True}, {Concept: "none", Value: log.Removed}},
	}
	v := w.expect(fold.OK, 1, 5, body)
	at := log.Stamp{At: 5, Writer: 1}
	want := catalog.Input{
		Dot: log.Dot{Writer: 1, Seq: 1}, ID: "a", Created: 5, Modified: 5, By: "key", URL: body.URL, Blob: body.Blob,
		ContentType: body.ContentType, Hosted: body.Hosted, Crop: body.Crop, Code: catalog.InputReady,
		Labels: []catalog.Label{{Label: body.Labels[1], At: at}, {Label: body.Labels[0], At: at}},
		Meta:   catalog.Meta{{JSON: body.Meta, At: at}}, Geo: body.Geo, GeoAt: at,
	}
	if diff := cmp.Diff(want, w.input("a")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v.Ord != 0 || v.Dot != want.Dot || v.ID != "a" {
		t.Errorf("verdict %+v", v)
	}
	if len(w.out.Changes) != 1 || w.out.Changes[0].Before != nil || w.out.Changes[0].After.ID != "a" {
		t.Errorf("changes %+v", w.out)
	}
	w.check()
}

func TestDuplicates(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 1, fetch("a", "http://x/1"))
	for detail, body := range map[string]*log.InputCreate{
		"id":  fetch("a", "http://x/2"),
		"url": fetch("b", "http://x/1"),
	} {
		v := w.expect(fold.Duplicate, 1, 2, body)
		if v.Detail != detail || v.Dot != a.Dot || v.ID != "a" {
			t.Errorf("verdict %+v, want one of %q", v, detail)
		}
	}
	allowed := fetch("b", "http://x/1")
	allowed.AllowDuplicate = true
	w.expect(fold.OK, 1, 3, allowed)
	w.check()
	// The id can be used again. The URL is still taken.
	w.expect(fold.OK, 1, 4, &log.InputDelete{Input: a.Dot})
	if v := w.expect(fold.Duplicate, 1, 5, fetch("a", "http://x/1")); v.ID != "b" {
		t.Errorf("duplicate of %q, want b", v.ID)
	}
	again := w.expect(fold.OK, 1, 6, fetch("a", "http://x/2"))
	if again.Dot == a.Dot || again.Ord <= a.Ord {
		t.Errorf("a later input with the same id is %+v, after %+v", again, a)
	}
	w.check()
}

// TestFailedInputIsReplaced: a new input replaces failed inputs with its id or its URL, and no others.
func TestFailedInputIsReplaced(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 1, fetch("a", "http://x/1"))
	b := w.expect(fold.OK, 1, 2, fetch("b", "http://x/2"))
	w.expect(fold.Duplicate, 1, 3, fetch("a", "http://x/3"))
	for _, dot := range []log.Dot{a.Dot, b.Dot} {
		w.expect(fold.OK, 1, 4, &log.InputFetched{Input: dot, Code: 30002, Detail: "404"})
	}
	w.check()
	v := w.expect(fold.OK, 1, 5, fetch("a", "http://x/2"))
	if len(w.out.Changes) != 3 || w.out.Changes[0].Before.ID != "a" || w.out.Changes[1].Before.ID != "b" || w.out.Changes[2].After == nil {
		t.Errorf("changes %+v, want both gone and one made", w.out.Changes)
	}
	if in := w.input("a"); in.Dot != v.Dot || in.URL != "http://x/2" || in.Code != catalog.InputPending {
		t.Errorf("the new input is %+v", in)
	}
	w.expect(fold.Gone, 1, 6, labels(a.Dot, "x", log.True))
	w.check()
	if c, _ := w.reader().Counts(); c != (catalog.Counts{ToProcess: 1}) {
		t.Errorf("counts %+v", c)
	}
}

func TestMergeIfEqual(t *testing.T) {
	w := newWorld(t)
	first := create("a")
	first.Labels = []log.Label{{Concept: "x", Value: log.True}}
	a := w.expect(fold.OK, 1, 1, first)
	second := create("a")
	second.MergeIfEqual, second.Labels = true, []log.Label{{Concept: "y", Value: log.True}, {Concept: "x", Value: log.False}}
	if v := w.expect(fold.OK, 2, 2, second); v.Dot != a.Dot {
		t.Errorf("merged into %v, want %v", v.Dot, a.Dot)
	}
	in := w.input("a")
	if len(in.Labels) != 2 || in.Labels[0].Value != log.False || in.Labels[1].Concept != "y" {
		t.Errorf("labels %+v", in.Labels)
	}
	other := create("a")
	other.MergeIfEqual, other.Blob = true, blob.Sum([]byte("other"))
	w.expect(fold.Duplicate, 2, 3, other)
	w.check()
}

func TestLabels(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 10, create("a")).Dot
	steps := []struct {
		site log.Writer
		at   log.HLC
		v    log.Value
		code fold.Code
		want log.Value
	}{
		{1, 20, log.True, fold.OK, log.True},
		{2, 15, log.False, fold.Superseded, log.True},
		{2, 20, log.False, fold.OK, log.False},        // equal clocks: the higher site wins
		{1, 20, log.True, fold.Superseded, log.False}, // so the lower site loses
		{1, 30, log.Removed, fold.OK, log.Removed},
		{2, 25, log.True, fold.Superseded, log.Removed},
		{2, 40, log.True, fold.OK, log.True},
	}
	for i, s := range steps {
		w.expect(s.code, s.site, s.at, labels(a, "x", s.v))
		in := w.input("a")
		if len(in.Labels) != 1 || in.Labels[0].Value != s.want {
			t.Errorf("step %d: labels %+v, want %d", i, in.Labels, s.want)
		}
	}
	if in := w.input("a"); in.Modified != 40 {
		t.Errorf("modified at %d, want 40", in.Modified)
	}
	// Other labels of the same operation are applied if one is superseded.
	w.expect(fold.OK, 2, 35, labels(a, "x", log.False, "y", log.True))
	if in := w.input("a"); len(in.Labels) != 2 || in.Labels[0].Value != log.True || in.Modified != 40 {
		t.Errorf("labels %+v, modified %d", in.Labels, in.Modified)
	}
	w.expect(fold.Gone, 1, 50, labels(log.Dot{Writer: 1, Seq: 2}, "x", log.True))
	w.expect(fold.Superseded, 1, 51, labels(a))
}

func TestFieldsOfAnInput(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 10, create("a")).Dot
	set := func(p, json string) *log.InputMeta {
		return &log.InputMeta{Input: a, Writes: []log.MetaWrite{{Path: []string{p}, JSON: []byte(json)}}}
	}
	w.expect(fold.OK, 1, 20, set("k", "1"))
	w.expect(fold.Superseded, 2, 15, set("k", "2"))
	w.expect(fold.OK, 2, 15, set("l", "2"))
	if got := string(w.input("a").Meta.JSON()); got != `{"k":1,"l":2}` {
		t.Errorf("metadata %s", got)
	}
	v := w.expect(fold.Refused, 1, 30, &log.InputMeta{Input: a, Writes: []log.MetaWrite{{Path: []string{"m"}, JSON: []byte("1")}, {JSON: []byte("{")}}})
	if got := string(w.input("a").Meta.JSON()); got != `{"k":1,"l":2}` || v.Detail == "" {
		t.Errorf("after a refused write: metadata %s, verdict %+v", got, v)
	}

	w.expect(fold.OK, 1, 20, &log.InputGeo{Input: a, Geo: &log.Point{Longitude: 1}})
	w.expect(fold.Superseded, 2, 19, &log.InputGeo{Input: a})
	w.expect(fold.OK, 2, 21, &log.InputGeo{Input: a})
	w.expect(fold.Superseded, 1, 20, &log.InputGeo{Input: a, Geo: &log.Point{Longitude: 1}})
	if in := w.input("a"); in.Geo != nil || in.GeoAt != (log.Stamp{At: 21, Writer: 2}) {
		t.Errorf("place %v at %v", in.Geo, in.GeoAt)
	}

	patch := func(concept string, value float32, removed bool) *log.OutputsPatch {
		return &log.OutputsPatch{Input: a, Edits: []log.OutputEdit{{Concept: concept, Value: value, Removed: removed}}}
	}
	w.expect(fold.OK, 1, 20, patch("ai_1", 0.5, false))
	w.expect(fold.OK, 1, 21, patch("ai_0", 0, true))
	w.expect(fold.Superseded, 2, 10, patch("ai_1", 0.7, false))
	w.expect(fold.OK, 2, 22, patch("ai_1", 0, true))
	if in := w.input("a"); len(in.Edits) != 2 || in.Edits[0].Concept != "ai_0" || !in.Edits[1].Removed {
		t.Errorf("edits %+v", in.Edits)
	}
	w.check()
}

// TestStatusChangesOnce: by the first rules the status of an input changes once, from 30001 to 30000 or to an error.
func TestStatusChangesOnce(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 1, fetch("a", "http://x/1")).Dot
	b := w.expect(fold.OK, 1, 1, fetch("b", "http://x/2")).Dot
	ready := &log.InputFetched{Input: a, Code: catalog.InputReady, Blob: blob.Sum([]byte("p")), ContentType: "image/gif"}
	broken := &log.InputFetched{Input: b, Code: 30300, Detail: "no picture"}
	w.expect(fold.OK, 1, 2, ready)
	w.expect(fold.OK, 1, 2, broken)
	w.expect(fold.Superseded, 2, 9, &log.InputFetched{Input: a, Code: 30002})
	w.expect(fold.Superseded, 2, 9, &log.InputFetched{Input: b, Code: catalog.InputReady, Blob: ready.Blob})
	if in := w.input("a"); in.Code != catalog.InputReady || in.Blob != ready.Blob || in.ContentType != "image/gif" {
		t.Errorf("fetched input %+v", in)
	}
	if in := w.input("b"); in.Code != 30300 || in.Detail != "no picture" || !in.Blob.IsZero() {
		t.Errorf("failed input %+v", in)
	}
	if c, _ := w.reader().Counts(); c != (catalog.Counts{Processed: 1, Errors: 1}) {
		t.Errorf("counts %+v", c)
	}
	w.expect(fold.Gone, 1, 9, &log.InputFetched{Input: log.Dot{Writer: 9, Seq: 9}, Code: 30002})
	w.check()
}

// TestReadEXIF: an input notes that it gets the place of its picture's file, once the rules for it are in force.
func TestReadEXIF(t *testing.T) {
	w := newWorld(t)
	for at, id := range []string{"before", "after"} {
		create := fetch(id, "http://x/"+id)
		create.ReadEXIF = true
		w.expect(fold.OK, 2, log.HLC(2*at+1), create)
		if got := w.input(id).ReadEXIF; got != (id == "after") {
			t.Errorf("%s the rules: %v", id, got)
		}
		w.expect(fold.OK, log.Origin, log.HLC(2*at+2), &log.Rules{Version: 2})
	}
}

// TestDownloadByOriginMakesUnreadInputReady: by the second rules a later download by the origin makes an input ready that ended as unread.
// No other operation does, and no other result changes an input that has ended.
func TestDownloadByOriginMakesUnreadInputReady(t *testing.T) {
	picture := blob.Sum([]byte("p"))
	for _, code := range []int{30101, 30105, 30300, 30002, catalog.InputOverQuota, catalog.InputReady} {
		w := newWorld(t)
		dot := w.expect(fold.OK, 2, 1, fetch("a", "http://x/1")).Dot
		end := &log.InputFetched{Input: dot, Code: code, Detail: "unknown file type"}
		if code == catalog.InputReady {
			end = &log.InputFetched{Input: dot, Code: code, Blob: blob.Sum([]byte("q")), ContentType: "image/gif"}
		}
		w.expect(fold.OK, 2, 2, end)
		retried := &log.InputFetched{Input: dot, Code: catalog.InputReady, Blob: picture, ContentType: "image/heic"}
		w.expect(fold.Superseded, log.Origin, 3, retried) // the first rules are in force
		w.expect(fold.OK, log.Origin, 4, &log.Rules{Version: 2})
		before := w.input("a")
		for _, site := range []log.Writer{2, 3, log.RestoredSites - 1} {
			w.expect(fold.Superseded, site, 5, retried)
		}
		w.expect(fold.Superseded, log.Origin, 6, &log.InputFetched{Input: dot, Code: 30002, Detail: "404"})
		w.expect(fold.Superseded, log.Origin, 7, &log.InputFetched{Input: dot, Code: 30300, Detail: "damaged"})
		if diff := cmp.Diff(before, w.input("a")); diff != "" {
			t.Errorf("%d (-want +got):\n%s", code, diff)
		}
		want, counts := fold.Superseded, catalog.Counts{Errors: 1}
		switch code {
		case 30101, 30105, 30300:
			want = fold.OK
			fallthrough
		case catalog.InputReady:
			counts = catalog.Counts{Processed: 1}
		}
		site := log.Origin
		if code == 30105 {
			site = log.RestoredSites + 7
		}
		w.expect(want, site, 8, retried)
		if in := w.input("a"); (in.Blob == picture) != (want == fold.OK) || want == fold.OK && (in.Code != catalog.InputReady || in.Detail != "") {
			t.Errorf("%d became %+v", code, in)
		}
		if c, _ := w.reader().Counts(); c != counts {
			t.Errorf("%d: counts %+v, want %+v", code, c, counts)
		}
		w.expect(fold.Superseded, log.Origin, 9, retried)
		w.check()
	}
}

// TestAnyDownloadMakesUnreadInputReady: by the rules of names anyone's later download makes an unread input ready, once.
func TestAnyDownloadMakesUnreadInputReady(t *testing.T) {
	w := newNamesWorld(t)
	dot := w.expect(fold.OK, 2, 10, fetch("a", "http://x/1")).Dot
	w.expect(fold.OK, 2, 11, &log.InputFetched{Input: dot, Code: 30105, Detail: "too large"})
	ready := func(name string) *log.InputFetched {
		return &log.InputFetched{Input: dot, Code: catalog.InputReady, Blob: blob.Sum([]byte(name)), ContentType: "image/heic"}
	}
	w.expect(fold.Superseded, 3, 12, &log.InputFetched{Input: dot, Code: 30300, Detail: "damaged"})
	w.expect(fold.OK, 3, 13, ready("p"))
	w.expect(fold.Superseded, 2, 14, ready("q"))
	if in := w.input("a"); in.Code != catalog.InputReady || in.Blob != blob.Sum([]byte("p")) {
		t.Errorf("the input is %+v", in)
	}
	w.check()
}

// TestDelete: a deleted input never comes back, whatever the clocks of later operations are.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 10, create("a"))
	w.expect(fold.OK, 2, 1, &log.InputDelete{Input: a.Dot})
	w.expect(fold.Gone, 2, 99, &log.InputDelete{Input: a.Dot})
	for _, body := range []log.Body{
		labels(a.Dot, "x", log.True),
		&log.InputMeta{Input: a.Dot, Writes: []log.MetaWrite{{JSON: []byte("1")}}},
		&log.InputGeo{Input: a.Dot},
		&log.OutputsPatch{Input: a.Dot},
		&log.InputFetched{Input: a.Dot, Code: 30002},
	} {
		w.expect(fold.Gone, 3, 99, body)
	}
	if _, err := w.reader().InputByID("a"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("the deleted input: %v", err)
	}
	if _, err := w.reader().Concept("x"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a write to a deleted input made a concept: %v", err)
	}
	b := w.expect(fold.OK, 1, 11, create("a"))
	w.expect(fold.Gone, 3, 100, labels(a.Dot, "x", log.True))
	if in := w.input("a"); in.Dot != b.Dot || len(in.Labels) != 0 {
		t.Errorf("the second incarnation is %+v", in)
	}
	w.check()
}

func TestDeleteAll(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		body := create(id)
		body.Hosted = [16]byte{id[0]}
		w.expect(fold.OK, 1, 10, body)
	}
	w.expect(fold.OK, 1, 10, fetch("c", "http://x"))
	w.entry(1, 11, create("d"))
	w.entry(2, 5, &log.InputDeleteAll{})
	w.entry(1, 12, create("a"))
	w.fold(10)
	if !w.out.DeletedAll || len(w.out.Changes) != 1 || w.out.Changes[0].After.ID != "a" {
		t.Errorf("outcome %+v, want all deleted and one made after it", w.out)
	}
	in := w.input("a")
	if c, _ := w.reader().Counts(); c != (catalog.Counts{Processed: 1}) || in.Ord != 4 {
		t.Errorf("counts %+v, ordinal %d", c, in.Ord)
	}
	if _, _, err := catalog.HostedInput(w.store, [16]byte{'a'}); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a deleted picture is still public: %v", err)
	}
	// A create with an older clock from an offline site still succeeds, unless DeleteAll was a barrier.
	w.expect(fold.OK, 3, 2, create("late"))
	w.expect(fold.OK, 1, 20, &log.InputDeleteAll{Barrier: true})
	w.expect(fold.Gone, 3, 19, create("later"))
	w.expect(fold.OK, 3, 20, create("new"))
	w.check()
}

// TestDeleteAllIsCheap: DeleteAll writes as much for a thousand inputs as for one, also by names, and also if it spares one.
func TestDeleteAllIsCheap(t *testing.T) {
	for name, upto := range map[string]func(n int) []log.Dot{
		"order of the log": func(int) []log.Dot { return nil },
		"all names":        func(n int) []log.Dot { return []log.Dot{{Writer: 2, Seq: uint64(n)}, {Writer: 3, Seq: 1}} },
		"all but one":      func(n int) []log.Dot { return []log.Dot{{Writer: 2, Seq: uint64(n)}} },
	} {
		sizes := map[int]int{}
		for _, n := range []int{2, 1000} {
			w := newNamesWorld(t)
			for range n {
				w.entry(2, 10, create(""))
			}
			w.entry(3, 10, create("other"))
			w.fold(1000)
			w.entry(1, 11, &log.InputDeleteAll{Upto: upto(n)})
			f := fold.New(app)
			tx := kv.NewOverlay(w.store)
			if err := f.Begin(tx); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Apply(&w.entries[len(w.entries)-1]); err != nil {
				t.Fatal(err)
			}
			f.End()
			sizes[n] = tx.Batch().Len()
			if err := w.store.Apply(tx.Batch()); err != nil {
				t.Fatal(err)
			}
			w.folded = len(w.entries)
			if _, err := w.reader().InputByID("other"); (err == nil) != (name == "all but one") {
				t.Errorf("by %s: the other input: %v", name, err)
			}
			w.check()
		}
		if sizes[2] != sizes[1000] {
			t.Errorf("by %s, deleting takes %d operations for two inputs and %d for a thousand", name, sizes[2], sizes[1000])
		}
	}
}

// TestDeleteAllByNames: a deletion of all spares the inputs that its maker did not see, and deletes those that it saw and that come later.
func TestDeleteAllByNames(t *testing.T) {
	w := newNamesWorld(t)
	body := fetch("a", "http://x/1")
	body.Hosted = [16]byte{1}
	w.expect(fold.OK, 2, 10, body)
	spared := fetch("b", "http://x/1")
	spared.AllowDuplicate, spared.Hosted = true, [16]byte{2}
	v := w.expect(fold.OK, 3, 10, spared)
	w.expect(fold.OK, 2, 11, create("c"))
	w.expect(fold.OK, 4, 12, &log.InputDeleteAll{Barrier: true, Upto: []log.Dot{{Writer: 2, Seq: 3}, {Writer: 4}}})
	if in := w.input("b"); !w.out.DeletedAll || len(w.out.Changes) != 1 || w.out.Changes[0].After.ID != "b" || in.Ord != v.Ord {
		t.Errorf("outcome %+v, the other input has ordinal %d, want %d", w.out, in.Ord, v.Ord)
	}
	w.expect(fold.Gone, 2, 9, create("late")) // its maker had seen it
	w.expect(fold.OK, 2, 9, create("unseen")) // operation 4, which it had not seen; there is no barrier
	w.expect(fold.Duplicate, 3, 13, fetch("d", "http://x/1"))
	w.check()
	w.expect(fold.OK, 2, 10, create("third"))
	w.expect(fold.OK, 4, 14, &log.InputDeleteAll{Upto: []log.Dot{{Writer: 3, Seq: 9}}})
	if w.out.DeletedAll || len(w.out.Changes) != 1 || w.out.Changes[0].Before.ID != "b" {
		t.Errorf("outcome %+v, want one of three deleted", w.out)
	}
	w.check()
}

func TestHorizon(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 10, create("a")).Dot
	m := w.expect(fold.OK, 1, 10, &log.ModelCreate{ID: "m", Concepts: []string{"x", "y"}}).Dot
	w.expect(fold.OK, 1, 20, labels(a, "x", log.True, "y", log.Removed))
	w.expect(fold.OK, 1, 30, labels(a, "z", log.Removed))
	w.expect(fold.OK, 1, 20, &log.InputGeo{Input: a})
	w.expect(fold.OK, 1, 20, &log.InputMeta{Input: a, Writes: []log.MetaWrite{
		{JSON: []byte(`{"p":1,"q":2}`)}, {Path: []string{"p"}, Action: log.MetaRemove},
	}})
	w.expect(fold.OK, 1, 20, &log.ModelPatch{Model: m, Remove: []string{"x"}, Config: []log.Setting{{Name: "s"}}})
	w.expect(fold.OK, 1, 40, &log.Horizon{At: 25})
	w.expect(fold.OK, 1, 40, &log.Horizon{At: 5}) // the horizon never moves back

	for _, body := range []log.Body{
		labels(a, "w", log.True),
		&log.InputMeta{Input: a, Writes: []log.MetaWrite{{JSON: []byte("1")}}},
		&log.InputGeo{Input: a, Geo: &log.Point{}},
		&log.OutputsPatch{Input: a},
		&log.ConceptName{ID: "x", Name: "n"},
		&log.ModelPatch{Model: m, Add: []string{"x"}},
	} {
		w.expect(fold.Stale, 2, 24, body)
	}
	w.expect(fold.Gone, 2, 24, labels(log.Dot{Writer: 7, Seq: 7}, "w", log.True))
	w.expect(fold.OK, 2, 24, create("offline")) // by the first rules, creates ignore the horizon, and deletes do by all

	w.expect(fold.OK, 2, 25, labels(a, "y", log.True))
	in := w.input("a")
	var names []string
	for _, l := range in.Labels {
		names = append(names, l.Concept)
	}
	if !slices.Equal(names, []string{"x", "y", "z"}) {
		t.Errorf("labels %v, want x, y and z, whose removal is above the horizon", names)
	}
	if got := string(in.Meta.JSON()); got != `{"q":2}` || len(in.Meta) != 1 || in.GeoAt != (log.Stamp{}) {
		t.Errorf("metadata %s in %d parts, place at %v", got, len(in.Meta), in.GeoAt)
	}
	w.expect(fold.OK, 2, 26, &log.ModelPatch{Model: m, Config: []log.Setting{{Name: "t", JSON: []byte("1")}}})
	model, err := w.reader().Model("m")
	if err != nil || len(model.Concepts) != 1 || len(model.Config) != 1 {
		t.Errorf("model %+v, %v", model, err)
	}
	w.check()
}

// TestInvalidOperationsAreRefused: every replica refuses the same invalid operations.
func TestInvalidOperationsAreRefused(t *testing.T) {
	w := newWorld(t)
	a := w.expect(fold.OK, 1, 1, create("a")).Dot
	long := string(make([]byte, 2000))
	with := func(edit func(*log.InputCreate)) *log.InputCreate {
		b := create("b")
		edit(b)
		return b
	}
	nan := math.NaN()
	bodies := []log.Body{
		&log.InputCreate{ID: "b"},
		create(long), create("\xff"),
		with(func(b *log.InputCreate) { b.Crop = raster.Crop{Top: 0.5, Bottom: 0.5, Right: 1} }),
		with(func(b *log.InputCreate) { b.Crop = raster.Crop{Top: nan, Bottom: 1, Right: 1} }),
		with(func(b *log.InputCreate) { b.Crop = raster.Crop{Bottom: 1, Right: 1.5} }),
		with(func(b *log.InputCreate) { b.Geo = &log.Point{Latitude: 91} }),
		with(func(b *log.InputCreate) { b.Geo = &log.Point{Longitude: nan} }),
		with(func(b *log.InputCreate) { b.Labels = []log.Label{{}} }),
		with(func(b *log.InputCreate) { b.Meta = []byte("{") }),
		&log.InputFetched{Input: a},
		&log.InputFetched{Input: a, Code: catalog.InputPending},
		&log.InputFetched{Input: a, Code: catalog.InputReady},
		&log.InputFetched{Input: a, Code: 30002, Blob: blob.Sum(nil)},
		labels(a, "", log.True),
		&log.InputGeo{Input: a, Geo: &log.Point{Longitude: 181}},
		&log.OutputsPatch{Input: a, Edits: []log.OutputEdit{{Concept: "c", Value: 2}}},
		&log.OutputsPatch{Input: a, Edits: []log.OutputEdit{{Value: 1}}},
		&log.ConceptCreate{ID: "ai_x"}, &log.ConceptCreate{ID: long},
		&log.ModelCreate{ID: long}, &log.ModelCreate{Concepts: []string{""}},
		&log.ModelCreate{Config: []log.Setting{{Name: "x", JSON: []byte("{")}}},
		&log.ModelPatch{Add: []string{""}}, &log.ModelPatch{Config: []log.Setting{{}}},
		&log.VersionTrain{Version: long},
		&log.VersionResult{}, &log.VersionResult{Code: catalog.VersionTrained},
		&log.VersionResult{Code: 21110, Manifest: blob.Sum(nil)}, &log.VersionResult{Code: catalog.VersionQueued},
		&log.WorkflowCreate{ID: long}, &log.Feedback{JSON: []byte("x")},
		&log.AppCreate{ID: "x"}, &log.KeyCreate{}, &log.KeyDelete{},
		&log.Unknown{Kind: 77, Data: []byte{1}},
	}
	before := w.digest()
	for _, body := range bodies {
		if v := w.expect(fold.Refused, 1, 2, body); v.Detail == "" {
			t.Errorf("%T is refused without a reason", body)
		}
	}
	if _, err := w.reader().InputByID("b"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("a refused create made an input: %v", err)
	}
	if w.digest() == before {
		t.Error("refused operations have no place in the state")
	}
	w.app = catalog.Control
	w.entries, w.folded, w.sites = nil, 0, map[log.Writer]uint64{}
	for _, body := range []log.Body{create("a"), &log.AppCreate{ID: "x"}, &log.Unknown{Kind: 77}} {
		w.expect(fold.Refused, 1, 1, body)
	}
}

// TestSequence: an operation of a site is folded once, and only after all its predecessors.
func TestSequence(t *testing.T) {
	w := newWorld(t)
	op := func(seq uint64, body log.Body) fold.Verdict {
		w.raw(log.Op{Dot: log.Dot{Writer: 1, Seq: seq}, At: log.HLC(10 * seq), Body: body})
		return w.fold(1)[0]
	}
	a := op(1, create("a"))
	op(2, &log.InputDelete{Input: a.Dot})
	if v := op(1, create("a")); v.Code != fold.Duplicate || v.Detail != "operation" {
		t.Errorf("an operation that comes again: %+v", v)
	}
	if v := op(4, create("b")); v.Code != fold.Refused {
		t.Errorf("an operation after a gap: %+v", v)
	}
	if v := op(3, create("c")); v.Code != fold.OK {
		t.Errorf("the one that was missing: %+v", v)
	}
	// The rules are the same for operations in one run.
	w.raw(log.Op{Dot: log.Dot{Writer: 1, Seq: 4}, At: 50, Body: create("d")})
	w.raw(log.Op{Dot: log.Dot{Writer: 1, Seq: 4}, At: 50, Body: create("d")})
	w.raw(log.Op{Dot: log.Dot{Writer: 1, Seq: 6}, At: 50, Body: create("e")})
	var codes []fold.Code
	for _, v := range w.fold(3) {
		codes = append(codes, v.Code)
	}
	if !slices.Equal(codes, []fold.Code{fold.OK, fold.Duplicate, fold.Refused}) {
		t.Errorf("verdicts %v", codes)
	}
	if n, err := w.reader().SiteSeq(1); n != 4 || err != nil {
		t.Errorf("site 1 is at %d, %v, want 4", n, err)
	}
	w.check()
}

func TestEntryOutOfOrderIsRefused(t *testing.T) {
	w := newWorld(t)
	f := fold.New(app)
	tx := kv.NewOverlay(w.store)
	if err := f.Begin(tx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Apply(&log.Entry{Seq: 2, Op: log.Op{Body: create("a")}}); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("entry 2 before entry 1: %v", err)
	}
	catalog.Write(tx, app).PutHeader(&catalog.Header{Fold: fold.Version + 1})
	if err := w.store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	tx.Reset(w.store)
	if err := f.Begin(tx); !errors.Is(err, kv.ErrNewer) {
		t.Errorf("a state of newer rules: %v", err)
	}
	if fold.OK.String() != "ok" || fold.Code(200).String() != "unknown" {
		t.Errorf("names %v, %v", fold.OK, fold.Code(200))
	}
}
