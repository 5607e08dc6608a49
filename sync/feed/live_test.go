//go:build !wasip1

package feed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// lively makes an origin whose readers wait, in a bubble's time.
func lively(t *testing.T, change func(*feed.Options)) *world {
	began := time.Now()
	return newWorld(t, func(o *feed.Options) {
		o.Clock = func() time.Time { return apitest.Start.Add(time.Since(began)) }
		o.Wait = func(ctx context.Context, moved <-chan struct{}, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-moved:
			case <-time.After(d):
			}
		}
		if change != nil {
			change(o)
		}
	})
}

// pageToken returns the credential of a page whose session is open.
func (w *world) pageToken(t *testing.T) string {
	t.Helper()
	session, _, err := w.Accounts.Login(t.Context(), "anna@example.com", "anna's password", "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := w.Engine.Register.Client(w.App)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := w.Tokens.Issue(auth.Claims{App: w.App, Client: client.ID, Generation: client.Generation, Page: true, Session: session})
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + token
}

// timedFrame is a frame, and when it came.
type timedFrame struct {
	wire.Frame
	at time.Time
}

// listening is an open answer.
type listening struct {
	t      *testing.T
	frames chan timedFrame
	ended  chan error
	cancel context.CancelFunc
}

// listen requests changes, and collects the frames.
func (r *replica) listen(t *testing.T, query string) *listening {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req := &api.Request{Method: "GET", Path: "/v2/sync/changes", Query: "app=" + r.app + "&" + query, Authorization: r.authorization, Session: r.openSession, Header: header}
	if r.sign != nil {
		req.Authorization = r.sign(req.Method, req.Path, req.Query, nil)
	}
	res := r.w.feed.Serve(ctx, req)
	if res.Stream == nil {
		t.Fatalf("%d %s", res.Status, res.Body)
	}
	x := &listening{t: t, frames: make(chan timedFrame, 100), ended: make(chan error, 1), cancel: cancel}
	from, to := io.Pipe()
	go func() {
		err := res.Stream(to)
		_ = to.Close()
		x.ended <- err
	}()
	go func() {
		defer close(x.frames)
		var in wire.Reader
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			_, _ = in.Write(buffer[:n])
			for {
				f, ok, bad := in.Next()
				if bad != nil {
					t.Error(bad)
				}
				if !ok {
					break
				}
				x.frames <- timedFrame{f, time.Now()}
			}
			if err != nil {
				return
			}
		}
	}()
	return x
}

// expect reads the next frames, checks their types, and returns the last.
func (x *listening) expect(types ...wire.Type) timedFrame {
	x.t.Helper()
	var f timedFrame
	for _, want := range types {
		var ok bool
		if f, ok = <-x.frames; !ok || f.Type != want {
			x.t.Fatalf("a frame of type %d (%v), want %d", f.Type, ok, want)
		}
	}
	return f
}

// ends reads the end and checks its reason.
func (x *listening) ends(why wire.EndReason) {
	x.t.Helper()
	m, err := wire.DecodeEnd(x.expect(wire.TypeEnd).Body)
	if err != nil || m.Why != why {
		x.t.Errorf("it ends with %+v, %v, want %v", m, err, why)
	}
	if err := <-x.ended; err != nil {
		x.t.Errorf("it ends with %v", err)
	}
}

