package core_test

import (
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/register"
)

// TestOperationsOfEndedTokens ends two generations of an application's tokens. For operations of an edge it checks whether their token had
// ended when they were created.
func TestOperationsOfEndedTokens(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := t.Context()
	app, client, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "a", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := e.Register.CreateApp(ctx, register.Caller{}, register.NewApp{Name: "b", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	generation := func() uint64 {
		t.Helper()
		c, err := e.Register.Client(app.ID)
		if err != nil {
			t.Fatal(err)
		}
		return c.Generation
	}
	step := func(d time.Duration) time.Time { l.now = l.now.Add(d); return l.clock() }
	began := l.clock()
	first := generation()
	revoked := step(100 * time.Hour)
	if err := e.Register.RevokeTokens(ctx, register.Caller{}, app.ID); err != nil {
		t.Fatal(err)
	}
	second := generation()
	replaced := step(100 * time.Hour)
	if _, err := e.Register.ReplaceSecret(ctx, register.Caller{}, app.ID); err != nil {
		t.Fatal(err)
	}
	third := generation()
	tokens, err := e.Register.Tokens(app.ID)
	if err != nil {
		t.Fatal(err)
	}
	const before, after, day = -time.Second, time.Second, register.DefaultMaxStale
	for _, tt := range []struct {
		name       string
		client     string
		generation uint64
		at         time.Time
		want       bool
	}{
		{"the first, in its time", client.ID, first, revoked.Add(before), false},
		{"the first, after its time", client.ID, first, revoked.Add(after), true},
		{"the first, long after", client.ID, first, replaced.Add(1000 * time.Hour), true},
		{"the second, in its time", client.ID, second, replaced.Add(before), false},
		{"the second, after its time", client.ID, second, replaced.Add(after), true},
		{"the second, before it was there", client.ID, second, began, false},
		{"the third", client.ID, third, replaced.Add(after), false},
		{"one that never was, between", client.ID, second + 1, replaced.Add(after), third > second+1},
		{"none said, after the first began", "", 0, began.Add(after), false},
		{"none said, before the first ended", "", 0, revoked.Add(before), false},
		{"none said, when an edge may not have heard", "", 0, revoked.Add(after), true},
		{"none said, when it must have heard", "", 0, revoked.Add(day + after), false},
		{"none said, after the next end", "", 0, replaced.Add(day + before), true},
		{"none said, long after", "", 0, replaced.Add(day + after), false},
		{"a newer one", client.ID, third + 1, replaced.Add(after), true},
		{"a newer one, long after", client.ID, third + 1, replaced.Add(day + after), false},
		{"the newest, of another client", "other", third, replaced.Add(after), true},
		{"an older one, of another client", "other", first, revoked.Add(after), true},
		{"a client without a generation", client.ID, 0, replaced.Add(after), true},
	} {
		if got := tokens.WasInvalid(tt.client, tt.generation, tt.at); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	stale := time.Hour
	if _, err := e.Register.ChangeApp(ctx, register.Caller{}, app.ID, register.AppChange{MaxStale: &stale}); err != nil {
		t.Fatal(err)
	}
	if tokens, err = e.Register.Tokens(app.ID); err != nil || tokens.WasInvalid("", 0, replaced.Add(stale+after)) || !tokens.WasInvalid("", 0, replaced.Add(stale+before)) {
		t.Errorf("an edge that writes for an hour at most: %+v, %v", tokens, err)
	}
	if tokens, err = e.Register.Tokens(other.ID); err != nil || tokens.WasInvalid("", 0, replaced.Add(after)) {
		t.Errorf("another application's: %+v, %v", tokens, err)
	}
}
