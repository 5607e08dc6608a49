package replica_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestBusyCalls: the origin refuses each call of the protocol several times, as busy or over a quota. The machine waits as long as each
// refusal asks for. It asks for no snapshot, chunk or part again that it has, so it loses none.
func TestBusyCalls(t *testing.T) {
	for _, refusal := range []wire.Refusal{
		{Code: wire.RefusedBusy, Detail: "too many at once", WaitMillis: 5000},
		{Code: wire.RefusedQuota, Detail: "too many a day", Limit: "Snapshots", Value: 120, WaitMillis: 30_000},
	} {
		t.Run(refusal.Detail, func(t *testing.T) {
			r := newRig(t, replica.Options{Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull}, Audit: time.Hour})
			r.derives(2, 3000)
			r.trim()
			kind := func(a *replica.Ask) string {
				if strings.Count(a.Path, "/") > 3 && !strings.HasSuffix(a.Path, "/have") {
					return a.Method + " " + a.Path[:strings.LastIndex(a.Path, "/")+1]
				}
				return a.Method + " " + a.Path
			}
			asks, refused, after, answered := map[string]int{}, map[string]int{}, map[string]time.Time{}, map[string]int{}
			sent := 0
			r.instead = func(a *replica.Ask) *wire.Refusal {
				k := kind(a)
				if r.clock.Before(after[k]) {
					t.Errorf("%s %v before the pause ends", k, after[k].Sub(r.clock))
				}
				if asks[k]++; asks[k]%3 != 0 { // also between the parts of a picture, and between chunks
					refused[k]++
					if !strings.HasPrefix(k, "GET /v2/sync/snapshot/") { // two lanes ask for chunks
						after[k] = r.clock.Add(time.Duration(refusal.WaitMillis) * time.Millisecond)
					}
					return &refusal
				}
				answered[k+a.Path]++
				if a.Method == "PUT" {
					sent += len(a.Body)
				}
				return nil
			}
			r.run(func() bool { return r.status().Phase == replica.Current }, 5000)
			const size = 3<<20 + 5
			r.write(r.picture(size))
			r.run(r.isSettled, 5000)
			r.run(func() bool { return !r.status().Audited.IsZero() }, 5000)
			r.agree()
			for _, k := range []string{
				"POST /v2/sync/session", "GET /v2/sync/changes", "GET /v2/sync/snapshot", "GET /v2/sync/snapshot/", "GET /v2/sync/digest", "POST /v2/sync/blobs/have",
				"PUT /v2/sync/blobs/", "POST /v2/sync/push",
			} {
				if refused[k] == 0 {
					t.Errorf("%s was not refused", k)
				}
			}
			for path, n := range answered {
				if strings.HasPrefix(path, "GET /v2/sync/snapshot") && n > 1 {
					t.Errorf("%s was answered %d times", path, n)
				}
			}
			if sent != size {
				t.Errorf("%d bytes of a picture of %d were sent", sent, size)
			}
			if n := r.status().Rebases; n != 1 {
				t.Errorf("%d snapshots, want 1", n)
			}
		})
	}
}

// TestNoCallsLeft: without calls the origin refuses pushes. The operations stay pending, entries are pulled, and the status names the limit.
// The push is repeated after the pause that the origin asks for.
func TestNoCallsLeft(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	none := true
	pushes := []time.Time{}
	r.instead = func(a *replica.Ask) *wire.Refusal {
		if a.Path != "/v2/sync/push" {
			return nil
		}
		if pushes = append(pushes, r.clock); none {
			return &wire.Refusal{Code: wire.RefusedQuota, Detail: "no calls left: verify your email address", Limit: wire.LimitCalls, WaitMillis: 600_000}
		}
		return nil
	}
	r.write(create("mine"))
	r.run(func() bool { return len(pushes) == 2 }, 1000)
	if d := pushes[1].Sub(pushes[0]); d < 10*time.Minute || d > 11*time.Minute {
		t.Errorf("the second push follows after %v", d)
	}
	r.origin.submit(create("theirs"))
	r.run(func() bool { return r.status().Cursor == r.origin.part.Log().Head() }, 1000)
	s := r.status()
	x := s.APIStatus("")
	if s.Pending() != 1 || s.Limit != wire.LimitCalls || x.Limit != wire.LimitCalls || !strings.Contains(s.Problem, "verify your email") || s.Phase != replica.Current {
		t.Errorf("status %+v", s)
	}
	none = false
	r.settle()
	r.agree()
	if s := r.status(); s.Limit != "" || s.Problem != "" || s.Pending() != 0 {
		t.Errorf("with calls again: %+v", s)
	}
}