// TestLive: readers wait for entries of other writers, and each stream ends for its reason.
func TestLive(t *testing.T) {
	tests := map[string]func(t *testing.T, w *world, r *replica){
		"a stream says that it lives, and what is new": func(t *testing.T, w *world, r *replica) {
			x := r.listen(t, "since=0&live=stream")
			begun := x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint).at
			if d := x.expect(wire.TypeKeepalive).at.Sub(begun); d != 15*time.Second {
				t.Errorf("a keepalive after %v", d)
			}
			r.mustPush(r.next(&log.ConceptCreate{ID: "new", Name: "new", Language: "en"}))
			x.expect(wire.TypeEntries, wire.TypeCheckpoint)
			x.cancel()
			x.ends(wire.WhyShutdown)
		},
		"a poll that has nothing ends in time": func(t *testing.T, w *world, r *replica) {
			l := w.partition(w.App).Log()
			_, register, err := w.Engine.Register.AppRecord(w.App, "")
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			x := r.listen(t, fmt.Sprintf("%s&register=%d&live=poll", r.at(l.Head()), register))
			x.expect(wire.TypeCheckpoint, wire.TypeCheckpoint)
			x.ends(wire.WhyDone)
			if d := time.Since(begun); d != 25*time.Second {
				t.Errorf("after %v", d)
			}
		},
		"a key that is deleted": func(t *testing.T, w *world, r *replica) {
			x := r.listen(t, "since=0&live=stream")
			x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
			if err := w.Engine.Register.DeleteKey(t.Context(), register.Caller{}, w.App, auth.HashKey(w.Key)); err != nil {
				t.Fatal(err)
			}
			x.ends(wire.WhyExpired)
		},
		"a page's session that ends between two keepalives": func(t *testing.T, w *world, r *replica) {
			r.authorization = w.pageToken(t)
			x := r.listen(t, "since=0&live=stream")
			begun := x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint).at
			time.Sleep(14 * time.Second)
			r.mustPush(r.next(&log.ConceptCreate{ID: "new", Name: "new", Language: "en"}))
			x.expect(wire.TypeEntries, wire.TypeCheckpoint) // so the next keepalive would be after 29 s
			w.Accounts.EndSessions()
			x.ends(wire.WhyExpired)
			if d := time.Since(begun); d != 15*time.Second {
				t.Errorf("the stream ended after %v, want 15 s", d)
			}
		},
		"a page's session that ends while a poll waits": func(t *testing.T, w *world, r *replica) {
			l := w.partition(w.App).Log()
			_, register, err := w.Engine.Register.AppRecord(w.App, "")
			if err != nil {
				t.Fatal(err)
			}
			r.authorization = w.pageToken(t)
			begun := time.Now()
			x := r.listen(t, fmt.Sprintf("%s&register=%d&live=poll", r.at(l.Head()), register))
			x.expect(wire.TypeCheckpoint)
			w.Accounts.EndSessions()
			x.ends(wire.WhyExpired)
			if d := time.Since(begun); d != 15*time.Second {
				t.Errorf("the poll ended after %v, want 15 s", d)
			}
		},
		"a session that ends": func(t *testing.T, w *world, r *replica) {
			session, account, err := w.Accounts.Login(t.Context(), "bert@example.com", "bert's password", "")
			if err != nil {
				t.Fatal(err)
			}
			own := &replica{w: w, app: w.NewTenant(t, account, "en").App, openSession: session}
			x := own.listen(t, "since=0&live=stream")
			begun := x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint).at
			w.Accounts.EndSessions()
			x.expect(wire.TypeKeepalive)
			x.ends(wire.WhyExpired)
			if d := time.Since(begun); d != 15*time.Second {
				t.Errorf("the stream ended after %v, want 15 s", d)
			}
		},
		"an application that is deleted": func(t *testing.T, w *world, r *replica) {
			x := r.listen(t, "since=0&live=stream")
			x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
			if err := w.Engine.Register.DeleteApp(t.Context(), register.Caller{}, w.App); err != nil {
				t.Fatal(err)
			}
			for f := range x.frames {
				if f.Type != wire.TypeEnd {
					continue
				}
				if m, err := wire.DecodeEnd(f.Body); err != nil || m.Why != wire.WhyGone {
					t.Errorf("%+v, %v", m, err)
				}
			}
		},
		"an edge that is revoked": func(t *testing.T, w *world, r *replica) {
			e := w.enrolEdge(3)
			x := e.listen(t, "since=0&live=stream")
			x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
			edges, err := w.Engine.Register.Edges()
			if err == nil {
				err = w.Engine.Register.RevokeEdge(t.Context(), register.Caller{}, edges[0].ID)
			}
			if err != nil {
				t.Fatal(err)
			}
			x.expect(wire.TypeAppRecord)
			x.ends(wire.WhyScope)
		},
		"an hour": func(t *testing.T, w *world, r *replica) {
			begun := time.Now()
			x := r.listen(t, "since=0&live=stream")
			var last timedFrame
			for last = range x.frames {
				continue
			}
			m, err := wire.DecodeEnd(last.Body)
			if d := time.Since(begun); err != nil || m.Why != wire.WhyDone || d != time.Hour {
				t.Errorf("it ends with %+v, %v, after %v", m, err, d)
			}
		},
		"too many": func(t *testing.T, w *world, r *replica) {
			for range 3 {
				x := r.listen(t, "since=0&live=stream")
				x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
				defer x.cancel()
			}
			if no := r.mustRefuse("GET", "/v2/sync/changes?live=stream&app="+w.App, nil); no.Code != wire.RefusedQuota || no.Limit != "Streams" {
				t.Errorf("the fourth is told %+v", no)
			}
		},
		"a reader that has gone": func(t *testing.T, w *world, r *replica) {
			req := &api.Request{Method: "GET", Path: "/v2/sync/changes", Query: "since=0&live=stream&app=" + w.App, Authorization: r.authorization, Header: header}
			res := w.feed.Serve(t.Context(), req)
			if err := res.Stream(brokenWriter{}); !errors.Is(err, errBroken) {
				t.Errorf("the stream ends with %v", err)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := lively(t, func(o *feed.Options) { o.Limits.Streams = 3 })
				w.input("a", "red.png")
				test(t, w, w.join(w.App, w.Key))
			})
		})
	}
}

