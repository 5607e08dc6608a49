//go:build !wasip1

package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// account creates applications of an account, and returns a replica of each.
func (w *world) account(owner string, apps int) []*replica {
	w.t.Helper()
	all := make([]*replica, apps)
	for i := range all {
		n := w.NewTenant(w.t, owner, "en")
		all[i] = w.join(n.App, n.Key)
	}
	return all
}

// withKey returns a replica of the same application with another key.
func (r *replica) withKey() *replica {
	r.w.t.Helper()
	return r.w.join(r.app, r.w.NewKey(r.w.t, apitest.Tenant{App: r.app}, auth.All))
}

// begin uploads the first bytes of a picture of the given size, and returns the status of the answer.
func (r *replica) begin(name string, bytes, size int) int {
	r.headers = contentRange(0, bytes, size)
	defer func() { r.headers = nil }()
	return r.ask("PUT", r.blob(blob.Sum([]byte(name))), make([]byte, bytes)).Status
}

// TestAccountSharesOneByteLimit: all applications of an account with limited storage share its bytes of a day. So do unclaimed uploads of
// any account. Another account has the full amount, and so has each application of the operator.
func TestAccountSharesOneByteLimit(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) {
		o.Limits.Uploads = 12
		o.Storage = func(string) (int64, error) { return 7500, nil }
	})
	anna, others := w.account("anna", 8), append(w.account("bob", 1), w.account("", 2)...)
	for i, r := range append(anna, others...) {
		r.upload(fmt.Append(nil, i, strings.Repeat("x", 999)))
	}
	for _, r := range anna {
		if no := r.mustRefuse("PUT", r.blob(blob.Hash{1}), []byte("more")); no.Code != wire.RefusedQuota || no.Limit != "BlobBytes" || no.Value != 7500 {
			t.Errorf("the account sends more: %+v", no)
		}
	}
	w.later(24 * time.Hour)
	for i := range 12 {
		anna[i%8].upload(fmt.Append(nil, "unclaimed", i))
	}
	if no := anna[7].mustRefuse("PUT", anna[7].blob(blob.Hash{1}), []byte("more")); no.Code != wire.RefusedQuota || no.Limit != "Uploads" {
		t.Errorf("the thirteenth that nothing names: %+v", no)
	}
	others[0].upload([]byte("another account's"))
}

// TestAccountLimitIsFourApplications: an application has its amount over all keys, and an account four times that amount.
func TestAccountLimitIsFourApplications(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.Snapshots, o.Limits.BlobBytes = 3, 2000 })
	for name, tt := range map[string]struct {
		app, account int
		take         func(r *replica, i int) api.Response
	}{
		"Snapshots": {3, 12, func(r *replica, i int) api.Response {
			r.mustPush(r.next(&log.ConceptCreate{ID: fmt.Sprint("c", i), Name: "n", Language: "en"}))
			w.Now = w.Now.Add(2 * time.Second) // the next snapshot is another, and no place is missing
			return r.ask("GET", "/v2/sync/snapshot?app="+r.app+"&least=99", nil)
		}},
		"BlobBytes": {2, 8, func(r *replica, i int) api.Response {
			data := fmt.Append(nil, r.app, i, strings.Repeat("x", 1000))
			return r.ask("PUT", r.blob(blob.Sum(data)), data)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			apps := w.account("owner of "+name, 6)
			taken := 0
			for k, r := range apps {
				n := 0
				for i := range 20 {
					res := tt.take(r, i)
					if i%2 == 0 {
						r = r.withKey()
					}
					if no, err := wire.DecodeRefusal(res.Body); res.Status >= 400 {
						if err != nil || no.Code != wire.RefusedQuota || no.Limit != name {
							t.Fatalf("refused with %d %+v, %v", res.Status, no, err)
						}
						break
					}
					n++
				}
				if taken += n; n > tt.app || k < 3 && n != tt.app {
					t.Errorf("application %d has %d, want %d", k, n, tt.app)
				}
			}
			if taken != tt.account {
				t.Errorf("the account has %d, want %d", taken, tt.account)
			}
		})
	}
}

