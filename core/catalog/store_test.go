package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

var testApp = AppID{15: 1}

// write changes a store with a Writer.
func write(t testing.TB, store kv.Store, do func(w *Writer)) {
	t.Helper()
	tx := kv.NewOverlay(store)
	do(Write(tx, testApp))
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
}

// batch changes a store with a batch.
func batch(t testing.TB, store kv.Store, do func(b *kv.Batch)) {
	t.Helper()
	var b kv.Batch
	do(&b)
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
}

func input(ord uint32, picture string) *Input {
	return &Input{
		Ord: ord, Dot: log.Dot{Writer: 1, Seq: uint64(ord) + 1}, ID: fmt.Sprint("i", ord), Created: 5, Modified: 5,
		URL: "http://x/" + picture, Blob: blob.Sum([]byte(picture)), Code: InputReady, Hosted: [16]byte{1, byte(ord)},
	}
}

// keys returns the number of keys below a prefix.
func keys(t testing.TB, store kv.Reader, prefix []byte) (n int) {
	t.Helper()
	err := store.Scan(prefix, kv.PrefixEnd(prefix), func(_, _ []byte) bool {
		n++
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestDeletedRecordsLeaveNoKeys inserts and deletes records. The store is then as it was.
func TestDeletedRecordsLeaveNoKeys(t *testing.T) {
	store := memkv.New()
	lo, _ := testApp.Range()
	cropped := input(1, "p")
	cropped.Crop = raster.Crop{Bottom: 1, Right: 1}
	pending := input(2, "q")
	pending.Blob, pending.Code = blob.Hash{}, InputPending
	inputs := []*Input{input(0, "p"), cropped, pending}
	m := &Model{Dot: log.Dot{Writer: 1, Seq: 9}, Seq: 9, ID: "m"}
	versions := []*Version{
		{Model: m.Dot, Seq: 9, ID: "v1", Code: VersionTrained, Manifest: blob.Sum(nil)},
		{Model: m.Dot, Seq: 10, ID: "v2", Code: VersionQueued},
	}
	f := &Workflow{Dot: log.Dot{Writer: 1, Seq: 11}, Seq: 11, ID: "w"}
	k := &Key{Hash: [32]byte{1}}
	insert := func() {
		write(t, store, func(w *Writer) {
			for _, in := range inputs {
				if err := w.InsertInput(in); err != nil {
					t.Error(err)
				}
			}
			w.PutModel(m)
			for _, v := range versions {
				w.PutVersion(v)
			}
			w.PutWorkflow(f)
			w.PutKey(k)
		})
	}
	insert()
	write(t, store, func(w *Writer) {
		for _, in := range inputs {
			if err := w.DeleteInput(in); err != nil {
				t.Error(err)
			}
		}
		if err := w.DeleteModel(m); err != nil {
			t.Error(err)
		}
		w.DeleteWorkflow(f)
		w.DeleteKey(k)
	})
	tidyAll(t, store, 1)
	if n := keys(t, store, lo) + keys(t, store, []byte{tableHosted}); n != 0 {
		t.Errorf("%d keys are left after deleting one by one", n)
	}
	insert()
	write(t, store, func(w *Writer) {
		w.DeleteInputs()
		w.DeleteModels()
		w.DeleteWorkflow(f)
		w.DeleteKey(k)
	})
	tidyAll(t, store, 1)
	if n := keys(t, store, lo) + keys(t, store, []byte{tableHosted}); n != 0 {
		t.Errorf("%d keys are left after deleting everything", n)
	}
}

// tidyAll calls Tidy with a limit until nothing is left to tidy, and returns the number of calls.
func tidyAll(t testing.TB, store kv.Store, limit int) (steps int) {
	t.Helper()
	for more := true; more; steps++ {
		if steps > 1000 {
			t.Fatal("tidying does not end")
		}
		tx := kv.NewOverlay(store)
		var err error
		if more, err = Tidy(tx, testApp, limit); err != nil {
			t.Fatal(err)
		}
		if err := store.Apply(tx.Batch()); err != nil {
			t.Fatal(err)
		}
	}
	return steps
}

// TestURLs compares the index of URLs with the inputs after random inserts and deletions.
func TestURLs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memkv.New()
		r := Read(store, testApp)
		have := map[string][]*Input{}
		for i := range rapid.IntRange(1, 30).Draw(t, "changes") {
			url := rapid.SampledFrom([]string{"http://x/a", "http://x/b"}).Draw(t, "url")
			tx := kv.NewOverlay(store)
			var err error
			if n := len(have[url]); n > 0 && rapid.IntRange(0, 2).Draw(t, "delete") > 0 {
				k := rapid.IntRange(0, n-1).Draw(t, "which")
				err = Write(tx, testApp).DeleteInput(have[url][k])
				have[url] = slices.Delete(have[url], k, k+1)
			} else {
				in := input(uint32(i), "")
				in.URL = url
				err = Write(tx, testApp).InsertInput(in)
				have[url] = append(have[url], in)
			}
			if err == nil {
				err = store.Apply(tx.Batch())
			}
			if err != nil {
				t.Fatal(err)
			}
			for url, inputs := range have {
				var got, want []uint32
				for _, in := range inputs {
					want = append(want, in.Ord)
				}
				if err := r.InputsWithURL(url, func(ord uint32) bool {
					got = append(got, ord)
					return true
				}); err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s has %v, %v, want %v", url, got, err, want)
				}
			}
		}
	})
}

