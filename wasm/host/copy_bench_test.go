package host

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// source is an origin of one application, with its answers to a replica.
type source struct {
	engine   *core.Engine
	app, key string
	edge     string
	part     *partition.Origin
	base     [32]byte
	do       wire.Do           // instruction in the answer to a session
	export   *partition.Export // newest snapshot
	chunks   map[blob.Hash]int
	streams  map[uint64][]byte // answers to changes, by since
}

// idAt returns the id of the first input with an ordinal of at least ord.
func (s *source) idAt(b testing.TB, ord uint32) (id string) {
	b.Helper()
	err := s.part.View().Inputs(ord, func(in catalog.Input) bool {
		id = in.ID
		return false
	})
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// newSource returns a source with n analysed inputs. They have labels, metadata, and embeddings around a hundred centres.
func newSource(b testing.TB, n int) *source {
	b.Helper()
	ctx := context.Background()
	set, err := predict.LoadTables(models.FS)
	if err != nil {
		b.Fatal(err)
	}
	services := testServices(b)
	s := &source{base: set.Base(), chunks: map[blob.Hash]int{}, streams: map[uint64][]byte{}}
	s.engine, err = core.Open(core.Options{Store: memkv.New(), Models: set, Hosted: services.Hosted, Clock: services.Clock, Rand: services.Rand})
	if err != nil {
		b.Fatal(err)
	}
	app, _, err := s.engine.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "many", Language: "en"})
	if err != nil {
		b.Fatal(err)
	}
	if s.key, _, err = s.engine.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}}); err != nil {
		b.Fatal(err)
	}
	s.app = app.ID
	_, edge, err := s.engine.Register.CreateEdge(ctx, register.Caller{}, "edge", []string{s.app})
	if err != nil {
		b.Fatal(err)
	}
	s.edge = edge.ID
	if s.part, err = s.engine.Origin(s.app); err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	id, _ := catalog.ParseAppID(s.app)
	for i := 0; i < n; i += 500 {
		bodies := make([]log.Body, 500)
		for j := range bodies {
			bodies[j] = inputOf(rng, i+j)
		}
		_, err := s.part.Submit(ctx, "key", bodies, func(batch *kv.Batch) {
			for _, body := range bodies {
				in := body.(*log.InputCreate)
				catalog.PutDerived(batch, id, s.base, in.Blob, in.Crop, derivedOf(rng, len(set.General().Concepts)))
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// inputOf returns input i with two labels and some metadata. Every third has a place.
func inputOf(rng *rand.Rand, i int) *log.InputCreate {
	c := &log.InputCreate{
		ID: fmt.Sprintf("%032x", rng.Uint64()), ContentType: "image/jpeg", URL: fmt.Sprintf("https://pictures.example/%d.jpg", i),
		Meta: []byte(`{"album":"holiday","n":17}`), Blob: blob.Sum(fmt.Append(nil, i)),
	}
	for range 2 {
		c.Labels = append(c.Labels, log.Label{Concept: fmt.Sprint("concept-", rng.IntN(400)), Value: log.True})
	}
	if i%3 == 0 {
		c.Geo = &log.Point{Longitude: rng.Float64() * 180, Latitude: rng.Float64() * 90}
	}
	return c
}

// derivedOf returns a plausible derived record. Its embedding is near one of a hundred random centres.
func derivedOf(rng *rand.Rand, values int) catalog.DerivedData {
	sort := rand.New(rand.NewPCG(uint64(rng.IntN(100)), 1))
	v := make([]float32, predict.Dim)
	for i := range v {
		v[i] = float32(sort.NormFloat64() + 0.5*rng.NormFloat64())
	}
	e, err := predict.NewEmbedding(v)
	if err != nil {
		panic(err)
	}
	d := catalog.DerivedData{Values: make([]float32, values)}
	d.Embedding, _ = e.MarshalBinary()
	for i := range d.Values {
		d.Values[i] = rng.Float32() / 8
	}
	for range 10 {
		d.Values[rng.IntN(values)] = rng.Float32() // a picture shows few concepts
	}
	return d
}

// answer returns the source's answer to a request of a replica.
func (s *source) answer(b testing.TB, a *replica.Ask) replica.Answer {
	b.Helper()
	out := replica.Answer{ID: a.ID, Status: 200, Header: []api.Field{{Name: "Content-Type", Value: wire.ContentType}}}
	name, rest, _ := strings.Cut(strings.TrimPrefix(a.Path, "/v2/sync/"), "/")
	l := s.part.Log()
	switch {
	case name == "session":
		x := wire.SessionReply{Protocol: wire.Protocol, Fold: 1}
		x.Grants = []wire.Grant{{App: s.app, Do: s.do, Opening: s.part.Opening(), Head: l.Head(), Stable: l.Head()}}
		if at, err := wire.DecodeSession(a.Body); err != nil || at.Apps[0].Seq > 0 {
			x.Grants[0].Do = wire.DoTail
		}
		out.Body = x.Encode()
	case name == "snapshot" && rest == "":
		x, err := s.part.Export(s.base)
		if err != nil {
			b.Fatal(err)
		}
		s.export = x
		m := wire.Manifest{App: s.app, Epoch: x.Epoch, Seq: x.Seq, Chain: x.Chain, Fold: x.Fold, Digest: x.Digest, Horizon: x.Horizon}
		for i, c := range x.Chunks {
			m.Chunks = append(m.Chunks, wire.Chunk(c))
			s.chunks[c.Hash] = i
		}
		out.Body = m.Encode()
	case name == "snapshot":
		var h blob.Hash
		_, _ = hex.Decode(h[:], []byte(rest))
		var err error
		if out.Body, err = s.export.Chunk(s.chunks[h]); err != nil {
			b.Fatal(err)
		}
	case name == "changes":
		out.Body = s.changes(b, a)
	default:
		out.Status = 503
	}
	return out
}

// changes returns the log as a stream, starting behind the entry in the request.
func (s *source) changes(b testing.TB, a *replica.Ask) (stream []byte) {
	query, err := url.ParseQuery(a.Query)
	if err != nil {
		b.Fatal(err)
	}
	from, _ := strconv.ParseUint(query.Get("since"), 10, 64)
	if stream = s.streams[from]; stream != nil {
		return stream
	}
	l := s.part.Log()
	at := from
	for at < l.Head() {
		mark := l.EpochOf(at + 1)
		var entries []log.Entry
		err := l.Read(at+1, func(e log.Entry) bool {
			entries = append(entries, e)
			return len(entries) < wire.MaxOps && e.Seq < mark.To
		})
		x := wire.Entries{Epoch: mark.Epoch, From: at, To: at + uint64(len(entries)), Rows: logtest.Rows(entries)}
		if err == nil {
			x.Before, err = l.Chain(at)
		}
		at = x.To
		if err == nil {
			x.Chain, err = l.Chain(at)
		}
		if err != nil {
			b.Fatal(err)
		}
		stream = wire.AppendFrame(stream, wire.TypeEntries, x.Encode())
	}
	k := wire.Checkpoint{Opening: s.part.Opening(), To: at, Head: at, Stable: at}
	stream = wire.AppendFrame(stream, wire.TypeCheckpoint, k.Encode())
	end := wire.End{Why: wire.WhyDone}
	stream = wire.AppendFrame(stream, wire.TypeEnd, end.Encode())
	s.streams[from] = stream
	return stream
}

// copyOf returns an instance with a replica of the source, over an empty store.
func (s *source) copyOf(b *testing.B, wants wire.Vectors) *Instance {
	b.Helper()
	ctx := context.Background()
	services := testServices(b)
	services.Bundles = models.FS
	data, seq, err := s.engine.Register.AppRecord(s.app, s.edge)
	if err == nil {
		services.Store, err = pebblekv.Open(filepath.Join(b.TempDir(), "data"), pebblekv.Options{})
	}
	if err == nil {
		err = register.ApplyAppRecord(ctx, services.Store, s.app, seq, data)
	}
	if err != nil {
		b.Fatal(err)
	}
	services.AppRecords = &book{app: s.app, seq: seq}
	in, err := module(b).Open(ctx, services, abi.Settings{
		Role: abi.Engine, App: s.app, Store: abi.StoreHost, Replica: &abi.Replica{Name: "copy", Live: replica.Once, Wants: wire.Wants{Vectors: wants}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), services.Store.Close()); err != nil {
			b.Error(err)
		}
	})
	return in
}

// follow syncs a replica until its cursor is at the source's head.
func (s *source) follow(b testing.TB, in *Instance) {
	b.Helper()
	ctx := context.Background()
	head := s.part.Log().Head()
	for events := []replica.Event{replica.Begin{}}; len(events) > 0; events = events[1:] {
		done, err := in.Sync(ctx, events[0])
		if err != nil {
			b.Fatal(err)
		}
		if done.Status.Cursor == head {
			return
		}
		for _, x := range done.Effects {
			ask, ok := x.(replica.Ask)
			if !ok {
				continue
			}
			a := s.answer(b, &ask)
			all := a.Body
			for body := all; ; {
				n := min(len(body), 64<<10)
				if a.Body, a.More = body[:n], n < len(body); !a.More {
					a.Sum = blob.Sum(all)
				}
				events = append(events, a)
				if body = body[n:]; !a.More {
					break
				}
				a = replica.Answer{ID: a.ID}
			}
		}
	}
	b.Fatal("the copy does not come to the end")
}

// search asks a replica for the inputs most similar to input id.
func (s *source) search(b *testing.B, in *Instance, id string) {
	b.Helper()
	body := fmt.Sprintf(`{"query":{"ands":[{"output":{"input":{"id":%q}}}]}}`, id)
	got := in.Begin(context.Background(), &api.Request{
		Method: "POST", Path: "/v2/searches", Authorization: "Key " + s.key, Body: []byte(body),
	})
	if !got.Done() {
		b.Fatal("a search that waits")
	}
	if r := got.Response(); r.Status != 200 {
		b.Fatalf("search: %d %s", r.Status, r.Body)
	}
}

// BenchmarkCopy measures an edge with a replica, in the module: it catches up with a log, or joins by a snapshot with derived records,
// and answers a search by similarity.
func BenchmarkCopy(b *testing.B) {
	b.Run("catch up", func(b *testing.B) {
		const inputs = 20_000
		s := newSource(b, inputs)
		s.do = wire.DoTail
		module(b)
		var used time.Duration
		for b.Loop() {
			b.StopTimer()
			in := s.copyOf(b, wire.VectorsNone)
			b.StartTimer()
			before := processorTime(b)
			s.follow(b, in)
			used += processorTime(b) - before
		}
		b.ReportMetric(float64(b.N*inputs)/used.Seconds(), "inputs/cpu-s")
	})
	for _, inputs := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("join/n=%d", inputs), func(b *testing.B) {
			s := newSource(b, inputs)
			s.do = wire.DoRebase
			id := s.idAt(b, 7)
			module(b)
			var joinTime, searchTime time.Duration
			for b.Loop() {
				b.StopTimer()
				in := s.copyOf(b, wire.VectorsQ16)
				b.StartTimer()
				before := processorTime(b)
				s.follow(b, in)
				joinEnd := processorTime(b)
				s.search(b, in, id)
				joinTime, searchTime = joinTime+joinEnd-before, searchTime+processorTime(b)-joinEnd
			}
			b.ReportMetric(joinTime.Seconds()/float64(b.N), "cpu-s/join")
			b.ReportMetric(1000*searchTime.Seconds()/float64(b.N), "cpu-ms/search")
		})
	}
}

// BenchmarkIndexing measures the background steps of an edge after it has joined. Each step adds some inputs to the graph.
func BenchmarkIndexing(b *testing.B) {
	s := newSource(b, 10_000)
	s.do = wire.DoRebase
	in := s.copyOf(b, wire.VectorsQ16)
	s.follow(b, in)
	ctx := context.Background()
	for range 200 { // the first steps read the graph, which is small at first
		if _, err := in.Step(ctx); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		before := processorTime(b)
		if _, err := in.Step(ctx); err != nil {
			b.Fatal(err)
		}
		took = append(took, processorTime(b)-before)
	}
	slices.Sort(took)
	for _, p := range []int{50, 90, 99} {
		b.ReportMetric(took[len(took)*p/100].Seconds()*1000, fmt.Sprintf("p%d-cpu-ms", p))
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
