package account

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
)

// stepRandom is a source of secrets. In each step of a program, the n-th secret of a size is the same, whatever secrets of other sizes are
// read.
type stepRandom struct {
	mu         sync.Mutex
	seed, step uint64
	reads      map[int]uint64
}

func (r *stepRandom) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads[len(b)]++
	var name []byte
	for _, n := range []uint64{r.seed, r.step, uint64(len(b)), r.reads[len(b)]} {
		name = binary.BigEndian.AppendUint64(name, n)
	}
	h := sha256.Sum256(name)
	return copy(b, h[:]), nil
}

func (r *stepRandom) next() {
	r.step++
	r.reads = map[int]uint64{}
}

// callable is a call to a registry. It returns the call's results as text.
type callable func(w *world) string

// program runs the same calls in two worlds: on a plain store, and on two machines of a channel, of which one writes.
type program struct {
	t           *testing.T
	rng         *rand.Rand
	plain, late *world
	random      [2]*stepRandom
	channel     *kvtest.Channel
	machines    [2]*kvtest.Late
	writer      int // index in machines

	remote                string // network of the step's calls
	ids, tokens           []string
	codes, links          []string
	emails, passwords     []string
	setup                 string
	reported, step, steps int
}

func newProgram(t *testing.T, seed uint64) *program {
	p := &program{
		t: t, rng: rand.New(rand.NewPCG(seed, 31)), steps: 80,
		emails: []string{"ada@x.example", "bob@x.example", "eve@x.example"}, passwords: []string{password, password + "!"},
	}
	p.channel = kvtest.NewChannel(seed)
	for i := range p.machines {
		p.machines[i] = p.channel.Machine(memkv.New(), t.Errorf)
	}
	p.machines[0].Lead()
	stores := [2]kv.Store{memkv.New(), &slowStore{Store: p.machines[0]}}
	plan := Plan{"metered", 20 + p.rng.Int64N(2000)}
	worlds := [2]*world{}
	for i := range worlds {
		p.random[i] = &stepRandom{seed: seed, reads: map[int]uint64{}}
		worlds[i] = open(t, func(o *Options) {
			o.Store, o.Random, o.Plan = stores[i], p.random[i], plan
			o.Storage.Unverified, o.Storage.Verified = Storage{Bytes: 1000}, Storage{Bytes: 3000}
		})
	}
	p.plain, p.late = worlds[0], worlds[1]
	return p
}

var (
	anID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	// aPassword matches the salt and the key of a password hash.
	aPassword = regexp.MustCompile(`(\$argon2id\$[^$]*\$[^$]*\$)([\w+/-]+)\$([\w+/-]+)`)
)

// run makes the calls one after the other on the plain store and at once on the late one. The calls commute: each order has the same
// results, apart from who gets which. It returns the results.
func (p *program) run(calls ...callable) []string {
	p.t.Helper()
	for _, r := range p.random {
		r.next()
	}
	want, got := make([]string, len(calls)), make([]string, len(calls))
	var group sync.WaitGroup
	for i, c := range calls {
		want[i] = c(p.plain)
		group.Go(func() { got[i] = c(p.late) })
	}
	group.Wait()
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		p.t.Errorf("step %d: other results (-plain +late):\n%s", p.step, cmp.Diff(want, got))
	}
	mails, lateMails := p.plain.mails(), p.late.mails()
	if !slices.Equal(mails, lateMails) {
		p.t.Errorf("step %d: other emails (-plain +late):\n%s", p.step, cmp.Diff(mails, lateMails))
	}
	for _, m := range mails {
		p.codes = append(p.codes, sixDigits.FindAllString(m.Text, -1)...)
		p.links = append(p.links, aToken.FindAllString(m.Text, -1)...)
	}
	for _, r := range want {
		p.tokens = append(p.tokens, aToken.FindAllString(r, -1)...)
		p.ids = append(p.ids, anID.FindAllString(r, -1)...)
	}
	slices.Sort(p.ids)
	p.ids = slices.Compact(p.ids)
	return want
}

// recent returns one of the newest strings, or "".
func (p *program) recent(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1-p.rng.IntN(min(len(all), 4))]
}

func (p *program) pick(all []string) string { return all[p.rng.IntN(len(all))] }

// uncrowded returns n if each account has room for so many more sessions, and otherwise 1: the order of sign-ins decides which ones end.
func (p *program) uncrowded(n int) int {
	for _, id := range p.ids {
		if open, err := sessions(p.plain.o.Store, id); len(open)+n > maxSessions || err != nil {
			return 1
		}
	}
	return n
}