// TestTidy: tidying keeps data that a record refers to, deletes the rest, and reads few keys in a step.
func TestTidy(t *testing.T) {
	store := memkv.New()
	old, base := [32]byte{1}, [32]byte{2}
	picture := func(i int) blob.Hash { return blob.Sum([]byte{byte(i)}) }
	const n = 40
	batch(t, store, func(b *kv.Batch) {
		for i := range n {
			PutDerived(b, testApp, old, picture(i), raster.Crop{}, DerivedData{Values: []float32{1}})
			PutDerived(b, testApp, base, picture(i), raster.Crop{}, DerivedData{Values: []float32{2}})
			PutThumb(b, testApp, picture(i), raster.Crop{}, []byte("jpeg"))
		}
		PutDerived(b, AppID{9}, base, picture(1), raster.Crop{}, DerivedData{})
	})
	insert := func(from, to int) {
		write(t, store, func(w *Writer) {
			for i := from; i < to; i++ {
				in := input(uint32(i), "")
				in.Blob = picture(i % n)
				if err := w.InsertInput(in); err != nil {
					t.Error(err)
				}
			}
		})
	}
	insert(0, n)
	write(t, store, func(w *Writer) { w.DeleteInputs() })
	insert(n, n+5)
	if steps := tidyAll(t, store, 10); steps < 3*n/10 {
		t.Errorf("tidied %d records in %d steps of 10", 3*n, steps)
	}
	r := Read(store, testApp)
	for i := range n {
		_, err := r.DerivedOf(base, picture(i), raster.Crop{})
		_, thumb := r.Thumb(picture(i), raster.Crop{})
		if want := i < 5; (err == nil) != want || (thumb == nil) != want {
			t.Errorf("picture %d: %v, %v; in use: %v", i, err, thumb, want)
		}
	}
	if _, err := Read(store, AppID{9}).DerivedOf(base, picture(1), raster.Crop{}); err != nil {
		t.Errorf("another application's record: %v", err)
	}
	batch(t, store, func(b *kv.Batch) { ScheduleBaseCleanup(b, testApp, old) })
	tidyAll(t, store, 2)
	for i := range 5 {
		_, first := r.DerivedOf(old, picture(i), raster.Crop{})
		_, second := r.DerivedOf(base, picture(i), raster.Crop{})
		if _, thumb := r.Thumb(picture(i), raster.Crop{}); !errors.Is(first, ErrNotFound) || second != nil || thumb != nil {
			t.Errorf("after the old network went: %v, %v, %v", first, second, thumb)
		}
	}
	// Tidy keeps entries of later versions.
	batch(t, store, func(b *kv.Batch) { b.Put(testApp.TidyKey("?later"), nil) })
	tidyAll(t, store, 2)
	if _, err := store.Get(testApp.TidyKey("?later")); err != nil {
		t.Errorf("what a later version owes: %v", err)
	}
}

// TestManifestDigest reads manifests of this program and of an older one. The older digest depended on the order of inputs.
func TestManifestDigest(t *testing.T) {
	old := field.Encoder{}
	old.Text(1, "v1")
	old.Hash(5, bytes.Repeat([]byte{9}, 32))
	old.Raw(6, []byte{1})
	m, err := UnmarshalManifest(old.Bytes(nil))
	if err != nil || m.Version != "v1" || m.Digest != ([32]byte{}) || len(m.Extra) == 0 {
		t.Errorf("manifest of an older program: %+v, %v", m, err)
	}
	if got, err := manifestDigest(m.Marshal()); got != ([32]byte{}) || err != nil {
		t.Errorf("its digest: %x, %v, want none", got, err)
	}
	m.Digest = [32]byte{7}
	if got, err := manifestDigest(m.Marshal()); got != m.Digest || err != nil {
		t.Errorf("digest %x, %v, want %x", got, err, m.Digest)
	}
	if _, err := manifestDigest([]byte{1, 0xff}); !errors.Is(err, field.ErrFormat) {
		t.Errorf("a malformed manifest: %v", err)
	}
}

