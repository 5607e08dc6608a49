package feed_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// kinds returns the types of frames, in order.
func kinds(fs []wire.Frame) string {
	var b bytes.Buffer
	for i, f := range fs {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprint(&b, f.Type)
	}
	return b.String()
}

func TestChanges(t *testing.T) {
	w := newWorld(t, nil)
	w.input("a", "red.png")
	w.input("b", "blue.png")
	r := w.join(w.App, w.Key)
	got := r.pull("since=0&vectors=q16")
	if k := kinds(got); k != "register derived entries checkpoint end" {
		t.Fatalf("frames %s", k)
	}
	register, err := wire.DecodeAppRecord(got[0].Body)
	if err != nil || register.App != w.App || register.Seq == 0 || len(register.Data) == 0 {
		t.Errorf("register %+v, %v", register, err)
	}
	derived, err := wire.DecodeDerived(got[1].Body)
	if err != nil || len(derived.Records) < 2 || derived.Base == [32]byte{} {
		t.Errorf("%d derived records, %v", len(derived.Records), err)
	}
	run, err := wire.DecodeEntriesFrame(got[2].Body)
	if err != nil {
		t.Fatal(err)
	}
	l := w.partition(w.App).Log()
	entries, err := log.DecodeRows(run.Rows, run.From)
	if err != nil || run.From != 0 || run.To != l.Head() || uint64(len(entries)) != l.Head() || run.Epoch != w.partition(w.App).Opening() {
		t.Fatalf("entries %+v: %d of %d, %v", run, len(entries), l.Head(), err)
	}
	chain, err := l.Chain(0)
	if err != nil || run.Before != chain {
		t.Errorf("the chain before the entries is %x, want %x, %v", run.Before, chain, err)
	}
	for i := range entries {
		chain = chain.Next(log.Encode(nil, &entries[i].Op))
	}
	if chain != run.Chain {
		t.Errorf("the chain is %x, and that of the entries %x", run.Chain, chain)
	}
	place, err := wire.DecodeCheckpoint(got[3].Body)
	if err != nil || place.Opening != run.Epoch || place.To != run.To || place.Head != run.To || place.Stable != run.To {
		t.Errorf("checkpoint %+v, %v", place, err)
	}
	end, err := wire.DecodeEnd(got[4].Body)
	if err != nil || end.Why != wire.WhyDone {
		t.Errorf("end %+v, %v", end, err)
	}
	bare := r.pull("since=1&vectors=q16&only=entries") // of a log that lacks the replica's place
	if k := kinds(bare); k != "entries checkpoint end" {
		t.Fatalf("entries alone: %s", k)
	}
	alone, err := wire.DecodeEntriesFrame(bare[0].Body)
	if err != nil || alone.From != 1 || alone.Before != run.Before.Next(log.Encode(nil, &entries[0].Op)) || alone.Chain != run.Chain || alone.Epoch != run.Epoch {
		t.Errorf("entries alone: %+v, %v", alone, err)
	}
	if refused := r.mustRefuse("GET", "/v2/sync/changes?app="+w.App+"&only=others", nil); refused.Code != wire.RefusedFormat {
		t.Errorf("only=others is refused with %+v", refused)
	}
	query := fmt.Sprintf("%s&register=%d", r.at(run.To), register.Seq)
	if k := kinds(r.pull(query)); k != "checkpoint end" {
		t.Errorf("from the end on: %s", k)
	}
	for _, q := range []string{
		fmt.Sprintf("epoch=%032x&since=1&chain=%x", 1, alone.Before),
		fmt.Sprintf("epoch=%x&since=1&chain=%x", run.Epoch, run.Chain),
		fmt.Sprintf("epoch=%x&since=1", run.Epoch),
		fmt.Sprintf("epoch=%x&since=%d&chain=%x", run.Epoch, run.To+1, run.Chain),
		fmt.Sprintf("since=%d&chain=%x", run.To, run.Chain),
		"since=3",
	} {
		got := r.pull(q)
		end, err := wire.DecodeEnd(got[len(got)-1].Body)
		if kinds(got) != "register end" || err != nil || end.Why != wire.WhyRebase {
			t.Errorf("changes?%s = %s, %+v", q, kinds(got), end)
		}
	}
}

