package feed_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/wire"
)

// greet returns the grant for a position of the world's application.
func (r *replica) greet(at wire.Position) wire.Grant {
	r.w.t.Helper()
	at.App = r.app
	o := r.session(&wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: fold.Version, Schema: 1, Apps: []wire.Position{at}})
	if len(o.Grants) != 1 || o.Protocol != wire.Protocol {
		r.w.t.Fatalf("%+v", o)
	}
	return o.Grants[0]
}

// openings returns a log of three openings, of which the last one has no entry, and the last entries of the first two.
func openings(t *testing.T) (w *world, p *partition.Origin, first, second log.Mark) {
	t.Helper()
	w, open := newSealedWorld(t, nil)
	p = open(w.Store)
	w.submit(p, concepts(3)...)
	first = log.Mark{Epoch: p.Opening(), To: p.Log().Head()}
	p = open(w.Store)
	w.submit(p, &log.ConceptName{ID: "c0", Name: "second"}, &log.ConceptName{ID: "c1", Name: "second"})
	second = log.Mark{Epoch: p.Opening(), To: p.Log().Head()}
	p = open(w.Store)
	if second.To != first.To+2 || p.Opening() == first.Epoch || p.Opening() == second.Epoch {
		t.Fatalf("the log has the openings %+v, %+v and %x", first, second, p.Opening())
	}
	return w, p, first, second
}

// TestSessionFindsCommonEntries begins sessions at places that the log has, and at places that it lacks. A grant shows what the log and the
// kept frames of the replica have in common.
func TestSessionFindsCommonEntries(t *testing.T) {
	w, p, first, second := openings(t)
	r := w.join(w.App, w.Key)
	l, opening := p.Log(), p.Opening()
	chain := func(seq uint64) log.Chain {
		c, err := l.Chain(seq)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	place := func(m log.Mark, kept ...log.Mark) wire.Position {
		x := wire.Position{Epoch: m.Epoch, Seq: m.To, Kept: kept}
		if m.To <= l.Head() {
			x.Chain = chain(m.To)
		}
		return x
	}
	mark := func(m log.Mark, more int) log.Mark { return log.Mark{Epoch: m.Epoch, To: m.To + uint64(more)} }
	other := log.Mark{Epoch: log.Epoch{9}, To: 900}
	forked := place(first, second)
	forked.Chain[0]++
	for name, tt := range map[string]struct {
		at   wire.Position
		do   wire.Do
		have uint64 // with lacks
		has  bool
	}{
		"none":                                  {wire.Position{}, wire.DoTail, 0, true},
		"the head":                              {place(second), wire.DoTail, 0, true},
		"the last entry of the first opening":   {place(first), wire.DoTail, 0, true},
		"an entry of the first opening":         {place(log.Mark{Epoch: first.Epoch, To: first.To - 1}), wire.DoTail, 0, true},
		"the first entry of the second opening": {place(mark(second, -1)), wire.DoTail, 0, true},
		"the first entry":                       {place(log.Mark{Epoch: l.EpochOf(1).Epoch, To: 1}), wire.DoTail, 0, true},

		"another chain":                                {forked, wire.DoRebase, second.To, false},
		"an entry of a later opening":                  {place(mark(first, 1), mark(first, 1)), wire.DoRebase, first.To, false},
		"an entry of an earlier opening":               {place(log.Mark{Epoch: second.Epoch, To: first.To}, mark(first, -1)), wire.DoRebase, first.To - 1, false},
		"an entry beyond the second opening":           {place(mark(second, 7), mark(second, 7), first), wire.DoRebase, second.To, false},
		"an entry of another opening, nothing is kept": {place(other), wire.DoRebase, 0, false},
		"… frames of other openings are kept":          {place(other, other, log.Mark{Epoch: log.Epoch{8}, To: 1}), wire.DoRebase, 0, false},
		"… frames of the first opening are kept":       {place(other, other, first), wire.DoRebase, first.To, false},
		"… some of the first opening":                  {place(other, other, mark(first, -2)), wire.DoRebase, first.To - 2, false},
		"… frames of both openings are kept":           {place(other, other, mark(second, 30), first), wire.DoRebase, second.To, false},
		"… an entry of no opening is kept":             {place(other, log.Mark{To: 3}), wire.DoRebase, 0, false},
		"no opening":                                   {place(log.Mark{To: 3}, first), wire.DoRebase, first.To, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := r.greet(tt.at)
			var have log.Chain
			if tt.have > 0 {
				have = chain(tt.have)
			}
			if g.Do != tt.do || g.Lacks == tt.has || g.Have != tt.have || g.HaveChain != have || g.Opening != opening || g.Head != second.To {
				t.Errorf("granted %+v, want %v, lacks %v, %d", g, tt.do, !tt.has, tt.have)
			}
			old := wire.Session{Min: wire.Oldest, Max: wire.Protocol, Fold: 1, Schema: 1, Apps: []wire.Position{tt.at}}
			old.Apps[0].App = w.App
			if g := r.session(&old).Grants[0]; g.Do != wire.DoPause || g.Lacks == tt.has || g.Have != tt.have || g.HaveChain != have {
				t.Errorf("by older rules: granted %+v", g)
			}
		})
	}

	if err := l.Trim(first.To + 1); err != nil {
		t.Fatal(err)
	}
	trimmed := place(first) // the log knows the chain before its first entry
	trimmed.Seq--
	for name, tt := range map[string]struct {
		at        wire.Position
		do        wire.Do
		lacks     bool
		have      uint64
		haveChain log.Chain
	}{
		"before the first entry":           {place(first), wire.DoTail, false, 0, log.Chain{}},
		"a trimmed entry":                  {trimmed, wire.DoRebase, false, 0, log.Chain{}},
		"none":                             {wire.Position{}, wire.DoRebase, false, 0, log.Chain{}},
		"of a trimmed entry the log lacks": {wire.Position{Epoch: second.Epoch, Seq: 2, Kept: []log.Mark{mark(first, -1)}}, wire.DoRebase, true, first.To - 1, log.Chain{}},
		"kept up to the first entry":       {place(other, first), wire.DoRebase, true, first.To, chain(first.To)},
	} {
		t.Run("trimmed, "+name, func(t *testing.T) {
			if g := r.greet(tt.at); g.Do != tt.do || g.Lacks != tt.lacks || g.Have != tt.have || g.HaveChain != tt.haveChain || g.Opening != opening {
				t.Errorf("granted %+v, want %+v", g, tt)
			}
		})
	}
}