// TestObjects: tidying keeps the manifests that versions refer to.
func TestObjects(t *testing.T) {
	store := memkv.New()
	m := Manifest{Version: "v1", Head: []byte{1}, Digest: [32]byte{5, 6}, Inputs: []TrainingInput{{Ord: 1}}}
	var hash, other blob.Hash
	batch(t, store, func(b *kv.Batch) {
		hash = PutObject(b, testApp, m.Marshal())
		other = PutObject(b, testApp, []byte("other"))
	})
	dot := log.Dot{Writer: 1, Seq: 1}
	v := &Version{Model: dot, Seq: 1, ID: "v1", Code: VersionTrained, Manifest: hash}
	deletedVersion := &Version{Model: dot, Seq: 2, ID: "v2", Code: VersionTrained, Manifest: other}
	write(t, store, func(w *Writer) {
		w.PutVersion(v)
		w.PutVersion(deletedVersion)
		w.DeleteVersion(deletedVersion)
	})
	r := Read(store, testApp)
	if data, err := r.Object(other); err != nil || string(data) != "other" {
		t.Errorf("before tidying: %q, %v", data, err)
	}
	tidyAll(t, store, 100)
	if _, err := r.Object(other); !errors.Is(err, ErrNotFound) {
		t.Errorf("an object that no version names: %v", err)
	}
	got, err := r.Manifest(v)
	if diff := cmp.Diff(m, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := r.Manifest(deletedVersion); !errors.Is(err, ErrNotFound) {
		t.Errorf("manifest of a deleted version: %v", err)
	}
	if got, err := r.TrainingDigest(v); got != m.Digest || err != nil {
		t.Errorf("TrainingDigest = %x, %v, want %x", got, err, m.Digest)
	}
	for _, version := range []*Version{deletedVersion, {ID: "v3", Code: VersionQueued}} {
		if got, err := r.TrainingDigest(version); got != ([32]byte{}) || err != nil {
			t.Errorf("TrainingDigest of %s = %x, %v, want none", version.ID, got, err)
		}
	}
	batch(t, store, func(b *kv.Batch) { b.Put(append(testApp.key(tableObject, 0), hash[:]...), []byte("x")) })
	if _, err := r.Object(hash); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("a damaged object: %v, want ErrCorrupt", err)
	}
}