// account is the form in which a call returns an account and a session.
func account(token string, a Account, err error) string { return fmt.Sprint(token, " ", a, " ", err) }

// shuffled makes a call at once with others.
func shuffled(rng *rand.Rand, calls ...callable) []callable {
	rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
	return calls
}

// one runs a random step.
func (p *program) one() {
	p.step++
	p.remote = fmt.Sprint("network ", p.step) // no throttle depends on the order of calls
	var (
		rng, remote   = p.rng, p.remote
		ctx           = p.t.Context()
		id, token     = p.recent(p.ids), p.recent(p.tokens)
		email         = p.pick(p.emails)
		old, fresh    = p.pick(p.passwords), p.pick(p.passwords)
		code, link    = p.recent(p.codes), p.recent(p.links)
		n             = 1 + rng.IntN(3)
		size          = rng.Int64N(1500)
		spend         = func(w *world) string { left, err := w.Spend(ctx, call(id)); return fmt.Sprint(left, err) }
		keep          = func(w *world) string { fits, err := w.CountPicture(id, size, time.Hour); return fmt.Sprint(fits, err) }
		back          = func(w *world) string { n, err := w.SpendSome(call(id), -2); return fmt.Sprint(n, err) }
		evict         = func(w *world) string { return fmt.Sprint(w.meters.close()) }
		flush         = func(w *world) string { return fmt.Sprint(w.Flush()) }
		setPassword   = func(w *world) string { return account(w.ChangePassword(ctx, id, old, fresh, remote)) }
		other         = []callable{spend, back}[rng.IntN(2)] // they do not commute with each other
		counted       = shuffled(rng, other, other, keep, keep)[:n]
		usage         = func(w *world) string { u, err := w.Usage(anApp, 3); return fmt.Sprint(u, err) }
		use           = func(w *world) string { a, err := w.Session(ctx, token); return fmt.Sprint(a, err) }
		allowance     = func(w *world) string { left, limit, err := w.Allowance(id); return fmt.Sprint(left, limit, err) }
		changeAccount = func(a Account, err error) string { return account("", a, err) }
		sessionList   = func(w *world) string {
			var b strings.Builder
			list, err := w.Sessions(id)
			for _, s := range list {
				fmt.Fprintln(&b, s.ID(), s.Created.Unix(), s.Seen.Unix(), s.Remote)
			}
			return fmt.Sprint(b.String(), err)
		}
	)
	switch rng.IntN(32) {
	case 0, 1:
		form := SignUpForm{"Ada", email, fresh, p.setup}
		p.run(func(w *world) string { return account(w.Create(ctx, form, remote)) })
	case 2, 3:
		p.run(slices.Repeat([]callable{func(w *world) string { return account(w.SignIn(ctx, email, old, remote)) }}, p.uncrowded(n))...)
	case 4:
		p.run(shuffled(rng, append(counted, setPassword)...)...)
	case 5:
		p.run(func(w *world) string { return fmt.Sprint(w.SendResetLink(ctx, email, remote)) })
	case 6, 7:
		p.run(func(w *world) string { return account(w.Reset(ctx, link, fresh, remote, nil)) })
	case 8, 9, 10:
		p.run(slices.Repeat([]callable{func(w *world) string { return changeAccount(w.Verify(ctx, id, code, remote)) }}, n)...)
	case 11:
		p.run(func(w *world) string { return fmt.Sprint(w.SendCode(ctx, id)) })
	case 12:
		p.run(func(w *world) string { return changeAccount(w.ChangeEmail(ctx, id, email, old, remote)) })
	case 13:
		p.run(slices.Repeat([]callable{func(w *world) string { return changeAccount(w.Rename(ctx, id, "Bob", remote)) }}, n)...)
	case 14, 15:
		p.run(slices.Repeat([]callable{use}, n)...)
	case 16:
		p.run(slices.Repeat([]callable{func(w *world) string { return fmt.Sprint(w.SignOut(token, remote)) }}, n)...)
	case 17:
		p.run(slices.Repeat([]callable{func(w *world) string { return fmt.Sprint(w.EndSession(id, SessionID(token), remote)) }}, n)...)
	case 18:
		p.run(sessionList, func(w *world) string { return fmt.Sprint(w.CheckSession(ctx, SessionID(token))) })
	case 19:
		p.run(slices.Repeat([]callable{spend}, 4*n)...)
	case 20:
		p.run(shuffled(rng, append(slices.Repeat(counted, 2), evict)...)...)
		p.run(evict) // the next blocks begin at the same count
	case 21:
		p.run(func(w *world) string { n, err := w.SpendSome(call(id), int64(n*10)); return fmt.Sprint(n, err) })
		p.run(allowance)
	case 22:
		p.run(slices.Repeat([]callable{keep}, n)...)
	case 23:
		p.reported = max(p.reported+rng.IntN(40)-5, 0)
		count := uint64(p.reported)
		p.run(slices.Repeat([]callable{func(w *world) string {
			over, err := w.CountEdgeCalls(id, anApp, "e", count)
			return fmt.Sprint(over, err)
		}}, n)...)
	case 24:
		p.run(usage, usage, flush)
		p.run(func(w *world) string { uses, err := w.KeyUses(anApp); return fmt.Sprint(uses, err) })
	case 25:
		drop := func(w *world) string { return fmt.Sprint(w.DropUsage(anApp)) }
		p.run(shuffled(rng, drop, drop, flush)...)
		p.reported = 0
	case 26:
		enter := func(w *world) string { token, err := w.OpenSession(id, remote); return fmt.Sprint(token, err) }
		if rng.IntN(20) == 0 {
			for range maxSessions {
				p.run(enter)
			}
		}
		p.run(slices.Repeat([]callable{enter}, p.uncrowded(n))...)
	case 27:
		if rng.IntN(4) == 0 {
			p.run(func(w *world) string { return fmt.Sprint(w.Erase(id, id, remote)) })
		}
	case 28, 29:
		d := time.Duration(1 + rng.Int64N(int64([]time.Duration{time.Minute, 2 * time.Hour, 48 * time.Hour, SessionLife, 2 * usageDays * 24 * time.Hour}[rng.IntN(5)])))
		p.plain.clock.pass(d)
		p.late.clock.pass(d)
		if rng.IntN(2) == 0 {
			p.run(use)
		}
		if rng.IntN(2) == 0 {
			p.run(flush)
		}
	case 30, 31:
		p.restart()
	}
}

