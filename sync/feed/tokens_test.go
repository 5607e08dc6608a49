package feed_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/wire"
)

// opsBy numbers bodies as operations that were asked for with a key or a token.
func (r *replica) opsBy(by string, n int) []log.Op {
	bodies := make([]log.Body, n)
	for i := range bodies {
		bodies[i] = &log.ConceptCreate{ID: fmt.Sprint("c", r.writer, "-", r.seq, "-", i), Name: "n", Language: "en"}
	}
	ops := r.next(bodies...)
	for i := range ops {
		ops[i].By = by
	}
	return ops
}

// pushRefusals pushes, and returns the sequences of the refused operations.
func (r *replica) pushRefusals(m *wire.Push) (seqs []uint64) {
	r.w.t.Helper()
	out, err := wire.DecodePushed(r.must(200, "POST", "/v2/sync/push", m.Encode()).Body)
	if err != nil || out.Accepted != r.seq {
		r.w.t.Fatalf("accepted %d of %d, %v", out.Accepted, r.seq, err)
	}
	for _, v := range out.Verdicts {
		if v.Code != uint32(fold.Refused) || v.Detail != "scope: the token was revoked" {
			r.w.t.Errorf("verdict %+v", v)
		}
		seqs = append(seqs, v.Seq)
	}
	return seqs
}

// TestRevokedTokens has an edge push what it was asked for with tokens, of which a generation ended while it was alone: what
// was made with that one afterwards is refused, whatever else the push says of it. A page's word on its token is not
// asked.
func TestRevokedTokens(t *testing.T) {
	w := newWorld(t, nil)
	client, err := w.Engine.Register.Client(w.App)
	if err != nil {
		t.Fatal(err)
	}
	first := client.Generation
	w.Now = w.Now.Add(48 * time.Hour)
	if err := w.Engine.Register.RevokeTokens(t.Context(), register.Caller{}, w.App); err != nil {
		t.Fatal(err)
	}
	revoked := w.Now
	if client, err = w.Engine.Register.Client(w.App); err != nil {
		t.Fatal(err)
	}
	second := client.Generation
	long := 30 * time.Hour // no edge that has not heard for so long lets write
	for i, tt := range []struct {
		name       string
		delay      time.Duration // after the revocation, and a second later the next
		client     string
		generation uint64 // 0: the push does not say
		refused    int    // of two, the last ones
	}{
		{"an older one", time.Minute, client.ID, first, 2},
		{"an older one, the first before its end", -500 * time.Millisecond, client.ID, first, 1},
		{"an older one, before its end", -time.Minute, client.ID, first, 0},
		{"an older one, long after", long, client.ID, first, 2},
		{"the newest", time.Minute, client.ID, second, 0},
		{"not said", time.Minute, "", 0, 2},
		{"not said, before the end", -time.Minute, "", 0, 0},
		{"not said, long after", long, "", 0, 0},
		{"one that is newer than all", time.Minute, client.ID, second + 1000, 2},
		{"one that is newer than all, long after", long, client.ID, second + 1000, 0},
		{"another client's", time.Minute, "other", second, 2},
	} {
		w.Now = revoked.Add(long)
		e := w.enrolEdge(byte(i + 1))
		w.Now = revoked.Add(tt.delay)
		ops := e.opsBy(auth.ByToken, 1)
		w.Now = w.Now.Add(time.Second)
		ops = append(ops, e.opsBy(auth.ByToken, 1)...)
		w.Now = revoked.Add(long + time.Minute)
		m := e.push(ops)
		m.For = []wire.Delegation{{First: 1, Last: 2, Subject: auth.ByToken, Issued: wire.MillisOf(revoked.Add(tt.delay))}}
		if tt.generation > 0 {
			m.Tokens = []wire.Tokens{{First: 1, Last: 2, Client: tt.client, Generation: tt.generation}}
		}
		want := []uint64{1, 2}[2-tt.refused:]
		if got := e.pushRefusals(&m); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: refused %v, want %v", tt.name, got, want)
		}
		if got := e.pushRefusals(&m); len(got) != 0 { // it is in the log, and weighed once
			t.Errorf("%s, again: refused %v", tt.name, got)
		}
	}

	w.Now = revoked.Add(time.Minute)
	e := w.enrolEdge(99)
	ops := append(e.opsBy(auth.ByToken, 2), e.opsBy(auth.ByKey(auth.HashKey(w.Key)), 1)...)
	ops = append(ops, e.opsBy(auth.ByToken, 1)...)
	m := e.push(ops)
	m.Tokens = []wire.Tokens{{First: 1, Last: 1, Client: client.ID, Generation: second}, {First: 2, Last: 3, Client: client.ID, Generation: first}, {First: 4, Last: 4, Client: client.ID, Generation: second}}
	if got := e.pushRefusals(&m); fmt.Sprint(got) != "[2]" {
		t.Errorf("a token of each generation and a key: refused %v, want the older token's", got)
	}

	page := w.join(w.App, w.Key)
	m = page.push(page.opsBy(auth.ByToken, 1))
	m.Tokens = []wire.Tokens{{First: 1, Last: 1, Client: client.ID, Generation: first}}
	if got := page.pushRefusals(&m); len(got) != 0 {
		t.Errorf("a replica that is no edge: refused %v, and its credential is good", got)
	}
}

// TestOperationOfRevokedTokenAfterRestore has an edge send again, to an origin whose disk was set back, what was made with a token. The
// origin takes it for made after the token was revoked, and refuses it. Another replica has pulled the operation and gives it back: the
// origin lists it with its content.
func TestOperationOfRevokedTokenAfterRestore(t *testing.T) {
	w, open := newSealedWorld(t, nil)
	p := open(w.Store)
	e := w.enrolEdge(1)
	image, first, began := copyOf(t, w.Store), p.Log().Head(), w.Now
	w.Now = began.Add(49 * time.Hour)
	ops := e.opsBy(auth.ByToken, 2)
	ops[0].By = ""
	m := e.push(ops)
	if got := e.pushRefusals(&m); len(got) != 0 {
		t.Fatalf("refused %v before the token was revoked", got)
	}
	run := backOf(t, w, p, first, p.Log().Head())
	lost := p.Log().Head()

	p = open(image)
	w.Now = began.Add(48 * time.Hour)
	if err := w.Engine.Register.RevokeTokens(t.Context(), register.Caller{}, w.App); err != nil {
		t.Fatal(err)
	}
	w.Now = began.Add(49*time.Hour + time.Minute)
	r := w.join(w.App, w.Key)
	m = e.push(ops)
	if got := e.pushRefusals(&m); fmt.Sprint(got) != "[2]" {
		t.Fatalf("refused %v", got)
	}
	run.Opening = p.Opening()
	for range 2 {
		if got := r.mustBack(&run); got.To != lost {
			t.Errorf("took entries up to %d back, want %d", got.To, lost)
		}
		var listed []log.Op
		err := p.Conflicts(func(c partition.Conflict) bool { listed = append(listed, c.Op); return true })
		if err != nil || len(listed) != 1 || listed[0].Dot != ops[1].Dot || !reflect.DeepEqual(listed[0].Body, ops[1].Body) {
			t.Errorf("listed %+v, %v; want %+v", listed, err, ops[1])
		}
	}
}