// TestUploadsCountReceivedBytes begins 17 uploads of 20 MB from eight applications of an account with one byte each. They take no place from
// another account.
func TestUploadsCountReceivedBytes(t *testing.T) {
	w := newWorld(t, nil)
	attacker, friend := w.account("mallory", 8), w.account("anna", 1)[0]
	for i := range 17 {
		if got := attacker[i%8].begin(fmt.Sprint(i), 1, 20e6-i); got != 202 {
			t.Errorf("upload %d: %d", i, got)
		}
	}
	picture := bytes.Repeat([]byte{7}, 20e6)
	h := blob.Sum(picture)
	for at := 0; at < len(picture); at += 1 << 20 {
		end := min(at+1<<20, len(picture))
		friend.headers = contentRange(at, end, len(picture))
		if res := friend.ask("PUT", friend.blob(h), picture[at:end]); res.Status != 202 && res.Status != 201 {
			t.Fatalf("at %d: %d %s", at, res.Status, res.Body)
		}
	}
}

// TestIdlePartsMakeRoom fills all places of uploads. A part that is idle for ten seconds makes room, the longest idle one of the account
// with the most bytes. Its replica begins again.
func TestIdlePartsMakeRoom(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.UploadBytes, o.Limits.BlobSize = 100_000, 20_000 })
	big, mid, small := w.account("big", 3), w.account("mid", 1)[0], w.account("small", 1)[0]
	for i := range 4 { // 12,512 bytes each, in half of the places
		if got := big[i%3].begin(fmt.Sprint(i), 12_000, 20_000); i < 3 && got != 202 || i == 3 && got != 503 {
			t.Errorf("upload %d: %d", i, got)
		}
		w.Now = w.Now.Add(time.Second)
	}
	const room = 100_000 - 3*12_512
	mid.begin("a", 19_000, 20_000)
	mid.begin("b", 1, 20_000)
	for n := room - 19_512 - 513; n > 0; n -= 19_512 { // others take the rest
		last := w.account(fmt.Sprint("other", n), 1)[0]
		if got := last.begin("c", min(n, 19_512)-512, 20_000); got != 202 {
			t.Fatalf("with %d bytes left: %d", n, got)
		}
	}
	if got := small.begin("d", 10_000, 20_000); got != 503 {
		t.Errorf("without a place: %d", got)
	}
	w.Now = w.Now.Add(8 * time.Second) // the first part of big is idle for 12 s, the next for 11
	if got := small.begin("d", 10_000, 20_000); got != 202 {
		t.Fatalf("an idle part makes no room: %d", got)
	}
	next := func(r *replica, name string, at int) int {
		r.headers = contentRange(at, at+100, 20_000)
		defer func() { r.headers = nil }()
		return r.ask("PUT", r.blob(blob.Sum([]byte(name))), make([]byte, 100)).Status
	}
	if got := next(big[0], "0", 12_000); got != 409 {
		t.Errorf("the part that was idle longest: %d, want 409", got)
	}
	for _, tt := range []struct {
		r    *replica
		name string
		at   int
	}{{big[1], "1", 12_000}, {mid, "a", 19_000}, {small, "d", 10_000}} {
		if got := next(tt.r, tt.name, tt.at); got != 202 {
			t.Errorf("part %s: %d", tt.name, got)
		}
	}
	w.Now = w.Now.Add(11 * time.Second)
	if got := big[0].begin("0", 100, 20_000); got != 202 {
		t.Errorf("it begins again: %d", got)
	}
}

// TestSnapshotsStayOpen opens a snapshot of each of 40 applications of an account while another one downloads its own. The account gets half
// of the places. Its next snapshot takes the place of one that nobody read for a minute.
func TestSnapshotsStayOpen(t *testing.T) {
	w := newWorld(t, nil)
	friend := w.account("anna", 1)[0]
	snapshot := func(r *replica) string { return "/v2/sync/snapshot?app=" + r.app }
	m, err := wire.DecodeManifest(friend.must(200, "GET", snapshot(friend), nil).Body)
	if err != nil || len(m.Chunks) == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	chunk := "/v2/sync/snapshot/" + m.Chunks[0].Hash.String() + "?app=" + friend.app
	open := 0
	all := w.account("mallory", 40)
	for i, r := range all {
		res := r.ask("GET", snapshot(r), nil)
		if no, err := wire.DecodeRefusal(res.Body); res.Status != 200 && (err != nil || no.Code != wire.RefusedBusy || no.WaitMillis != 5000) {
			t.Fatalf("snapshot %d: %d %+v, %v", i, res.Status, no, err)
		}
		if res.Status == 200 {
			open++
		}
		friend.must(200, "GET", chunk, nil)
	}
	if open != 31 { // half of the rest of 64
		t.Errorf("%d snapshots are open, want 31", open)
	}
	w.Now = w.Now.Add(61 * time.Second)
	all[0].must(200, "GET", snapshot(all[0]), nil) // read again
	all[39].must(200, "GET", snapshot(all[39]), nil)
	friend.must(200, "GET", chunk, nil)
}