// reopening is an engine that counts its openings.
type reopening struct {
	feed.Engine
	opened  int
	serving func() // is called once before ServingBase; nil: nothing
}

func (e *reopening) Reopen() error {
	e.opened++
	return e.Engine.Reopen()
}

func (e *reopening) ServingBase(r catalog.Reader) ([32]byte, error) {
	if f := e.serving; f != nil {
		e.serving = nil
		f()
	}
	return e.Engine.ServingBase(r)
}

// reopens makes the feed of a world use such an engine.
func (w *world) reopens(change func(*feed.Options)) *reopening {
	w.t.Helper()
	e := &reopening{Engine: w.Engine}
	w.refeed(func(o *feed.Options) {
		o.Engine = e
		if change != nil {
			change(o)
		}
	})
	return e
}

// TestReopen begins a session at a place of the present opening that the log lacks: the machine of the origin was set back with its memory. All its
// logs get another opening, once, and what was decided with the one before is refused.
func TestReopen(t *testing.T) {
	w, open := newSealedWorld(t, nil)
	tenant := w.NewTenant(t, "", "en")
	p := open(w.Store)
	e := w.reopens(nil)
	other := w.partition(tenant.App)
	r := w.join(w.App, w.Key)
	r.mustPush(r.next(concepts(2)...))
	last := log.Mark{Epoch: p.Opening(), To: p.Log().Head()}
	record := func() log.Epoch {
		data, _, err := w.Engine.Register.AppRecord(w.App, "")
		if err != nil {
			t.Fatal(err)
		}
		x, err := catalog.DecodeAppRecord(data)
		if err != nil {
			t.Fatal(err)
		}
		return x.Epoch
	}
	chain, err := p.Log().Chain(last.To)
	if err != nil || record() != last.Epoch || other.Opening() != last.Epoch {
		t.Fatalf("opening %x of the application, %x of the other, %x of the register, %v", last.Epoch, other.Opening(), record(), err)
	}
	if g := r.greet(wire.Position{Epoch: last.Epoch, Seq: last.To, Chain: chain}); g.Lacks || g.Opening != last.Epoch || e.opened != 0 {
		t.Fatalf("granted %+v, %d openings", g, e.opened)
	}
	late := r.push(r.next(&log.ConceptName{ID: "c0", Name: "late"}))
	writer := w.writerOf(w.App)
	lost := wire.Position{Epoch: last.Epoch, Seq: last.To + 4, Chain: log.Chain{1}, Kept: []log.Mark{{Epoch: last.Epoch, To: last.To + 4}}}
	for range 2 { // after the first one, the place has another opening
		g := r.greet(lost)
		if !g.Lacks || g.Have != last.To || g.HaveChain != chain || g.Do != wire.DoRebase || g.Opening == last.Epoch || g.Opening != p.Opening() || e.opened != 1 {
			t.Errorf("granted %+v, %d openings; the log has opening %x", g, e.opened, p.Opening())
		}
		if other.Opening() != g.Opening || record() != g.Opening {
			t.Errorf("the other log has opening %x and the register %x, want %x", other.Opening(), record(), g.Opening)
		}
	}
	if no := r.mustRefuse("POST", "/v2/sync/push", late.Encode()); no.Code != wire.RefusedEpoch || no.Epoch != p.Opening() {
		t.Errorf("a push of the session before is refused with %+v", no)
	}
	w.submit(p, &log.ConceptName{ID: "c0", Name: "later"})
	if got := lastOf(t, p); got.Dot.Writer == writer || p.Log().EpochOf(last.To+1).Epoch != p.Opening() || p.Log().EpochOf(last.To).Epoch != last.Epoch {
		t.Errorf("the origin wrote %+v in epoch %x", got, p.Log().EpochOf(last.To+1).Epoch)
	}
	if g := r.greet(wire.Position{Epoch: last.Epoch, Seq: last.To, Chain: chain}); g.Lacks || g.Do != wire.DoTail {
		t.Errorf("a place of before: granted %+v", g)
	}
	forked := wire.Position{Epoch: p.Opening(), Seq: p.Log().Head(), Chain: log.Chain{1}}
	if g := r.greet(forked); !g.Lacks || g.Have != 0 || g.Opening == forked.Epoch || e.opened != 2 {
		t.Errorf("another chain in the present opening: granted %+v, %d openings", g, e.opened)
	}
	if g := r.greet(wire.Position{Epoch: log.Epoch{9}, Seq: 7}); !g.Lacks || e.opened != 2 {
		t.Errorf("a place of another opening: granted %+v, %d openings", g, e.opened)
	}
}

