package program

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// member is a replica of a fleet. It records the refusals of its requests.
type member struct {
	*replica.Machine
	origin    string
	authorize func(method, path, query string, body []byte) ([]api.Field, error)
	cancel    context.CancelFunc // ends a sync
	settled   bool

	paths   map[uint64]string    // of the requests that have no answer yet, by id
	since   map[string]time.Time // by path, the time of the first of the last refusals as busy in a row
	busy    int                  // requests refused as busy
	longest time.Duration        // longest time in which a request was refused as busy
	other   map[int]int          // other refusals, by status
}

// newMember returns an empty replica of an application.
func newMember(t testing.TB, origin, app string, blobs wire.Blobs, authorize func(method, path, query string, body []byte) ([]api.Field, error)) *member {
	t.Helper()
	id, err := catalog.ParseAppID(app)
	if err != nil {
		t.Fatal(err)
	}
	x := &member{origin: origin, authorize: authorize, paths: map[uint64]string{}, since: map[string]time.Time{}, other: map[int]int{}}
	store := memkv.New()
	p, err := partition.OpenReplica(partition.Options{Store: store, App: id, Clock: system.Now}, partition.ReplicaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x.Machine, err = replica.New(replica.Options{
		App: id, Partition: p, Store: store, Blobs: blob.NewMemory(blob.Options{}), Live: replica.Once,
		Rand: rand.NewChaCha8([32]byte{}), Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: blobs},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Step implements [synclink.Stepper].
func (x *member) Step(now time.Time, e replica.Event) ([]replica.Effect, error) {
	if a, ok := e.(replica.Answer); ok && a.Status != 0 {
		x.count(now, x.paths[a.ID], a.Status)
	}
	effects, err := x.Machine.Step(now, e)
	for _, effect := range effects {
		if a, ok := effect.(replica.Ask); ok {
			x.paths[a.ID] = a.Method + " " + a.Path
		}
	}
	if s := x.Status(); s.IsSettled() {
		x.settled = true
		x.cancel()
	}
	return effects, err
}

func (x *member) count(now time.Time, path string, status int) {
	switch {
	case status == http.StatusServiceUnavailable:
		if x.busy++; x.since[path].IsZero() {
			x.since[path] = now
		}
		return
	case status >= 400:
		x.other[status]++
	}
	if since := x.since[path]; !since.IsZero() {
		x.longest = max(x.longest, now.Sub(since))
		delete(x.since, path)
	}
}

// sync syncs the replica over HTTP until both sides have everything.
func (x *member) sync(ctx context.Context) error {
	ctx, x.cancel = context.WithCancel(ctx)
	defer x.cancel()
	l, err := synclink.New(synclink.Options{Origin: x.origin, Machine: x, Authorize: x.authorize, Effect: func(replica.Effect) {}, Now: system.Now})
	if err != nil {
		return err
	}
	return l.Run(ctx)
}

// byKey returns the credential of a key.
func byKey(key string) func(method, path, query string, body []byte) ([]api.Field, error) {
	return func(string, string, string, []byte) ([]api.Field, error) {
		return []api.Field{{Name: "Authorization", Value: "Key " + key}}, nil
	}
}

// newFleetEdge creates an edge of an account and returns the credential of its requests.
func newFleetEdge(t testing.TB, srv *server.Server, base, account string, apps []string, seed byte) func(method, path, query string, body []byte) ([]api.Field, error) {
	t.Helper()
	token, edge, err := srv.Engine.(native).Register.CreateEdge(t.Context(), register.Caller{Account: account}, "shop", apps)
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	enrol(t, own(t), base, edge.ID, token, key)
	return func(method, path, query string, body []byte) ([]api.Field, error) {
		fields := []api.Field{{Name: "Authorization", Value: feed.Sign(key, edge.ID, system.Now(), method, path, query, body)}}
		if len(body) > 0 {
			fields = append(fields, api.Field{Name: feed.HeadHeader, Value: feed.SignHead(key, system.Now(), method, path, query, len(body))})
		}
		return fields, nil
	}
}

// TestFleetOfAccount: three edges and five browsers of each application of an account sync from empty at once over HTTP. The origin refuses
// none over a quota, and a request that it refuses as busy succeeds within a minute.
func TestFleetOfAccount(t *testing.T) {
	srv, base := startOrigin(t, testSettings(t))
	visit(t, base).must("POST", "/accounts", cli.Object{"name": "Op", "email": "op@x.example", "password": aPassword, "setup": setup(t, srv)})
	anna := visit(t, base)
	anna.must("POST", "/accounts", cli.Object{"name": "Anna", "email": "anna@x.example", "password": aPassword})
	engine := srv.Engine.(native)
	var apps []string
	var all []*member
	account := ""
	for i := range testkit.Size(t, 3, 8, 20, 20) {
		app := anna.must("POST", "/apps", cli.Object{"name": fmt.Sprint("Shop ", i), "language": "en", "default_model": ""}).App.ID
		apps = append(apps, app)
		record, err := engine.Register.App(app)
		if err != nil {
			t.Fatal(err)
		}
		account = record.Owner
		for k := range 5 {
			key, _, err := engine.Register.CreateKey(t.Context(), register.Caller{Account: account}, register.NewKey{App: app, Scopes: []string{"All"}})
			if err != nil {
				t.Fatal(err)
			}
			if k == 0 {
				stock(t, engine, base, app, key, uint64(i))
			}
			all = append(all, newMember(t, base, app, wire.BlobsLazy, byKey(key)))
		}
	}
	for seed := range byte(3) {
		credential := newFleetEdge(t, srv, base, account, apps, seed)
		for _, app := range apps {
			all = append(all, newMember(t, base, app, wire.BlobsFull, credential))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	began := system.Now()
	var running sync.WaitGroup
	for _, x := range all {
		running.Go(func() {
			if err := x.sync(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	busy := 0
	var longest time.Duration
	for i, x := range all {
		s := x.Status()
		if !x.settled || s.Rebases != 1 || len(x.other) > 0 || len(x.since) > 0 || x.longest > time.Minute {
			t.Errorf("replica %d: settled %v, %s, %d snapshots, refusals %v, busy for %v", i, x.settled, s.Problem, s.Rebases, x.other, x.longest)
		}
		busy, longest = busy+x.busy, max(longest, x.longest)
	}
	t.Logf("%d replicas synced in %v, %d times busy, at most for %v", len(all), system.Now().Sub(began), busy, longest)
}

// stock adds four pictures to an application, and trims its log, so that a replica begins with a snapshot.
func stock(t testing.TB, engine native, base, app, key string, seed uint64) {
	t.Helper()
	body := byBase64(dots(t, 4*seed, 200), dots(t, 4*seed+1, 200), dots(t, 4*seed+2, 200), dots(t, 4*seed+3, 200))
	req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/v2/inputs", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	res, err := own(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("POST /v2/inputs = %d", res.StatusCode)
	}
	p, err := engine.Partition(app)
	if err != nil {
		t.Fatal(err)
	}
	l := p.Log()
	if err := l.Trim(l.Head() + 1); err != nil {
		t.Fatal(err)
	}
}
