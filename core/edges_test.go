package core_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// newApp creates an application and returns its id.
func newApp(t testing.TB, e *core.Engine) string {
	t.Helper()
	app, _, err := e.Register.CreateApp(t.Context(), register.Caller{}, register.NewApp{Name: "an application", Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	return app.ID
}

// TestEdges creates an edge, enrols it once and revokes it.
func TestEdges(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := t.Context()
	a, b := newApp(t, e), newApp(t, e)
	token, edge, err := e.Register.CreateEdge(ctx, register.Caller{Account: "account"}, "  attic ", []string{b, a, b})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{a, b}
	slices.Sort(want)
	if edge.Name != "attic" || !slices.Equal(edge.Apps, want) || edge.Owner != "account" || len(token) != 64 || edge.Site != 0 {
		t.Fatalf("made %+v with a token of %d digits", edge, len(token))
	}
	_, other, err := e.Register.CreateEdge(ctx, register.Caller{}, "cellar", []string{a})
	if err != nil {
		t.Fatal(err)
	}
	key := [32]byte{1}
	in, err := e.Register.EnrolEdge(ctx, token, key)
	if err != nil || in.Site != 2 || in.Key != key || in.Enrolled == 0 || !in.Replicates(a) || in.Replicates("x") {
		t.Fatalf("enrolled %+v, %v", in, err)
	}
	if again, err := e.Register.EnrolEdge(ctx, token, key); err != nil || again.Site != 2 {
		t.Errorf("enrolled again with the same key: %+v, %v", again, err)
	}
	for name, attempt := range map[string]struct {
		token string
		key   [32]byte
	}{
		"another key":   {token, [32]byte{2}},
		"no key":        {token, [32]byte{}},
		"another token": {strings.Repeat("0", 64), key},
		"no token":      {"", key},
	} {
		if _, err := e.Register.EnrolEdge(ctx, attempt.token, attempt.key); !errors.Is(err, register.ErrEnrol) {
			t.Errorf("%s: %v, want ErrEnrol", name, err)
		}
	}
	if _, err := e.Register.CheckSite(2, ""); !errors.Is(err, register.ErrNoSite) {
		t.Errorf("an edge's site without a secret: %v, want ErrNoSite", err)
	}

	if err := e.Register.RevokeEdge(ctx, register.Caller{}, edge.ID); err != nil {
		t.Fatal(err)
	}
	if err := e.Register.RevokeEdge(ctx, register.Caller{}, edge.ID); err != nil {
		t.Errorf("revoked again: %v", err)
	}
	if err := e.Register.RevokeEdge(ctx, register.Caller{}, "nobody"); !errors.Is(err, register.ErrNoEdge) {
		t.Errorf("revoked nobody: %v, want ErrNoEdge", err)
	}
	if _, err := e.Register.EnrolEdge(ctx, token, key); !errors.Is(err, register.ErrEnrol) {
		t.Errorf("enrolled after it was revoked: %v, want ErrEnrol", err)
	}
	late, _, err := e.Register.CreateEdge(ctx, register.Caller{}, "late", []string{a})
	if err != nil {
		t.Fatal(err)
	}
	timely, _, err := e.Register.CreateEdge(ctx, register.Caller{}, "timely", []string{a})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(d time.Duration) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now = l.now.Add(d)
	}
	pass(register.EnrolTokenTTL)
	if _, err := e.Register.EnrolEdge(ctx, timely, [32]byte{3}); err != nil {
		t.Errorf("enrolled at the end of the token: %v", err)
	}
	pass(time.Second)
	if _, err := e.Register.EnrolEdge(ctx, late, [32]byte{4}); !errors.Is(err, register.ErrEnrol) {
		t.Errorf("enrolled after the end of the token: %v, want ErrEnrol", err)
	}
	if _, err := e.Register.EnrolEdge(ctx, timely, [32]byte{3}); err != nil {
		t.Errorf("enrolled again with the same key after the end of the token: %v", err)
	}
	all, err := e.Register.Edges()
	if err != nil || len(all) != 4 {
		t.Fatalf("%d edges, %v", len(all), err)
	}
	for _, x := range all {
		if revoked := x.Revoked != 0; revoked != (x.ID == edge.ID) || x.Replicates(a) == revoked {
			t.Errorf("edge %+v, want only %s revoked and not %s", x, edge.ID, other.ID)
		}
	}
	refolds(t, l.o.Store)
}

// TestCreateEdgeRefuses: an edge cannot be created with applications that do not exist.
func TestCreateEdgeRefuses(t *testing.T) {
	e := newFixture(t).open(t)
	app := newApp(t, e)
	tests := []struct {
		name string
		apps []string
		want error
	}{
		{"", []string{app}, register.ErrName},
		{"a\nb", []string{app}, register.ErrName},
		{"edge", nil, register.ErrApplication},
		{"edge", []string{app, strings.Repeat("1", 32)}, register.ErrApplication},
		{"edge", []string{""}, register.ErrApplication},
	}
	for _, tt := range tests {
		if _, _, err := e.Register.CreateEdge(t.Context(), register.Caller{}, tt.name, tt.apps); !errors.Is(err, tt.want) {
			t.Errorf("edge %q of %q: %v, want %v", tt.name, tt.apps, err, tt.want)
		}
	}
	if all, err := e.Register.Edges(); err != nil || len(all) != 0 {
		t.Errorf("edges %+v, %v", all, err)
	}
}

// TestKillEnrolments cuts the origin's power while edges enrol. Each edge repeats its request, as after a lost answer. Its site never
// changes after the first answer.
func TestKillEnrolments(t *testing.T) {
	for seed := range testkit.Seeds(t, 30, 3000) {
		r := rand.New(rand.NewPCG(seed, 71))
		l := newFixture(t)
		disk := &tape{Store: l.o.Store}
		l.o.Store = disk
		e := l.open(t)
		app := newApp(t, e)
		type edge struct {
			token string
			key   [32]byte
			site  log.Writer
		}
		var edges []*edge
		sites := map[log.Writer]*edge{}
		for range 12 {
			switch r.IntN(4) {
			case 0:
				token, _, err := e.Register.CreateEdge(t.Context(), register.Caller{}, "edge", []string{app})
				if err != nil {
					t.Fatal(err)
				}
				edges = append(edges, &edge{token: token, key: [32]byte{1 + byte(len(edges))}})
			case 1:
				l.o.Store = disk.crash(t, r)
				disk = l.o.Store.(*tape)
				var err error
				if e, err = core.Open(l.o); err != nil {
					t.Fatal(err)
				}
			default:
				if len(edges) == 0 {
					continue
				}
				x := edges[r.IntN(len(edges))]
				in, err := e.Register.EnrolEdge(t.Context(), x.token, x.key)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if x.site != 0 && in.Site != x.site || sites[in.Site] != nil && sites[in.Site] != x {
					t.Fatalf("seed %d: site %d after %d", seed, in.Site, x.site)
				}
				x.site = in.Site
				sites[in.Site] = x
			}
		}
	}
}
