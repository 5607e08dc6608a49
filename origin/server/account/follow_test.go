package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// pair is two machines of a channel, each with one registry for all its terms.
type pair struct {
	t        *testing.T
	channel  *kvtest.Channel
	machines [2]*kvtest.Late
	stores   [2]*slowStore
	worlds   [2]*world
	leads    int // index of the machine that leads
}

// newPair opens two registries, of which the first one leads and has an operator.
func newPair(t *testing.T, seed uint64, change func(*Options)) (p *pair, op Account) {
	t.Helper()
	p = &pair{t: t, channel: kvtest.NewChannel(seed)}
	for i := range p.machines {
		p.machines[i] = p.channel.Machine(memkv.New(), t.Errorf)
		p.stores[i] = &slowStore{Store: p.machines[i]}
		p.worlds[i] = open(t, func(o *Options) {
			o.Store, o.Follow = p.stores[i], true
			if change != nil {
				change(o)
			}
		})
	}
	p.worlds[1].clock = p.worlds[0].clock
	p.lead(0)
	return p, p.worlds[0].operator()
}

// lead makes a machine lead that follows.
func (p *pair) lead(i int) {
	p.t.Helper()
	for p.machines[i].Next() != nil {
	}
	p.machines[i].Lead()
	for range 5 {
		runtime.Gosched() // calls of earlier terms meet a store that takes writes
	}
	if err := p.worlds[i].Lead(); err != nil {
		p.t.Fatal(err)
	}
	p.leads = i
}

// depose ends the term of the machine that leads.
func (p *pair) depose() {
	p.channel.Depose()
	for range 5 {
		runtime.Gosched()
	}
	p.worlds[p.leads].Follow()
}

// change makes the other machine lead.
func (p *pair) change() *world {
	p.t.Helper()
	p.depose()
	p.lead(1 - p.leads)
	return p.worlds[p.leads]
}

// verify checks the audit log of the machine that leads. It returns its length.
func (p *pair) verify() uint64 {
	p.t.Helper()
	head, err := p.worlds[p.leads].VerifyAudit()
	if err != nil {
		p.t.Error(err)
	}
	return head.Count
}

// total returns the usage of the application. The machine leads.
func (p *pair) total() int64 {
	p.t.Helper()
	u, err := p.worlds[p.leads].Usage(anApp, 3)
	if err != nil {
		p.t.Error(err)
	}
	return u.Total
}

// TestNewTermReusesNothing lets two machines lead in turn. Blocks, usage, sessions, the audit log and the operator of an earlier term are
// not used again.
func TestNewTermReusesNothing(t *testing.T) {
	const limit = 6400
	p, op := newPair(t, 1, func(o *Options) { o.Plan = Plan{"metered", limit} })
	spend := func(n int64) {
		t.Helper()
		if spent, err := p.worlds[p.leads].SpendSome(call(op.ID), n); spent != n || err != nil {
			t.Fatalf("SpendSome(%d) = %d, %v", n, spent, err)
		}
	}
	a, b := p.worlds[0], p.worlds[1]
	token, err := a.OpenSession(op.ID, home)
	if err != nil {
		t.Fatal(err)
	}
	spend(10)
	if n := p.total(); n != 10 { // this flushes
		t.Errorf("usage of %d calls", n)
	}
	spend(1) // lost by usage

	p.change()
	spend(200)
	if n := p.total(); n != 210 {
		t.Errorf("usage of %d calls", n)
	}
	a.clock.pass(2 * time.Hour)
	if _, err := b.Session(t.Context(), token); err != nil {
		t.Error(err)
	}
	if _, err := b.Rename(t.Context(), op.ID, "Ada", home); err != nil {
		t.Fatal(err)
	}
	if err := b.SignOut(token, home); err != nil {
		t.Fatal(err)
	}

	p.change()
	if _, err := a.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("a session that ended in another term: %v", err)
	}
	if _, err := a.Rename(t.Context(), op.ID, "Bob", home); err != nil {
		t.Fatal(err)
	}
	p.verify()
	// The blocks of two terms are lost: at most 100 calls each.
	left, _, err := a.Allowance(op.ID)
	if want := int64(limit - 211); err != nil || left > want || left < want-200 {
		t.Errorf("%d calls are left, %v, want %d at most", left, err, want)
	}
	if n := race(t, a.Registry, op.ID, 1e6); n != left {
		t.Errorf("%d calls were allowed of the %d left", n, left)
	}
	if n := p.total(); n != 210+left {
		t.Errorf("usage of %d calls, want %d", n, 210+left)
	}

	// The operator is erased in a term of the other machine. Both read that.
	b = p.change()
	if err := b.Erase(op.ID, op.ID, home); err != nil {
		t.Fatal(err)
	}
	for p.machines[0].Next() != nil {
	}
	for _, w := range []*world{a, b} {
		if state, err := w.SignUpPolicy(); state != "first" || err != nil {
			t.Errorf("SignUp = %s, %v", state, err)
		}
	}
}

