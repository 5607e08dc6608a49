package account

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
)

// TestStorageLimits checks that the limits of an account depend on its email address: verified, and changed to one that is not verified.
func TestStorageLimits(t *testing.T) {
	w := open(t, func(o *Options) { o.Storage.Unverified, o.Storage.Verified = Storage{10, 1000}, Storage{0, 5000} })
	w.operator()
	_, a := w.person("ada@x.example")
	code := w.code()
	check := func(id string, want api.StorageLimits) {
		t.Helper()
		if got, err := w.StorageLimits(id); got != want || err != nil {
			t.Errorf("StorageLimits(%q) = %+v, %v, want %+v", id, got, err, want)
		}
	}
	unverified := api.StorageLimits{Inputs: 10, Bytes: 1000, Advice: "verify its email address to store more, or delete inputs"}
	check("", api.StorageLimits{})
	check(a.ID, unverified)
	if _, err := w.Verify(t.Context(), a.ID, code, home); err != nil {
		t.Fatal(err)
	}
	check(a.ID, api.StorageLimits{Bytes: 5000, Advice: "delete inputs to make room"})
	w.clock.pass(time.Hour)
	if _, err := w.ChangeEmail(t.Context(), a.ID, "ada@y.example", password, home); err != nil {
		t.Fatal(err)
	}
	check(a.ID, unverified)
	check("0123456789abcdef0123456789abcdef", api.StorageLimits{})
}

// TestKeepPicture fills an account's limit with predicted pictures, also across a restart. Space becomes free again after some time.
func TestKeepPicture(t *testing.T) {
	w := open(t, func(o *Options) { o.Storage.Unverified = Storage{Bytes: 1000} })
	operator := w.operator()
	_, a := w.person("ada@x.example")
	checkKeep := func(id string, n int64, want bool) {
		t.Helper()
		if fits, err := w.CountPicture(id, n, 24*time.Hour); fits != want || err != nil {
			t.Errorf("KeepPicture of %d bytes = %v, %v", n, fits, err)
		}
	}
	checkKeep(a.ID, 600, true)
	checkKeep(a.ID, 600, false)
	if _, err := w.Spend(t.Context(), call(a.ID)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.Registry, err = Open(w.o); err != nil {
		t.Fatal(err)
	}
	if left, _, err := w.Allowance(a.ID); left != TrialCalls-1 || err != nil {
		t.Errorf("%d calls left, %v", left, err)
	}
	checkKeep(a.ID, 600, false)
	checkKeep(a.ID, 400, true)
	checkKeep(a.ID, 1, false)
	w.clock.pass(12 * time.Hour)
	checkKeep(a.ID, 600, false)
	checkKeep(a.ID, 500, true)
	w.clock.pass(24 * time.Hour)
	checkKeep(a.ID, 1001, false)
	checkKeep(operator.ID, 1e9, true)
	checkKeep("", 1e9, true)
}

// TestQuotaOfOlderRecords reads quota records that an older program wrote without predicted pictures.
func TestQuotaOfOlderRecords(t *testing.T) {
	w := open(t, nil)
	w.operator()
	_, a := w.person("ada@x.example")
	q := quota{trial: 7, month: 3, used: 9, predicted: 1}
	var b kv.Batch
	b.Put(quotaKey(a.ID), q.encode()[:20])
	if err := w.store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	q.predicted = 0
	if got, err := readQuota(w.store, a.ID); got != q || err != nil {
		t.Errorf("readQuota = %+v, %v, want %+v", got, err, q)
	}
}

// TestSignUps allows five sign-ups per hour for each client address. A sign-up with a registered email address counts like any other. An
// invalid form does not count.
func TestSignUps(t *testing.T) {
	w := open(t, func(o *Options) { o.SignUps = 5 })
	w.operator()
	w.clock.pass(2 * time.Hour)
	signUp := func(email, remote string) error {
		_, _, err := w.Create(t.Context(), SignUpForm{"Ada", email, password, ""}, remote)
		return err
	}
	for range 3 {
		if _, _, err := w.Create(t.Context(), SignUpForm{"Ada", "x@x.example", "short", ""}, away); !errors.Is(err, ErrPassword) {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		if err := signUp(fmt.Sprintf("a%d@x.example", i), away); err != nil {
			t.Fatalf("sign-up %d: %v", i+1, err)
		}
		w.clock.pass(10 * time.Minute)
	}
	_ = signUp("a0@x.example", away) // this address is registered
	for _, email := range []string{"new@x.example", "a0@x.example"} {
		var wait *auth.RateError
		if err := signUp(email, away); !errors.As(err, &wait) || wait.Wait != 20*time.Minute {
			t.Errorf("a sixth sign-up as %s: %v, want to wait 20 minutes", email, err)
		}
	}
	if err := signUp("b@x.example", home); err != nil {
		t.Errorf("from another address: %v", err)
	}
	w.clock.pass(20 * time.Minute)
	if err := signUp("c@x.example", away); err != nil {
		t.Errorf("an hour after the first: %v", err)
	}
	if err := signUp("d@x.example", away); !errors.Is(err, auth.ErrRate) {
		t.Errorf("a sixth in the same hour: %v", err)
	}
}

// TestWindowsForgetOldKeys checks the maximum number of keys that a window remembers.
func TestWindowsForgetOldKeys(t *testing.T) {
	w := window{span: time.Hour, limit: 1}
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	for i := range remembered + 100 {
		if err := w.take(fmt.Sprint(i), now); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.uses) > remembered {
		t.Errorf("%d keys", len(w.uses))
	}
	if err := w.take(fmt.Sprint(remembered+99), now); !errors.Is(err, auth.ErrRate) {
		t.Errorf("the last key again: %v", err)
	}
}