// TestDrainFinds: a grant that drains a replica of a local-only application shows what the log lacks. It draws another opening, too.
func TestDrainFinds(t *testing.T) {
	w, p, first, second := openings(t)
	e := w.reopens(nil)
	r := w.join(w.App, w.Key)
	chain, err := p.Log().Chain(second.To)
	if err != nil {
		t.Fatal(err)
	}
	w.localOnly(true)
	kept := []log.Mark{{Epoch: log.Epoch{9}, To: 50}, {Epoch: second.Epoch, To: second.To + 3}, first}
	for name, tt := range map[string]struct {
		at   wire.Position
		have uint64
		has  bool
	}{
		"a place that the log has": {wire.Position{Epoch: second.Epoch, Seq: second.To, Chain: chain, Kept: kept}, 0, true},
		"no place":                 {wire.Position{}, 0, true},
		"another place":            {wire.Position{Epoch: log.Epoch{9}, Seq: 50, Chain: chain, Kept: kept}, second.To, false},
	} {
		g := r.greet(tt.at)
		if g.Do != wire.DoRefused || !g.Drain || g.Lacks == tt.has || g.Have != tt.have || (g.HaveChain == chain) == tt.has || g.Opening != p.Opening() || g.Head != 0 {
			t.Errorf("%s: granted %+v", name, g)
		}
	}
	before := p.Opening()
	if g := r.greet(wire.Position{Epoch: before, Seq: second.To + 1}); e.opened != 1 || !g.Lacks || !g.Drain || g.Opening == before || g.Opening != p.Opening() {
		t.Errorf("a place of the present opening: granted %+v, %d openings", g, e.opened)
	}
}

