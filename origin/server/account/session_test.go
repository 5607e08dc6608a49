package account

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
)

func TestSignIn(t *testing.T) {
	w := open(t, nil)
	w.operator()
	first, a := w.person("ada@x.example")
	token, got, err := w.SignIn(t.Context(), "Ada@X.example ", password, home)
	if err != nil || got.ID != a.ID || token == first || len(token) != 64 {
		t.Fatalf("SignIn = %q, %+v, %v", token, got, err)
	}
	for _, tt := range []struct{ email, password string }{
		{"ada@x.example", password + " "},
		{"ada@x.example", ""},
		{"bob@x.example", password},
		{"", ""},
		{"ada", password},
		{"ada@x.example", strings.Repeat("x", 1<<16)},
		{"ada@x.example\r\nTo: eve@x.example", password},
	} {
		if _, _, err := w.SignIn(t.Context(), tt.email, tt.password, away); !errors.Is(err, auth.ErrLogin) {
			t.Errorf("SignIn(%q, %.20q) = %v, want %v", tt.email, tt.password, err, auth.ErrLogin)
		}
	}
	if err := w.SignOut(token, home); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("a session that was ended: %v", err)
	}
	if id, err := w.Session(t.Context(), first); id != a.ID || err != nil {
		t.Errorf("the other session = %q, %v", id, err)
	}
	if err := w.SignOut(token, home); err != nil {
		t.Errorf("signing out twice: %v", err)
	}
}

// TestCheckSession checks that a session is open until it ends in any way: it expires, its account signs out, ends it elsewhere, changes the
// password or is erased.
func TestCheckSession(t *testing.T) {
	for name, end := range map[string]func(w *world, token string, a Account) error{
		"expired": func(w *world, _ string, _ Account) error {
			w.clock.pass(SessionLife + time.Second)
			return nil
		},
		"signed out":           func(w *world, token string, _ Account) error { return w.SignOut(token, home) },
		"ended from elsewhere": func(w *world, token string, a Account) error { return w.EndSession(a.ID, SessionID(token), away) },
		"changed the password": func(w *world, _ string, a Account) error {
			_, _, err := w.ChangePassword(w.t.Context(), a.ID, password, password+"!", home)
			return err
		},
		"erased": func(w *world, _ string, a Account) error { return w.Erase(a.ID, a.ID, home) },
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, nil)
			w.operator()
			token, a := w.person("ada@x.example")
			id := SessionID(token)
			for _, other := range []string{"", id[:14], id + "00", strings.Repeat("0", 16), strings.ToUpper(token), "g" + id[1:]} {
				if err := w.CheckSession(t.Context(), other); !errors.Is(err, auth.ErrSession) {
					t.Errorf("CheckSession(%q) = %v, want %v", other, err, auth.ErrSession)
				}
			}
			if err := w.CheckSession(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if err := end(w, token, a); err != nil {
				t.Fatal(err)
			}
			if err := w.CheckSession(t.Context(), id); !errors.Is(err, auth.ErrSession) {
				t.Errorf("CheckSession = %v, want %v", err, auth.ErrSession)
			}
		})
	}
}

func TestPasswordIsNormalised(t *testing.T) {
	w := open(t, nil)
	w.operator()
	if _, _, err := w.Create(t.Context(), SignUpForm{"Zoë", "zoe@x.example", "caf\u00e9 \u212bngstr\u00f6m", ""}, home); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.SignIn(t.Context(), "zoe@x.example", "cafe\u0301 A\u030angstro\u0308m", home); err != nil {
		t.Errorf("the same password from another keyboard: %v", err)
	}
}

// TestUnknownAddressesCostTheSame compares the number of hashed passwords and of audit records for known and unknown addresses.
func TestUnknownAddressesCostTheSame(t *testing.T) {
	w := open(t, nil)
	w.operator()
	w.person("ada@x.example")
	for _, email := range []string{"ada@x.example", "nobody@x.example", "no address", "op@pictures.example"} {
		hashed, audited := w.hashing.done.Load(), w.audit.count
		if _, _, err := w.SignIn(t.Context(), email, "wrong wrong wrong", away); !errors.Is(err, auth.ErrLogin) {
			t.Fatal(err)
		}
		if h, c := w.hashing.done.Load()-hashed, w.audit.count-audited; h != 2 || c != 1 {
			t.Errorf("SignIn(%q) hashed %d passwords and wrote %d records, want 2 and 1", email, h, c)
		}
	}
	for _, email := range []string{"ada@x.example", "nobody@x.example"} {
		audited := w.audit.count
		if err := w.SendResetLink(t.Context(), email, away); err != nil || w.audit.count-audited != 1 {
			t.Errorf("MailReset(%q) wrote %d records: %v", email, w.audit.count-audited, err)
		}
	}
}

// TestCost checks the shipped cost of password hashing, and that a sign-in with an unknown address costs the same.
func TestCost(t *testing.T) {
	if shipped.Memory != 19<<10 || shipped.Iterations != 2 || shipped.Parallelism != 1 {
		t.Errorf("a password costs %+v", shipped)
	}
	cheap := cost
	defer func() { cost = cheap }()
	cost = &shipped
	p, salt, key, err := argon2id.DecodeHash(nobody())
	if err != nil || *p != shipped || len(salt) != 16 || len(key) != 32 {
		t.Errorf("nobody's hash costs %+v, %v: %s", p, err, base64.StdEncoding.EncodeToString(key))
	}
	g := newGate()
	if same, err := g.same(t.Context(), "", ""); same || err != nil {
		t.Errorf("nobody's password is the empty one: %v", err)
	}
}

