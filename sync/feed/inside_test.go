package feed

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestPushFailed: if the log rejects a push, the refusal names the reason, so that the replica waits, or continues at the end of the log.
func TestPushFailed(t *testing.T) {
	c := &call{f: &Feed{o: Options{Engine: living{}}}}
	p, err := partition.OpenOrigin(partition.Options{Store: memkv.New(), App: catalog.AppID{1}, Clock: time.Now, Epoch: log.Epoch{2}})
	if err != nil {
		t.Fatal(err)
	}
	m, ops := &wire.Push{App: "app", Opening: log.Epoch{1}}, []log.Op{{Dot: log.Dot{Writer: 3, Seq: 8}, At: 1}}
	for _, tt := range []struct {
		err  error
		want wire.Refusal
	}{
		{fmt.Errorf("accept: %w", partition.ErrOpening), wire.Refusal{Code: wire.RefusedEpoch, Epoch: log.Epoch{2}}},
		{fmt.Errorf("accept: %w", partition.ErrForged), wire.Refusal{Code: wire.RefusedWriter}},
		{fmt.Errorf("accept: %w", partition.ErrName), wire.Refusal{Code: wire.RefusedContent, Accepted: 7}},
		{fmt.Errorf("accept: %w", partition.ErrGaps), wire.Refusal{Code: wire.RefusedLimit, Limit: wire.LimitGaps}},
		{fmt.Errorf("accept: %w", partition.ErrSequence), wire.Refusal{Code: wire.RefusedSequence, Accepted: 7}},
		{&wire.Refusal{Code: wire.RefusedBusy}, wire.Refusal{Code: wire.RefusedBusy}},
	} {
		var got *wire.Refusal
		if err := c.pushFailed(tt.err, p, m, ops, 7); !errors.As(err, &got) || got.Code != tt.want.Code || got.Epoch != tt.want.Epoch || got.Accepted != tt.want.Accepted || got.Limit != tt.want.Limit {
			t.Errorf("%v: %+v, want %+v", tt.err, got, tt.want)
		}
	}
	if err := c.pushFailed(partition.ErrChain, p, m, ops, 7); !errors.Is(err, partition.ErrChain) {
		t.Errorf("%v", err)
	}
}

// TestConflictNamesLostPart: a conflict names the part of an operation that the origin lacks.
func TestConflictNamesLostPart(t *testing.T) {
	for want, bodies := range map[string][]log.Body{
		partition.LostPicture:  {&log.InputCreate{}, &log.InputFetched{}},
		partition.LostManifest: {&log.VersionResult{}, &log.NetworkSwitch{}},
	} {
		for _, body := range bodies {
			if got := lostBytes(body); got != want {
				t.Errorf("%T: %q, want %q", body, got, want)
			}
		}
	}
}

// living is an engine that no test calls.
type living struct{ Engine }

// TestWritersOfApplication: all credentials of an application add 10,000 writers an hour, and each of them 1,000. A credential that has added
// its own takes none from the application.
func TestWritersOfApplication(t *testing.T) {
	c := &call{f: &Feed{meters: newMeters(&Limits{})}, now: time.Unix(1e9, 0)}
	c.app = "app"
	added := 0
	for i := range 20 {
		c.principal.By = fmt.Sprint("key ", i)
		var first *wire.Refusal
		for range 2000 {
			err := c.newWriter()
			if err == nil {
				added++
			} else if first == nil {
				errors.As(err, &first)
			}
		}
		want := uint64(1000)
		if i >= 10 {
			want = 10_000
		}
		if first == nil || first.Limit != "Writers" || first.Value != want || first.WaitMillis == 0 {
			t.Errorf("credential %d is refused with %+v, want a limit of %d", i, first, want)
		}
	}
	if added != 10_000 {
		t.Errorf("%d writers were added", added)
	}
	c.app, c.principal.By = "another", "key 0"
	c.principal.App = c.app
	if err := c.newWriter(); err != nil {
		t.Errorf("another application: %v", err)
	}
}

// serving is an engine that serves each application with the network in its state.
type serving struct{ Engine }

func (serving) ServingBase(r catalog.Reader) ([32]byte, error) {
	h, err := r.Header()
	return h.Base, err
}

// TestSwitchNotFolded reads a log with a switch of the network that is not yet in the state. The records of the switch, and of the
// entries behind it, belong to the next network.
func TestSwitchNotFolded(t *testing.T) {
	app, old, next := catalog.AppID{1}, [32]byte{1}, [32]byte{2}
	p, err := partition.OpenOrigin(partition.Options{Store: memkv.New(), App: app, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	pictures := []blob.Hash{blob.Sum([]byte("first")), blob.Sum([]byte("second"))}
	records := func(b *kv.Batch) {
		for _, base := range [][32]byte{old, next} {
			for _, picture := range pictures {
				catalog.PutDerived(b, app, base, picture, raster.Crop{}, catalog.DerivedData{Embedding: make([]byte, predict.EmbeddingBytes)})
			}
		}
	}
	first := &log.InputCreate{ID: "first", Blob: pictures[0]}
	if _, err := p.Submit(t.Context(), "", []log.Body{&log.NetworkSwitch{Base: old}, first}, records); err != nil {
		t.Fatal(err)
	}
	var sent wire.Reader
	f := &Feed{o: Options{Engine: serving{}, Clock: time.Now}, meters: newMeters(&Limits{})}
	x := &reader{c: &call{f: f}, p: p, w: &sent, flush: func() error { return nil }, vectors: wire.VectorsQ16}
	at := log.HLC(time.Now().UnixMilli()) << 16
	second := &log.InputCreate{ID: "second", Blob: pictures[1]}
	if err := x.needs(&run{ops: []log.Op{{At: at, Body: &log.NetworkSwitch{Base: next}}, {Body: second}}}); err != nil {
		t.Fatal(err)
	}
	var got []blob.Hash
	for {
		frame, ok, err := sent.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		d, err := wire.DecodeDerived(frame.Body)
		if err != nil || frame.Type != wire.TypeDerived || d.Base != next {
			t.Fatalf("a message of type %v and network %x, %v; want derived records of %x", frame.Type, d.Base[:1], err, next[:1])
		}
		for _, r := range d.Records {
			got = append(got, r.Blob)
		}
	}
	if !slices.Equal(got, pictures) {
		t.Errorf("%d records were sent, want those of both pictures", len(got))
	}
}

// TestDigestPlacesAreShared: an account that has all its places waits, and another account gets a digest.
func TestDigestPlacesAreShared(t *testing.T) {
	p, err := partition.OpenOrigin(partition.Options{Store: memkv.New(), App: catalog.AppID{1}, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	v := p.View()
	defer v.Close()
	f, err := New(Options{Engine: living{}, Register: &register.Register{}, Blobs: blob.NewMemory(blob.Options{}), Pinner: &blob.HostedNames{}, Clock: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for f.digests.places.TryAcquire("mallory", 1) {
		continue
	}
	for account, want := range map[string]wire.RefusalCode{"mallory": wire.RefusedBusy, "anna": 0} {
		c := &call{f: f}
		c.app, c.account = account, account
		_, err := f.digests.of(c, v, p.Opening())
		var got wire.Refusal
		if no, ok := errors.AsType[*wire.Refusal](err); ok {
			got = *no
		}
		if got.Code != want || (want == 0) != (err == nil) {
			t.Errorf("%s: %v", account, err)
		}
	}
}
