package instance_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// source is an origin that serves the application of a world.
type source struct {
	*apitest.World
	feed *feed.Feed
}

func newSource(t testing.TB) *source {
	t.Helper()
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	f, err := feed.New(feed.Options{
		Engine: w.Engine, Register: w.Engine.Register, Blobs: w.Blobs, Pinner: w.Hosted, Clock: func() time.Time { return w.Now },
		Run: func(_ context.Context, jobs []api.Job) ([]api.Result, error) {
			var results []api.Result
			for _, j := range jobs {
				results = append(results, w.RunJob(j))
			}
			return results, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &source{w, f}
}

// answer returns the feed's answer to a request, with its stream read into the body.
func (s *source) answer(t testing.TB, a *replica.Ask) api.Response {
	t.Helper()
	res := s.feed.Serve(context.Background(), &api.Request{
		Method: a.Method, Path: a.Path, Query: a.Query, Body: a.Body, Authorization: "Key " + s.Key,
		Header: func(name string) string {
			for _, f := range a.Header {
				if f.Name == name {
					return f.Value
				}
			}
			return ""
		},
	})
	if res.Stream != nil {
		var b bytes.Buffer
		if err := res.Stream(&b); err != nil {
			t.Fatal(err)
		}
		res.Body = b.Bytes()
	}
	return res
}

// add creates an input of a picture at the origin, and analyses it.
func (s *source) add(t testing.TB, id, name string) {
	t.Helper()
	s.addImage(t, id, name, "")
}

// addPart does what add does, with a quarter of a picture.
func (s *source) addPart(t testing.TB, id, name string) {
	t.Helper()
	s.addImage(t, id, name, `,"crop":[0,0,0.5,0.5]`)
}

func (s *source) addImage(t testing.TB, id, name, crop string) {
	t.Helper()
	body := fmt.Sprintf(`{"inputs":[{"id":%q,"data":{"image":{"base64":%q%s}}}]}`, id, base64.StdEncoding.EncodeToString(apitest.Picture(name)), crop)
	c := s.Engine.Begin(t.Context(), &api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + s.Key, Body: []byte(body)})
	for !c.Done() {
		var results []api.Result
		for _, j := range c.Jobs() {
			results = append(results, s.RunJob(j))
		}
		c.Resume(results)
	}
	if r := c.Response(); r.Status != 200 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	s.Now = s.Now.Add(time.Second)
	tasks, err := s.Engine.Take(s.Now, 8)
	for _, task := range tasks {
		err = errors.Join(err, s.Engine.Done(t.Context(), task, core.Result{Picture: s.RunJob(*task.Picture)}))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replicaPage is a page with a replica of the source's application.
type replicaPage struct {
	*page
	from   *source
	status replica.Status
	got    map[blob.Hash]error
	purge  *replica.Purge
	down   bool // the origin is unreachable
}

// register returns the origin's app record of the application.
func (s *source) register(t testing.TB) (seq uint64, data []byte) {
	t.Helper()
	data, seq, err := s.Engine.Register.AppRecord(s.App, "")
	if err != nil {
		t.Fatal(err)
	}
	return seq, data
}

// keep opens a replica on a disk, and returns its error. Without join, the replica gets no app record.
func (s *source) keep(t testing.TB, disk journal.Files, join bool) (*replicaPage, error) {
	t.Helper()
	p := &page{now: s.Now, names: *apitest.NewCounter(1 << 33)}
	bundles := apitest.TinyBundles(t)
	h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return p.now }, Rand: p, Files: disk})
	p.analyser = open(t, newHost(hostcalls.Services{Bundles: bundles, Clock: h.Clock, Rand: p}), abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	settings := abi.Settings{
		Role: abi.Engine, App: s.App, Store: abi.StoreFiles, OpenDoor: true, Bundles: names(bundles),
		Replica: &abi.Replica{Name: "page", Live: replica.Once, Wants: wire.Wants{Vectors: wire.VectorsQ16}, Origin: "https://origin.example"},
	}
	if join {
		settings.Replica.RegisterSeq, settings.Replica.Register = s.register(t)
	}
	p.guest = &guest{Instance: newInstance(h), host: h, move: func(d time.Duration) { p.now = p.now.Add(d) }, work: p.do}
	guestErr, err := abi.ParseDone(p.Open(settings.Marshal()))
	if err != nil {
		t.Fatal(err)
	}
	return &replicaPage{page: p, from: s, got: map[blob.Hash]error{}}, guestErr
}

// handle passes events to the machine, and carries out all its effects.
func (k *replicaPage) handle(t testing.TB, events ...replica.Event) {
	t.Helper()
	for len(events) > 0 {
		e := events[0]
		events = events[1:]
		data := bytes.Clone(k.Sync(abi.AppendEvent(nil, e)))
		done, err := abi.ParseSyncResult(data)
		if err != nil || done.Err != nil {
			t.Fatalf("%T: %v, %v", e, done.Err, err)
		}
		k.status = done.Status
		for _, x := range done.Effects {
			switch x := x.(type) {
			case replica.Ask:
				if k.down {
					events = append(events, replica.Answer{ID: x.ID, Err: errors.New("nobody answers")})
					continue
				}
				res := k.from.answer(t, &x)
				header := append(res.Header, api.Field{Name: "Content-Type", Value: res.ContentType})
				half := len(res.Body) / 2
				events = append(events,
					replica.Answer{ID: x.ID, Status: res.Status, Header: header, Body: res.Body[:half], More: true},
					replica.Answer{ID: x.ID, Body: res.Body[half:]})
			case replica.BlobReady:
				k.got[x.Blob] = x.Err
			case replica.Purge:
				k.purge = &x
			}
		}
	}
}

// settle syncs until the replica and its origin have the same operations.
func (k *replicaPage) settle(t testing.TB) {
	t.Helper()
	for range 200 {
		k.now, k.from.Now = k.now.Add(time.Second), k.from.Now.Add(time.Second)
		k.handle(t, replica.Wake{})
		if k.status.IsSettled() {
			return
		}
	}
	t.Fatalf("the copy does not settle: %+v", k.status)
}

// digest checks that the replica's digest is equal to the origin's.
func (k *replicaPage) digest(t testing.TB) {
	t.Helper()
	got, err := abi.ParseDigest(k.ask(t, abi.Query{What: abi.AskDigest}))
	if err != nil {
		t.Fatal(err)
	}
	app, err := catalog.ParseAppID(k.from.App)
	if err != nil {
		t.Fatal(err)
	}
	p, err := k.from.Engine.Partition(k.from.App)
	if err != nil {
		t.Fatal(err)
	}
	view := p.View()
	defer view.Close()
	want := abi.DigestReply{Epoch: p.Log().EpochOf(view.Seq()).Epoch, Seq: view.Seq()}
	if want.Digest, err = fold.Digest(view.KV(), app); err != nil || got != want {
		t.Errorf("the copy's digest is %x, want %x, %v", got, want, err)
	}
}

// TestReplicaInOwnStore uses a replica in a page's own store: it joins, fetches a wanted picture, writes while the origin is unreachable,
// is closed and opened, and is deleted with its application.
func TestReplicaInOwnStore(t *testing.T) {
	s := newSource(t)
	s.add(t, "red", "red.png")
	disk := journaltest.NewDisk()
	if _, guestErr := s.keep(t, disk, false); !errors.Is(guestErr, register.ErrApplication) {
		t.Fatalf("a copy that nobody has told of its application opens: %v", guestErr)
	}
	k, guestErr := s.keep(t, disk, true)
	if guestErr != nil {
		t.Fatal(guestErr)
	}
	k.handle(t, replica.Begin{})
	k.settle(t)
	k.digest(t)

	name := imageURL(t, k.fetch(t, 200, "GET", "/v2/inputs/red", "", ""))
	hosted, err := abi.ParseHosted(k.ask(t, abi.Query{What: abi.AskHosted, Name: name}))
	if h := blob.Sum(apitest.Picture("red.png")); err != nil || hosted.Data != nil || hosted.Hash != h {
		t.Fatalf("a picture that is at the origin alone is %+v, %v", hosted, err)
	}
	k.handle(t, replica.BlobWanted{Blob: hosted.Hash})
	if err, ok := k.got[hosted.Hash]; err != nil || !ok {
		t.Fatalf("got = %v", k.got)
	}
	hosted, err = abi.ParseHosted(k.ask(t, abi.Query{What: abi.AskHosted, Name: name}))
	if err != nil || !bytes.Equal(hosted.Data, apitest.Picture("red.png")) {
		t.Errorf("the picture is %d bytes, %v", len(hosted.Data), err)
	}

	k.down = true
	k.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture("blue", "blue.png", `,"concepts":[{"id":"warm","value":0}]`)+`]}`)
	k.rest(t, time.Second)
	k.fetch(t, 200, "DELETE", "/v2/inputs/red", "", "")
	k.handle(t, replica.LocalWrite{})
	waiting := k.status.Pending()
	if waiting < 2 {
		t.Fatalf("%d operations wait", waiting)
	}
	k.ask(t, abi.Query{What: abi.AskClose})

	k, guestErr = s.keep(t, disk, false) // without an app record
	if guestErr != nil {
		t.Fatal(guestErr)
	}
	if k.handle(t, replica.Begin{}); k.status.Pending() < waiting {
		t.Errorf("%d operations wait after a start, want %d", k.status.Pending(), waiting)
	}
	k.settle(t)
	k.digest(t)
	k.rest(t, 2*time.Minute) // deletes the picture of the deleted input
	deletedHash := blob.Sum(apitest.Picture("red.png"))
	if value, guestErr, err := abi.ParseReply(k.Ask((&abi.Query{What: abi.AskBlob, Name: string(deletedHash[:])}).Marshal())); !errors.Is(guestErr, blob.ErrNotFound) || err != nil {
		t.Errorf("the deleted input's picture is %d bytes, %v, %v", len(value), guestErr, err)
	}
	if body := s.read(t, "/v2/inputs"); !strings.Contains(body, `"id":"blue"`) || strings.Contains(body, `"id":"red"`) {
		t.Errorf("inputs at the origin are %s", body)
	}

	if err := s.Engine.Register.DeleteApp(t.Context(), register.Caller{}, s.App); err != nil {
		t.Fatal(err)
	}
	for i := 0; k.purge == nil && i < 5000; i++ {
		k.now = k.now.Add(time.Minute)
		k.handle(t, replica.Wake{})
	}
	if k.purge == nil || k.purge.KeepOutbox || k.status.Phase != replica.Purged {
		t.Errorf("after a deletion the copy is told %+v, and stands at %v", k.purge, k.status.Phase)
	}
}

// read returns the body of the origin's answer to a GET request.
func (s *source) read(t testing.TB, path string) string {
	t.Helper()
	c := s.Engine.Begin(t.Context(), &api.Request{Method: "GET", Path: path, Authorization: "Key " + s.Key})
	r := c.Response()
	return string(r.Body)
}

// TestCallsWithoutReplica makes requests that only a replica answers, and opens replicas with invalid settings.
func TestCallsWithoutReplica(t *testing.T) {
	p := openPage(t, apitest.TinyBundles(t), nil)
	if _, guestErr, err := abi.ParseReply(p.Ask((&abi.Query{What: abi.AskDigest}).Marshal())); !errors.Is(guestErr, api.ErrOptions) || err != nil {
		t.Errorf("a digest of none is %v, %v", guestErr, err)
	}
	if done, err := abi.ParseSyncResult(p.Sync(abi.AppendEvent(nil, replica.Begin{}))); !errors.Is(done.Err, api.ErrOptions) || err != nil {
		t.Errorf("an event for none is %v, %v", done.Err, err)
	}
	h := newHost(hostcalls.Services{Bundles: apitest.TinyBundles(t), Clock: func() time.Time { return p.now }, Rand: p})
	for name, s := range map[string]abi.Settings{
		"an application without an origin":  {App: strings.Repeat("a", 32)},
		"a copy of all":                     {Replica: &abi.Replica{}},
		"a register of another application": {App: strings.Repeat("b", 32), Replica: &abi.Replica{RegisterSeq: 1, Register: []byte{1}}},
	} {
		s.Role, s.Store, s.Bundles = abi.Engine, abi.StoreMemory, names(h.Bundles)
		if guestErr, err := abi.ParseDone(newInstance(h).Open(s.Marshal())); guestErr == nil || err != nil {
			t.Errorf("%s opens: %v, %v", name, guestErr, err)
		}
	}
}

// TestKilledReplica kills a page at a random write of its store, with a part of the unsynced data lost. After the restart, the origin gets
// all acknowledged operations, and both have the same state.
func TestKilledReplica(t *testing.T) {
	for seed := range testkit.Seeds(t, 15, 1000) {
		rng := rand.New(rand.NewPCG(seed, 8))
		s := newSource(t)
		s.add(t, "red", "red.png")
		s.add(t, "white", "white.png")
		disk := journaltest.NewDisk()
		k, guestErr := s.keep(t, disk, true)
		if guestErr != nil {
			t.Fatal(guestErr)
		}
		k.handle(t, replica.Begin{})
		k.settle(t)

		k.down = true
		base := disk.Ops()
		after := map[string]int{}   // by input: number of writes to the disk before the answer
		want := map[string]string{} // by input: text that the origin's answer must contain
		ask := func(input, text, method, path, body string) {
			k.fetch(t, 200, method, path, "", body)
			after[input], want[input] = disk.Ops(), text
		}
		for i := range 3 + rng.IntN(4) {
			id := fmt.Sprintf("alone-%d", i)
			ask(id, `"id":"`+id+`"`, "POST", "/v2/inputs", `{"inputs":[`+picture(id, []string{"blue.png", "half.png"}[i%2], "")+`]}`)
			if rng.IntN(2) == 0 {
				k.rest(t, time.Second)
			}
		}
		ask("red", `"id":"late"`, "PATCH", "/v2/inputs", `{"action":"merge","inputs":[{"id":"red","data":{"concepts":[{"id":"late","value":1}]}}]}`)
		ask("white", `"code":11101`, "DELETE", "/v2/inputs/white", "")
		k.handle(t, replica.LocalWrite{})

		at := base + rng.IntN(disk.Ops()-base+1)
		k, guestErr = s.keep(t, disk.CrashAt(at, []int{0, 50, 100}[rng.IntN(3)], rng), false)
		if guestErr != nil {
			t.Fatalf("seed %d, killed after %d writes: %v", seed, at, guestErr)
		}
		k.handle(t, replica.Begin{})
		k.rest(t, time.Second)
		k.handle(t, replica.LocalWrite{})
		k.settle(t)
		k.digest(t)
		for input, text := range want {
			if body := s.read(t, "/v2/inputs/"+input); after[input] <= at && !strings.Contains(body, text) {
				t.Errorf("seed %d, killed after %d writes: the origin says %s of %s, which was acknowledged after %d", seed, at, body, input, after[input])
			}
		}
	}
}

// TestConflictingInputKeepsPicture: a page creates an input while its origin is unreachable, and the origin gives the same id to another
// picture. The page uploads its picture, and has it under its name until the conflict is dismissed.
func TestConflictingInputKeepsPicture(t *testing.T) {
	s := newSource(t)
	k, guestErr := s.keep(t, journaltest.NewDisk(), true)
	if guestErr != nil {
		t.Fatal(guestErr)
	}
	k.handle(t, replica.Begin{})
	k.settle(t)
	k.down = true
	localHash := blob.Sum(apitest.Picture("blue.png"))
	body := k.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture("twice", "blue.png", "")+`]}`)
	name := imageURL(t, body)
	k.rest(t, time.Second)
	s.add(t, "twice", "red.png")
	k.down = false
	for range 100 { // the page pulls the origin's input before it can push its own
		k.rest(t, time.Second)
		k.handle(t, replica.Wake{}, replica.LocalWrite{})
	}
	k.settle(t)
	k.rest(t, 2*time.Minute)
	if has, err := s.Blobs.Has(t.Context(), localHash); !has || err != nil {
		t.Errorf("the origin has the picture: %v, %v", has, err)
	}
	list := k.fetch(t, 200, "GET", "/v2/sync/conflicts", "", "")
	if !strings.Contains(list, `"verdict":"duplicate"`) || !strings.Contains(list, name) {
		t.Fatalf("conflicts = %s", list)
	}
	hosted, err := abi.ParseHosted(k.ask(t, abi.Query{What: abi.AskHosted, Name: name}))
	if err != nil || !bytes.Equal(hosted.Data, apitest.Picture("blue.png")) || hosted.ContentType != "image/png" {
		t.Errorf("the picture in dispute is %d bytes, %v", len(hosted.Data), err)
	}
	_, rest, _ := strings.Cut(list, `"conflicts":[{"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	k.fetch(t, 200, "DELETE", "/v2/sync/conflicts/"+id, "", "")
	k.rest(t, 2*time.Minute)
	if _, guestErr, err := abi.ParseReply(k.Ask((&abi.Query{What: abi.AskBlob, Name: string(localHash[:])}).Marshal())); !errors.Is(guestErr, blob.ErrNotFound) || err != nil {
		t.Errorf("after the conflict the picture is there: %v, %v", guestErr, err)
	}
	if _, guestErr, _ := abi.ParseReply(k.Ask((&abi.Query{What: abi.AskHosted, Name: name}).Marshal())); !errors.Is(guestErr, blob.ErrNotFound) {
		t.Errorf("and has its name: %v", guestErr)
	}
}