// TestChunksAreNotStored: a browser may store pictures, for the credential that it has, but no part of a snapshot.
func TestChunksAreNotStored(t *testing.T) {
	w := newWorld(t, nil)
	r := w.account("anna", 1)[0]
	h := r.upload(apitest.Picture("red.png"))
	m, err := wire.DecodeManifest(r.must(200, "GET", "/v2/sync/snapshot?app="+r.app, nil).Body)
	if err != nil || len(m.Chunks) == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	for path, want := range map[string]string{
		r.blob(h): "private, max-age=31536000, immutable",
		"/v2/sync/snapshot/" + m.Chunks[0].Hash.String() + "?app=" + r.app: "no-store",
	} {
		var got []string
		for _, f := range r.must(200, "GET", path, nil).Header {
			if f.Name == "Cache-Control" {
				got = append(got, f.Value)
			}
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s has Cache-Control %q, want %q", path, got, want)
		}
	}
}

// TestOneSnapshotForManyReaders asks for a snapshot of an application eight times at once. The origin makes one.
func TestOneSnapshotForManyReaders(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.Snapshots = 2 })
	r := w.account("anna", 1)[0]
	var ask sync.WaitGroup
	for range 8 {
		ask.Go(func() {
			res := w.feed.Serve(context.Background(), &api.Request{Method: "GET", Path: "/v2/sync/snapshot", Query: "app=" + r.app, Authorization: r.authorization, Header: header})
			if res.Status != 200 {
				t.Errorf("%d %s", res.Status, res.Body)
			}
		})
	}
	ask.Wait()
	r.mustPush(r.next(&log.ConceptCreate{ID: "c", Name: "n", Language: "en"}))
	r.must(200, "GET", "/v2/sync/snapshot?least=99&app="+r.app, nil) // the second of an hour
}

// waiting is the writer of a stream that nobody reads until its context ends.
type waiting struct{ wrote chan struct{} }

func (w waiting) Write(p []byte) (int, error) {
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

// TestStreamsAreShared: an account opens at most four times the streams of an application, and leaves places to other accounts.
func TestStreamsAreShared(t *testing.T) {
	for name, tt := range map[string]struct {
		streams, all uint64
		open         int
		refused      wire.RefusalCode
	}{
		"limit of an account": {5, 10_000, 20, wire.RefusedQuota},
		"all":                 {1000, 300, 150, wire.RefusedBusy},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *feed.Options) {
				o.Limits.Streams, o.Limits.AllStreams = tt.streams, tt.all
				o.Wait = func(ctx context.Context, _ <-chan struct{}, _ time.Duration) { <-ctx.Done() }
			})
			apps, friend := w.account("mallory", 10), w.account("anna", 1)[0]
			ctx, stop := context.WithCancel(t.Context())
			var streams sync.WaitGroup
			live := func(r *replica) api.Response {
				res := w.feed.Serve(ctx, &api.Request{
					Method: "GET", Path: "/v2/sync/changes", Query: "live=stream&app=" + r.app, Authorization: r.authorization,
					Header: header,
				})
				if res.Stream != nil {
					wrote := make(chan struct{}, 1)
					streams.Go(func() { _ = res.Stream(waiting{wrote}) })
					<-wrote // it has its place
				}
				return res
			}
			open := 0
			for i := range 300 {
				res := live(apps[i%len(apps)])
				if res.Stream != nil {
					open++
					continue
				}
				if no, err := wire.DecodeRefusal(res.Body); err != nil || no.Code != tt.refused {
					t.Errorf("refused with %+v, %v", no, err)
				}
			}
			if open != tt.open {
				t.Errorf("%d streams are open, want %d", open, tt.open)
			}
			if res := live(friend); res.Stream == nil {
				t.Errorf("another account: %d %s", res.Status, res.Body)
			}
			stop()
			streams.Wait()
		})
	}
}

