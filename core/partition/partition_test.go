package partition_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

var app = catalog.AppID{15: 1}

func clock() time.Time { return time.UnixMilli(1_700_000_000_000) }

var opened atomic.Uint64

// opening returns the random bytes of another opening. Two openings with the same bytes draw the same writer, like a machine that resumes
// twice from one image of its memory.
func opening() log.Epoch {
	e := log.Epoch{1}
	binary.BigEndian.PutUint64(e[8:], opened.Add(1))
	return e
}

// open opens an origin whose log begins with the test's operations, since the first rules need no entry.
func open(t testing.TB, store kv.Store) *partition.Origin {
	t.Helper()
	return openAs(t, store, opening(), fold.FirstVersion)
}

func openAs(t testing.TB, store kv.Store, opening log.Epoch, rules uint32) *partition.Origin {
	t.Helper()
	p, err := partition.OpenOrigin(partition.Options{Store: store, App: app, Clock: clock, Epoch: opening, Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kind is an origin or a replica.
type kind interface {
	Submit(ctx context.Context, by string, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, error)
	SubmitSpan(ctx context.Context, c partition.Caller, bodies []log.Body, also func(*kv.Batch)) ([]fold.Verdict, partition.Span, error)
	View() *partition.View
	Conflicts(yield func(partition.Conflict) bool) error
	Step(ctx context.Context, now time.Time) (more bool, err error)
}

func submit(t testing.TB, p kind, bodies ...log.Body) []fold.Verdict {
	t.Helper()
	v, err := p.Submit(context.Background(), "key", bodies, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ids(t tb, r catalog.Reader) (out []string) {
	t.Helper()
	err := r.Inputs(0, func(in catalog.Input) bool {
		out = append(out, in.ID)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func create(id string) *log.InputCreate {
	return &log.InputCreate{ID: id, Blob: blob.Sum([]byte(id)), ContentType: "image/png"}
}

func TestSubmitAndRead(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	before := p.View()
	v := submit(t, p, create("a"), create("b"), create("a"))
	w := v[0].Dot.Writer
	want := []fold.Verdict{
		{Code: fold.OK, Ord: 0, Dot: log.Dot{Writer: w, Seq: 1}, ID: "a"},
		{Code: fold.OK, Ord: 1, Dot: log.Dot{Writer: w, Seq: 2}, ID: "b"},
		{Code: fold.Duplicate, Detail: "id", Ord: 0, Dot: log.Dot{Writer: w, Seq: 1}, ID: "a"},
	}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if got := ids(t, before.Reader); len(got) != 0 || before.Seq() != 0 {
		t.Errorf("the view from before shows %v at %d", got, before.Seq())
	}
	after := p.View()
	if got := ids(t, after.Reader); !slices.Equal(got, []string{"a", "b"}) || after.Seq() != 3 {
		t.Errorf("inputs %v at %d, want a and b at 3", got, after.Seq())
	}
	for _, v := range []*partition.View{before, after} {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if err := v.Close(); err == nil {
			t.Error("a view may be closed twice")
		}
	}
	counts, err := catalog.Read(store, app).Counts()
	if err != nil || counts != (catalog.Counts{Processed: 2}) {
		t.Errorf("counts %+v, %v", counts, err)
	}
}

// TestReopen checks that a reopened partition continues its log and its clock, and draws another writer. Its entries have another epoch.
func TestReopen(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	submit(t, p, create("a"), create("b"))
	epoch := p.Opening()
	first, err := catalog.Read(store, app).InputByID("b")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Submit(context.Background(), "", []log.Body{create("x")}, nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("submit to a closed partition: %v", err)
	}
	p = open(t, store)
	submit(t, p, create("c"))
	third, err := catalog.Read(store, app).InputByID("c")
	if err != nil {
		t.Fatal(err)
	}
	if third.Dot.Seq != 1 || third.Dot.Writer == first.Dot.Writer || third.Created <= first.Created || third.Ord != 2 {
		t.Errorf("after opening again %v at %v as %d, after %v at %v", third.Dot, third.Created, third.Ord, first.Dot, first.Created)
	}
	if p.Opening() == epoch || p.Log().Head() != 3 {
		t.Errorf("log %v at %d", p.Opening(), p.Log().Head())
	}
	for seq, want := range []log.Mark{{}, {Epoch: epoch, To: 2}, {Epoch: epoch, To: 2}, {Epoch: p.Opening(), To: 3}} {
		if got := p.Log().EpochOf(uint64(seq)); seq > 0 && got != want {
			t.Errorf("entry %d has the epoch %x, want %x", seq, got, want)
		}
	}
}

// TestOpenFolds deletes the state. Open folds the log again, to the same digest.
func TestOpenFolds(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	for range 3 {
		submit(t, p, create(""), &log.ModelCreate{Concepts: []string{"x"}}, create(""))
	}
	want := digest(t, store)
	lo, hi := app.Range()
	var b kv.Batch
	err := store.Scan(lo, hi, func(key, _ []byte) bool {
		if !slices.Equal(key[:18], app.LogPrefix()) {
			b.Delete(key)
		}
		return true
	})
	if err == nil {
		err = store.Apply(&b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if digest(t, store) == want {
		t.Fatal("the state is still there")
	}
	open(t, store)
	if digest(t, store) != want {
		t.Error("folding the log again gave another state")
	}
}

func digest(t tb, store kv.Reader) [32]byte {
	t.Helper()
	d, err := fold.Digest(store, app)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDerivedRecordStaysWithPicture: a derived record that came with an operation stays until the last input with its picture is deleted.
func TestDerivedRecordStaysWithPicture(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	base := [32]byte{1}
	picture := blob.Sum([]byte("picture"))
	put := func(b *kv.Batch) {
		catalog.PutDerived(b, app, base, picture, raster.Crop{}, catalog.DerivedData{Embedding: []byte{1, 2}, Values: []float32{0.5}})
	}
	body := func(id string) log.Body { return &log.InputCreate{ID: id, Blob: picture, ContentType: "image/png"} }
	v, err := p.Submit(context.Background(), "", []log.Body{body("a"), body("b")}, put)
	if err != nil {
		t.Fatal(err)
	}
	state := catalog.Read(store, app)
	for i, x := range v {
		in, err := state.Input(x.Ord)
		if err != nil {
			t.Fatal(err)
		}
		d, err := state.DerivedOfInput(base, &in)
		if err != nil || !slices.Equal(d.Values, []float32{0.5}) {
			t.Fatalf("derived record %+v, %v", d, err)
		}
		submit(t, p, &log.InputDelete{Input: x.Dot})
		steps(t, p)
		_, err = state.DerivedOf(base, picture, raster.Crop{})
		if deleted := errors.Is(err, catalog.ErrNotFound); deleted != (i == 1) {
			t.Errorf("after deleting %d of 2 inputs: %v", i+1, err)
		}
	}
}

func steps(t tb, p kind) {
	t.Helper()
	for {
		more, err := p.Step(context.Background(), clock())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}