// TestEveryCursorReachesHead pulls a log of several runs, starting at every 53rd entry. Each answer continues without gaps up to the head.
func TestEveryCursorReachesHead(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	var bodies []log.Body
	for i := range 700 {
		bodies = append(bodies, &log.ConceptCreate{ID: fmt.Sprintf("c%d", i), Name: "name", Language: "en"})
	}
	ops := r.next(bodies...)
	for len(ops) > 0 {
		n := min(len(ops), wire.MaxOps)
		r.mustPush(ops[:n])
		ops = ops[n:]
	}
	l := w.partition(w.App).Log()
	for since := uint64(0); since <= l.Head(); since += 53 {
		at := since
		for _, f := range r.pull(r.at(since)) {
			if f.Type != wire.TypeEntries {
				continue
			}
			run, err := wire.DecodeEntriesFrame(f.Body)
			if err != nil || run.From != at || len(f.Body) > wire.MaxBody {
				t.Fatalf("after %d: a run from %d of %d bytes, %v", at, run.From, len(f.Body), err)
			}
			at = run.To
		}
		if at != l.Head() {
			t.Errorf("from %d on the answer ends at %d of %d", since, at, l.Head())
		}
	}
}

func TestPush(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	h := r.upload(apitest.Picture("red.png"))
	create := &log.InputCreate{ID: "pushed", Blob: h, ContentType: "image/png", Labels: []log.Label{{Concept: "tree", Value: log.True}}}
	ops := r.next(&log.ConceptCreate{ID: "tree", Name: "tree", Language: "en"}, create, &log.InputCreate{ID: "pushed", Blob: h, ContentType: "image/png"})
	l := w.partition(w.App).Log()
	before := l.Head()
	out := r.mustPush(ops)
	if out.Accepted != 3 || out.Head != before+3 || out.Head != l.Head() || out.Opening != w.partition(w.App).Opening() {
		t.Errorf("pushed %+v", out)
	}
	if len(out.Verdicts) != 1 || out.Verdicts[0].Seq != 3 || out.Verdicts[0].Code != uint32(fold.Duplicate) {
		t.Errorf("verdicts %+v, want the third a duplicate", out.Verdicts)
	}
	in, err := w.Input("pushed")
	if err != nil || in.Code != catalog.InputReady || in.Blob != h {
		t.Fatalf("the input is %+v, %v", in, err)
	}
	got := r.pull("since=0&vectors=q16")
	if k := kinds(got); k != "register derived entries checkpoint end" {
		t.Errorf("what was derived does not come before the entries: %s", k)
	}
	w.checkUnchanged("a push that was made before", func() {
		if out := r.mustPush(ops); out.Accepted != 3 || out.Head != before+3 {
			t.Errorf("again: %+v", out)
		}
	})
	more := r.next(&log.InputDelete{Input: ops[1].Dot})
	if out := r.mustPush(append(ops[1:], more...)); out.Accepted != 4 || out.Head != before+4 || w.last(w.App).Dot != more[0].Dot {
		t.Errorf("half of it had: %+v", out)
	}
}

// TestPushWithoutPictures: a push names a picture that the replica has not uploaded. The origin accepts only the operations before it.
func TestPushWithoutPictures(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	red, blue := apitest.Picture("red.png"), apitest.Picture("blue.png")
	ops := r.next(
		&log.InputCreate{ID: "a", Blob: r.upload(red), ContentType: "image/png"},
		&log.InputCreate{ID: "b", Blob: blob.Sum(blue), ContentType: "image/png"},
		&log.ConceptCreate{ID: "c", Name: "c", Language: "en"},
	)
	if out := r.mustPush(ops); out.Accepted != 1 {
		t.Fatalf("accepted %d, want what is before the missing picture", out.Accepted)
	}
	m := r.push(ops)
	w.checkUnchanged("a push without its picture", func() {
		no := r.mustRefuse("POST", "/v2/sync/push", m.Encode())
		if no.Code != wire.RefusedBlobs || len(no.Blobs) != 1 || no.Blobs[0] != blob.Sum(blue) || no.Accepted != 1 {
			t.Errorf("refused with %+v", no)
		}
	})
	r.upload(blue)
	if out := r.mustPush(ops); out.Accepted != 3 {
		t.Errorf("accepted %d once it was there", out.Accepted)
	}
}