// TestReopenIsLimited: an account makes the origin open its logs again at most 40 times an hour. Beyond that its sessions are refused, so
// that nobody interrupts the replicas of others all the time.
func TestReopenIsLimited(t *testing.T) {
	w := newWorld(t, nil)
	e := w.reopens(nil)
	mallory, anna := w.account("mallory", 3), w.account("anna", 1)[0]
	lost := func(r *replica) *wire.Session {
		return &wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{
			{App: r.app, Epoch: w.partition(r.app).Opening(), Seq: 1 << 40},
		}}
	}
	for i := range 200 {
		r := mallory[i%3].withKey()
		if res := r.ask("POST", "/v2/sync/session", lost(r).Encode()); res.Status != 200 {
			no, err := wire.DecodeRefusal(res.Body)
			if err != nil || no.Code != wire.RefusedQuota || no.WaitMillis == 0 {
				t.Fatalf("session %d: %d %+v, %v", i, res.Status, no, err)
			}
		}
	}
	if e.opened < 10 || e.opened > 40 {
		t.Errorf("the account opened the logs %d times", e.opened)
	}
	mallory[0].greet(wire.Position{})
	before := e.opened
	if g := anna.session(lost(anna)).Grants[0]; !g.Lacks || e.opened != before+1 {
		t.Errorf("another account: granted %+v, %d openings", g, e.opened-before)
	}
}

// calls counts the calls of an account, as a host does.
type calls struct{ left, analysed atomic.Int64 }

func (c *calls) spend(_, by string, n int64) (int64, error) {
	left := c.left.Load()
	if by == "" || left == 0 {
		return 0, fmt.Errorf("%w: verify your email address", auth.ErrQuota)
	}
	n = min(n, left)
	c.left.Add(-n)
	return n, nil
}

// TestPushesCount: a push with a key counts one call for each 128 operations that the log lacked. Without calls it is refused before its
// pictures are analysed, and pulls continue.
func TestPushesCount(t *testing.T) {
	var c calls
	w := newWorld(t, func(o *feed.Options) {
		o.Spend = c.spend
		run := o.Run
		o.Run = func(ctx context.Context, jobs []api.Job) ([]api.Result, error) {
			c.analysed.Add(int64(len(jobs)))
			return run(ctx, jobs)
		}
	})
	r := w.join(w.App, w.Key)
	concepts := func(n int) []log.Op {
		bodies := make([]log.Body, n)
		for i := range bodies {
			bodies[i] = &log.ConceptCreate{ID: fmt.Sprint("c", r.seq, "-", i), Name: "n", Language: "en"}
		}
		return r.next(bodies...)
	}
	left := func(want int64, name string) {
		t.Helper()
		if got := c.left.Load(); got != want {
			t.Errorf("%s: %d calls are left, want %d", name, got, want)
		}
	}
	c.left.Store(100)
	ops := concepts(128)
	r.mustPush(ops)
	left(99, "128 operations")
	r.mustPush(ops)
	left(99, "the same ones again")
	r.mustPush(append(ops, concepts(1)...))
	left(98, "one more")
	r.mustPush(concepts(129))
	left(96, "129 operations")
	r.mustPush(r.next(&log.InputCreate{ID: "a", URL: "http://pictures.test/red.png"}))
	left(95, "an input")
	input := log.Dot{Writer: r.writer, Seq: r.seq}
	h := r.upload(apitest.Picture("red.png"))
	r.mustPush(r.next(&log.InputFetched{Input: input, Blob: h, ContentType: "image/png"}, &log.VersionResult{Version: "v", Code: 21111}))
	left(95, "results")
	e := w.enrolEdge(3)
	e.mustPush(e.next(&log.ConceptCreate{ID: "e", Name: "n", Language: "en"}))
	left(95, "an edge")

	c.left.Store(2)
	if out := r.mustPush(concepts(500)); out.Accepted != r.seq-244 {
		t.Errorf("two calls are for %d operations, want 256", out.Accepted-(r.seq-500))
	}
	left(0, "after the last call")
	r.seq -= 244
	picture := r.upload(apitest.Picture("blue.png"))
	before := c.analysed.Load()
	create := r.next(&log.InputCreate{ID: "b", Blob: picture, ContentType: "image/png"})
	m := r.push(create)
	w.checkUnchanged("a push without calls", func() {
		no := r.mustRefuse("POST", "/v2/sync/push", m.Encode())
		if no.Code != wire.RefusedQuota || no.Limit != wire.LimitCalls || no.WaitMillis != 600_000 || !strings.Contains(no.Detail, "verify") {
			t.Errorf("refused with %+v", no)
		}
	})
	if n := c.analysed.Load(); n != before {
		t.Errorf("%d pictures of a refused push were analysed", n-before)
	}
	if got := r.pull("since=0"); len(got) == 0 {
		t.Error("nothing is pulled")
	}
	c.left.Store(1)
	if out := r.mustPush(create); out.Accepted != r.seq {
		t.Errorf("with calls again: %+v", out)
	}
	left(0, "the picture")
}

