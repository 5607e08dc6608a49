package fold_test

import (
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

var app = catalog.AppID{1, 15: 1}

// tb is the part of *testing.T and *rapid.T that the helpers need.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a growing log with the state that is folded from it.
type world struct {
	tb
	app     catalog.AppID
	store   kv.Store
	entries []log.Entry
	sites   map[log.Writer]uint64
	folded  int
	out     fold.Outcome // of the last run
}

func newWorld(t tb) *world {
	return &world{tb: t, app: app, store: memkv.New(), sites: map[log.Writer]uint64{}}
}

func (w *world) reader() catalog.Reader { return catalog.Read(w.store, w.app) }

// entry appends an operation of a site to the log. It is encoded and decoded, as in a real log.
func (w *world) entry(site log.Writer, at log.HLC, body log.Body) log.Dot {
	w.Helper()
	w.sites[site]++
	return w.raw(log.Op{Dot: log.Dot{Writer: site, Seq: w.sites[site]}, At: at, By: "key", Body: body})
}

func (w *world) raw(op log.Op) log.Dot {
	w.Helper()
	op, err := log.Decode(log.Encode(nil, &op))
	if err != nil {
		w.Fatal(err)
	}
	w.entries = append(w.entries, log.Entry{Seq: uint64(len(w.entries) + 1), Op: op})
	return op.Dot
}

// fold folds all new entries in runs of n.
func (w *world) fold(n int) (verdicts []fold.Verdict) {
	w.Helper()
	f := fold.New(w.app)
	tx := kv.NewOverlay(w.store)
	for w.folded < len(w.entries) {
		tx.Reset(w.store)
		if err := f.Begin(tx); err != nil {
			w.Fatal(err)
		}
		for range min(n, len(w.entries)-w.folded) {
			v, err := f.Apply(&w.entries[w.folded])
			if err != nil {
				w.Fatal(err)
			}
			verdicts = append(verdicts, v)
			w.folded++
		}
		w.out = f.End()
		if err := w.store.Apply(tx.Batch()); err != nil {
			w.Fatal(err)
		}
	}
	return verdicts
}

// do appends one operation, folds it and returns its verdict.
func (w *world) do(site log.Writer, at log.HLC, body log.Body) fold.Verdict {
	w.Helper()
	w.entry(site, at, body)
	return w.fold(1)[0]
}

// expect is do, and fails the test unless the verdict has the code.
func (w *world) expect(code fold.Code, site log.Writer, at log.HLC, body log.Body) fold.Verdict {
	w.Helper()
	v := w.do(site, at, body)
	if v.Code != code {
		w.Fatalf("verdict on %T: %v %q, want %v", body, v.Code, v.Detail, code)
	}
	return v
}

func (w *world) input(id string) catalog.Input {
	w.Helper()
	in, err := w.reader().InputByID(id)
	if err != nil {
		w.Fatal(err)
	}
	return in
}

func (w *world) digest() [32]byte {
	w.Helper()
	d, err := fold.Digest(w.store, w.app)
	if err != nil {
		w.Fatal(err)
	}
	return d
}

// check checks the invariants of the state.
func (w *world) check() {
	w.Helper()
	r := w.reader()
	var got catalog.Counts
	pending := map[uint32]bool{}
	last := -1
	err := r.Inputs(0, func(in catalog.Input) bool {
		switch in.Code {
		case catalog.InputReady:
			got.Processed++
		case catalog.InputPending:
			got.ToProcess++
			pending[in.Ord] = true
		default:
			got.Errors++
		}
		if int(in.Ord) <= last {
			w.Fatalf("input %d after %d", in.Ord, last)
		}
		last = int(in.Ord)
		for _, find := range []func() (catalog.Input, error){
			func() (catalog.Input, error) { return r.InputByID(in.ID) },
			func() (catalog.Input, error) { return r.InputByDot(in.Dot) },
		} {
			if other, err := find(); err != nil || other.Ord != in.Ord {
				w.Fatalf("input %q of %v is found as %d, %v, want %d", in.ID, in.Dot, other.Ord, err, in.Ord)
			}
		}
		w.checkKeys(r, &in)
		return true
	})
	if err != nil {
		w.Fatal(err)
	}
	if counts, err := r.Counts(); err != nil || counts != got {
		w.Fatalf("counts are %+v, %v, and there are %+v", counts, err, got)
	}
	err = r.PendingInputs(0, func(ord uint32) bool {
		if !pending[ord] {
			w.Fatalf("input %d is not pending", ord)
		}
		delete(pending, ord)
		return true
	})
	if err != nil || len(pending) > 0 {
		w.Fatalf("inputs %v are not in the queue, %v", pending, err)
	}
}

func (w *world) checkKeys(r catalog.Reader, in *catalog.Input) {
	w.Helper()
	found := func(list func(yield func(uint32) bool) error) bool {
		ok := false
		if err := list(func(ord uint32) bool {
			ok = ok || ord == in.Ord
			return true
		}); err != nil {
			w.Fatal(err)
		}
		return ok
	}
	if in.URL != "" && !found(func(y func(uint32) bool) error { return r.InputsWithURL(in.URL, y) }) {
		w.Fatalf("input %q is not found by its URL", in.ID)
	}
	if !in.Blob.IsZero() && !found(func(y func(uint32) bool) error { return r.ByBlob(in.Blob, y) }) {
		w.Fatalf("input %q is not found by its picture", in.ID)
	}
	if in.Hosted != [16]byte{} {
		if a, ord, err := catalog.HostedInput(w.store, in.Hosted); err != nil || a != w.app || ord != in.Ord {
			w.Fatalf("picture %x leads to %v %d, %v", in.Hosted, a, ord, err)
		}
	}
}

func create(id string) *log.InputCreate { return &log.InputCreate{ID: id, Blob: blob.Sum([]byte(id))} }

func fetch(id, url string) *log.InputCreate { return &log.InputCreate{ID: id, URL: url} }

func labels(dot log.Dot, pairs ...any) *log.InputLabels {
	b := &log.InputLabels{Input: dot}
	for i := 0; i < len(pairs); i += 2 {
		b.Labels = append(b.Labels, log.Label{Concept: pairs[i].(string), Value: pairs[i+1].(log.Value)})
	}
	return b
}

var _ tb = (*testing.T)(nil)
