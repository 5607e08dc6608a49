package feed_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// lease writes leases to the control log, as version 0.1.0 did, and returns their sites. open opens the origin again.
func (w *world) lease(open func(kv.Store) *partition.Origin, leases ...log.Body) (sites []log.Writer) {
	w.t.Helper()
	p, err := partition.OpenOrigin(partition.Options{Store: w.Store, App: catalog.Control, Clock: func() time.Time { return w.Now }, Epoch: log.Epoch{10}})
	if err != nil {
		w.t.Fatal(err)
	}
	verdicts, err := p.Submit(w.t.Context(), "", leases, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	view := p.View()
	all, err := catalog.Collect(view.Sites)
	if err = errors.Join(err, view.Close()); err != nil {
		w.t.Fatal(err)
	}
	for i, site := range all[len(all)-len(leases):] {
		if verdicts[i].Code != fold.OK {
			w.t.Fatalf("lease refused: %+v", verdicts[i])
		}
		sites = append(sites, site.Site)
	}
	open(w.Store)
	return sites
}

// names returns the names of a writer in the log of the world's application.
func (w *world) names(of log.Writer) catalog.Names {
	w.t.Helper()
	p, err := w.Engine.Origin(w.App)
	if err != nil {
		w.t.Fatal(err)
	}
	n, err := p.Names(of)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// TestWriterNeedsItsSecret: nobody adds to the operations of a writer without its secret. The writer of a replica of version 0.1.0 is a
// site: its secret is that of its lease, and an edge signs instead.
func TestWriterNeedsItsSecret(t *testing.T) {
	w, open := newSealedWorld(t, nil)
	elsewhere := w.NewTenant(t, "", "en")
	edge, second := w.enrolEdge(1), w.enrolEdge(2)
	lease := func(app, edge, holder, secret string, life uint64) log.Body {
		until := log.HLC(w.Now.Add(-time.Hour).UnixMilli()) << 16 // an ended lease counts, too
		return &log.SiteLease{App: app, Edge: edge, Holder: holder, Secret: auth.HashKey(secret), Until: until, Life: life}
	}
	sites := w.lease(open,
		lease(w.App, "", "key", "leased", 0), lease(elsewhere.App, "", "key", "elsewhere", 0),
		lease(w.App, edge.edge, "edge "+edge.edge, "unused", 1), lease(w.App, edge.edge, "edge "+edge.edge, "unused", 2),
	)
	leased, outside, older, newest := sites[0], sites[1], sites[2], sites[3]
	page, friend, foreign := w.join(w.App, w.Key), w.join(w.App, w.Key), w.join(elsewhere.App, elsewhere.Key)
	for _, r := range []*replica{page, friend, edge, second, foreign} { // the feed now knows their secrets
		r.mustPush(r.next(&log.ConceptCreate{ID: "first " + r.writer.String(), Name: "n", Language: "en"}))
	}
	wrong := make([]byte, partition.SecretSize)
	for i, tt := range []struct {
		name   string
		by     *replica
		writer log.Writer
		secret []byte
		may    bool
	}{
		{"the secret", page, page.writer, page.secret, true},
		{"a wrong secret", page, page.writer, wrong, false},
		{"no secret", page, page.writer, nil, false},
		{"half a secret", page, page.writer, page.secret[:8], false},
		{"the secret of another writer", page, friend.writer, page.secret, false},
		{"the secret of another application", page, foreign.writer, foreign.secret, false},
		{"a writer of another application", page, page.writer, foreign.secret, false},
		{"an edge with the secret", edge, page.writer, page.secret, true},
		{"an edge without it", edge, page.writer, nil, false},
		{"an edge's writer with its secret", edge, edge.writer, edge.secret, true},
		{"an edge's writer without it", edge, edge.writer, nil, false},
		{"a site with the secret of its lease", page, leased, []byte("leased"), true},
		{"a site with the secret of a writer", page, leased, page.secret, false},
		{"a site without a secret", page, leased, nil, false},
		{"a site with the secret of another lease", page, leased, []byte("elsewhere"), false},
		{"a site of another application", page, outside, []byte("elsewhere"), false},
		{"an edge's own site", edge, edge.site, nil, true},
		{"another edge's own site", second, edge.site, nil, false},
		{"an edge's own site by a page", page, edge.site, nil, false},
		{"a site leased to the edge", edge, newest, nil, true},
		{"an earlier site leased to the edge", edge, older, nil, true},
		{"a site leased to another edge", second, newest, nil, false},
		{"an earlier site leased to another edge", second, older, nil, false},
		{"a site leased to an edge, by a page", page, newest, nil, false},
		{"a page's site by an edge", edge, leased, nil, false},
		{"the origin's site", edge, log.Origin, nil, false},
		{"a site that this origin does not know", edge, 500, nil, true}, // it may be newer than the backup of the origin
		{"such a site by a page, with the secret of its lease", page, 501, []byte("leased later"), true},
		{"no writer", edge, 0, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			had := w.names(tt.writer)
			seq := had.Last() + 1
			op := log.Op{Dot: log.Dot{Writer: tt.writer, Seq: seq}, At: log.HLC(w.Now.UnixMilli())<<16 + log.HLC(i), Body: &log.ConceptCreate{ID: fmt.Sprint(i), Name: "n", Language: "en"}}
			m := tt.by.push([]log.Op{op})
			m.Writer, m.Secret = tt.writer, tt.secret
			if tt.may {
				out, err := wire.DecodePushed(tt.by.must(200, "POST", "/v2/sync/push", m.Encode()).Body)
				if err != nil || out.Accepted != seq || w.last(w.App).Dot != op.Dot {
					t.Errorf("accepted %+v, %v; the log ends with %v", out, err, w.last(w.App).Dot)
				}
				return
			}
			w.checkUnchanged(tt.name, func() {
				if no := tt.by.mustRefuse("POST", "/v2/sync/push", m.Encode()); no.Code != wire.RefusedWriter {
					t.Errorf("refused with %+v", no)
				}
			})
		})
	}
}

// TestNewWriters: a credential may add 1,000 writers an hour to the log. Writers that the log knows still push, and so does another credential.
func TestNewWriters(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) { o.Limits.OpsRate = 1 << 40 })
	known := w.join(w.App, w.Key)
	op := &log.ConceptName{ID: "c", Name: "n"}
	known.mustPush(known.next(op))
	r, added := *known, 1
	fresh := func() wire.Push {
		r.draw()
		return r.push(r.next(op))
	}
	var no *wire.Refusal
	for ; added < 1100 && no == nil; added++ {
		m := fresh()
		if res := r.ask("POST", "/v2/sync/push", m.Encode()); res.Status != 200 {
			got, err := wire.DecodeRefusal(res.Body)
			if err != nil {
				t.Fatalf("%d %s", res.Status, res.Body)
			}
			no = &got
		}
	}
	if no == nil || no.Code != wire.RefusedQuota || no.Limit != "Writers" || no.Value != 1000 || no.WaitMillis == 0 || added < 1000 || added > 1002 {
		t.Fatalf("after %d writers: %+v", added, no)
	}
	known.mustPush(known.next(op))
	other := w.join(w.App, w.NewKey(t, apitest.Tenant{App: w.App}, auth.All))
	other.mustPush(other.next(op))
	w.Now = w.Now.Add(time.Duration(no.WaitMillis) * time.Millisecond)
	m := fresh()
	r.must(200, "POST", "/v2/sync/push", m.Encode())
}