// versioned are the calls that name the version of the protocol.
var versioned = [][2]string{{"GET", "changes"}, {"POST", "push"}, {"POST", "back"}, {"GET", "snapshot"}, {"GET", "digest"}}

// TestOtherProtocol: a call by a program of another version of the protocol is refused before its body is read, its credential is checked and
// anything is counted. Calls that mean the same in each version are answered.
func TestOtherProtocol(t *testing.T) {
	w := newWorld(t, func(o *feed.Options) {
		o.Limits = feed.Limits{OpsRate: 1, Snapshots: 1, FrameRate: 1}
		o.Spend = func(_, by string, n int64) (int64, error) { return n, nil }
	})
	w.input("a", "red.png")
	r := w.join(w.App, w.Key)
	m := r.push(r.next(concepts(1)...))
	bodies := map[string][]byte{"none": nil, "a push": m.Encode(), "garbage": []byte("garbage"), "too long": make([]byte, 9<<20)}
	w.checkUnchanged("calls of another version", func() {
		for _, version := range []string{"", "1", "3", "02", "2, 1", "two"} {
			for _, c := range versioned {
				for name, body := range bodies {
					for _, authorization := range []string{r.authorization, "", "Key " + w.App} {
						x := replica{w: w, app: w.App, authorization: authorization, headers: map[string]string{"Sync-Protocol": version}}
						no := x.mustRefuse(c[0], "/v2/sync/"+c[1]+"?app="+w.App, body)
						if no.Code != wire.RefusedProtocol || no.Status() != 426 || no.Min != 2 || no.Max != 2 || no.Detail == "" {
							t.Errorf("version %q: %v with %s is refused with %+v", version, c, name, no)
						}
					}
				}
			}
		}
	})
	people := replica{w: w, app: w.App, authorization: r.authorization, headers: map[string]string{"Sync-Protocol": "", "Accept": "*/*"}}
	if res := people.must(426, "GET", "/v2/sync/changes?app="+w.App, nil); !bytes.Contains(res.Body, []byte("update this program")) || !bytes.HasPrefix(res.Body, []byte("{")) {
		t.Errorf("for people: %s", res.Body)
	}
	r.must(200, "POST", "/v2/sync/push", m.Encode()) // nothing was counted, so each is the first one
	r.must(200, "GET", "/v2/sync/snapshot?app="+w.App, nil)
	r.must(200, "GET", "/v2/sync/digest?app="+w.App, nil)
	r.pull("since=0")

	for _, versions := range [][2]uint32{{1, 1}, {3, 4}, {0, 0}} {
		s := wire.Session{Min: versions[0], Max: versions[1], Fold: fold.Version, Schema: 1, Apps: []wire.Position{{App: w.App}}}
		if no := r.mustRefuse("POST", "/v2/sync/session", s.Encode()); no.Code != wire.RefusedProtocol || no.Min != 2 || no.Max != 2 {
			t.Errorf("a session of versions %v is refused with %+v", versions, no)
		}
	}
	older := *r
	older.headers = map[string]string{"Sync-Protocol": ""}
	older.greet(wire.Position{})
	h := older.upload(apitest.Picture("blue.png"))
	for _, x := range []struct {
		method, path string
		body         []byte
	}{
		{"GET", "/v2/sync/keys?app=" + w.App, nil},
		{"GET", older.blob(h), nil},
		{"POST", "/v2/sync/blobs/have", (&wire.HaveRequest{App: w.App}).Encode()},
		{"POST", "/v2/sync/dates", (&wire.DatesRequest{App: w.App}).Encode()},
	} {
		w.Now = w.Now.Add(10 * time.Minute) // the rates count again
		older.must(200, x.method, x.path, x.body)
	}
}