// TestFollowerReadsAccounts calls a registry that follows. It answers reads by the present records, writes nothing, and logs nothing.
func TestFollowerReadsAccounts(t *testing.T) {
	for _, deposed := range []bool{false, true} { // the registry may not know yet that its store follows
		p, op := newPair(t, 1, func(o *Options) {
			o.Plan = Plan{"metered", 6400}
			o.Storage.Verified = Storage{Bytes: 1000}
		})
		a := p.worlds[0]
		token, err := a.OpenSession(op.ID, home)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.SpendSome(call(op.ID), 10); err != nil {
			t.Fatal(err)
		}
		a.clock.pass(2 * time.Hour)
		if _, err := a.Session(t.Context(), token); err != nil { // its last use waits
			t.Fatal(err)
		}
		if deposed {
			p.channel.Depose()
		} else {
			p.depose()
		}
		before := records(t, p.machines[0])
		for name, err := range map[string]error{"Flush": a.Flush(), "Close": a.Close()} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if text := a.log.String(); strings.Contains(text, "level=WARN") || strings.Contains(text, "level=ERROR") {
			t.Error(text)
		}
		a.Follow()
		_, spend := a.Spend(t.Context(), call(op.ID))
		_, operators := a.Spend(t.Context(), call(""))
		_, some := a.SpendSome(call(op.ID), -3)
		_, rename := a.Rename(t.Context(), op.ID, "Ada", home)
		_, report := a.CountEdgeCalls(op.ID, anApp, "e", 3)
		_, picture := a.CountPicture(op.ID, 100, time.Hour)
		_, enter := a.OpenSession(op.ID, home)
		for name, err := range map[string]error{
			"Spend": spend, "Spend of the operator": operators, "SpendSome": some, "Rename": rename, "Report": report, "KeepPicture": picture,
			"Enter": enter, "DropUsage": a.DropUsage(anApp), "Record": a.Record(Event{Action: AppExport}),
		} {
			if !errors.Is(err, kv.ErrFollows) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := a.Session(t.Context(), token); err != nil {
			t.Error(err)
		}
		if !maps.Equal(before, records(t, p.machines[0])) {
			t.Error("a registry that follows wrote")
		}

		p.leads = 0
		if deposed {
			p.lead(1)
		} else {
			p.change()
		}
		b := p.worlds[1]
		_, rename = b.Rename(t.Context(), op.ID, "Eve", home)
		_, spend = b.SpendSome(call(op.ID), 20)
		if err := errors.Join(rename, spend, b.SignOut(token, home), b.Close()); err != nil {
			t.Fatal(err)
		}
		for p.machines[0].Next() != nil {
		}
		for _, w := range p.worlds {
			read, err := w.Account(op.ID)
			left, limit, err2 := w.Allowance(op.ID)
			u, err3 := w.Usage(anApp, 1)
			if err := errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
			if read.Name != "Eve" || left > 6400-30 || left < 6400-30-100 || limit != 6400 || u.Total != 20 {
				t.Errorf("read %v, %d of %d calls left, usage %d", read, left, limit, u.Total)
			}
			if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
				t.Errorf("an ended session: %v", err)
			}
		}
	}
}