// concepts returns n bodies that create concepts.
func concepts(n int) (bodies []log.Body) {
	for i := range n {
		bodies = append(bodies, &log.ConceptCreate{ID: fmt.Sprint("c", i), Name: "n", Language: "en"})
	}
	return bodies
}

// TestGaps: the origin refuses operations before which others are missing, with the last one that the log has, unless the replica declares
// the gap. Operations that come later fill it.
func TestGaps(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	ops := r.next(concepts(12)...)
	r.mustPush(ops[:2])
	late := r.push(ops[4:5])
	w.checkUnchanged("an operation after missing ones", func() {
		if no := r.mustRefuse("POST", "/v2/sync/push", late.Encode()); no.Code != wire.RefusedSequence || no.Accepted != 2 {
			t.Errorf("refused with %+v", no)
		}
	})
	l := w.partition(w.App).Log()
	pushed := func(m *wire.Push, accepted uint64, appended ...uint64) {
		t.Helper()
		head := l.Head()
		out, err := wire.DecodePushed(r.must(200, "POST", "/v2/sync/push", m.Encode()).Body)
		if err != nil || out.Accepted != accepted || out.Head != l.Head() || len(out.Verdicts) > 0 {
			t.Errorf("pushed %+v, %v; want %d", out, err, accepted)
		}
		var got []uint64
		if l.Head() > head {
			err = l.Read(head+1, func(e log.Entry) bool {
				if e.Op.Dot.Writer != r.writer {
					t.Errorf("entry %d is operation %v", e.Seq, e.Op.Dot)
				}
				got = append(got, e.Op.Dot.Seq)
				return true
			})
		}
		if err != nil || !slices.Equal(got, appended) {
			t.Errorf("appended %v, %v; want %v", got, err, appended)
		}
	}
	late.Gap = true
	pushed(&late, 5, 5)
	late = r.push(ops[9:10]) // the declaration is for one push
	if no := r.mustRefuse("POST", "/v2/sync/push", late.Encode()); no.Code != wire.RefusedSequence || no.Accepted != 5 {
		t.Errorf("refused with %+v", no)
	}
	late.Gap = true
	pushed(&late, 10, 10)
	all := r.push(ops)
	pushed(&all, 12, 3, 4, 6, 7, 8, 9, 11, 12)
	w.checkUnchanged("all of them again", func() { pushed(&all, 12) })
	if got := w.names(r.writer); len(got.Ranges) != 1 || got.Last() != 12 {
		t.Errorf("the log has %+v", got)
	}
}

