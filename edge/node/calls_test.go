package node

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/wire"
)

func callsOf(t testing.TB, store kv.Store) *calls {
	t.Helper()
	c, err := openCalls(store, anApp)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCountOutlivesCrashes counts calls, reports them and crashes in between. The count is never lower than a reported one, and a crash
// loses only the calls after the last write.
func TestCountOutlivesCrashes(t *testing.T) {
	for seed := range testkit.Seeds(t, 200, 20_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		store := memkv.New()
		c := callsOf(t, store)
		var answered, written, reported uint64
		for range 200 {
			switch rng.IntN(20) {
			case 0:
				c, answered = callsOf(t, store), written
			case 1:
				if err := c.write(); err != nil {
					t.Fatal(err)
				}
				written = answered
			case 2:
				count, due := c.due(day)
				if due != (count != c.reported) {
					t.Fatalf("seed %d: due %t with %d calls, of which %d are reported", seed, due, count, c.reported)
				}
				if err := c.write(); err != nil {
					t.Fatal(err)
				}
				written, reported = answered, count
				if rng.IntN(2) == 0 { // the answer arrives
					if err := c.confirm(count, time.Time{}); err != nil {
						t.Fatal(err)
					}
				}
			default:
				if refused := c.spend(day); refused != "" {
					t.Fatal(refused)
				}
				answered++
			}
			if count, _ := c.due(day); count != answered || count < reported {
				t.Fatalf("seed %d: %d calls are counted, want %d, and %d were reported", seed, count, answered, reported)
			}
		}
	}
}

// TestCountIsStored reads a count again and refuses a damaged one. For an application that the edge no longer has, it writes none.
func TestCountIsStored(t *testing.T) {
	store := memkv.New()
	c := callsOf(t, store)
	if refused := c.spend(day); refused != "" {
		t.Fatal(refused)
	}
	if err := c.confirm(1, day.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	c = callsOf(t, store)
	if count, due := c.due(day); count != 1 || !due {
		t.Errorf("after a restart: %d calls, due %t", count, due)
	}
	if refused := c.spend(day.Add(time.Hour - 1)); !strings.Contains(refused, "gets new calls on") {
		t.Errorf("after a restart the account has calls again: %q", refused)
	}
	if refused := c.spend(day.Add(time.Hour)); refused != "" {
		t.Errorf("in the next month: %s", refused)
	}
	c.end()
	if err := c.write(); err != nil {
		t.Fatal(err)
	}
	if count, _ := callsOf(t, store).due(day); count != 1 {
		t.Errorf("%d calls are kept of an application that was taken away, want 1", count)
	}
	var damaged kv.Batch
	damaged.Put(catalog.AppID{7}.LocalKey("counted"), []byte{9})
	if err := store.Apply(&damaged); err != nil {
		t.Fatal(err)
	}
	if _, err := openCalls(store, anApp); !errors.Is(err, kv.ErrCorrupt) {
		t.Errorf("error %v, want ErrCorrupt", err)
	}
	if _, err := openCalls(store, "nothing"); err == nil {
		t.Error("opened for an ID that is no application's")
	}
}

// books is an origin that accepts reports of calls and nothing else.
type books struct {
	over    wire.Millis
	do      wire.Do
	reports []wire.Position
}

func (b *books) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m, failed := wire.DecodeSession(body)
	if errors.Join(err, failed) != nil || len(m.Apps) != 1 || r.URL.Path != "/v2/sync/session" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	at := m.Apps[0]
	b.reports = append(b.reports, at)
	out := wire.SessionReply{Protocol: wire.Protocol, Now: wire.MillisOf(day.Add(time.Hour)), Grants: []wire.Grant{{App: at.App, Do: b.do, Over: b.over}}}
	w.Header().Set("Content-Type", wire.ContentType)
	_, _ = w.Write(out.Encode())
}

// TestReportCalls lets an edge answer calls until its origin reports that the account has none left, and again once it has some. The edge
// contacts the origin only if there is a new count.
func TestReportCalls(t *testing.T) {
	origin := &books{do: wire.DoTail}
	server := httptest.NewServer(origin)
	defer server.Close()
	store, now := memkv.New(), day
	c := lone(t, store, &now)
	c.identity.Origin = server.URL
	seq := uint64(5)
	call := func(owner string, want bool) {
		t.Helper()
		seq++
		register := newAppRecord(0)
		register.Record.Owner = owner
		if err := c.applyAppRecord(t.Context(), c.of(anApp), seq, register.Encode()); err != nil {
			t.Fatal(err)
		}
		if refused := c.count(anApp); (refused == "") != want {
			t.Errorf("a call of an application of %q is refused: %q", owner, refused)
		}
	}
	report := func(calls ...uint64) { // checks which counts reach the origin
		t.Helper()
		origin.reports = nil
		if err := c.reportCalls(t.Context()); err != nil {
			t.Error(err)
		}
		for i, at := range origin.reports {
			if i >= len(calls) || at.Calls != calls[i] || at.App != anApp {
				t.Errorf("the origin is told %+v, want %d", origin.reports, calls)
			}
		}
		if len(origin.reports) != len(calls) {
			t.Errorf("the origin is asked %d times, want %d", len(origin.reports), len(calls))
		}
	}
	report()
	call("", true)
	call("someone", true)
	call("someone", true)
	report(2)
	report()
	call("someone", true)
	origin.over = wire.MillisOf(day.Add(3 * time.Hour)) // two hours from now, by the origin's clock
	report(3)
	call("", true)
	call("someone", false)
	report(3) // the account may have calls again
	now = day.Add(2*time.Hour - time.Second)
	call("someone", false)
	now = day.Add(2 * time.Hour)
	call("someone", true)
	origin.over = 0
	report(4)
	report()

	call("someone", true)
	origin.do = wire.DoRefused
	report(5)
	if _, due := c.of(anApp).calls.due(now); !due {
		t.Error("a report for an application that the origin refuses is taken for one that arrived")
	}
	server.Close()
	if err := c.reportCalls(t.Context()); err == nil {
		t.Error("a report to an origin that is away succeeded")
	}
	call("someone", true)
	if err := c.writeCalls(); err != nil {
		t.Fatal(err)
	}
}