// TestOtherOpening: a request that names another opening than that of the log is refused with the present one, and changes nothing. That holds also
// if the log gets another opening while the origin prepares to append.
func TestOtherOpening(t *testing.T) {
	w, open := newSealedWorld(t, nil)
	p := open(w.Store)
	left := int64(10)
	e := w.reopens(func(o *feed.Options) {
		o.Spend = func(_, _ string, n int64) (int64, error) {
			left -= n
			return n, nil
		}
	})
	r := w.join(w.App, w.Key)
	first := p.Log().Head()
	r.mustPush(r.next(concepts(1)...))
	back := backOf(t, w, p, first, p.Log().Head())
	more := r.next(concepts(2)[1])
	requests := func(opening log.Epoch) map[string]func() api.Response {
		push, back := r.push(more), back
		push.Opening, back.Opening = opening, opening
		get := func(call string) func() api.Response {
			return func() api.Response {
				return r.ask("GET", fmt.Sprintf("/v2/sync/%sapp=%s&opening=%x", call, w.App, opening), nil)
			}
		}
		return map[string]func() api.Response{
			"push":     func() api.Response { return r.ask("POST", "/v2/sync/push", push.Encode()) },
			"back":     func() api.Response { return r.ask("POST", "/v2/sync/back", back.Encode()) },
			"changes":  get("changes?"),
			"poll":     get("changes?live=poll&"),
			"snapshot": get("snapshot?"),
		}
	}
	check := func(name string, res api.Response) {
		t.Helper()
		if no, err := wire.DecodeRefusal(res.Body); err != nil || res.Status != 409 || no.Code != wire.RefusedEpoch || no.Epoch != p.Opening() {
			t.Errorf("%s: %d %+v, %v; the log has opening %x", name, res.Status, no, err, p.Opening())
		}
	}
	before := p.Opening()
	if err := e.Engine.Reopen(); err != nil || p.Opening() == before {
		t.Fatal(before, p.Opening(), err)
	}
	for of, opening := range map[string]log.Epoch{"before": before, "another log": {9}, "the first entry": p.Log().EpochOf(1).Epoch} {
		for name, ask := range requests(opening) {
			left = 10
			w.checkUnchanged(name, func() { check(name+" with the opening of "+of, ask()) })
			if left != 10 {
				t.Errorf("%s: %d calls are left", name, left)
			}
		}
	}
	for _, name := range []string{"push", "back"} {
		left = 10
		asks := requests(p.Opening())
		e.serving = func() {
			if err := e.Engine.Reopen(); err != nil {
				t.Error(err)
			}
		}
		w.checkUnchanged(name, func() { check(name+" while the log gets another opening", asks[name]()) })
		if left != 10 || e.serving != nil {
			t.Errorf("%s: %d calls are left", name, left)
		}
	}
	for name, ask := range requests(p.Opening()) {
		if res := ask(); res.Status != 200 {
			t.Errorf("%s with the present opening: %d %s", name, res.Status, res.Body)
		}
	}
	r.must(400, "GET", "/v2/sync/changes?opening=some&app="+w.App, nil)
	r.must(400, "GET", "/v2/sync/snapshot?opening=0011&app="+w.App, nil)
	r.must(400, "GET", "/v2/sync/changes?chain=some&since=1&app="+w.App, nil)
}