// TestGapWithoutPicture: a push fills a gap up to the picture that the origin lacks. The answer does not count the operations after it,
// though the log has later ones.
func TestGapWithoutPicture(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	red := apitest.Picture("red.png")
	ops := r.next(append(concepts(2), &log.InputCreate{ID: "a", Blob: blob.Sum(red), ContentType: "image/png"}, concepts(4)[3])...)
	last := r.push(ops[3:])
	last.Gap = true
	r.must(200, "POST", "/v2/sync/push", last.Encode())
	if out := r.mustPush(ops); out.Accepted != 2 {
		t.Errorf("without the picture: %+v", out)
	}
	m := r.push(ops[2:])
	if no := r.mustRefuse("POST", "/v2/sync/push", m.Encode()); no.Code != wire.RefusedBlobs {
		t.Errorf("the picture alone: %+v", no)
	}
	r.upload(red)
	head := w.partition(w.App).Log().Head()
	if out := r.mustPush(ops[2:]); out.Accepted != 4 || out.Head != head+1 || w.last(w.App).Dot != ops[2].Dot {
		t.Errorf("with the picture: %+v", out)
	}
}

// TestManyGaps: the log has at most 64 runs of the names of a writer. A push that would make another one is refused, after the last name or
// between others. One that extends or joins runs is accepted.
func TestManyGaps(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	ops := r.next(concepts(651)...)
	push := func(first, last int) wire.Push { // sequences
		m := r.push(ops[first-1 : last])
		m.Gap = true
		return m
	}
	for seq := 1; seq < 640; seq += 10 {
		m := push(seq, seq)
		r.must(200, "POST", "/v2/sync/push", m.Encode())
	}
	refused := func(first, last int) {
		t.Helper()
		m := push(first, last)
		w.checkUnchanged("a gap too many", func() {
			if no := r.mustRefuse("POST", "/v2/sync/push", m.Encode()); no.Code != wire.RefusedLimit || no.Limit != wire.LimitGaps {
				t.Errorf("%d to %d: refused with %+v", first, last, no)
			}
		})
	}
	accepted := func(first, last, runs int) {
		t.Helper()
		m := push(first, last)
		r.must(200, "POST", "/v2/sync/push", m.Encode())
		if got := w.names(r.writer); len(got.Ranges) != runs {
			t.Errorf("%d to %d: the log has %d runs, want %d", first, last, len(got.Ranges), runs)
		}
	}
	refused(641, 641)
	refused(5, 5)
	refused(633, 640)
	accepted(2, 4, 64)
	refused(6, 9)
	accepted(10, 10, 64)
	accepted(5, 9, 63)
	accepted(15, 15, 64)
	refused(641, 641)
	accepted(12, 14, 63)
	accepted(641, 641, 64)
}