// TestDamagedRecords: every method that reads a damaged record returns an error.
func TestDamagedRecords(t *testing.T) {
	dot := log.Dot{Writer: 1, Seq: 1}
	a := testApp
	tests := []struct {
		name string
		keys [][]byte
		read func(r Reader) error
	}{
		{"header", [][]byte{a.key(tableHeader, 0)}, func(r Reader) error { _, err := r.Counts(); return err }},
		{"state", [][]byte{a.key(tableHeader, 0)}, func(r Reader) error { return r.StateTables(nil) }},
		{"site", [][]byte{a.uint32Key(tableSite, 1)}, func(r Reader) error { _, err := r.SiteSeq(1); return err }},
		{"writers", [][]byte{a.uint32Key(tableSite, 1)}, func(r Reader) error { return r.Writers(nil) }},
		{"deletion", [][]byte{a.dotKey(tableDeletion, dot, 0)}, func(r Reader) error { _, err := r.Deletion(dot); return err }},
		{"input", [][]byte{a.uint32Key(tableInput, 1)}, func(r Reader) error { _, err := r.Input(1); return err }},
		{"inputs", [][]byte{a.uint32Key(tableInput, 1)}, func(r Reader) error { return r.Inputs(0, nil) }},
		{"id", [][]byte{a.stringKey(tableInputID, "i")}, func(r Reader) error { _, err := r.InputByID("i"); return err }},
		{"dot", [][]byte{a.dotKey(tableInputDot, dot, 0)}, func(r Reader) error { _, err := r.InputByDot(dot); return err }},
		{"url", [][]byte{a.url("u")}, func(r Reader) error { return r.InputsWithURL("u", nil) }},
		{"concept", [][]byte{a.stringKey(tableConcept, "c")}, func(r Reader) error { _, err := r.Concept("c"); return err }},
		{"concepts", [][]byte{a.uint64Key(tableConceptSeq, 1)}, func(r Reader) error { return r.Concepts(nil) }},
		{"model", [][]byte{a.stringKey(tableModel, "m")}, func(r Reader) error { _, err := r.Model("m"); return err }},
		{"version", [][]byte{append(a.dotKey(tableVersionID, dot, 1), 'v')}, func(r Reader) error { _, err := r.Version(dot, "v"); return err }},
		{"versions", [][]byte{a.version(dot, 1)}, func(r Reader) error { return r.Versions(dot, nil) }},
		{"current", [][]byte{a.version(dot, 1)}, func(r Reader) error { _, err := r.CurrentVersion(dot); return err }},
		{"trainings", [][]byte{a.uint64Key(tableTraining, 1)}, func(r Reader) error { return r.PendingVersions(nil) }},
		{"workflow", [][]byte{a.stringKey(tableWorkflow, "w")}, func(r Reader) error { _, err := r.Workflow("w"); return err }},
		{"app", [][]byte{a.stringKey(tableKeyApp, "a")}, func(r Reader) error { _, err := r.App("a"); return err }},
		{"apps", [][]byte{a.stringKey(tableKeyApp, "a")}, func(r Reader) error { return r.Apps(nil) }},
		{"key", [][]byte{a.stringKey(tableKey, string(make([]byte, 32)))}, func(r Reader) error { _, err := r.Key([32]byte{}); return err }},
		{"keys", [][]byte{a.stringKey(tableKey, string(make([]byte, 32)))}, func(r Reader) error { return r.Keys(nil) }},
		{"feedback", [][]byte{a.uint64Key(tableFeedback, 1)}, func(r Reader) error { return r.Feedback(nil) }},
		{"derived", [][]byte{derivedKey(a, [32]byte{}, blob.Hash{}, raster.Crop{})}, func(r Reader) error { _, err := r.DerivedOfInput([32]byte{}, &Input{}); return err }},
		{"hosted", [][]byte{hostedKey([16]byte{1}, a)}, func(r Reader) error { _, _, err := HostedInput(r.KV(), [16]byte{1}); return err }},
	}
	for _, tt := range tests {
		store := memkv.New()
		r := Read(store, testApp)
		// A missing record is not found, or reads as empty.
		if err := tt.read(r); err != nil && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s, missing: %v", tt.name, err)
		}
		batch(t, store, func(b *kv.Batch) {
			for _, key := range tt.keys {
				b.Put(key, []byte{99})
			}
		})
		if err := tt.read(r); !errors.Is(err, field.ErrFormat) && tt.name != "concepts" {
			t.Errorf("%s, damaged: %v, want ErrFormat", tt.name, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := tt.read(r); !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s, of a closed store: %v, want ErrClosed", tt.name, err)
		}
	}
}

// TestDamagedState: if the state has a horizon, StateTables returns an error for a damaged record.
func TestDamagedState(t *testing.T) {
	for _, key := range [][]byte{testApp.uint32Key(tableInput, 1), testApp.stringKey(tableModel, "m")} {
		store := memkv.New()
		write(t, store, func(w *Writer) { w.PutHeader(&Header{Horizon: 1}) })
		batch(t, store, func(b *kv.Batch) { b.Put(key, []byte{99}) })
		if err := Read(store, testApp).StateTables(func(_, _ []byte) bool { return true }); !errors.Is(err, field.ErrFormat) {
			t.Errorf("damaged state: %v, want ErrFormat", err)
		}
	}
}

