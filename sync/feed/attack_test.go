//go:build !wasip1

package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/feed"
	machine "github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// member is a replica that syncs during an attack. Its machine runs in the time of its clock.
type member struct {
	*honest
	machine *machine.Machine
	clock   func() time.Time
	events  []machine.Event
	wake    time.Time

	refusals map[string]int // refusals by code
	served   map[string]int // answers with status 200, by path and query
	sent     int            // bytes of pictures that were sent
	total    int            // bytes of pictures to send
	uploads  []log.Body     // operations that create inputs of these pictures
}

func (w *world) member(app, key string) *member {
	w.t.Helper()
	x := &member{
		honest: w.newHonest(app, key), clock: func() time.Time { return w.Now },
		refusals: map[string]int{}, served: map[string]int{}, events: []machine.Event{machine.Begin{}},
	}
	var err error
	x.machine, err = machine.New(machine.Options{
		App: x.app, Partition: x.part, Store: x.kv, Blobs: x.pics, Live: machine.Once, Audit: -1,
		Rand: rand.NewChaCha8([32]byte{byte(len(key))}), Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

// step handles the next event. It returns false if there is none.
func (x *member) step() bool {
	var e machine.Event = machine.Wake{}
	switch {
	case len(x.events) > 0:
		e, x.events = x.events[0], x.events[1:]
	case x.wake.After(x.clock()):
		return false
	default:
		x.wake = x.clock().Add(time.Hour)
	}
	effects, err := x.machine.Step(x.clock(), e)
	if err != nil {
		x.w.t.Error(err)
		return false
	}
	for _, effect := range effects {
		switch effect := effect.(type) {
		case machine.Ask:
			x.events = append(x.events, x.ask(effect))
		case machine.WakeAt:
			x.wake = effect.At
		}
	}
	return true
}

// ask returns the origin's answer to a request, and records refusals.
func (x *member) ask(a machine.Ask) machine.Answer {
	answer := x.answer(a)
	name := a.Method + " " + a.Path
	if answer.Status == 429 || answer.Status == 503 {
		x.refusals[fmt.Sprint(answer.Status)]++
		return answer
	}
	if answer.Status == 200 {
		x.served[name]++
	}
	if a.Method == "PUT" {
		x.sent += len(a.Body)
	}
	return answer
}

func (x *member) isSettled() bool {
	s := x.machine.Status()
	return s.IsSettled() && len(x.events) == 0
}

// settle runs the replica in virtual time until it has what the origin has, and the origin what it has. between runs after each step.
func (x *member) settle(between func()) {
	x.w.t.Helper()
	for range 200_000 {
		if x.isSettled() {
			return
		}
		if x.step() {
			x.w.Now = x.w.Now.Add(time.Millisecond)
		} else {
			x.w.Now = x.wake
		}
		between()
	}
	x.w.t.Fatal("the replica does not settle")
}

// stocked creates an application with inputs, and trims its log, so that a replica begins with a snapshot.
func (w *world) stocked(owner string, inputs int) apitest.Tenant {
	w.t.Helper()
	n := w.NewTenant(w.t, owner, "en")
	for i := range inputs {
		res := w.Serve(w.t, api.Request{Method: "POST", Path: "/v2/inputs", Authorization: "Key " + n.Key, Body: fmt.Appendf(nil,
			`{"inputs":[{"id":"i%d","data":{"image":{"url":"http://pictures.test/red.png?%[1]d"},"concepts":[{"id":"red"}]}}]}`, i)})
		if res.Status != 200 {
			w.t.Fatalf("POST inputs = %d %s", res.Status, res.Body)
		}
	}
	w.Step(w.t, time.Second)
	l := w.partition(n.App).Log()
	if err := l.Trim(l.Head() + 1); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// attack is an attack of one account: it opens snapshots, asks for digests and begins uploads in all its applications, with all its keys.
type attack struct {
	w    *world
	apps []*replica
	turn atomic.Uint64
	got  [3]atomic.Int64 // snapshots, digests and parts
}

// newAttack creates the applications of the attacker, each with several keys.
func (w *world) newAttack(apps, keys int) *attack {
	a := &attack{w: w}
	for range apps {
		n := w.NewTenant(w.t, fmt.Sprint("mallory of ", apps), "en")
		for k := range max(keys/apps, 1) {
			key := n.Key
			if k > 0 {
				key = w.NewKey(w.t, n, auth.All)
			}
			a.apps = append(a.apps, &replica{w: w, app: n.App, authorization: "Key " + key})
		}
	}
	return a
}

// step makes some calls of the attack.
func (a *attack) step() {
	i := a.turn.Add(1)
	r := *a.apps[i*7919%uint64(len(a.apps))]
	p, err := a.w.Engine.Origin(r.app)
	if err == nil { // another entry, so that each snapshot and each digest is a new one
		_, err = p.Submit(context.Background(), "", []log.Body{&log.ConceptCreate{ID: fmt.Sprint("c", i), Name: "n", Language: "en"}}, nil)
	}
	if err != nil {
		a.w.t.Error(err)
		return
	}
	count := func(kind int, res api.Response) {
		if res.Status < 300 {
			a.got[kind].Add(1)
		}
	}
	count(0, r.ask("GET", "/v2/sync/snapshot?least=99999999&app="+r.app, nil))
	count(1, r.ask("GET", "/v2/sync/digest?app="+r.app, nil))
	r.headers = contentRange(0, 1<<20, 20e6)
	count(2, r.ask("PUT", r.blob(blob.Sum(fmt.Append(nil, i))), megabyte))
}

var megabyte = make([]byte, 1<<20)

// victim returns an empty replica of another tenant that also has pictures to send.
func (w *world) victim(pictures int) *member {
	w.t.Helper()
	n := w.stocked("anna", 20)
	x := w.member(n.App, n.Key)
	for i := range pictures {
		noise := make([]byte, 2<<20)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(noise)
		picture := append(slices.Clone(apitest.Picture("red.png")), noise...) // bytes after the picture are ignored
		h, err := x.pics.Put(context.Background(), bytes.NewReader(picture), blob.Hash{})
		if err != nil {
			w.t.Fatal(err)
		}
		x.uploads = append(x.uploads, &log.InputCreate{ID: fmt.Sprint("new", i), Blob: h, ContentType: "image/png"})
		x.total += len(picture)
	}
	return x
}

// run syncs the replica from empty, and then sends its pictures. settle runs the replica until it is settled.
func (x *member) run(settle func()) {
	settle()
	x.write(x.uploads...)
	x.events = append(x.events, machine.LocalWrite{})
	settle()
}

// checkVictim checks that a replica has lost nothing.
func (x *member) checkVictim(name string) {
	x.w.t.Helper()
	for call, n := range x.served {
		if strings.HasPrefix(call, "GET /v2/sync/snapshot") && n > 1 {
			x.w.t.Errorf("%s: %s was sent %d times", name, call, n)
		}
	}
	if s := x.machine.Status(); x.sent != x.total || s.Rebases != 1 || s.Refused != 0 {
		x.w.t.Errorf("%s: %d of %d bytes sent, %d snapshots, %d conflicts", name, x.sent, x.total, s.Rebases, s.Refused)
	}
}

// attacks are the applications and keys of one account that attacks.
var attacks = []struct{ apps, keys int }{{1, 1}, {8, 8}, {200, 500}}

// TestManyKeysGainNothing: an account with many applications and keys takes no more than an account with one. Another tenant's first sync
// and uploads end without a lost snapshot or part, and wait no longer.
func TestManyKeysGainNothing(t *testing.T) {
	var base time.Duration
	for i, tt := range attacks {
		w := newWorld(t, nil)
		a, x := w.newAttack(tt.apps, tt.keys), w.victim(3)
		for range 400 { // before the victim begins
			a.step()
		}
		began := w.Now
		x.run(func() { x.settle(a.step) })
		took := w.Now.Sub(began)
		name := fmt.Sprintf("%d applications with %d keys", tt.apps, tt.keys)
		x.checkVictim(name)
		if i == 0 {
			base = took
		}
		if took > base*3/2 {
			t.Errorf("%s: the victim takes %v, and %v beside one application", name, took, base)
		}
		snapshots, digests, parts := a.got[0].Load(), a.got[1].Load(), a.got[2].Load()
		if snapshots > 481 || digests > 481 || parts > 128 {
			t.Errorf("%s: the account got %d snapshots, %d digests and %d MB of parts", name, snapshots, digests, parts)
		}
		t.Logf("%s: %v, %d snapshots, %d digests, %d MB of parts, victim %v", name, took, snapshots, digests, parts, x.refusals)
	}
}

// TestAttackDelaysNoTenant compares the time of another tenant's first sync and uploads during the attacks, the median of five in turns.
func TestAttackDelaysNoTenant(t *testing.T) {
	testkit.RequireTiming(t)
	took := make([][]time.Duration, len(attacks))
	for range 5 {
		for i, tt := range attacks {
			took[i] = append(took[i], attackTime(t, tt.apps, tt.keys))
		}
	}
	for i, tt := range attacks {
		slices.Sort(took[i])
		t.Logf("%d applications with %d keys: %v", tt.apps, tt.keys, took[i])
		if took[i][2] > took[0][2]*3/2 {
			t.Errorf("%d applications with %d keys: the victim takes %v, and %v beside one application", tt.apps, tt.keys, took[i][2], took[0][2])
		}
	}
}

// attackTime returns the time of a victim's first sync and uploads while four callers attack without a pause.
func attackTime(t *testing.T, apps, keys int) time.Duration {
	w := newWorld(t, func(o *feed.Options) { o.Clock = time.Now })
	a, x := w.newAttack(apps, keys), w.victim(3)
	x.clock = time.Now
	var stop atomic.Bool
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for !stop.Load() {
				a.step()
			}
		})
	}
	for a.turn.Load() < 200 {
		time.Sleep(time.Millisecond) // the attack begins
	}
	began := time.Now()
	x.run(func() {
		for !x.isSettled() {
			if !x.step() {
				time.Sleep(min(time.Until(x.wake), 100*time.Millisecond))
			}
		}
	})
	took := time.Since(began)
	stop.Store(true)
	callers.Wait()
	x.checkVictim(fmt.Sprint(apps, " applications"))
	return took
}