func TestHashingIsBounded(t *testing.T) {
	g := newGate()
	var leaves []func()
	for range maxHashing {
		leave, err := g.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, maxWaiting)
	for range maxWaiting {
		go func() {
			_, err := g.enter(ctx)
			errs <- err
		}()
	}
	for len(g.waiting) < maxWaiting {
		select {
		case err := <-errs:
			t.Fatal(err)
		default:
		}
	}
	if _, err := g.enter(t.Context()); !errors.Is(err, api.ErrBusy) {
		t.Errorf("one more waits: %v", err)
	}
	cancel()
	for range maxWaiting {
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that gave up: %v", err)
		}
	}
	for _, leave := range leaves {
		leave()
	}
	if leave, err := g.enter(t.Context()); err != nil {
		t.Errorf("the gate stays shut: %v", err)
	} else {
		leave()
	}
}

func TestGuessingIsSlowAndLocksNoAccount(t *testing.T) {
	w := open(t, nil)
	w.operator()
	w.person("ada@x.example")
	tries := 0
	for range 20 {
		if _, _, err := w.SignIn(t.Context(), "ada@x.example", "guess after guess", away); errors.Is(err, auth.ErrLogin) {
			tries++
		}
	}
	if tries != w.throttle.account.burst {
		t.Errorf("%d guesses at an account from one network", tries)
	}
	_, _, err := w.SignIn(t.Context(), "ada@x.example", password, away)
	var wait *auth.RateError
	if !errors.As(err, &wait) || !errors.Is(err, auth.ErrRate) || wait.Seconds() != 60 {
		t.Errorf("the right password from the network of the guesses: %v", err)
	}
	for range 50 { // the owner, on another network, is never slowed down
		if _, _, err := w.SignIn(t.Context(), "ada@x.example", password, home); err != nil {
			t.Fatalf("the owner is locked out: %v", err)
		}
	}
	w.clock.pass(time.Minute)
	if _, _, err := w.SignIn(t.Context(), "ada@x.example", password, away); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	tries = 0
	for i := range 100 {
		if _, _, err := w.SignIn(t.Context(), fmt.Sprint(i, "@x.example"), "guess after guess", "203.0.113.9"); errors.Is(err, auth.ErrLogin) {
			tries++
		}
	}
	if tries != w.throttle.network.burst {
		t.Errorf("%d guesses from one network", tries)
	}
}

func TestLimitsForgetOldKeys(t *testing.T) {
	l := limit{every: time.Minute, burst: 2}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range remembered + 1000 {
		if err := l.take(fmt.Sprint(i), now); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.full) > remembered {
		t.Errorf("%d keys are remembered", len(l.full))
	}
	for i, allowed := range []bool{true, true, false} {
		if err := l.take("a", now); (err == nil) != allowed {
			t.Errorf("try %d of a burst of 2: %v", i+1, err)
		}
	}
	if err := l.take("a", now.Add(-24*time.Hour)); err == nil {
		t.Error("a clock that goes back gives tries")
	}
	if err := l.take("a", now.Add(-24*time.Hour+time.Minute)); err != nil {
		t.Errorf("a clock that went back locks out: %v", err)
	}
}

func TestSessionsExpire(t *testing.T) {
	w := open(t, nil)
	w.operator()
	token, a := w.person("ada@x.example")
	for range 4 { // use extends the session
		w.clock.pass(SessionLife - time.Hour)
		if _, err := w.Session(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.pass(SessionLife + time.Second)
	if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("an idle session: %v", err)
	}
	if list, err := w.Sessions(a.ID); len(list) != 0 || err != nil {
		t.Errorf("Sessions = %v, %v", list, err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if remaining, err := sessions(w.store, a.ID); len(remaining) != 0 || err != nil {
		t.Errorf("the store keeps %v, %v", remaining, err)
	}
	for _, token := range []string{"", strings.Repeat("0", 64), strings.Repeat("x", 1000)} {
		if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
			t.Errorf("Session(%.70q) = %v", token, err)
		}
	}
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	token, a := w.person("ada@x.example")
	w.clock.pass(time.Minute)
	other, _, err := w.SignIn(t.Context(), a.Email, password, away)
	if err != nil {
		t.Fatal(err)
	}
	list, err := w.Sessions(a.ID)
	if err != nil || len(list) != 2 || list[0].Remote != away || list[1].Remote != home {
		t.Fatalf("Sessions = %+v, %v", list, err)
	}
	if err := w.EndSession(op.ID, list[0].ID(), home); !errors.Is(err, ErrUnknown) {
		t.Errorf("another's session: %v", err)
	}
	if err := w.EndSession(a.ID, list[0].ID(), home); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session(t.Context(), other); !errors.Is(err, auth.ErrSession) {
		t.Errorf("the ended session: %v", err)
	}
	if _, err := w.Session(t.Context(), token); err != nil {
		t.Errorf("the session that stays: %v", err)
	}
	for range maxSessions + 5 {
		w.clock.pass(time.Second)
		if _, err := w.OpenSession(a.ID, home); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := w.Sessions(a.ID); len(list) != maxSessions || err != nil {
		t.Errorf("%d sessions, %v", len(list), err)
	}
	if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("the oldest session did not give way: %v", err)
	}
}