// restart opens the registries again, after Close or after a kill. The machine that did not write takes over, so it has the records that
// were committed.
func (p *program) restart() {
	p.t.Helper()
	if p.rng.IntN(2) == 0 {
		p.run(func(w *world) string { return fmt.Sprint(w.Close()) })
	} else if err := kv.CommitAndWait(p.late.o.Store, &kv.Batch{}); err != nil {
		p.t.Fatal(err)
	}
	p.writer = 1 - p.writer
	p.channel.Depose()
	for p.machines[p.writer].Next() != nil {
	}
	p.machines[p.writer].Lead()
	p.late.o.Store = &slowStore{Store: p.machines[p.writer]}
	p.run(func(w *world) string {
		r, err := Open(w.o)
		w.Registry = r
		return fmt.Sprint(err)
	})
	p.compare()
}

// compare compares the stored records.
func (p *program) compare() {
	p.t.Helper()
	want, got := records(p.t, p.plain.o.Store), records(p.t, p.late.o.Store)
	if !maps.Equal(want, got) {
		p.t.Errorf("after step %d: other records (-plain +late):\n%s", p.step, cmp.Diff(want, got))
	}
}

// records returns the content of a store. It replaces the salts and keys of password hashes, which are random, by numbers in the order of
// the store's keys.
func records(t *testing.T, store kv.Reader) map[string]string {
	t.Helper()
	all, names := map[string]string{}, map[string]string{}
	name := func(s string) string {
		if names[s] == "" {
			names[s] = fmt.Sprint(len(names))
		}
		return names[s]
	}
	err := store.Scan(nil, nil, func(k, v []byte) bool {
		if !bytes.Contains(v, []byte("$argon2id$")) {
			all[string(k)] = string(v)
			return true
		}
		all[string(k)] = aPassword.ReplaceAllStringFunc(string(v), func(s string) string {
			m := aPassword.FindStringSubmatch(s)
			return m[1] + name(m[2]) + "$" + name(m[3])
		})
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestProgramsOnLateStore runs random calls on a plain store and on a late one whose writer changes. Both have the same results and the
// same records.
func TestProgramsOnLateStore(t *testing.T) {
	for seed := range testkit.Seeds(t, 400, 10_000) {
		p := newProgram(t, seed)
		link := p.run(func(w *world) string { link, err := w.SetupLink(); return fmt.Sprint(link, err) })
		p.setup = aToken.FindString(link[0])
		p.run(func(w *world) string {
			return account(w.Create(t.Context(), SignUpForm{"Operator", "op@pictures.example", password, p.setup}, home))
		})
		for range p.steps {
			if p.one(); t.Failed() {
				break
			}
		}
		p.restart()
	}
}