// runs checks that the runs of an answer continue each other after an entry, that none has entries of two epochs, and that each has the epoch, the
// chains and the seal of the log. It returns the last entry.
func (w *world) runs(p *partition.Origin, after uint64, answer []wire.Frame) uint64 {
	w.t.Helper()
	l := p.Log()
	for _, f := range answer {
		if f.Type != wire.TypeEntries {
			continue
		}
		run, err := wire.DecodeEntriesFrame(f.Body)
		if err != nil || run.From != after || run.To <= run.From {
			w.t.Fatalf("after %d: a run from %d to %d, %v", after, run.From, run.To, err)
		}
		rows, err := log.Rows(run.Rows)
		if err != nil || uint64(len(rows)) != run.To-run.From {
			w.t.Fatalf("%d rows from %d to %d, %v", len(rows), run.From, run.To, err)
		}
		before, err := l.Chain(run.From)
		if err != nil || run.Before != before {
			w.t.Errorf("the chain before entry %d is %x, want %x, %v", run.From+1, run.Before, before, err)
		}
		for i := range rows {
			seq := run.From + 1 + uint64(i)
			before = before.Next(rows[i])
			if of := l.EpochOf(seq); of.Epoch != run.Epoch || run.To > of.To {
				w.t.Errorf("entry %d of a run of epoch %x up to %d is of epoch %x up to %d", seq, run.Epoch, run.To, of.Epoch, of.To)
			}
		}
		if seal := p.Seal(run.To, before); run.Chain != before || !bytes.Equal(run.Seal, seal) || len(seal) == 0 {
			w.t.Errorf("the run up to %d has chain %x and seal %x, want %x and %x", run.To, run.Chain, run.Seal, before, seal)
		}
		after = run.To
	}
	return after
}

// TestRunsOfOpenings pulls logs of several openings after each of their entries, also those that a snapshot has. No run has entries of two epochs.
// The last answer begins in one opening and ends in the next.
func TestRunsOfOpenings(t *testing.T) {
	for seed := range testkit.Seeds(t, 4, 40) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w, open := newSealedWorld(t, nil)
		p := open(w.Store)
		for range 2 + rng.IntN(4) {
			n := rng.IntN(4)
			if rng.IntN(6) == 0 {
				n = wire.MaxOps + 1 + rng.IntN(3)
			}
			for range n {
				w.submit(p, &log.ConceptCreate{ID: fmt.Sprint("c", p.Log().Head()), Name: "n", Language: "en"})
			}
			if rng.IntN(3) == 0 {
				if err := w.Engine.Reopen(); err != nil {
					t.Fatal(err)
				}
			} else {
				p = open(w.Store)
			}
		}
		r := w.join(w.App, w.Key)
		head := p.Log().Head()
		if head > 40 && rng.IntN(2) == 0 {
			if err := p.Log().Trim(uint64(2 + rng.IntN(20))); err != nil {
				t.Fatal(err)
			}
		}
		floor := p.Log().Floor()
		for since := floor - 1; since <= head; since += 1 + uint64(rng.IntN(1+int(head/40))) {
			if to := w.runs(p, since, r.pull(r.at(since))); to != head {
				t.Errorf("seed %d: after %d the answer ends at %d of %d", seed, since, to, head)
			}
			if to := w.runs(p, since, r.pull(fmt.Sprintf("only=entries&since=%d", since))); to != head {
				t.Errorf("seed %d: entries alone after %d end at %d of %d", seed, since, to, head)
			}
		}
		var sent bytes.Buffer
		res := w.feed.Serve(t.Context(), &api.Request{Method: "GET", Path: "/v2/sync/changes", Query: "app=" + w.App + "&only=entries&" + r.at(floor-1), Authorization: r.authorization, Header: header})
		reopened := false
		err := res.Stream(writer(func(b []byte) (int, error) {
			if !reopened {
				if reopened = true; w.Engine.Reopen() != nil {
					t.Error("the logs were not opened again")
				}
				r.mustPush(r.next(&log.ConceptName{ID: "c", Name: "later"}))
			}
			return sent.Write(b)
		}))
		answer := frames(t, sent.Bytes())
		if to := w.runs(p, floor-1, answer); err != nil || floor <= head && to != head+1 {
			t.Errorf("seed %d: an answer in two openings ends at %d of %d, %v", seed, to, head+1, err)
		}
		for _, f := range answer {
			if f.Type != wire.TypeCheckpoint {
				continue
			}
			if m, err := wire.DecodeCheckpoint(f.Body); err != nil || m.Opening != p.Opening() {
				t.Errorf("seed %d: the checkpoint has opening %x, want %x, %v", seed, m.Opening, p.Opening(), err)
			}
		}
	}
}
