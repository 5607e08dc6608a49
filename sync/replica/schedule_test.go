package replica_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestSchedules runs one replica through random schedules of all faults: lost, cut and late answers, doubled requests,
// crashes, clock jumps, a trimmed log, and writes on both sides. After the faults end, both sides agree within a bounded
// number of requests. Each operation is in the log once and in order, no acknowledged operation is missing, and no
// deleted input is stored.
func TestSchedules(t *testing.T) {
	for seed := range testkit.Seeds(t, 150, 5000) {
		schedule(t, seed)
	}
}

func schedule(t *testing.T, seed uint64) {
	r := newRig(t, replica.Options{
		Live: replica.Live(seed % 2), Wants: wire.Wants{Vectors: wire.Vectors(seed / 2 % 2), Blobs: wire.BlobsFull}, Audit: 30 * time.Second,
	})
	r.rng = rand.New(rand.NewPCG(seed, 3))
	r.origin.byNames()
	r.cuts = true
	faulty := true
	lost, cut := r.rng.IntN(40), r.rng.IntN(40)
	r.lose = func(*replica.Ask) bool { return faulty && r.rng.IntN(100) < lost }
	r.wire = func(a *replica.Ask, x *replica.Answer) bool {
		if !faulty {
			return true
		}
		if r.rng.IntN(100) < cut && len(x.Body) > 0 {
			x.Body, x.Err = x.Body[:r.rng.IntN(len(x.Body))], errors.New("cut")
		}
		if r.rng.IntN(10) == 0 {
			r.origin.answer(a) // the request arrives twice
		}
		return r.rng.IntN(100) >= lost
	}
	var written, deleted []log.Dot
	for range 120 {
		switch n := r.rng.IntN(100); {
		case n < 15:
			r.origin.submit(create(fmt.Sprint("o", r.rng.IntN(30))))
		case n < 35:
			body := log.Body(create(fmt.Sprint("r", r.rng.IntN(30))))
			if r.rng.IntN(3) == 0 {
				body = r.picture(r.rng.IntN(3000))
			}
			written = append(written, r.write(body)...)
		case n < 38:
			if len(written) > 0 {
				dot := written[r.rng.IntN(len(written))] // the log may lack it
				r.origin.submit(&log.InputDelete{Input: dot})
				deleted = append(deleted, dot)
			}
		case n < 42:
			r.crash()
		case n < 45:
			r.clock = r.clock.Add(time.Duration(r.rng.IntN(41)-20) * time.Second)
		case n < 47:
			r.step(replica.Offline{})
			r.clock = r.clock.Add(time.Minute)
			r.step(replica.Online{})
		case n < 49:
			l := r.origin.part.Log()
			if err := l.Trim(1 + r.rng.Uint64N(l.Head()+1)); err != nil {
				t.Fatal(err)
			}
		case len(r.requests) > 0:
			r.deliver(r.rng.IntN(len(r.requests)))
		default:
			r.sleep()
		}
	}
	faulty = false
	start := r.total
	r.settle()
	r.agree()
	if n := r.total - start; n > 150 {
		t.Errorf("seed %d: %d requests until both agreed", seed, n)
	}
	if s := r.status(); s.Issued != uint64(len(written)) {
		t.Errorf("seed %d: %d operations written, %d in the outbox's count", seed, len(written), s.Issued)
	}
	r.ordered(seed, written)
	for _, dot := range deleted {
		v := r.part.View()
		if in, err := v.InputByDot(dot); err == nil {
			t.Errorf("seed %d: input %v was deleted and is back: %+v", seed, dot, in)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, want := inputs(t, r.store), inputs(t, r.origin.store); !slices.Equal(got, want) {
		t.Errorf("seed %d: inputs %v, the origin's %v", seed, got, want)
	}
}

// ordered checks that the origin has all operations of the replica, and that its log has each once, in the order in which they were written.
func (r *rig) ordered(seed uint64, written []log.Dot) {
	r.Helper()
	for _, dot := range written {
		if !r.origin.has(dot) {
			r.Errorf("seed %d: the origin lacks %v", seed, dot)
		}
	}
	last := -1
	err := r.origin.part.Log().Read(r.origin.part.Log().Floor(), func(e log.Entry) bool {
		at := slices.Index(written, e.Op.Dot)
		if at >= 0 && at <= last {
			r.Errorf("seed %d: entry %d is operation %d of the replica, after its operation %d", seed, e.Seq, at, last)
		}
		last = max(last, at)
		return true
	})
	if err != nil {
		r.Error(err)
	}
}

// TestBackOff: an offline origin gets ever fewer requests, down to about one a minute for each lane with a request, spread at random.
func TestBackOff(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.lose = func(*replica.Ask) bool { return true }
	var gaps []time.Duration
	last := r.clock
	for r.total < 40 {
		if len(r.requests) > 0 {
			gaps = append(gaps, r.clock.Sub(last))
			last = r.clock
			r.deliver(0)
			continue
		}
		r.sleep()
	}
	for i, g := range gaps[1:] {
		limit := min(500*time.Millisecond<<min(i, 10), time.Minute)
		if g > limit || g < limit/2-time.Millisecond {
			t.Errorf("pause %d is %v, want %v to %v", i, g, limit/2, limit)
		}
	}
	if slices.Max(gaps[10:]) == slices.Min(gaps[10:]) {
		t.Error("pauses are all the same")
	}
	if len(r.requests) > 0 {
		r.deliver(0)
	}
	if s := r.status(); s.Problem == "" || s.Retry.Before(r.clock) || s.Phase != replica.Connecting {
		t.Errorf("%+v", s)
	}
}

// TestRetryAfter: a machine waits for the time in the origin's answer, in a header or in a refusal.
func TestRetryAfter(t *testing.T) {
	busy := wire.Refusal{Code: wire.RefusedBusy, WaitMillis: 120_000}
	quota := wire.Refusal{Code: wire.RefusedQuota, WaitMillis: 120_000, Limit: "ops"}
	message := []api.Field{{Name: "Content-Type", Value: wire.ContentType}}
	for _, x := range []replica.Answer{
		{Status: 503, Header: []api.Field{{Name: "retry-after", Value: "120"}}},
		{Status: 429, Header: []api.Field{{Name: "Retry-After", Value: "120"}}},
		{Status: 503, Header: message, Body: busy.Encode()},
		{Status: 429, Header: message, Body: quota.Encode()},
	} {
		r := newRig(t, replica.Options{})
		r.wire = func(_ *replica.Ask, answer *replica.Answer) bool {
			x.ID = answer.ID
			*answer = x
			return true
		}
		r.deliver(0)
		start := r.clock
		for len(r.requests) == 0 {
			r.sleep()
		}
		if d := r.clock.Sub(start); d < 2*time.Minute || d > 3*time.Minute {
			t.Errorf("%d: asked again after %v", x.Status, d)
		}
	}
}

// TestWaitsAreBounded: a replica waits at most an hour, even if the origin asks for more.
func TestWaitsAreBounded(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.wire = func(_ *replica.Ask, x *replica.Answer) bool {
		x.Status, x.Header = 503, []api.Field{{Name: "Retry-After", Value: "4000000000"}}
		return true
	}
	r.deliver(0)
	if d := r.wake.Sub(r.clock); d > time.Hour {
		t.Errorf("the next try is in %v", d)
	}
}

// TestVersions: after a refusal of its version, a replica retries rarely, and keeps serving.
func TestVersions(t *testing.T) {
	for _, code := range []wire.RefusalCode{wire.RefusedProtocol, wire.RefusedFeatures, wire.RefusedFold} {
		refusal := wire.Refusal{Code: code, Detail: "too old"}
		r := newRig(t, replica.Options{})
		r.wire = func(_ *replica.Ask, x *replica.Answer) bool {
			x.Status, x.Body = 426, refusal.Encode()
			return true
		}
		r.deliver(0)
		if d := r.wake.Sub(r.clock); d < 9*time.Minute {
			t.Errorf("code %d: asked again after %v", code, d)
		}
	}
	r := newRig(t, replica.Options{})
	r.settle()
	r.origin.do = wire.DoPause
	r.step(replica.Offline{})
	r.step(replica.Online{})
	r.origin.submit(create("later"))
	r.run(func() bool { return r.status().Phase == replica.Paused }, 10)
	r.write(create("mine"))
	for range 20 {
		if len(r.requests) > 0 {
			r.deliver(0)
		}
	}
	if s := r.status(); s.Cursor != 0 || s.Of(1) == replica.Confirmed || s.Problem == "" {
		t.Errorf("%+v", s)
	}
	r.origin.do = 0
	r.settle()
	r.agree()
}

// TestSilence: the machine cancels requests without an answer, and streams without frames.
func TestSilence(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	if len(r.requests) == 0 {
		r.sleep()
	}
	id := r.requests[0].ID
	for range 20 {
		r.sleep()
		if len(r.requests) > 0 && r.requests[0].ID != id {
			return
		}
	}
	t.Error("a stream that says nothing is kept for ever")
}

// TestKeepalives: a stream with keepalives stays open, and the status shows when the copy was current.
func TestKeepalives(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	for len(r.requests) == 0 {
		r.sleep()
	}
	id := r.requests[0].ID
	alive := wire.Keepalive{Now: 1}
	for i := range 40 {
		r.clock = r.clock.Add(15 * time.Second)
		r.step(replica.Answer{ID: id, Status: 200 * (1 - min(i, 1)), Body: wire.AppendFrame(nil, wire.TypeKeepalive, alive.Encode()), More: true})
		if len(r.requests) != 1 || r.requests[0].ID != id {
			t.Fatalf("after %d keepalives: %d requests", i, len(r.requests))
		}
		s := r.status()
		if !s.AsOf.Equal(r.clock) {
			t.Fatalf("current as of %v at %v", s.AsOf, r.clock)
		}
	}
	lastKeepalive := r.clock
	r.clock = r.clock.Add(time.Hour)
	if s := r.status(); !s.AsOf.Equal(lastKeepalive) {
		t.Errorf("current as of %v after an hour of silence since %v", s.AsOf, lastKeepalive)
	}
}

// TestClockJumps: if the clock jumps by years, the replica is current again within two minutes.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-10 * 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, -time.Second, time.Hour} {
		r := newRig(t, replica.Options{})
		r.settle()
		r.clock = r.clock.Add(jump)
		r.origin.now = func() time.Time { return r.clock.Add(-jump) }
		r.origin.submit(create("a"))
		r.step(replica.Wake{})
		start := r.clock
		r.settle()
		if d := r.clock.Sub(start); d > 2*time.Minute {
			t.Errorf("jump of %v: %v until all was there", jump, d)
		}
	}
}

