package account

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
)

func TestUsage(t *testing.T) {
	w := open(t, nil)
	op := w.operator()
	spend := func(by, route string, n int) {
		t.Helper()
		for range n {
			if _, err := w.Spend(t.Context(), api.CountedCall{Account: op.ID, App: anApp, By: by, Route: route}); err != nil {
				t.Fatal(err)
			}
		}
	}
	spend("k1", "GET /inputs", 3)
	w.clock.pass(24 * time.Hour)
	spend("k1", "GET /inputs", 2)
	spend("token", "POST /models/{model_id}/outputs", 7)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	spend("k1", "GET /inputs", 1)
	got, err := w.Usage(anApp, 30)
	if err != nil || got.Total != 13 || len(got.Days) != 30 {
		t.Fatalf("Usage = %+v, %v", got, err)
	}
	if d := got.Days[28:]; d[0] != (Day{"2026-03-14", 3}) || d[1] != (Day{"2026-03-15", 10}) {
		t.Errorf("the last two days are %+v", d)
	}
	if k := got.Keys; len(k) != 2 || k[0] != (Count{"token", 7}) || k[1] != (Count{"k1", 6}) {
		t.Errorf("by key: %+v", k)
	}
	if e := got.Endpoints; len(e) != 2 || e[1] != (Count{"GET /inputs", 6}) {
		t.Errorf("by endpoint: %+v", e)
	}
	uses, err := w.KeyUses(anApp)
	if err != nil || uses["k1"].Calls != 6 || !uses["k1"].Last.Equal(w.clock.now()) {
		t.Errorf("KeyUses = %+v, %v", uses, err)
	}
	if other, err := w.Usage("ffffffffffffffffffffffffffffffff", 30); other.Total != 0 || err != nil {
		t.Errorf("another application's usage = %+v, %v", other, err)
	}
	w.clock.pass(usageDays * 24 * time.Hour)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Usage(anApp, math.MaxInt32); got.Total != 0 || len(got.Days) != usageDays || err != nil {
		t.Errorf("%d calls after %d days, %v", got.Total, usageDays, err)
	}
	spend("k1", "GET /inputs", 1)
	if err := w.DropUsage(anApp); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Usage(anApp, 1); got.Total != 0 || err != nil {
		t.Errorf("usage of a deleted application = %+v, %v", got, err)
	}
	if uses, err := w.KeyUses(anApp); len(uses) != 0 || err != nil {
		t.Errorf("keys of a deleted application = %+v, %v", uses, err)
	}
}

func TestUsageIsBounded(t *testing.T) {
	w := open(t, nil)
	for i := range maxCells + 500 {
		if _, err := w.Spend(t.Context(), api.CountedCall{App: anApp, By: fmt.Sprint(i), Route: "GET /inputs"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(w.usage.cells); n > maxCells+1 {
		t.Errorf("%d counters in memory", n)
	}
	if got, err := w.Usage(anApp, 1); got.Total != maxCells+500 || err != nil {
		t.Errorf("%d calls, %v", got.Total, err)
	}
}

func TestUsageSurvivesFullDisk(t *testing.T) {
	full := &fullStore{}
	w := open(t, func(o *Options) { full.Store, o.Store = o.Store, full })
	if _, err := w.Spend(t.Context(), call("")); err != nil {
		t.Fatal(err)
	}
	full.full = true
	if err := w.Flush(); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Flush on a full disk = %v", err)
	}
	full.full = false
	if got, err := w.Usage(anApp, 1); got.Total != 1 || err != nil {
		t.Errorf("%d calls, %v", got.Total, err)
	}
}
