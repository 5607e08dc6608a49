package core_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/catalog"
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
	site, _, err := e.Register.LeaseSite(ctx, a, "key")
	if err != nil || site != 2 {
		t.Fatalf("the first site is %d, %v, want 2", site, err)
	}

	key := [32]byte{1}
	in, err := e.Register.EnrolEdge(ctx, token, key)
	if err != nil || in.Site != 3 || in.Key != key || in.Enrolled == 0 || !in.Replicates(a) || in.Replicates("x") {
		t.Fatalf("enrolled %+v, %v", in, err)
	}
	if again, err := e.Register.EnrolEdge(ctx, token, key); err != nil || again.Site != 3 {
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
	if _, err := e.Register.CheckSite(3, ""); !errors.Is(err, register.ErrNoSite) {
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
	pass(register.EnrolLife)
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

// TestSites leases sites and finds them by their secrets until their application is deleted. No number is leased twice.
func TestSites(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	ctx := t.Context()
	a, b := newApp(t, e), newApp(t, e)
	one, secret, err := e.Register.LeaseSite(ctx, a, "key 1")
	if err != nil {
		t.Fatal(err)
	}
	two, other, err := e.Register.LeaseSite(ctx, b, "key 2")
	if err != nil || two == one || other == secret {
		t.Fatalf("sites %d and %d, %v", one, two, err)
	}
	s, err := e.Register.CheckSite(one, secret)
	if err != nil || s.App != a || s.Holder != "key 1" || !s.Until.Time().Equal(l.clock().Add(register.LeaseFor)) {
		t.Fatalf("site %+v, %v", s, err)
	}
	for name, attempt := range map[string]struct {
		site   log.Writer
		secret string
	}{
		"another's secret": {one, other}, "no secret": {one, ""}, "no site": {0, secret},
		"the origin": {log.Origin, secret}, "not leased yet": {two + 1, secret},
	} {
		if _, err := e.Register.CheckSite(attempt.site, attempt.secret); !errors.Is(err, register.ErrNoSite) {
			t.Errorf("%s: %v, want ErrNoSite", name, err)
		}
	}

	_, before, err := e.Register.AppRecord(a, "")
	if err != nil {
		t.Fatal(err)
	}
	prolong := func(after time.Duration) (until time.Time, entries uint64) {
		l.mu.Lock()
		l.now = l.now.Add(after)
		l.mu.Unlock()
		if err := e.Register.ProlongSite(ctx, s); err != nil {
			t.Fatal(err)
		}
		if s, err = e.Register.CheckSite(one, secret); err != nil {
			t.Fatal(err)
		}
		_, now, err := e.Register.AppRecord(a, "")
		if err != nil {
			t.Fatal(err)
		}
		return s.Until.Time(), now - before
	}
	end := s.Until.Time()
	if until, n := prolong(time.Hour); !until.Equal(end) || n != 0 {
		t.Errorf("a fresh lease ends at %v, not %v, after %d entries", until, end, n)
	}
	if until, n := prolong(register.LeaseFor); !until.Equal(l.clock().Add(register.LeaseFor)) || n != 1 {
		t.Errorf("an old lease ends at %v after %d entries", until, n)
	}

	if err := e.Register.DeleteApp(ctx, register.Caller{}, a); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Register.CheckSite(one, secret); !errors.Is(err, register.ErrNoSite) {
		t.Errorf("site of a deleted application: %v, want ErrNoSite", err)
	}
	if _, _, err := e.Register.LeaseSite(ctx, a, "key"); !errors.Is(err, register.ErrApplication) {
		t.Errorf("leased for a deleted application: %v", err)
	}
	if _, err := e.Register.CheckSite(two, other); err != nil {
		t.Errorf("the other application's site: %v", err)
	}
	if three, _, err := e.Register.LeaseSite(ctx, b, ""); err != nil || three <= two {
		t.Errorf("site %d after %d, %v", three, two, err)
	}
}

// TestSitesAreDifferent leases from several threads at once, and again after the engine is reopened.
func TestSitesAreDifferent(t *testing.T) {
	l := newFixture(t)
	e := l.open(t)
	app := newApp(t, e)
	var mu sync.Mutex
	seen := map[log.Writer]bool{}
	lease := func(e *core.Engine) {
		site, _, err := e.Register.LeaseSite(t.Context(), app, "key")
		mu.Lock()
		defer mu.Unlock()
		if err != nil || seen[site] || site <= log.Origin {
			t.Errorf("site %d, seen %v, %v", site, seen[site], err)
		}
		seen[site] = true
	}
	for range 2 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 4 {
					lease(e)
				}
			})
		}
		wg.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if e, err = core.Open(l.o); err != nil {
			t.Fatal(err)
		}
	}
	lease(e)
	if len(seen) != 65 {
		t.Errorf("%d sites, want 65", len(seen))
	}
}

