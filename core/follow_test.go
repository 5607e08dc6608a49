package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/api/apitest/program"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestSuiteOnLateStore runs the tests of this package on a store that shows a commit as late as its wait returns, and lets each Apply
// overtake. The tests left out read the sources, or write to disks.
func TestSuiteOnLateStore(t *testing.T) {
	kvtest.RunLate(t, testkit.Seeds(t, 80, 500), "^Test",
		"^Test(.*OnLateStore|RoleChanges|VersionOfOfflineReplicaIsRetrained|TrainingKilled|Kill.*|EmptiedReplicaLeavesNothingOnDisk|Sizes|InterfacesAreSmall|NoBools|CoreStartsNoGoroutine|CodecsAreGenerated|ImportsPointInward|OnlySystemUsesTheOS|ModulesAreRecentEnough)$")
}

// machine is one of two machines of a cluster.
type machine struct {
	*core.Engine
	store *kvtest.Late
}

// next takes in the next batch that the other machine has committed.
func (m *machine) next(t testing.TB) bool {
	t.Helper()
	b := m.store.Next()
	if b == nil {
		return false
	}
	if err := m.Advance(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return true
}

// TestRoleChanges: two machines have the same applications, and change their roles at random moments, while clients write. At each change
// both have the same states and the same logs, with every acknowledged write, and no name has two contents.
func TestRoleChanges(t *testing.T) {
	for seed := range testkit.Seeds(t, 8, 20) {
		changeRoles(t, seed, testkit.Size(t, 5, 20, 60, 1000))
	}
}

func changeRoles(t *testing.T, seed uint64, changes int) {
	rng, channel := rand.New(rand.NewPCG(seed, 8)), kvtest.NewChannel(seed)
	l := newFixture(t)
	var both [2]*machine
	for i := range both {
		o := l.o
		store := channel.Machine(memkv.New(), t.Errorf)
		o.Store, o.Follow, o.Seals = store, true, o.Rand
		e, err := core.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		both[i] = &machine{e, store}
	}
	var leads atomic.Pointer[machine]
	lead := func(m *machine) {
		m.store.Lead()
		if err := m.Lead(); err != nil {
			t.Fatal(err)
		}
		leads.Store(m)
	}
	lead(both[0])
	w := &writers{T: t, l: l, leads: &leads, acked: map[string]bool{}, seen: map[log.Dot]string{}}
	app, _, err := both[0].Register.CreateApp(context.Background(), register.Caller{}, register.NewApp{Name: "test", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	w.app = app.ID
	if l.key, _, err = both[0].Register.CreateKey(context.Background(), register.Caller{}, register.NewKey{App: app.ID, Scopes: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for i := range 3 {
		running.Go(func() { w.write(ctx, rand.New(rand.NewPCG(seed, uint64(i))), i) })
	}
	running.Go(func() { w.manage(ctx, rand.New(rand.NewPCG(seed, 77))) })
	for range changes {
		old, next := leads.Load(), both[0]
		if next == old {
			next = both[1]
		}
		for until := w.done.Load() + int64(rng.IntN(12)); w.done.Load() < until && !t.Failed(); {
			if !next.next(t) {
				if _, err := next.Step(ctx, l.clock()); err != nil {
					t.Fatal(err)
				}
			}
		}
		channel.Depose()
		if err := old.Follow(ctx); err != nil {
			t.Fatal(err)
		}
		for _, m := range both {
			for m.next(t) {
			}
		}
		w.compare(both)
		if t.Failed() {
			break
		}
		lead(next)
	}
	stop()
	running.Wait()
	channel.Depose()
	if err := leads.Load().Follow(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, m := range both {
		for m.next(t) {
		}
	}
	w.compare(both)
	p, err := both[1].Partition(w.app)
	if err != nil {
		t.Fatal(err)
	}
	v := p.View()
	defer v.Close()
	if len(w.acked) == 0 {
		t.Error("no input was acknowledged")
	}
	for id := range w.acked {
		if _, err := v.InputByID(id); err != nil {
			t.Errorf("the acknowledged input %s is lost: %v", id, err)
		}
	}
}

// writers are the clients of a cluster.
type writers struct {
	*testing.T
	l     *fixture
	leads *atomic.Pointer[machine]
	app   string
	done  atomic.Int64 // number of calls that ended

	mu    sync.Mutex
	acked map[string]bool    // acknowledged inputs that no call deletes
	seen  map[log.Dot]string // operations of the application's log, by their names
	last  [2]uint64          // last entry of each machine's log that was compared
}

// call sends a call to the machine that leads. It reports whether the call was acknowledged.
func (w *writers) call(method, path string, body string) bool {
	call := w.leads.Load().Begin(context.Background(), &api.Request{Method: method, Path: path, Authorization: "Key " + w.l.key, Body: []byte(body)})
	analyser, hosted := w.l.o.Models.NewAnalyser(raster.Limits{}), w.l.o.Hosted.(*blob.HostedNames)
	for !call.Done() {
		var results []api.Result
		for _, j := range call.Jobs() {
			r := api.Result{ContentType: "image/png"}
			if r.Analysis, r.Err = analyser.Analyse(j.Data, j.Crop, j.Want); r.Err == nil && j.Keep {
				r.Blob, r.Err = hosted.Pin(context.Background(), j.Data)
			}
			results = append(results, r)
		}
		call.Resume(results)
	}
	r := call.Response()
	w.done.Add(1)
	if r.Status == 500 || r.Status == 401 {
		w.Errorf("%s %s = %d %s", method, path, r.Status, r.Body)
	}
	return r.Status == 200
}

// write adds, labels and deletes inputs of one client.
func (w *writers) write(ctx context.Context, rng *rand.Rand, client int) {
	picture, _ := json.Marshal(apitest.Picture("red.png"))
	for n := 0; ctx.Err() == nil && !w.Failed(); n++ {
		id := fmt.Sprintf("c%d-%d", client, n)
		if !w.call("POST", "/v2/inputs", fmt.Sprintf(`{"inputs":[{"id":%q,"data":{"image":{"base64":%s,"allow_duplicate_url":true}}}]}`, id, picture)) {
			continue
		}
		switch rng.IntN(4) {
		case 0:
			w.call("DELETE", "/v2/inputs/"+id, "")
			continue
		case 1:
			w.call("PATCH", "/v2/inputs", fmt.Sprintf(`{"action":"merge","inputs":[{"id":%q,"data":{"concepts":[{"id":"x"}]}}]}`, id))
		}
		w.mu.Lock()
		w.acked[id] = true
		w.mu.Unlock()
	}
}

// manage creates and deletes applications and keys, and does the work of a host that no call waits for.
func (w *writers) manage(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil && !w.Failed() {
		e := w.leads.Load()
		app, _, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "short", Language: "en"})
		if err == nil {
			_, _ = e.Partition(app.ID) // opens it
		}
		if err == nil && rng.IntN(2) == 0 {
			_ = e.Register.DeleteApp(ctx, register.Caller{}, app.ID)
		}
		for range 3 {
			if _, err := e.Step(ctx, w.l.clock()); err != nil {
				break // the other machine leads now
			}
		}
	}
}

// compare compares two machines that have taken in the same batches.
func (w *writers) compare(both [2]*machine) {
	w.Helper()
	ids, err := both[0].Register.IDs()
	if err != nil {
		w.Fatal(err)
	}
	for _, id := range append([]string{catalog.Control.String()}, ids...) {
		app, err := catalog.ParseAppID(id)
		if err != nil && id != catalog.Control.String() {
			w.Fatal(err)
		}
		var digests [2][32]byte
		for i, m := range both {
			if digests[i], err = fold.Digest(m.store, app); err != nil {
				w.Fatal(err)
			}
		}
		if digests[0] != digests[1] {
			w.Errorf("application %s: the states differ", id)
		}
	}
	purges, err := both[0].Register.Reader().Purges()
	others, failed := both[1].Register.Reader().Purges()
	if err != nil || failed != nil || fmt.Sprint(purges) != fmt.Sprint(others) {
		w.Errorf("purges %v and %v; %v, %v", purges, others, err, failed)
	}
	for i, m := range both {
		p, err := m.Origin(w.app)
		if err == nil {
			err = w.read(i, p)
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

// read checks that each name in the new entries of a machine's log has the content that it had before.
func (w *writers) read(i int, p *partition.Origin) error {
	return p.Log().Read(w.last[i]+1, func(e log.Entry) bool {
		w.last[i] = e.Seq
		content := fmt.Sprint(e.Seq, log.Encode(nil, &e.Op))
		if was, ok := w.seen[e.Op.Dot]; ok && was != content {
			w.Errorf("the name %v has two contents", e.Op.Dot)
		}
		w.seen[e.Op.Dot] = content
		return true
	})
}

// TestProgramsOnLateStore runs random programs of calls over a store that shows each commit at once, and over one that shows it late. The
// answers and all that the stores hold are equal.
func TestProgramsOnLateStore(t *testing.T) {
	set := apitest.Tiny(t)
	for seed := range testkit.Seeds(t, 300, 10_000) {
		plain := memkv.New()
		late := kvtest.NewLate(memkv.New(), seed, t.Errorf)
		want, got := runProgram(t, seed, set, plain), runProgram(t, seed, set, late)
		if got != want {
			t.Errorf("the answers differ:\n%s", cmp.Diff(want, got))
		}
		if diff := cmp.Diff(contents(t, plain), contents(t, late)); diff != "" {
			t.Errorf("after\n%s\nthe stores differ:\n%s", want, diff)
		}
	}
}

// contents returns what a store holds.
func contents(t testing.TB, r kv.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	var err error
	for key, value := range kv.Range(r, nil, nil, &err) {
		all[fmt.Sprintf("%q", key)] = fmt.Sprintf("%x", value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// runProgram runs the program of a seed, and between its calls others on models, keys, applications and derived records. It returns all calls.
func runProgram(t *testing.T, seed uint64, set *predict.Set, store kv.Store) string {
	w := apitest.NewWorld(t, store, set, nil, nil)
	p := program.New(t, w, seed)
	rng := rand.New(rand.NewPCG(seed, 6))
	var calls strings.Builder
	call := func(method, path, body string) {
		r := w.Serve(t, api.Request{Method: method, Path: path, Body: []byte(body)})
		fmt.Fprintf(&calls, "%s %s %s = %d %s\n", method, path, body, r.Status, r.Body)
	}
	ctx := context.Background()
	var apps []string
	for range 16 {
		switch rng.IntN(8) {
		case 0:
			call("POST", "/v2/models", fmt.Sprintf(`{"model":{"id":"m%d","output_info":{"data":{"concepts":[{"id":"a"},{"id":"b"}]}}}}`, rng.IntN(3)))
		case 1:
			call("POST", fmt.Sprintf("/v2/models/m%d/versions", rng.IntN(3)), "")
		case 2:
			call("DELETE", fmt.Sprintf("/v2/models/m%d", rng.IntN(3)), "")
		case 3:
			app, _, err := w.Engine.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "a secret name", Language: "en"})
			fmt.Fprintln(&calls, "create", app.ID, err)
			_, err = w.Engine.Partition(app.ID)
			fmt.Fprintln(&calls, "open", err)
			apps = append(apps, app.ID)
		case 4:
			if len(apps) > 0 {
				fmt.Fprintln(&calls, "delete", apps[0], w.Engine.Register.DeleteApp(ctx, register.Caller{}, apps[0]))
				apps = apps[1:]
			}
		case 5:
			_, k, err := w.Engine.Register.CreateKey(ctx, register.Caller{}, register.NewKey{App: w.App, Scopes: []string{"Predict"}})
			if err == nil && rng.IntN(2) == 0 {
				err = w.Engine.Register.DeleteKey(ctx, register.Caller{}, w.App, k.Hash)
			}
			fmt.Fprintln(&calls, "key", err)
		case 6:
			for more, err := true, error(nil); more; {
				if more, err = w.Engine.Step(ctx, w.Now); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.Step()
	}
	w.Step(t, time.Hour)
	return calls.String() + p.Trace()
}