// TestResultOfEndedDownload pushes more results of a download that has ended. Results count as no calls, so the origin must not analyse their
// pictures: the fold ignores them.
func TestResultOfEndedDownload(t *testing.T) {
	analysed := 0
	w := newWorld(t, func(o *feed.Options) {
		run := o.Run
		o.Run = func(ctx context.Context, jobs []api.Job) ([]api.Result, error) {
			analysed += len(jobs)
			return run(ctx, jobs)
		}
	})
	r := w.join(w.App, w.Key)
	r.mustPush(r.next(&log.InputCreate{ID: "a", URL: "http://pictures.test/red.png"}))
	input := log.Dot{Writer: r.writer, Seq: r.seq}
	for i, name := range []string{"red.png", "blue.png", "red.png"} {
		h := r.upload(apitest.Picture(name))
		out := r.mustPush(r.next(&log.InputFetched{Input: input, Code: catalog.InputReady, Blob: h, ContentType: "image/png"}))
		if len(out.Verdicts) != 0 || out.Accepted != r.seq || analysed != 1 {
			t.Errorf("result %d: %+v, %d pictures are analysed", i, out, analysed)
		}
	}
	lost := blob.Sum([]byte("which was never sent"))
	if out := r.mustPush(r.next(&log.InputFetched{Input: input, Code: catalog.InputReady, Blob: lost, ContentType: "image/png"})); out.Accepted != r.seq {
		t.Errorf("the result with a picture that the origin does not need: %+v", out)
	}
	if in, err := w.Input("a"); err != nil || in.Blob != blob.Sum(apitest.Picture("red.png")) {
		t.Errorf("the input has %v, %v", in.Blob, err)
	}
	for _, code := range []int{30002, catalog.InputUnsupported, catalog.InputTooLarge, catalog.InputUnreadable} {
		want := code
		if code != 30002 { // a program that can read the file makes the input ready, once
			want = catalog.InputReady
		}
		r.mustPush(r.next(&log.InputCreate{ID: fmt.Sprint(code), URL: fmt.Sprint("http://pictures.test/red.png?", code)}))
		input := log.Dot{Writer: r.writer, Seq: r.seq}
		r.mustPush(r.next(&log.InputFetched{Input: input, Code: code}))
		h := r.upload(apitest.Picture("red.png"))
		out := r.mustPush(r.next(&log.InputFetched{Input: input, Code: catalog.InputReady, Blob: h, ContentType: "image/png"}))
		if in, err := w.Input(fmt.Sprint(code)); err != nil || in.Code != want || in.Blob.IsZero() != (want == code) || out.Accepted != r.seq || analysed != 1 {
			t.Errorf("%d became %d, %v; %+v, %d pictures are analysed", code, in.Code, err, out, analysed)
		}
	}
}

// TestFailedPushCountsNothing: if the log cannot accept operations, their calls are returned.
func TestFailedPushCountsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left := int64(10)
	w := newWorld(t, func(o *feed.Options) {
		o.Spend = func(_, _ string, n int64) (int64, error) {
			if left -= n; n > 0 {
				cancel() // before the log accepts
			}
			return n, nil
		}
	})
	r := w.join(w.App, w.Key)
	m := r.push(r.next(&log.ConceptCreate{ID: "c", Name: "n", Language: "en"}))
	res := w.feed.Serve(ctx, &api.Request{
		Method: "POST", Path: "/v2/sync/push", Authorization: r.authorization, Body: m.Encode(),
		Header: header,
	})
	if res.Status == 200 || ctx.Err() == nil || left != 10 {
		t.Errorf("push = %d and %d calls are left, want an error and 10", res.Status, left)
	}
}