var errBroken = errors.New("broken pipe")

// brokenWriter takes nothing.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

// TestDeletedKeysAtEdges deletes keys of an application while an edge listens, and measures how long the edge still accepts
// them. After their hour streams end and the edge connects again.
func TestDeletedKeysAtEdges(t *testing.T) {
	const bound = 5 * time.Second
	from, rounds := testkit.Rounds(t, 100, 20_000)
	const together = 100
	var worst time.Duration
	for seed := from; seed < from+uint64(rounds); seed += together {
		synctest.Test(t, func(t *testing.T) {
			worst = max(worst, measureLag(t, seed, together))
		})
	}
	t.Logf("seeds %d to %d, the longest a deleted key was good for: %v", from, from+uint64(rounds)-1, worst)
	if worst > bound {
		t.Errorf("a deleted key was good for %v, want %v", worst, bound)
	}
}

// measureLag returns the longest time after which an edge knew that one of n keys was deleted.
func measureLag(t *testing.T, seed uint64, n int) (worst time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 19))
	w := lively(t, nil)
	e := w.enrolEdge(9)
	began, now := time.Now(), w.Now
	good := e.sign
	e.sign = func(method, path, query string, body []byte) string {
		w.Now = now.Add(time.Since(began))
		return good(method, path, query, body)
	}
	x := e.listen(t, "since=0&live=stream")
	known := map[auth.Hash]bool{}
	hear := func(h timedFrame) {
		m, err := wire.DecodeAppRecord(h.Body)
		if err != nil {
			t.Fatal(err)
		}
		r, err := catalog.DecodeAppRecord(m.Data)
		if err != nil {
			t.Fatal(err)
		}
		clear(known)
		for i := range r.Keys {
			known[r.Keys[i].Hash] = true
		}
	}
	next := func() timedFrame {
		for {
			f, ok := <-x.frames
			if !ok { // its hour is over, or it was cut: the edge comes back
				x = e.listen(t, "since=0&live=stream")
				continue
			}
			if f.Type == wire.TypeAppRecord {
				return f
			}
		}
	}
	hear(next())
	for range n {
		key := w.NewKey(t, apitest.Tenant{App: w.App}, auth.All)
		for !known[auth.HashKey(key)] {
			hear(next())
		}
		time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Minute))))
		if rng.IntN(8) == 0 {
			x.cancel()
		}
		if err := w.Engine.Register.DeleteKey(t.Context(), register.Caller{}, w.App, auth.HashKey(key)); err != nil {
			t.Fatal(err)
		}
		deleted := time.Now()
		for known[auth.HashKey(key)] {
			f := next()
			hear(f)
			worst = max(worst, f.at.Sub(deleted))
		}
	}
	x.cancel()
	for range x.frames {
		continue
	}
	return worst
}

// TestLocalOnlyStream: a stream ends before an operation that is written after the application became local only.
func TestLocalOnlyStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := lively(t, nil)
		r := w.join(w.App, w.Key)
		x := r.listen(t, "since=0&live=stream")
		x.expect(wire.TypeAppRecord, wire.TypeEntries, wire.TypeCheckpoint)
		w.localOnly(true)
		r.mustPush(r.next(&log.ConceptCreate{ID: "secret", Name: "secret", Language: "en"}))
		x.ends(wire.WhyScope)
	})
}
