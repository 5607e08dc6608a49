package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv/pebbletest"
	"github.com/sightline-dev/sightline/core/testkit"
)

const second = "another lantern in it"

// claim creates an account with an email address that another account has or may have.
func (w *world) claim(email, password string) Account {
	w.t.Helper()
	_, a, err := w.Create(w.t.Context(), SignUpForm{"Eve", email, password, ""}, away)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// signsIn returns the ID of the account that an address and a password sign in to. The ID is empty if the sign-in is refused.
func (w *world) signsIn(email, password string) (id string) {
	w.t.Helper()
	_, a, err := w.SignIn(w.t.Context(), email, password, "")
	if err != nil && !errors.Is(err, auth.ErrLogin) {
		w.t.Fatal(err)
	}
	return a.ID
}

// work is the work for one answer.
type work struct {
	hashes  int64  // number of hashed passwords
	records uint64 // number of new records in the audit log
}

// TestRegisteredAddressesCostTheSame measures the work of every call about an address in each state: free, claimed by one or several
// accounts, or verified.
func TestRegisteredAddressesCostTheSame(t *testing.T) {
	var free map[string]work
	for _, state := range []string{"free", "claimed", "claimed twice", "verified", "verified and claimed"} {
		w := open(t, nil)
		w.operator()
		if state != "free" {
			_, a := w.person("ada@x.example")
			if strings.HasPrefix(state, "verified") {
				if _, err := w.Verify(t.Context(), a.ID, w.code(), home); err != nil {
					t.Fatal(err)
				}
			}
			if state == "claimed twice" || state == "verified and claimed" {
				w.claim("ada@x.example", "a third lantern, unlit")
			}
		}
		got := map[string]work{}
		count := func(name string, do func() error, want error) {
			t.Helper()
			before := work{w.hashing.done.Load(), w.audit.count}
			if err := do(); !errors.Is(err, want) {
				t.Errorf("%s, %s: %v, want %v", state, name, err, want)
			}
			got[name] = work{w.hashing.done.Load() - before.hashes, w.audit.count - before.records}
		}
		signIn := func(password string) func() error {
			return func() error { _, _, err := w.SignIn(t.Context(), "ada@x.example", password, away); return err }
		}
		var eve Account
		count("sign-in to no account", signIn("wrong wrong wrong"), auth.ErrLogin)
		count("reset", func() error { return w.SendResetLink(t.Context(), "ada@x.example", away) }, nil)
		count("sign-up", func() error { eve = w.claim("ada@x.example", second); return nil }, nil)
		count("sign-in", signIn(second), nil)
		count("wrong code", func() error { _, err := w.Verify(t.Context(), eve.ID, "x", away); return err }, ErrCode)
		w.clock.pass(mailEvery)
		count("another code", func() error { return w.SendCode(t.Context(), eve.ID) }, nil)
		change := func(email string) func() error {
			return func() error {
				w.clock.pass(mailEvery)
				_, err := w.ChangeEmail(t.Context(), eve.ID, email, second, away)
				return err
			}
		}
		count("leaving the address", change("eve@x.example"), nil)
		count("changing to the address", change("ada@x.example"), nil)
		count("password", func() error {
			_, _, err := w.ChangePassword(t.Context(), eve.ID, second, password+"!", away)
			return err
		}, nil)
		count("erasing", func() error { return w.EraseWithPassword(t.Context(), eve.ID, password+"!", away) }, nil)
		if state == "free" {
			free = got
		}
		if !maps.Equal(got, free) {
			t.Errorf("%s: %v\nfree: %v", state, got, free)
		}
		if n := got["sign-in"].hashes; n != 2 {
			t.Errorf("a sign-in hashed %d passwords", n)
		}
	}
}

func TestAddressHasOneOwner(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, ada := w.person("ada@x.example")
	first := w.code()
	eve := w.claim(" ADA@X.example", second)
	mails := w.mails()
	if len(mails) != 1 || mails[0].To != "ada@x.example" {
		t.Fatalf("mails = %v", mails)
	}
	code := sixDigits.FindString(mails[0].Text)
	if w.signsIn("ada@x.example", password) != ada.ID || w.signsIn("ada@x.example", second) != eve.ID {
		t.Error("not every claim signs in")
	}
	if err := w.SendResetLink(t.Context(), "ada@x.example", home); err != nil {
		t.Fatal(err)
	}
	reset := aToken.FindString(w.mails()[0].Text)
	if got, err := w.Verify(t.Context(), eve.ID, code, away); err != nil || !got.Verified {
		t.Fatalf("Verify = %+v, %v", got, err)
	}
	if _, err := w.Verify(t.Context(), ada.ID, first, home); !errors.Is(err, ErrTaken) {
		t.Errorf("a second account verifies the address: %v", err)
	}
	if _, _, err := w.Reset(t.Context(), reset, "a third lantern, unlit", home, nil); !errors.Is(err, ErrTaken) {
		t.Errorf("a second account verifies the address by an older reset link: %v", err)
	}
	if w.signsIn("ada@x.example", password) != ada.ID || w.signsIn("ada@x.example", second) != eve.ID {
		t.Error("not every account signs in after one was verified")
	}
	if err := w.Erase(eve.ID, eve.ID, away); err != nil { // frees the address
		t.Fatal(err)
	}
	if err := w.SendResetLink(t.Context(), "ada@x.example", home); err != nil {
		t.Fatal(err)
	}
	if mails := w.mails(); len(mails) != 1 || w.signsIn("ada@x.example", password) != ada.ID {
		t.Errorf("the claim that is left gets the mails %v", mails)
	}
	if got, err := w.Verify(t.Context(), ada.ID, first, home); err != nil || !got.Verified {
		t.Errorf("Verify once the owner is erased = %+v, %v", got, err)
	}
}

// TestFirstAccountOwnsItsAddress creates the operator's account after other accounts. It needs no code, and cannot have an address that
// another account has verified.
func TestFirstAccountOwnsItsAddress(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	_, ada := w.person("ada@x.example")
	if _, err := w.Verify(t.Context(), ada.ID, w.code(), home); err != nil {
		t.Fatal(err)
	}
	_, bob := w.person("bob@x.example")
	if err := w.Erase(op.ID, op.ID, home); err != nil {
		t.Fatal(err)
	}
	_, setup, _ := strings.Cut(w.link(), "setup=")
	if _, _, err := w.Create(t.Context(), SignUpForm{"Op", "ada@x.example", second, setup}, home); !errors.Is(err, ErrTaken) {
		t.Errorf("Create with a verified address: %v, want %v", err, ErrTaken)
	}
	_, a, err := w.Create(t.Context(), SignUpForm{"Op", "bob@x.example", second, setup}, home)
	if err != nil || !a.Operator || !a.Verified {
		t.Fatalf("Create with a claimed address = %+v, %v", a, err)
	}
	if w.signsIn("bob@x.example", second) != a.ID || w.signsIn("bob@x.example", password) != bob.ID {
		t.Error("the operator and the claim do not sign in")
	}
	checkAddresses(t, w.store)
}

// TestRacingClaimsSignIn makes two accounts claim a free address at once: both hash their passwords before either is stored.
func TestRacingClaimsSignIn(t *testing.T) {
	w := open(t, nil)
	w.operator()
	var leaves []func()
	for range maxHashing {
		leave, err := w.hashing.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	var group sync.WaitGroup
	for n := range 2 {
		group.Go(func() {
			if _, _, err := w.Create(context.Background(), SignUpForm{"Ada", "ada@x.example", passwordOf(n), ""}, ""); err != nil {
				t.Error(err)
			}
		})
	}
	for len(w.hashing.waiting) < 2 {
		runtime.Gosched()
	}
	for _, leave := range leaves {
		leave()
	}
	group.Wait()
	if a, b := w.signsIn("ada@x.example", passwordOf(0)), w.signsIn("ada@x.example", passwordOf(1)); a == "" || b == "" || a == b {
		t.Errorf("the claims sign in to %q and %q", a, b)
	}
	checkAddresses(t, w.store)
}

// TestOwnerIsNotified makes strangers claim a verified address in every way. Its owner gets a few mails without a code.
func TestOwnerIsNotified(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, ada := w.person("ada@x.example")
	if _, err := w.Verify(t.Context(), ada.ID, w.code(), home); err != nil {
		t.Fatal(err)
	}
	eve := w.claim("ada@x.example", second)
	w.clock.pass(mailEvery)
	if err := w.SendCode(t.Context(), eve.ID); err != nil {
		t.Fatal(err)
	}
	other := w.claim("eve@x.example", second)
	w.clock.pass(mailEvery)
	if _, err := w.ChangeEmail(t.Context(), other.ID, "ada@x.example", second, away); err != nil {
		t.Fatal(err)
	}
	mails := slices.DeleteFunc(w.mails(), func(m Mail) bool { return m.To == "eve@x.example" })
	if len(mails) != 3 {
		t.Fatalf("%d mails, want 3: %v", len(mails), mails)
	}
	for _, m := range mails {
		if m.To != "ada@x.example" || !strings.Contains(m.Text, "Hello Ada,") || !strings.Contains(m.Text, "https://pictures.example/forgot") ||
			sixDigits.MatchString(m.Text) || strings.Contains(m.Text, "Eve") {
			t.Errorf("the owner's mail is %+v", m)
		}
	}
	for i := range 3 * mailsPerDay {
		if _, _, err := w.Create(t.Context(), SignUpForm{"Eve", "ada@x.example", second, ""}, fmt.Sprint("192.0.2.", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.mails()); n > mailsPerDay {
		t.Errorf("the owner gets %d more mails", n)
	}
	got, err := w.Account(ada.ID)
	if err != nil || !got.Verified || w.signsIn("ada@x.example", password) != ada.ID {
		t.Errorf("the owner's account is %+v, %v", got, err)
	}
}

// TestClaimsDelayNoFirstAccount makes strangers claim an address until the limit of mails to it. The first account with this address still
// gets its code.
func TestClaimsDelayNoFirstAccount(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, ada := w.person("ada@x.example")
	w.mails()
	var last Account
	for i := range 2 * mailsPerDay {
		var err error
		if _, last, err = w.Create(t.Context(), SignUpForm{"Eve", "ada@x.example", second, ""}, fmt.Sprint("192.0.2.", i)); err != nil {
			t.Fatal(err)
		}
	}
	mails := w.mails()
	if len(mails) != mailsPerDay {
		t.Errorf("%d strangers have %d mails sent, want %d", 2*mailsPerDay, len(mails), mailsPerDay)
	}
	for _, m := range mails {
		if _, err := w.Verify(t.Context(), last.ID, sixDigits.FindString(m.Text), ""); !errors.Is(err, ErrCode) {
			t.Errorf("a code that was not mailed: %v", err)
		}
	}
	w.clock.pass(mailEvery)
	if err := w.SendCode(t.Context(), ada.ID); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Verify(t.Context(), ada.ID, w.code(), home); err != nil || !got.Verified {
		t.Errorf("Verify = %+v, %v", got, err)
	}
	if got := w.signsIn("ada@x.example", second); got == ada.ID || got == "" {
		t.Errorf("the password of several claims signs in to %q", got)
	}
}

// TestOlderFolder opens accounts that an older program stored, in which each address had only one account.
func TestOlderFolder(t *testing.T) {
	w := open(t, nil)
	var b kv.Batch
	text, err := os.ReadFile("testdata/one-account-an-address.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var rec record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		b.Put(accountKey(rec.ID), []byte(line))
		b.Put(emailKey(rec.Email), []byte(rec.ID))
	}
	if err := w.store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	if s, err := w.SignUpPolicy(); s != "open" || err != nil {
		t.Fatalf("SignUp = %q, %v", s, err)
	}
	const ada, bob = "ad4828ea48cfefc4b147277f22a9d39a", "aa54cf599082fb0a56856e9766acc446"
	a, b2 := w.claim("ada@x.example", second), w.claim("bob@x.example", second)
	for _, one := range []struct{ email, password, id string }{
		{"ada@x.example", password, ada},
		{"ada@x.example", second, a.ID},
		{"bob@x.example", password, bob},
		{"bob@x.example", second, b2.ID},
	} {
		if got := w.signsIn(one.email, one.password); got != one.id {
			t.Errorf("SignIn(%s, %s) = %q, want %q", one.email, one.password, got, one.id)
		}
	}
	w.mails()
	w.clock.pass(mailEvery)
	if err := w.SendCode(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Verify(t.Context(), ada, w.code(), home); err != nil || !got.Verified {
		t.Errorf("Verify = %+v, %v", got, err)
	}
	checkAddresses(t, w.store)
}

// checkAddresses checks the index of addresses. Each address of an account has a holder, which is the verified account if one exists. All
// others are claims, and the hashes of unverified accounts with one address have the same salt. The index has no other entries.
func checkAddresses(t *testing.T, store kv.Store) {
	t.Helper()
	scan := func(prefix []byte, yield func(k, v []byte)) {
		t.Helper()
		if err := store.Scan(prefix, kv.PrefixEnd(prefix), func(k, v []byte) bool { yield(k, v); return true }); err != nil {
			t.Fatal(err)
		}
	}
	byEmail := map[string][]record{}
	scan(key(tableAccount), func(k, _ []byte) {
		var rec record
		if err := get(store, k, &rec); err != nil {
			t.Fatal(err)
		}
		byEmail[rec.Email] = append(byEmail[rec.Email], rec)
	})
	want, got := map[string]string{}, map[string]string{}
	for email, list := range byEmail {
		holder, err := find(store, email)
		if err != nil {
			t.Errorf("nobody holds %s: %v", email, err)
			continue
		}
		want[string(emailKey(email))] = holder.ID
		salt := ""
		for _, rec := range list {
			if rec.Verified && rec.ID != holder.ID {
				t.Errorf("the verified account %s of %s is not its holder", rec.ID, email)
			}
			if rec.ID != holder.ID {
				want[string(claimKey(&rec))] = rec.Password
			}
			if !rec.Verified && salt != "" && saltOf(rec.Password) != salt {
				t.Errorf("claims to %s have several salts", email)
			}
			if !rec.Verified {
				salt = saltOf(rec.Password)
			}
		}
	}
	for _, table := range []byte{tableEmail, tableClaim} {
		scan(key(table), func(k, v []byte) { got[string(k)] = string(v) })
	}
	if !maps.Equal(got, want) {
		t.Errorf("the index is %q, want %q", got, want)
	}
}

// TestAddressesUnderRaces makes accounts compete for two addresses in every way, cuts the power, and compares index and accounts. Without a
// power cut every remaining account can sign in.
func TestAddressesUnderRaces(t *testing.T) {
	for seed := range testkit.Seeds(t, 20, 200) {
		raceForAddresses(t, rand.New(rand.NewPCG(seed, 23)))
	}
}

func raceForAddresses(t *testing.T, rng *rand.Rand) {
	d := &disk{pebbletest.New()}
	w := open(t, func(o *Options) { o.Store = d.open(t) })
	w.store = w.o.Store
	for _, l := range []*limit{&w.throttle.network, &w.throttle.account, &w.throttle.signUp, &w.throttle.mails} {
		l.burst = 1 << 20
	}
	w.operator()
	emails := []string{"ada@x.example", "bob@x.example"}
	var group sync.WaitGroup
	for n := range 8 {
		seed := rng.Uint64()
		group.Go(func() { w.useAddresses(n, emails, rand.New(rand.NewPCG(seed, 23))) })
	}
	group.Wait()
	checkAddresses(t, w.store)
	next := d.crash([]int{0, 50, 100}[rng.IntN(3)], rng)
	left := map[string]record{} // remaining accounts, by password
	for _, email := range emails {
		for n := range 8 {
			if id := w.signsIn(email, passwordOf(n)); id != "" {
				left[passwordOf(n)], _ = load(w.store, id)
			}
		}
	}
	lo := key(tableAccount)
	accounts := 0
	if err := w.store.Scan(lo, kv.PrefixEnd(lo), func(_, _ []byte) bool { accounts++; return true }); err != nil || accounts != len(left)+1 {
		t.Errorf("%d accounts of %d sign in: %v", len(left), accounts-1, err)
	}
	if err := errors.Join(w.Close(), w.store.Close()); err != nil {
		t.Fatal(err)
	}
	cut := next.open(t)
	checkAddresses(t, cut)
	if err := cut.Close(); err != nil {
		t.Fatal(err)
	}
}

func passwordOf(n int) string { return fmt.Sprint("lantern number ", n, " of the fog") }

// useAddresses creates one account and changes it at random. If it erased the account, it creates another one.
func (w *world) useAddresses(n int, emails []string, rng *rand.Rand) {
	ctx := context.Background()
	pick := func() string { return emails[rng.IntN(len(emails))] }
	fail := func(err error, may ...error) {
		if err != nil && !slices.ContainsFunc(may, func(m error) bool { return errors.Is(err, m) }) {
			w.t.Error(err)
		}
	}
	id := ""
	for range 12 {
		if id == "" {
			_, a, err := w.Create(ctx, SignUpForm{"Ada", pick(), passwordOf(n), ""}, "")
			fail(err)
			id = a.ID
			continue
		}
		switch rng.IntN(5) {
		case 0:
			_, err := w.edit(id, func(c *change, rec *record) error { return c.setHolder(rec) }) // as Verify does for the right code
			fail(err, ErrTaken)
		case 1:
			_, err := w.edit(id, func(_ *change, rec *record) error { rec.Mailed = codesSent{}; return nil })
			fail(err)
			_, err = w.ChangeEmail(ctx, id, pick(), passwordOf(n), "")
			fail(err)
		case 2:
			_, _, err := w.ChangePassword(ctx, id, passwordOf(n), passwordOf(n), "")
			fail(err)
		case 3:
			fail(w.EraseWithPassword(ctx, id, passwordOf(n), ""))
			id = ""
		case 4:
			fail(w.SendResetLink(ctx, pick(), ""))
		}
	}
}