// TestRestoredLeasesNothingTwice restores an origin twice from a backup that is older than its last leases. No number is leased twice.
func TestRestoredLeasesNothingTwice(t *testing.T) {
	l := newFixture(t)
	disk := &tape{Store: l.o.Store}
	l.o.Store = disk
	e := l.open(t)
	app := newApp(t, e)
	seen := map[log.Writer]bool{}
	lease := func(n int) {
		t.Helper()
		for range n {
			site, _, err := e.Register.LeaseSite(t.Context(), app, "key")
			if err != nil || seen[site] {
				t.Fatalf("site %d, which was leased before: %v, %v", site, seen[site], err)
			}
			seen[site] = true
		}
	}
	lease(2)
	for life := range 2 {
		backup := len(disk.batches)
		lease(20)
		disk.batches = disk.batches[:backup]
		disk.synced = backup
		disk = disk.crash(t, rand.New(rand.NewPCG(1, 1)))
		control, err := log.Open(disk, log.Options{Prefix: catalog.Control.LogPrefix()})
		if err == nil {
			err = control.Renew(log.Epoch{0xbb, byte(life)})
		}
		if err != nil {
			t.Fatal(err)
		}
		l.o.Store = disk
		if e, err = core.Open(l.o); err != nil {
			t.Fatal(err)
		}
		lease(2)
		if e, err = core.Open(l.o); err != nil { // once more, without a restore
			t.Fatal(err)
		}
		lease(2)
	}
	if h, err := catalog.Read(disk, catalog.Control).Header(); err != nil || h.Sites > 3<<16 {
		t.Errorf("the last site is %d, %v: more was left out than two restores need", h.Sites, err)
	}
	refolds(t, disk)
}

// TestRestoredBeforeLeases restores an origin from a backup that is older than its first lease. No number is leased twice.
func TestRestoredBeforeLeases(t *testing.T) {
	l := newFixture(t)
	disk := &tape{Store: l.o.Store}
	l.o.Store = disk
	e := l.open(t)
	app := newApp(t, e)
	backup := len(disk.batches)
	first, _, err := e.Register.LeaseSite(t.Context(), app, "key")
	if err != nil {
		t.Fatal(err)
	}
	disk.batches, disk.synced = disk.batches[:backup], backup
	restored := disk.crash(t, rand.New(rand.NewPCG(1, 1)))
	control, err := log.Open(restored, log.Options{Prefix: catalog.Control.LogPrefix()})
	if err == nil {
		err = control.Renew(log.Epoch{0xbb})
	}
	if err != nil {
		t.Fatal(err)
	}
	l.o.Store = restored
	if e, err = core.Open(l.o); err != nil {
		t.Fatal(err)
	}
	if site, _, err := e.Register.LeaseSite(t.Context(), app, "another key"); err != nil || site == first {
		t.Errorf("site %d, which was leased before the restore: %v", site, err)
	}
}

// TestRestoredTwiceLeasesOthers restores one backup twice. The second time the origin leases no number that it leased after the first
// restore, because replicas with those numbers may return.
func TestRestoredTwiceLeasesOthers(t *testing.T) {
	l := newFixture(t)
	disk := &tape{Store: l.o.Store}
	l.o.Store = disk
	e := l.open(t)
	app := newApp(t, e)
	seen := map[log.Writer]bool{}
	lease := func() {
		t.Helper()
		site, _, err := e.Register.LeaseSite(t.Context(), app, "key")
		if err != nil || seen[site] {
			t.Fatalf("site %d, which was leased before: %v, %v", site, seen[site], err)
		}
		seen[site] = true
	}
	lease()
	disk.synced = len(disk.batches)
	for life := range 3 {
		restored := disk.crash(t, rand.New(rand.NewPCG(1, 1)))
		control, err := log.Open(restored, log.Options{Prefix: catalog.Control.LogPrefix()})
		if err == nil {
			err = control.Renew(log.Epoch(bytes.Repeat([]byte{byte(17 + life)}, len(log.Epoch{}))))
		}
		if err != nil {
			t.Fatal(err)
		}
		l.o.Store = restored
		if e, err = core.Open(l.o); err != nil {
			t.Fatal(err)
		}
		lease()
		lease()
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
