package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	if err := w.SendResetLink(t.Context(), "nobody@x.example", home); err != nil || len(w.mails()) != 0 {
		t.Errorf("MailReset(unknown) = %v", err)
	}
	link := func() string {
		t.Helper()
		w.clock.pass(time.Hour)
		if err := w.SendResetLink(t.Context(), a.Email, home); err != nil {
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
		if err := w.SendResetLink(t.Context(), a.Email, fmt.Sprint("192.0.2.", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.mails()); n != w.throttle.address.burst {
		t.Errorf("%d mails to one address", n)
	}
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		err = w.SendResetLink(t.Context(), fmt.Sprint(i, "@x.example"), away)
	}
	if !errors.Is(err, auth.ErrRate) {
		t.Errorf("20 mails asked for from one network: %v", err)
	}
}

// TestPasswordMailNamesNewKeys checks that the email about a changed password names the keys of the last day. To an address that is not
// verified it names only their ids, since a stranger may have created the account with any texts.
func TestPasswordMailNamesNewKeys(t *testing.T) {
	var (
		keys  []NewKey
		since time.Time
		err   error
	)
	w := open(t, func(o *Options) {
		o.NewKeys = func(_ Account, at time.Time) ([]NewKey, error) {
			since = at
			return keys, err
		}
	})
	w.operator()
	_, ada := w.person("ada@x.example")
	w.clock.pass(time.Hour)
	now, times := password, 0
	change := func() string {
		t.Helper()
		w.mails()
		times++
		next := fmt.Sprint(password, times)
		if _, _, err := w.ChangePassword(t.Context(), ada.ID, now, next, home); err != nil {
			t.Fatal(err)
		}
		now = next
		mails := w.mails()
		if len(mails) != 1 {
			t.Fatalf("mails = %v", mails)
		}
		return mails[0].Text
	}
	keys = []NewKey{{ID: "0011223344556677", Description: "kiosk", App: "orchard", Created: time.Date(2026, 3, 14, 15, 9, 0, 0, time.UTC)}}
	text := change()
	if !strings.Contains(text, "\n    0011223344556677, 2026-03-14 15:09 UTC\n") || strings.Contains(text, "kiosk") || strings.Contains(text, "orchard") {
		t.Errorf("unverified:\n%s", text)
	}
	if want := w.clock.now().Add(-24 * time.Hour); !since.Equal(want) {
		t.Errorf("keys since %v, want %v", since, want)
	}
	if err := w.SendCode(t.Context(), ada.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Verify(t.Context(), ada.ID, w.code(), home); err != nil {
		t.Fatal(err)
	}
	if text = change(); !strings.Contains(text, `0011223344556677, 2026-03-14 15:09 UTC, "kiosk" of the application "orchard"`) {
		t.Errorf("verified:\n%s", text)
	}
	keys = append(slices.Repeat(keys, 20), NewKey{ID: "8899aabbccddeeff"})
	if text = change(); strings.Count(text, "kiosk") != 20 || strings.Contains(text, "8899") || !strings.Contains(text, "and 1 more") {
		t.Errorf("21 keys:\n%s", text)
	}
	keys, err = nil, errors.New("no disk")
	if text = change(); strings.Contains(text, "key") || !strings.Contains(w.log.String(), "no disk") {
		t.Errorf("keys that cannot be read:\n%s", text)
	}
}

// TestMailsToUnverifiedAddresses checks that no email to an address that is not verified contains the account's name.
func TestMailsToUnverifiedAddresses(t *testing.T) {
	w := open(t, nil)
	w.operator()
	const name = "Win a prize at evil.example"
	_, a, err := w.Create(t.Context(), SignUpForm{name, "ada@x.example", password, ""}, home)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.pass(time.Hour)
	if err := w.SendCode(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.SendResetLink(t.Context(), a.Email, away); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.ChangePassword(t.Context(), a.ID, password, password+"!", home); err != nil {
		t.Fatal(err)
	}
	w.clock.pass(time.Hour)
	if _, err := w.ChangeEmail(t.Context(), a.ID, "ada@y.example", password+"!", home); err != nil {
		t.Fatal(err)
	}
	mails := w.mails()
	if len(mails) != 5 {
		t.Fatalf("%d mails, want 5: %v", len(mails), mails)
	}
	for _, m := range mails {
		if strings.Contains(m.Text+m.Subject, name) || !strings.HasPrefix(m.Text, "Hello,\n") {
			t.Errorf("to %s:\n%s", m.To, m.Text)
		}
	}
}
