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
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// rows returns at most n pairs of a range, as text.
func rows(t require, scan scanner, lo, hi []byte, n int) (out []string) {
	t.Helper()
	if err := scan(lo, hi, func(key, value []byte) bool {
		out = append(out, fmt.Sprintf("%x %x", key, value))
		return len(out) < n
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

type require interface {
	Helper()
	Fatal(args ...any)
}

const everything = 1 << 30

// TestUndo changes a state in rounds. Each round first notes its changes, and checks the state before them.
func TestUndo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, store := memkv.New(), memkv.New()
		var first kv.Batch
		// Some keys belong to inputs. There may be more records than a merge reads at once.
		n := rapid.SampledFrom([]int{3, undoPage, 3 * undoPage}).Draw(t, "keys")
		key := func(i int) []byte {
			if i%2 == 0 {
				return testApp.uint32Key(tableInput, uint32(i))
			}
			return testApp.uint32Key(tableBlob, uint32(i))
		}
		for i := range n {
			if rapid.Bool().Draw(t, "there") {
				first.Put(key(i), []byte{byte(i)})
			}
		}
		for _, s := range []kv.Store{before, store} {
			if err := s.Apply(&first); err != nil {
				t.Fatal(err)
			}
		}
		inputs := map[uint32]bool{}
		share := rapid.IntRange(0, 4).Draw(t, "share")
		for round := range rapid.IntRange(0, 2).Draw(t, "rounds") {
			tx := kv.NewOverlay(store)
			for i := range n {
				if rapid.IntRange(0, 3).Draw(t, "change") >= share {
					continue
				}
				k := key(i)
				had, err := HasUndo(tx, testApp, k)
				if err != nil {
					t.Fatal(err)
				}
				if !had {
					was, err := kv.Find(tx, k)
					if err != nil {
						t.Fatal(err)
					}
					PutUndo(tx, testApp, k, was)
				}
				if i%2 == 0 {
					inputs[uint32(i)] = true
				}
				if rapid.Bool().Draw(t, "put") {
					tx.Put(k, []byte{byte(i), byte(round)})
				} else {
					tx.Delete(k)
				}
			}
			if err := store.Apply(tx.Batch()); err != nil {
				t.Fatal(err)
			}
		}
		was := WithoutPending(store, testApp)
		some := rapid.IntRange(1, 2*n).Draw(t, "some")
		lo, hi := key(0), key(rapid.IntRange(0, n).Draw(t, "end"))
		from, end := testApp.Range()
		for _, r := range [][2][]byte{{lo, hi}, {from, testApp.key(tableUndo, 0)}} {
			if bytes.Compare(r[0], r[1]) >= 0 {
				continue
			}
			if diff := cmp.Diff(rows(t, before.Scan, r[0], r[1], some), rows(t, was.Scan, r[0], r[1], some)); diff != "" {
				t.Fatalf("scanned (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(rows(t, before.ScanBack, r[0], r[1], some), rows(t, was.ScanBack, r[0], r[1], some)); diff != "" {
				t.Fatalf("scanned backwards (-want +got):\n%s", diff)
			}
		}
		for i := range n {
			want, werr := before.Get(key(i))
			got, err := was.Get(key(i))
			if !bytes.Equal(want, got) || !errors.Is(err, werr) {
				t.Fatalf("%d was %x, %v, want %x, %v", i, got, err, want, werr)
			}
		}
		changed, err := HasAnyUndo(store, testApp)
		if err != nil || changed != (len(rows(t, store.Scan, testApp.key(tableUndo, 0), end, 1)) > 0) {
			t.Fatalf("some %v, %v", changed, err)
		}
		tx := kv.NewOverlay(store)
		last := -1
		if err := Undo(tx, testApp, func(ord uint32) {
			if int(ord) <= last || !inputs[ord] {
				t.Fatalf("input %d after %d", ord, last)
			}
			last = int(ord)
			delete(inputs, ord)
		}); err != nil || len(inputs) > 0 {
			t.Fatalf("inputs %v were changed and not told, %v", inputs, err)
		}
		if err := store.Apply(tx.Batch()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows(t, before.Scan, from, end, everything), rows(t, store.Scan, from, end, everything)); diff != "" {
			t.Fatalf("taken back (-want +got):\n%s", diff)
		}
	})
}

// TestDiffer compares the records of inputs in two states.
func TestDiffer(t *testing.T) {
	a, b := memkv.New(), memkv.New()
	for i, in := range []*Input{input(0, "same"), input(1, "old"), input(2, "gone")} {
		write(t, a, func(w *Writer) { _ = w.InsertInput(in) })
		if i == 0 {
			write(t, b, func(w *Writer) { _ = w.InsertInput(in) })
		}
	}
	write(t, b, func(w *Writer) { _ = w.InsertInput(input(1, "new")) })
	write(t, b, func(w *Writer) { _ = w.InsertInput(input(3, "added")) })
	for ord, want := range []string{"", "old new", "gone -", "- added", ""} {
		was, is, differ, err := DiffInput(Read(a, testApp), Read(b, testApp), uint32(ord))
		name := func(in *Input) string {
			if in == nil {
				return "-"
			}
			return in.URL[len("http://x/"):]
		}
		got := name(was) + " " + name(is)
		if !differ {
			got = ""
		}
		if got != want || err != nil {
			t.Errorf("%d: %q, %v, want %q", ord, got, err, want)
		}
	}
}

func TestPosition(t *testing.T) {
	for _, x := range []struct {
		key  []byte
		want bool
	}{
		{testApp.key(tableHeader, 0), true},
		{testApp.uint32Key(tableSite, 3), true},
		{testApp.uint32Key(tableInput, 3), false},
		{AppID{9}.key(tableHeader, 0), false},
		{nil, false},
	} {
		if got := IsPositionKey(testApp, x.key); got != x.want {
			t.Errorf("%x: %v", x.key, got)
		}
	}
}

// someState returns a store with random inputs, their derived records and random concepts.
func someState(t *rapid.T) *memkv.Store {
	store := memkv.New()
	tx := kv.NewOverlay(store)
	w := Write(tx, testApp)
	w.PutHeader(&Header{Seq: rapid.Uint64Range(1, 9).Draw(t, "seq")})
	w.PutNames(1, &Names{Ranges: []NameRange{{1, 2}}})
	for ord := range uint32(6) {
		if rapid.Bool().Draw(t, "input") {
			in := input(ord, rapid.SampledFrom([]string{"p", "q"}).Draw(t, "picture"))
			if err := w.InsertInput(in); err != nil {
				t.Fatal(err)
			}
			PutDerived(tx, testApp, [32]byte{1}, in.Blob, in.Crop, DerivedData{Values: []float32{float32(ord)}})
		}
		if rapid.Bool().Draw(t, "concept") {
			w.PutConcept(&Concept{ID: fmt.Sprint(ord), Seq: uint64(ord) + 1, Name: rapid.StringN(0, 1, 1).Draw(t, "name")})
		}
	}
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	return store
}

// copyPairs returns the pairs of a copied state, starting at a key.
func copyPairs(t require, r Reader, from []byte) (pairs []Pair) {
	t.Helper()
	if err := r.CopyTables([32]byte{1}, from, func(key, value []byte) bool {
		pairs = append(pairs, Pair{bytes.Clone(key), bytes.Clone(value)})
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return pairs
}

// TestAdopt replaces a state by another one in parts of random sizes.
func TestAdopt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theirs, ours := someState(t), someState(t)
		want := copyPairs(t, Read(theirs, testApp), nil)
		if from := rapid.IntRange(0, len(want)-1).Draw(t, "from"); !cmp.Equal(want[from:], copyPairs(t, Read(theirs, testApp), want[from].Key)) {
			t.Fatalf("from %x on it is another state", want[from].Key)
		}
		differ := map[uint32]bool{}
		for ord := range uint32(6) {
			_, _, d, err := DiffInput(Read(ours, testApp), Read(theirs, testApp), ord)
			if err != nil {
				t.Fatal(err)
			}
			if d {
				differ[ord] = true
			}
		}
		changed := map[uint32]bool{}
		tx := kv.NewOverlay(ours)
		a := Adopt(tx, testApp, func(ord uint32, _ *Input) { changed[ord] = true })
		for rest := want; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if err := a.Keys(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := a.End(); err != nil {
			t.Fatal(err)
		}
		if err := ours.Apply(tx.Batch()); err != nil {
			t.Fatal(err)
		}
		state := func(s *memkv.Store) (out []string) {
			_ = Read(s, testApp).StateTables(func(key, value []byte) bool {
				out = append(out, fmt.Sprintf("%x %x", key, value))
				return true
			})
			lo, hi := HostedRange()
			return append(out, rows(t, s.Scan, lo, hi, everything)...)
		}
		if diff := cmp.Diff(state(theirs), state(ours)); diff != "" {
			t.Fatalf("adopted (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(differ, changed); diff != "" {
			t.Fatalf("told to have changed (-want +got):\n%s", diff)
		}
	})
}

// TestAdoptRefuses: keys out of order and keys of other tables are rejected.
func TestAdoptRefuses(t *testing.T) {
	store := memkv.New()
	one, two := Pair{Key: []byte{tableConcept, 'a'}}, Pair{Key: []byte{tableConcept, 'b'}}
	for _, pairs := range [][]Pair{
		{two, one},
		{one, one},
		{one, {Key: []byte{tableHeader}}},
		{{Key: []byte{tableLog, 1}}},
		{{Key: []byte{tableInput, 1}, Value: []byte{1}}},
		{{Key: append([]byte{tableDerived}, make([]byte, 1+pictureBytes+31)...)}, {Key: []byte{tableDerived, 1}}},
	} {
		a := Adopt(kv.NewOverlay(store), testApp, func(uint32, *Input) {})
		if err := a.Keys(pairs); !errors.Is(err, ErrOrder) {
			t.Errorf("%x: %v, want ErrOrder", pairs, err)
		}
	}
	a := Adopt(kv.NewOverlay(store), testApp, func(uint32, *Input) {})
	wrong := encodeInput(nil, input(3, "p"))
	if err := a.Keys([]Pair{{Key: []byte{tableInput, 0, 0, 0, 4}, Value: wrong}}); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("an input under another's ordinal: %v", err)
	}
}

// TestDerives finds the inputs of derived records. After Wipe and ScheduleDerivedCleanup, tidying deletes the derived records.
func TestDerives(t *testing.T) {
	store := memkv.New()
	write(t, store, func(w *Writer) {
		for ord, picture := range []string{"p", "q", "p"} {
			if err := w.InsertInput(input(uint32(ord), picture)); err != nil {
				t.Error(err)
			}
		}
	})
	base := [32]byte{1}
	record := encodeDerivedData(nil, &DerivedData{Values: []float32{1}})
	batch(t, store, func(b *kv.Batch) {
		if err := PutDerivedRecord(b, testApp, base, blob.Sum([]byte("p")), raster.Crop{}, record); err != nil {
			t.Error(err)
		}
		if err := PutDerivedRecord(b, testApp, base, blob.Sum([]byte("q")), raster.Crop{}, []byte{9}); err == nil {
			t.Error("bytes that are no record were written")
		}
	})
	r := Read(store, testApp)
	if got, err := r.DerivedRecord(base, blob.Sum([]byte("p")), raster.Crop{}); err != nil || !bytes.Equal(got, record) {
		t.Errorf("record %x, %v", got, err)
	}
	if some, err := r.HasDerived(); err != nil || !some {
		t.Errorf("some %v, %v", some, err)
	}
	var ords []uint32
	err := InputsOfDerived(r, copyPairs(t, r, nil), func(ord uint32) { ords = append(ords, ord) })
	if want := []uint32{0, 2}; err != nil || !slices.Equal(ords, want) {
		t.Errorf("inputs %v, %v, want %v", ords, err, want)
	}
	tx := kv.NewOverlay(store)
	Wipe(tx, testApp)
	ScheduleDerivedCleanup(tx, testApp)
	if err := store.Apply(tx.Batch()); err != nil {
		t.Fatal(err)
	}
	if left := dump(t, r); len(left) > 0 {
		t.Errorf("left of the state: %v", left)
	}
	tidyAll(t, store, 1)
	if some, err := r.HasDerived(); err != nil || some {
		t.Errorf("derived records are left: %v, %v", some, err)
	}
}

// TestLeases stores edges and sites, and finds them.
func TestLeases(t *testing.T) {
	store := memkv.New()
	app, other := AppID{1}.String(), AppID{2}.String()
	edge := Edge{ID: "e", Name: "attic", Apps: []string{app}, Token: [32]byte{1}, Key: [32]byte{2}, Site: 2, Created: 1, Enrolled: 2}
	sites := []Site{
		{Site: 2, Edge: "e", Created: 1},
		{Site: 3, App: app, Holder: "h", Secret: [32]byte{3}, Created: 4, Until: 9},
		{Site: 4, App: other, Created: 4, Until: 9},
		{Site: 5, App: app, Created: 4, Until: 9},
	}
	write(t, store, func(w *Writer) {
		w.PutApp(&App{ID: app, Name: "n"})
		w.PutEdge(&edge)
		for i := range sites {
			w.PutSite(&sites[i])
		}
	})
	r := Read(store, testApp)
	if got, err := r.EdgeByToken(edge.Token); err != nil || !cmp.Equal(got, edge) {
		t.Errorf("by its token: %+v, %v", got, err)
	}
	if !edge.Replicates(app) || edge.Replicates(other) {
		t.Errorf("it holds another's, or not its own")
	}
	if x, err := r.AppRecord(app, "e"); err != nil || x.Edge.ID != "e" || x.Edge.Token != [32]byte{} {
		t.Errorf("register %+v, %v", x, err)
	}
	if x, err := r.AppRecord(app, ""); err != nil || x.Edge.ID != "" || x.Revoked != "" {
		t.Errorf("a browser's register %+v, %v", x, err)
	}
	if _, err := r.AppRecord(other, ""); !errors.Is(err, ErrNotFound) {
		t.Errorf("the register of what never was: %v", err)
	}
	var all []Site
	var edges []Edge
	if err := errors.Join(
		r.Sites(func(s Site) bool { all = append(all, s); return true }),
		r.Edges(func(e Edge) bool { edges = append(edges, e); return true }),
	); err != nil || !cmp.Equal(all, sites) || !cmp.Equal(edges, []Edge{edge}) {
		t.Errorf("sites %+v, edges %+v, %v", all, edges, err)
	}
	edge.Revoked = 5
	write(t, store, func(w *Writer) { w.PutEdge(&edge) })
	if _, err := r.EdgeByToken(edge.Token); !errors.Is(err, ErrNotFound) {
		t.Errorf("the token of an edge that was revoked leads to it: %v", err)
	}
	if got, err := r.Edge("e"); err != nil || got.Replicates(app) {
		t.Errorf("revoked, it holds: %+v, %v", got, err)
	}
	if x, err := r.AppRecord(app, "e"); err != nil || x.Revoked != ReasonRevoked {
		t.Errorf("register %+v, %v", x, err)
	}
	write(t, store, func(w *Writer) {
		if err := w.DeleteApp(&App{ID: app}, 9); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.Site(3); !errors.Is(err, ErrNotFound) {
		t.Errorf("a site of an application that was deleted: %v", err)
	}
	if s, err := r.Site(4); err != nil || s.App != other {
		t.Errorf("another's site %+v, %v", s, err)
	}
	if x, err := r.AppRecord(app, ""); err != nil || x.Revoked != ReasonDeleted {
		t.Errorf("register %+v, %v", x, err)
	}
}