// TestOffline: an offline replica makes no requests. It makes one as soon as it is online.
func TestOffline(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	r.step(replica.Offline{})
	r.write(create("a"))
	for range 5 {
		r.clock = r.clock.Add(time.Hour)
		r.step(replica.Wake{})
	}
	if s := r.status(); len(r.requests) != 0 || s.Phase != replica.Unreachable || s.Of(1) != replica.Queued {
		t.Errorf("%d requests, %+v", len(r.requests), s)
	}
	r.step(replica.Online{})
	if len(r.requests) != 1 {
		t.Error("nothing was asked at once")
	}
	r.settle()
	r.agree()
}

// TestUnreachableReplicaIsNotCurrent: a replica that was current does not count as current when the origin no longer answers. It does again
// after the next answer.
func TestUnreachableReplicaIsNotCurrent(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	away := true
	r.lose = func(*replica.Ask) bool { return away }
	r.run(func() bool { return r.total > 5 && len(r.requests) == 0 }, 20)
	if s := r.status(); s.Phase != replica.Connecting || s.Problem == "" || s.IsSettled() {
		t.Errorf("%+v", s)
	}
	away = false
	r.settle()
	r.origin.refuse = map[string]int{"changes": 500}
	r.run(func() bool { return r.status().Phase != replica.Current }, 20)
	r.origin.refuse = nil
	r.settle()
	if s := r.status(); s.Problem != "" {
		t.Errorf("problem %q when all is well", s.Problem)
	}
}