func TestStateTables(t *testing.T) {
	store := memkv.New()
	write(t, store, func(w *Writer) {
		w.PutHeader(&Header{Seq: 3})
		w.PutNames(1, &Names{Ranges: []NameRange{{1, 3}}})
		if err := w.InsertInput(input(0, "p")); err != nil {
			t.Error(err)
		}
		w.PutConcept(&Concept{ID: "c", Seq: 1})
	})
	batch(t, store, func(b *kv.Batch) {
		PutDerived(b, testApp, [32]byte{1}, blob.Sum([]byte("p")), raster.Crop{}, DerivedData{})
		b.Put(testApp.LocalKey("note"), nil)
		b.Put(append(testApp.IndexPrefix(), 1), nil)
		b.Put(append(testApp.LogPrefix(), 1), nil)
	})
	var tables []byte
	r := Read(store, testApp)
	if err := r.StateTables(func(key, _ []byte) bool {
		tables = append(tables, key[0])
		return true
	}); err != nil || string(tables) != "csiIdubnN" {
		t.Errorf("tables %q, %v", tables, err)
	}
	n := 0
	if err := r.StateTables(func(_, _ []byte) bool {
		n++
		return n < 3
	}); err != nil || n != 3 {
		t.Errorf("stopped after %d, %v, want 3", n, err)
	}
	if r.AppID() != testApp || r.KV() != kv.Reader(store) {
		t.Error("a reader has another application or store")
	}
	// ReplaceState replaces another state by an equal one.
	other := memkv.New()
	write(t, other, func(w *Writer) {
		if err := w.InsertInput(input(7, "old")); err != nil {
			t.Error(err)
		}
	})
	batch(t, other, func(b *kv.Batch) {
		if err := ReplaceState(b, store, testApp); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff(dump(t, r), dump(t, Read(other, testApp))); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	if _, ord, err := HostedInput(other, [16]byte{1, 0}); err != nil || ord != 0 {
		t.Errorf("the picture leads to %d, %v", ord, err)
	}
}

func dump(t testing.TB, r Reader) (out []string) {
	t.Helper()
	if err := r.StateTables(func(key, value []byte) bool {
		out = append(out, fmt.Sprintf("%x %x", key, value))
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestYieldStops: every list ends when yield returns false.
func TestYieldStops(t *testing.T) {
	store := memkv.New()
	dot := log.Dot{Writer: 1, Seq: 1}
	write(t, store, func(w *Writer) {
		for i := range 3 {
			n := uint64(i + 1)
			in := input(uint32(i), "p")
			in.Code = InputPending
			if err := w.InsertInput(in); err != nil {
				t.Error(err)
			}
			w.PutConcept(&Concept{Seq: n, ID: fmt.Sprint(n)})
			w.PutModel(&Model{Seq: n, ID: fmt.Sprint(n), Dot: log.Dot{Writer: 2, Seq: n}})
			w.PutVersion(&Version{Model: dot, Seq: n, ID: fmt.Sprint(n), Code: VersionQueued})
			w.PutWorkflow(&Workflow{Seq: n, ID: fmt.Sprint(n), Dot: log.Dot{Writer: 3, Seq: n}})
			w.PutFeedback(&Feedback{Seq: n})
			w.PutApp(&App{ID: fmt.Sprint(n)})
			w.PutKey(&Key{Hash: [32]byte{byte(n)}})
		}
	})
	r := Read(store, testApp)
	n := 0
	two := func() bool {
		n++
		return n < 2
	}
	lists := []func() error{
		func() error { return r.Inputs(0, func(Input) bool { return two() }) },
		func() error { return r.InputsWithURL("http://x/p", func(uint32) bool { return two() }) },
		func() error { return r.ByBlob(blob.Sum([]byte("p")), func(uint32) bool { return two() }) },
		func() error { return r.PendingInputs(0, func(uint32) bool { return two() }) },
		func() error { return r.Concepts(func(Concept) bool { return two() }) },
		func() error { return r.Models(func(Model) bool { return two() }) },
		func() error { return r.Versions(dot, func(Version) bool { return two() }) },
		func() error { return r.PendingVersions(func(Version) bool { return two() }) },
		func() error { return r.Workflows(func(Workflow) bool { return two() }) },
		func() error { return r.Feedback(func(Feedback) bool { return two() }) },
		func() error { return r.Apps(func(App) bool { return two() }) },
		func() error { return r.Keys(func(Key) bool { return two() }) },
	}
	for i, list := range lists {
		n = 0
		if err := list(); err != nil || n != 2 {
			t.Errorf("list %d stopped after %d, %v, want 2", i, n, err)
		}
	}
	var versions []string
	if err := r.Versions(dot, func(v Version) bool {
		versions = append(versions, v.ID)
		return true
	}); err != nil || !slices.Equal(versions, []string{"3", "2", "1"}) {
		t.Errorf("versions %v, %v, want the newest first", versions, err)
	}
	if f, err := r.WorkflowByDot(log.Dot{Writer: 3, Seq: 2}); err != nil || f.ID != "2" {
		t.Errorf("by its dot the workflow is %q, %v", f.ID, err)
	}
	if _, err := r.WorkflowByDot(dot); !errors.Is(err, ErrNotFound) {
		t.Errorf("a workflow of no operation: %v", err)
	}
}