// TestPushOfInvalidPictures: the log records operations with invalid pictures, or of a kind that replicas may not push, as refused. Later
// operations of their writer succeed.
func TestPushOfInvalidPictures(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	text, red := r.upload([]byte("<script>alert(1)</script>")), r.upload(apitest.Picture("red.png"))
	out := r.mustPush(r.next(
		&log.InputCreate{ID: "a", Blob: text, ContentType: "image/png"},
		&log.InputCreate{ID: "b", Blob: red, ContentType: "text/html"},
		&log.InputCreate{ID: "c", Blob: red, ContentType: "image/gif"},
		&log.VersionResult{Version: "v", Code: catalog.VersionTrained, Manifest: text},
		&log.Horizon{At: 1 << 60},
		&log.AppDelete{ID: w.App},
		&log.InputCreate{ID: "d", Blob: red, ContentType: "image/png"},
	))
	if out.Accepted != 7 || len(out.Verdicts) != 6 {
		t.Errorf("accepted %d with %+v", out.Accepted, out.Verdicts)
	}
	for _, v := range out.Verdicts {
		if v.Code != uint32(fold.Refused) {
			t.Errorf("operation %d: %+v, want it refused", v.Seq, v)
		}
	}
	if _, err := w.Input("d"); err != nil {
		t.Errorf("the last operation: %v", err)
	}
	if _, err := w.Input("a"); err == nil {
		t.Error("a text is an input")
	}
}

// TestManyPictures pushes more pictures than the origin analyses in one push.
func TestManyPictures(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	var bodies []log.Body
	names := []string{"red.png", "blue.png", "white.png", "black.png", "half.png"}
	for i := range 80 {
		data := append(apitest.Picture(names[i%len(names)]), byte(i)) // decoders ignore bytes after the picture
		bodies = append(bodies, &log.InputCreate{ID: fmt.Sprint("i", i), Blob: r.upload(data), ContentType: "image/png"})
	}
	ops := r.next(bodies...)
	calls := 0
	for done := uint64(0); done < 80; calls++ {
		out := r.mustPush(ops[done:])
		if out.Accepted <= done || out.Accepted > done+32 {
			t.Fatalf("accepted %d after %d", out.Accepted, done)
		}
		done = out.Accepted
	}
	if calls != 3 {
		t.Errorf("%d calls", calls)
	}
	h := w.Now.Add(48 * time.Hour)
	w.Now = h
	r.upload([]byte("later")) // unpins the earlier uploads
	if _, err := w.Hosted.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range bodies {
		if ok, err := w.Blobs.Has(t.Context(), bodies[i].(*log.InputCreate).Blob); !ok || err != nil {
			t.Fatalf("picture %d of an input has gone: %v", i, err)
		}
	}
}

// TestFutureClocks: a replica's clock is years ahead. The log limits the times of its operations by the origin's clock.
func TestFutureClocks(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	ops := r.next(&log.ConceptCreate{ID: "a", Name: "a", Language: "en"}, &log.ConceptName{ID: "a", Name: "future"})
	for i := range ops {
		ops[i].At = 1<<63 + log.HLC(i)
	}
	r.mustPush(ops)
	now := log.HLC(w.Now.Add(3*time.Second).UnixMilli()) << 16
	err := w.partition(w.App).Log().Read(1, func(e log.Entry) bool {
		if e.Op.At > now {
			t.Errorf("entry %d is of %v", e.Seq, e.Op.At.Time())
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	w.Now = w.Now.Add(time.Minute)
	other := w.join(w.App, w.Key)
	if out := other.mustPush(other.next(&log.ConceptName{ID: "a", Name: "present"})); len(out.Verdicts) > 0 {
		t.Errorf("an honest write loses: %+v", out.Verdicts)
	}
}