// TestPushNamesPreviousOperation: a push shows the operation before its first one, and the newest that the log has, by the clocks that
// their writer gave them. If the log has another one by that name, it refuses the push and has it no later.
func TestPushNamesPreviousOperation(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	ops := r.next(concepts(6)...)
	for i := range ops {
		ops[i].At += log.HLC(i)
	}
	ops[2].At = log.HLC(w.Now.Add(time.Hour).UnixMilli()) << 16 // the origin gives it another clock
	r.mustPush(ops[:3])
	if got := w.last(w.App); got.At == ops[2].At || got.MadeAt() != ops[2].At {
		t.Fatalf("the log has clocks %v and %v", got.At, got.MadeAt())
	}
	clocks := slices.Clone(ops)
	clocks[2].At++
	for name, m := range map[string]wire.Push{
		"another before":                      func() wire.Push { m := r.push(ops[3:4]); m.Before = ops[2].At + 1; return m }(),
		"the clock that the origin gave":      func() wire.Push { m := r.push(ops[3:4]); m.Before = w.last(w.App).At; return m }(),
		"another newest":                      r.push(clocks[2:3]),
		"another newest and what follows":     r.push(clocks[2:4]),
		"another newest after a known one":    r.push(clocks[:3]),
		"the same with what follows":          r.push(clocks[:4]),
		"another before, where a gap is said": func() wire.Push { m := r.push(ops[3:4]); m.Before, m.Gap = 1, true; return m }(),
	} {
		w.checkUnchanged(name, func() {
			want := uint64(3) // the last one that the log has as the push has it
			if strings.Contains(name, "newest") || strings.Contains(name, "the same") {
				want = 2
			}
			if no := r.mustRefuse("POST", "/v2/sync/push", m.Encode()); no.Code != wire.RefusedContent || no.Accepted != want {
				t.Errorf("%s: refused with %+v", name, no)
			}
		})
	}
	r.mustPush(ops[:3])
	m := r.push(ops[3:4])
	m.Before = ops[2].At
	r.must(200, "POST", "/v2/sync/push", m.Encode())
	r.mustPush(ops[4:5]) // its replica has dropped the one before
	if out := r.mustPush(ops); out.Accepted != 6 {
		t.Errorf("all of them: %+v", out)
	}
}

// TestSameNameTwice: two machines continue one writer. The origin has the operations of the first, and refuses those of the other.
func TestSameNameTwice(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	r.mustPush(r.next(concepts(1)...))
	twin := *r
	first := r.next(&log.ConceptName{ID: "c0", Name: "first"}, &log.ConceptName{ID: "c0", Name: "first again"})
	w.Now = w.Now.Add(time.Second)
	second := twin.next(&log.ConceptName{ID: "c0", Name: "second"}, &log.ConceptName{ID: "c0", Name: "second again"}, &log.ConceptName{ID: "c0", Name: "second once more"})
	r.mustPush(first)
	for n := 1; n <= 3; n++ {
		m := twin.push(second[:n])
		res := twin.ask("POST", "/v2/sync/push", m.Encode())
		if no, err := wire.DecodeRefusal(res.Body); n >= 2 && (err != nil || res.Status != 409 || no.Code != wire.RefusedContent) {
			t.Errorf("%d of the other machine: %d %+v, %v", n, res.Status, no, err)
		}
	}
	if got := w.last(w.App); got.Dot != first[1].Dot || got.MadeAt() != first[1].At {
		t.Errorf("the log ends with %+v", got)
	}
}
