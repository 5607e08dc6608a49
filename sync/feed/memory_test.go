package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// budget is the memory of one answer.
type budget struct {
	all, reserved, peak int64
	asked               int // calls of Room
}

func (b *budget) Reserve(total int64) bool {
	if total > b.all {
		return false
	}
	b.reserved = max(b.reserved, total)
	b.peak = max(b.peak, b.reserved)
	return true
}
func (b *budget) Room() int64        { b.asked++; return b.all }
func (b *budget) Settle(total int64) { b.reserved = min(b.reserved, total) }

// TestCatchUpNeedsMemory requests existing entries with too little memory, with none of them missing, and with enough memory. A reader
// without memory is refused and retries. A reader holds memory only while it receives existing entries.
func TestCatchUpNeedsMemory(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	r.mustPush(r.next(&log.ConceptCreate{ID: "a", Name: "a", Language: "en"}))
	r.memory = &budget{all: 100 << 10}
	if no := r.mustRefuse("GET", "/v2/sync/changes?app="+r.app+"&since=0", nil); no.Code != wire.RefusedBusy || no.WaitMillis == 0 {
		t.Errorf("without memory: %+v", no)
	}
	l := w.partition(r.app).Log()
	waits := &budget{}
	r.memory = waits
	if got := r.pull(r.at(l.Head())); len(got) == 0 {
		t.Error("a reader that lacks nothing got no frame")
	}
	if waits.asked == 0 {
		t.Error("the memory of a stream did not get its caller at the start")
	}
	b := &budget{all: 2 << 20}
	r.memory = b
	if got := r.pull("since=0"); len(got) < 2 {
		t.Errorf("%d frames", len(got))
	}
	if b.peak == 0 || b.reserved != 0 {
		t.Errorf("%d bytes were reserved, and %d still are", b.peak, b.reserved)
	}
}

// TestPartsOfPictures requests parts of a picture. The feed reads them by Part, and complete pictures from the store.
func TestPartsOfPictures(t *testing.T) {
	data := []byte(strings.Repeat("0123456789", 60_000))
	var asked []string
	w := newWorld(t, func(o *feed.Options) {
		o.Part = func(_ context.Context, r *api.Request, caller string, h blob.Hash, from, to int64) (io.ReadCloser, error) {
			if r == nil || caller == "" || h != blob.Sum(data) {
				t.Errorf("request %v of %q for %v", r, caller, h)
			}
			asked = append(asked, fmt.Sprintf("%d-%d", from, to))
			return io.NopCloser(bytes.NewReader(data[from:to])), nil
		}
	})
	r := w.join(w.App, w.Key)
	h := r.upload(data)
	for _, tt := range []struct {
		header   string
		from, to int
	}{{"bytes=0-0", 0, 1}, {"bytes=5-", 5, len(data)}, {"bytes=-7", len(data) - 7, len(data)}, {"bytes=0-", 0, len(data)}} {
		r.headers = map[string]string{"Range": tt.header}
		if res := r.must(206, "GET", r.blob(h), nil); !bytes.Equal(res.Body, data[tt.from:tt.to]) {
			t.Errorf("%s: %d bytes", tt.header, len(res.Body))
		}
	}
	if got, want := strings.Join(asked, " "), "0-1 5-600000 599993-600000"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestObjectsNeedMemory pushes and reads an object of a megabyte. Its memory counts for the caller, once for all operations of a push that
// name it, and a caller without memory is refused. A part of an object does not keep the rest in memory.
func TestObjectsNeedMemory(t *testing.T) {
	const size = 1 << 20
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	data := evaluated(t, "v2", func(m *catalog.Manifest, metrics *train.Metrics) {
		text, err := metrics.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		m.Metrics = append(text, bytes.Repeat([]byte(" "), size)...)
	})
	h := r.upload(data)
	ops := r.next(&log.ModelCreate{ID: "m", Name: "m", Version: "v1"})
	model := ops[0].Dot
	ops = append(ops, r.next(&log.VersionTrain{Model: model, Version: "v2"})...)
	for range 100 {
		ops = append(ops, r.next(&log.VersionResult{Model: model, Version: "v2", Train: ops[1].Dot, Code: catalog.VersionTrained, Manifest: h})...)
	}
	poor, rich := &budget{all: size}, &budget{all: 2 << 20}
	push := r.push(ops)
	r.memory = poor
	if no := r.mustRefuse("POST", "/v2/sync/push", push.Encode()); no.Code != wire.RefusedBusy || no.WaitMillis == 0 {
		t.Errorf("a push without memory: %+v", no)
	}
	r.memory = rich
	if n := allocated(func() { r.must(200, "POST", "/v2/sync/push", push.Encode()) }); n > 20*size || rich.peak < size {
		t.Errorf("a push that names an object 100 times allocates %d KB; %d are counted", n>>10, rich.peak>>10)
	}

	r.memory = &budget{all: catchUpBytes}
	got := r.pull("since=0")
	if last, err := wire.DecodeEnd(got[len(got)-1].Body); err != nil || last.Why != wire.WhyError {
		t.Errorf("a reader without memory for the object: %+v, %v", last, err)
	}
	rich = &budget{all: catchUpBytes + 2*size}
	r.memory = rich
	got = r.pull("since=0")
	if last, err := wire.DecodeEnd(got[len(got)-1].Body); err != nil || last.Why != wire.WhyDone || rich.peak < catchUpBytes+size || rich.reserved != 0 {
		t.Errorf("a reader: %+v, %v; at most %d KB were counted", last, err, rich.peak>>10)
	}

	r.memory = poor
	r.headers = map[string]string{"Range": "bytes=0-9"}
	part := "/v2/sync/snapshot/" + h.String() + "?app=" + r.app
	if no := r.mustRefuse("GET", part, nil); no.Code != wire.RefusedBusy {
		t.Errorf("a part without memory for the object: %+v", no)
	}
	r.memory = rich
	if res := r.must(206, "GET", part, nil); !bytes.Equal(res.Body, data[:10]) || cap(res.Body) > 1000 {
		t.Errorf("a part: %d bytes in memory of %d", len(res.Body), cap(res.Body))
	}
}

// catchUpBytes is the memory of a reader that receives existing entries.
const catchUpBytes = 1 << 20