// TestStatusNamesDenial: the status has the reason of a session that was refused for its credential, until there is a session.
func TestStatusNamesDenial(t *testing.T) {
	for _, status := range []int{401, 403, 404, 426} {
		r := newRig(t, replica.Options{})
		r.origin.refuse = map[string]int{"session": status}
		r.deliver(0)
		if s := r.status(); s.Denied == "" || s.Phase != replica.Connecting {
			t.Errorf("%d: %+v", status, s)
		}
		r.origin.refuse = nil
		r.settle()
		if s := r.status(); s.Denied != "" {
			t.Errorf("%d: %q when all is well", status, s.Denied)
		}
	}
	r := newRig(t, replica.Options{})
	r.origin.refuse = map[string]int{"session": 503}
	r.deliver(0)
	if s := r.status(); s.Denied != "" {
		t.Errorf("denied by a busy origin: %q", s.Denied)
	}
}

// TestRegister: the machine passes app records to AppRecords. A record of a deleted application ends the machine.
func TestRegister(t *testing.T) {
	reg := &register{}
	r := newRig(t, replica.Options{AppRecords: reg})
	r.origin.reg = 5
	r.settle()
	if reg.seq != 5 {
		t.Errorf("register of entry %d, want 5", reg.seq)
	}
	r.origin.reg, r.origin.registerData = 6, "gone"
	r.run(func() bool { return r.status().Phase == replica.Purged }, 20)
}

// TestOptions: an error names a missing option.
func TestOptions(t *testing.T) {
	if _, err := replica.New(replica.Options{}); !errors.Is(err, api.ErrOptions) {
		t.Errorf("New = %v", err)
	}
}

// TestStoreFails: a failure of the store ends the machine, and every later step returns it.
func TestStoreFails(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.origin.submit(create("a"))
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	var failed error
	for range 10 {
		if len(r.requests) == 0 || failed != nil {
			break
		}
		a := r.requests[0]
		r.requests = r.requests[1:]
		var effects []replica.Effect
		effects, failed = r.machine.Step(r.clock, r.origin.answer(&a))
		for _, x := range effects {
			if ask, ok := x.(replica.Ask); ok {
				r.requests = append(r.requests, ask)
			}
		}
	}
	if failed == nil {
		t.Fatal("the store is closed and nothing failed")
	}
	if _, err := r.machine.Step(r.clock, replica.Wake{}); !errors.Is(err, errors.Unwrap(failed)) && err == nil {
		t.Error("it goes on")
	}
}
