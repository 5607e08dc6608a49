package account

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
)

func TestChangePassword(t *testing.T) {
	w := open(t, nil)
	w.operator()
	token, a := w.person("ada@x.example")
	w.mails()
	const next = "two lanterns, and no fog"
	if _, _, err := w.ChangePassword(t.Context(), a.ID, "not my password", next, home); !errors.Is(err, ErrWrongPassword) {
		t.Errorf("ChangePassword(wrong) = %v", err)
	}
	if _, _, err := w.ChangePassword(t.Context(), a.ID, password, "short", home); !errors.Is(err, ErrPassword) {
		t.Errorf("ChangePassword(short) = %v", err)
	}
	fresh, _, err := w.ChangePassword(t.Context(), a.ID, password, next, home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
	if id, err := w.Session(t.Context(), fresh); id != a.ID || err != nil {
		t.Errorf("the new session = %q, %v", id, err)
	}
	if _, _, err := w.SignIn(t.Context(), a.Email, password, home); !errors.Is(err, auth.ErrLogin) {
		t.Errorf("the old password: %v", err)
	}
	if _, _, err := w.SignIn(t.Context(), a.Email, next, home); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if mails := w.mails(); len(mails) != 1 || !strings.Contains(mails[0].Subject, "was changed") {
		t.Errorf("mails = %v", mails)
	}
}

func TestReset(t *testing.T) {
	w := open(t, nil)
	w.operator()
	token, a := w.person("ada@x.example")
	w.mails()
	if err := w.MailReset(t.Context(), "nobody@x.example", home); err != nil || len(w.mails()) != 0 {
		t.Errorf("MailReset(unknown) = %v", err)
	}
	link := func() string {
		t.Helper()
		w.clock.pass(time.Hour)
		if err := w.MailReset(t.Context(), a.Email, home); err != nil {
			t.Fatal(err)
		}
		mails := w.mails()
		if len(mails) != 1 || !strings.Contains(mails[0].Text, "https://pictures.example/reset?token=") {
			t.Fatalf("mails = %v", mails)
		}
		return aToken.FindString(mails[0].Text)
	}
	const next = "two lanterns, and no fog"
	refused := func(token string) {
		t.Helper()
		if _, _, err := w.Reset(t.Context(), token, next, home, nil); !errors.Is(err, ErrLink) {
			t.Errorf("Reset(%.10s…) = %v, want %v", token, err, ErrLink)
		}
	}
	first := link()
	second := link()
	refused(first) // a newer link was mailed
	refused("")
	refused(strings.Repeat("0", 64))
	w.clock.pass(resetLife)
	refused(second) // it has expired
	third := link()
	if _, _, err := w.Reset(t.Context(), third, "short", home, nil); !errors.Is(err, ErrPassword) {
		t.Errorf("Reset(short) = %v", err)
	}
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		ok    int
		fresh string
	)
	for range 8 {
		group.Go(func() {
			s, _, err := w.Reset(context.Background(), third, next, home, nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				ok, fresh = ok+1, s
			}
		})
	}
	group.Wait()
	if ok != 1 {
		t.Errorf("a link worked %d times", ok)
	}
	refused(third)
	if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("a session from before: %v", err)
	}
	if id, err := w.Session(t.Context(), fresh); id != a.ID || err != nil {
		t.Errorf("the new session = %q, %v", id, err)
	}
	if got, err := w.Account(a.ID); err != nil || !got.Verified {
		t.Errorf("the link that came to the address did not verify it: %+v, %v", got, err)
	}
}

func TestResetMailsAreFew(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, a := w.person("ada@x.example")
	w.mails()
	for i := range 20 {
		if err := w.MailReset(t.Context(), a.Email, fmt.Sprint("192.0.2.", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.mails()); n != w.throttle.address.burst {
		t.Errorf("%d mails to one address", n)
	}
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		err = w.MailReset(t.Context(), fmt.Sprint(i, "@x.example"), away)
	}
	if !errors.Is(err, auth.ErrRate) {
		t.Errorf("20 mails asked for from one network: %v", err)
	}
}
