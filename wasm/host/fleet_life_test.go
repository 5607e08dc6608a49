package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// tokens issues numbered tokens.
type tokens struct {
	mu     sync.Mutex
	issued []auth.Claims
}

func (t *tokens) Issue(c auth.Claims) (string, time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued = append(t.issued, c)
	return fmt.Sprintf("token-%d", len(t.issued)), time.Minute, nil
}

func (t *tokens) Read(token string) (auth.Claims, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, c := range t.issued {
		if token == fmt.Sprintf("token-%d", i+1) {
			return c, nil
		}
	}
	return auth.Claims{}, auth.ErrToken
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))
}

// TestInvalidCredentials: a fleet answers invalid credentials as a native engine does, and opens no instance for them.
func TestInvalidCredentials(t *testing.T) {
	issued := &tokens{}
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) { o.Services.Tokens = issued })
	ten := n.tenant()
	engine, err := core.Open(core.Options{
		Store: n.store, Models: apitest.Tiny(t), Hosted: n.hosted, Clock: func() time.Time { return apitest.Start }, Rand: newSeeded(),
		Tokens: issued, Rate: auth.Rate{PerSecond: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	before := n.fleet.Runtime().Instances()
	unknown := strings.Repeat("0", 32)
	for _, credential := range []string{
		"", "Key", "Key " + unknown, "Key nonsense", "Bearer token-9", "Bearer ", "Bearer " + ten.key,
		basic(unknown, unknown), basic(ten.client.ID, unknown), basic(ten.client.ID, ""), "Basic !", ten.key,
	} {
		for _, path := range []string{"/v2/models", "/v2/inputs", "/v2/token", "/v2/nothing", "/v2/users/me/apps/" + ten.app + "/inputs", "/v2/users/me/apps"} {
			for _, method := range []string{"GET", "POST", "OPTIONS", "HEAD"} {
				r := &api.Request{Method: method, Path: path, Authorization: credential, Body: []byte(`{}`)}
				got, want := n.serve(r), engine.Begin(context.Background(), r).Response()
				if got.Status != want.Status || !bytes.Equal(got.Body, want.Body) || !slices.Equal(got.Header, want.Header) {
					t.Errorf("%s %s with %q = %d %s, natively %d %s", method, path, credential, got.Status, got.Body, want.Status, want.Body)
				}
			}
		}
	}
	if got := n.fleet.Runtime().Instances(); got != before {
		t.Errorf("%d instances are open, %d before", got, before)
	}
	got := n.serve(&api.Request{Method: "POST", Path: "/v2/token", Authorization: basic(ten.client.ID, ten.client.Secret)})
	if got.Status != 200 || len(issued.issued) != 1 {
		t.Fatalf("a client gets %d %s", got.Status, got.Body)
	}
	bearer := &api.Request{Method: "GET", Path: "/v2/inputs", Authorization: "Bearer token-1"}
	if got := n.serve(bearer); got.Status != 200 {
		t.Errorf("a token gets %d %s", got.Status, got.Body)
	}
	if err := n.control.RevokeTokens(context.Background(), register.Caller{}, ten.app); err != nil {
		t.Fatal(err)
	}
	if got := n.serve(bearer); got.Status != 401 {
		t.Errorf("a revoked token gets %d", got.Status)
	}
	if got := n.serve(&api.Request{Method: "GET", Path: "/v2/inputs", App: ten.app}); got.Status != 200 {
		t.Errorf("whom the host vouches for gets %d", got.Status)
	}
}

// TestIdleWritersAreClosed: a fleet with a limit of memory closes idle instances. Their data and
// their background work continue in the next instance.
func TestIdleWritersAreClosed(t *testing.T) {
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) { o.MemoryBytes = 1 })
	first, second := n.tenant(), n.tenant()
	add := `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	n.must(first, "POST", "/v2/inputs", add, `"code":30001`)
	n.must(second, "GET", "/v2/inputs", "", `"inputs":[]`)
	n.background()
	if got := n.fleet.Runtime().Instances(); got != 0 {
		t.Errorf("%d instances are open", got)
	}
	n.must(first, "GET", "/v2/inputs/status", "", `"processed":1`)
	n.must(second, "POST", "/v2/inputs", add, `"code":30001`)
	n.must(second, "GET", "/v2/inputs/a", "", `"id":"a"`)

	// A call that waits for its jobs keeps its instance.
	r := &api.Request{Method: "POST", Path: general, Authorization: "Key " + first.key, Body: []byte(predictBody("red.png"))}
	call := n.fleet.Begin(context.Background(), r)
	if call.Done() {
		t.Fatalf("%+v", call.Response())
	}
	n.background()
	call.Resume(n.work(call.Jobs()))
	if !call.Done() || call.Response().Status != 200 {
		t.Errorf("%+v", call.Response())
	}
}

// TestSnapshotWaitsForJobs: the host installs a snapshot only when no call waits for jobs. Other calls are served meanwhile. The host
// cannot install this snapshot, and leaves it to the next instance.
func TestSnapshotWaitsForJobs(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	ten := n.tenant()
	r := &api.Request{Method: "POST", Path: general, Authorization: "Key " + ten.key, Body: []byte(predictBody("red.png"))}
	call := n.fleet.Begin(context.Background(), r)
	if call.Done() {
		t.Fatalf("%+v", call.Response())
	}
	w, err := n.fleet.writer(ten.app)
	if err != nil {
		t.Fatal(err)
	}
	waits := func() bool {
		<-w.turn
		defer w.give()
		return w.idle != nil
	}
	var all sync.WaitGroup
	all.Go(func() {
		if err := n.fleet.ApplySnapshot(context.Background(), ten.app, []byte("no manifest")); err != nil {
			t.Error(err)
		}
	})
	for !waits() {
		runtime.Gosched()
	}
	n.must(ten, "GET", "/v2/inputs", "", `"inputs":[]`)
	if w.guestSnapshots {
		t.Error("the snapshot was tried before the call had finished")
	}
	call.Resume(n.work(call.Jobs()))
	if got := call.Response(); got.Status != 200 || !bytes.Contains(got.Body, []byte(`"name":"red"`)) {
		t.Errorf("a call under way gets %d %s", got.Status, got.Body)
	}
	all.Wait()
	if n.fleet.Runtime().Instances() != 0 || !w.guestSnapshots {
		t.Errorf("%d instances, alone %v", n.fleet.Runtime().Instances(), w.guestSnapshots)
	}
	n.must(ten, "GET", "/v2/inputs", "", `"inputs":[]`)
}

// TestReplacedMidCall: if the guest dies while the jobs of a call are done, the fleet refuses the call and
// unpins the pictures of its results. It accepts the result of a task, which the next instance runs again.
func TestReplacedMidCall(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	ten := n.tenant()
	add := `{"inputs":[{"id":"a","data":{"image":{"base64":"` + base64.StdEncoding.EncodeToString(apitest.Picture("red.png")) + `"}}}]}`
	r := &api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + ten.key, Body: []byte(add)}
	call := n.fleet.Begin(context.Background(), r)
	if call.Done() {
		t.Fatalf("%+v", call.Response())
	}
	n.must(ten, "POST", "/v2/inputs", `{"inputs":[{"id":"b","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`, `"code":30001`)
	tasks, err := n.fleet.Take(apitest.Start, 1)
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	w, err := n.fleet.writer(ten.app)
	if err != nil {
		t.Fatal(err)
	}
	<-w.turn
	w.in.markCrashed(abi.ErrRange)
	w.give()
	call.Resume(n.work(call.Jobs()))
	if got := call.Response(); !call.Done() || got.Status != 503 {
		t.Errorf("the call gets %d %s", got.Status, got.Body)
	}
	if err := n.fleet.Done(context.Background(), tasks[0], core.Result{Picture: n.job(tasks[0].Picture)}); err != nil {
		t.Error(err)
	}
	n.background()
	n.must(ten, "GET", "/v2/inputs/status", "", `"processed":1,"to_process":0`) // input b, which the next instance fetched
	if got := n.ask(ten, "GET", "/v2/inputs/a", ""); got.Status != 404 {
		t.Errorf("what was refused is there: %d %s", got.Status, got.Body)
	}
	if n.deaths.Load() != 1 {
		t.Errorf("%d deaths", n.deaths.Load())
	}
}

// TestDetach: the fleet closes the instance of a deleted application, so that nothing writes to its data while they are purged.
func TestDetach(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	deleted, stays := n.tenant(), n.tenant()
	add := `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	for _, ten := range []tenant{deleted, stays} {
		n.must(ten, "POST", "/v2/inputs", add, `"code":30001`)
	}
	n.background()
	before := n.fleet.Runtime().Instances()
	names := map[tenant]string{}
	for _, ten := range []tenant{deleted, stays} {
		_, name, ok := strings.Cut(string(n.ask(ten, "POST", general, predictBody("half.png")).Body), api.HostedPath)
		if !ok {
			t.Fatal("the answer has no URL of the predicted picture")
		}
		names[ten] = name[:32]
		id, _ := catalog.ParseAppID(ten.app)
		if p, err := n.hosted.Lookup(name[:32], apitest.Start); err != nil || p.App != id {
			t.Errorf("the predicted picture belongs to %x, %v, want %x", p.App, err, id)
		}
	}
	if err := n.control.DeleteApp(context.Background(), register.Caller{}, deleted.app); err != nil {
		t.Fatal(err)
	}
	if p, err := n.hosted.Lookup(names[deleted], apitest.Start); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the predicted picture of a deleted application: %v, %v", p, err)
	}
	if err := n.control.Purge(context.Background(), apitest.Start); err != nil {
		t.Fatal(err)
	}
	if got := n.fleet.Runtime().Instances(); got != before-1 {
		t.Errorf("%d instances, want %d", got, before-1)
	}
	if got := n.hosted.Len(); got != 1 {
		t.Errorf("%d names of predicted pictures are left, want 1", got)
	}
	if _, err := n.hosted.Lookup(names[stays], apitest.Start); err != nil {
		t.Errorf("the predicted picture of the other application: %v", err)
	}
	if got := n.ask(deleted, "GET", "/v2/inputs", ""); got.Status != 401 {
		t.Errorf("a deleted application's key gets %d %s", got.Status, got.Body)
	}
	n.background()
	n.must(stays, "GET", "/v2/inputs/a", "", `"id":"a"`)
}

// TestGivenUpCallLeavesNothing: a call whose jobs the caller gives up leaves nothing in the instance, which the fleet can then close.
func TestGivenUpCallLeavesNothing(t *testing.T) {
	n := newNode(t, anotherRuntime(t), func(o *FleetOptions) { o.MemoryBytes = 1 })
	ten := n.tenant()
	r := &api.Request{Method: "POST", Path: general, Authorization: "Key " + ten.key, Body: []byte(predictBody("red.png"))}
	call := n.fleet.Begin(context.Background(), r)
	if call.Done() {
		t.Fatalf("%+v", call.Response())
	}
	call.GiveUp(api.ErrBusy)
	if got := n.fleet.Refuse(r, api.ErrBusy); got.Status != 503 {
		t.Errorf("Refuse = %d", got.Status)
	}
	n.background()
	if got := n.fleet.Runtime().Instances(); got != 0 {
		t.Errorf("%d instances are open", got)
	}
}

// TestJobsBelongToTheirApplication checks the application of jobs and tasks, which decides whether a hosted picture is fetched as it was
// stored. The host sets it, whatever the guest sends.
func TestJobsBelongToTheirApplication(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	for _, ten := range []tenant{n.tenant(), n.tenant()} {
		want, err := catalog.ParseAppID(ten.app)
		if err != nil {
			t.Fatal(err)
		}
		call := n.fleet.Begin(context.Background(), &api.Request{
			Method: "POST", Path: general, Authorization: "Key " + ten.key, Body: []byte(`{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`),
		})
		jobs := call.Jobs()
		if len(jobs) != 1 || jobs[0].App != want {
			t.Errorf("jobs of a call = %+v, want one of %v", jobs, want)
		}
		call.Resume(n.work(jobs))
		n.must(ten, "POST", "/v2/inputs", `{"inputs":[{"id":"a","data":{"image":{"url":"http://pictures.test/red.png"}}}]}`, `"code":30001`)
		tasks, err := n.fleet.Take(apitest.Start, 4)
		if err != nil || len(tasks) != 1 || tasks[0].Picture.App != want {
			t.Fatalf("Take = %+v, %v, want a task of %v", tasks, err, want)
		}
		if err := n.fleet.Done(context.Background(), tasks[0], core.Result{Picture: n.job(tasks[0].Picture)}); err != nil {
			t.Error(err)
		}
	}
}