// TestChangeDuringTermChange changes an account while the machine that writes changes. A change that returns kv.ErrFollows has no effect in
// any later term, and one that succeeds has.
func TestChangeDuringTermChange(t *testing.T) {
	refused := 0
	for seed := range testkit.Seeds(t, 80, 10_000) {
		p, op := newPair(t, seed, nil)
		a, count := p.worlds[0], p.verify()
		p.stores[0].hook = p.channel.Depose
		_, err := a.Rename(t.Context(), op.ID, "Ada", home)
		want := "Ada"
		if err == nil {
			count++
		} else {
			refused++
			want = "Operator"
		}
		if err != nil && !errors.Is(err, kv.ErrFollows) {
			t.Fatal(err)
		}
		a.Follow()
		for range 2 {
			p.lead(1 - p.leads)
			w := p.worlds[p.leads]
			if got, err := w.Account(op.ID); got.Name != want || err != nil {
				t.Errorf("seed %d: the name is %q, %v, want %q", seed, got.Name, err, want)
			}
			want = fmt.Sprint("Name ", p.leads)
			if _, err := w.Rename(t.Context(), op.ID, want, home); err != nil {
				t.Fatal(err)
			}
			count++
			if n := p.verify(); n != count {
				t.Errorf("seed %d: %d audit records, want %d", seed, n, count)
			}
			p.depose()
		}
	}
	if refused == 0 {
		t.Error("no change was refused")
	}
}

// TestAccountsChangeMachines makes calls at two machines at once, while they lead in turn. An account never gets more calls than its plan, and
// loses at most a block in each term. Each acknowledged change is in the audit log once, and no refused one. Usage has each call at most once,
// and every call that was read.
func TestAccountsChangeMachines(t *testing.T) {
	for seed := range testkit.Seeds(t, 40, 10_000) {
		rng := rand.New(rand.NewPCG(seed, 37))
		limit := 200 + rng.Int64N(3000)
		p, op := newPair(t, seed, func(o *Options) {
			o.Plan = Plan{"metered", limit}
			o.Storage.Verified = Storage{Bytes: 1000}
		})
		events := p.verify()
		token, err := p.worlds[0].OpenSession(op.ID, home)
		if err != nil {
			t.Fatal(err)
		}
		events++
		for p.machines[1].Next() != nil {
		}
		var (
			spent, changed atomic.Int64
			stop           atomic.Bool
			group          sync.WaitGroup
		)
		loop := func(do func(w *world) error) {
			for _, w := range p.worlds {
				group.Go(func() {
					for !stop.Load() {
						if err := do(w); err != nil && !errors.Is(err, kv.ErrFollows) && !errors.Is(err, auth.ErrQuota) {
							t.Errorf("seed %d: %v", seed, err)
							return
						}
						runtime.Gosched()
					}
				})
			}
		}
		ctx := context.Background()
		for range 3 {
			loop(func(w *world) error {
				_, err := w.Spend(ctx, call(op.ID))
				if err == nil {
					spent.Add(1)
				}
				return err
			})
		}
		loop(func(w *world) error {
			_, err := w.Rename(ctx, op.ID, "Ada", home)
			if err == nil {
				changed.Add(1)
			}
			return err
		})
		loop(func(w *world) error {
			_, err := w.CountPicture(op.ID, 1, time.Hour)
			return err
		})
		loop(func(w *world) error { return errors.Join(w.Flush(), w.meters.close()) })
		loop(func(w *world) error { _, err := w.Session(ctx, token); return err })
		terms, read := 2+rng.IntN(5), int64(0)
		check := func() {
			t.Helper()
			n := p.total()
			if most := spent.Load() + 6; n < read || n > most { // calls that were counted and have not returned
				t.Errorf("seed %d: usage of %d calls, after %d, and %d were made", seed, n, read, most)
			}
			read = n
		}
		for range terms {
			for range rng.IntN(400) {
				runtime.Gosched()
			}
			p.worlds[0].clock.pass(time.Duration(rng.IntN(2)) * 2 * time.Hour)
			if rng.IntN(2) == 0 {
				check()
			}
			if rng.IntN(3) > 0 {
				p.change()
			} else { // the same machine leads again
				p.depose()
				p.lead(p.leads)
			}
			p.verify()
		}
		check()
		stop.Store(true)
		group.Wait()
		rest := race(t, p.worlds[p.leads].Registry, op.ID, 1e6)
		// A meter that leads reserves at most 1/shareOfLeft of the calls at once.
		lost := int64(terms) * max(limit/shareOfLeft, 1)
		if n := spent.Load() + rest; n > limit || n < limit-lost {
			t.Errorf("seed %d: %d calls of %d were allowed in %d terms", seed, n, limit, terms+1)
		}
		if n := p.verify(); n != events+uint64(changed.Load()) {
			t.Errorf("seed %d: %d audit records, want %d", seed, n, events+uint64(changed.Load()))
		}
	}
}
