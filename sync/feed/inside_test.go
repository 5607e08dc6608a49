package feed

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestPushFailed: if the log accepts nothing, the refusal asks the replica to take another site, or to begin at the end of the log.
func TestPushFailed(t *testing.T) {
	c := &call{f: &Feed{o: Options{Engine: living{}}}}
	for _, tt := range []struct {
		err  error
		want wire.RefusalCode
	}{
		{fmt.Errorf("accept: %w", partition.ErrForged), wire.RefusedSite},
		{fmt.Errorf("accept: %w", partition.ErrSequence), wire.RefusedSequence},
		{&wire.Refusal{Code: wire.RefusedBusy}, wire.RefusedBusy},
	} {
		var got *wire.Refusal
		if err := c.pushFailed(tt.err, "app"); !errors.As(err, &got) || got.Code != tt.want {
			t.Errorf("%v: %v, want %d", tt.err, err, tt.want)
		}
	}
	if err := c.pushFailed(partition.ErrReplica, "app"); !errors.Is(err, partition.ErrReplica) {
		t.Errorf("%v", err)
	}
}

// living is an engine whose applications all exist.
type living struct{ Engine }

func (living) AppGone(string) (bool, error) { return false, nil }

// TestMeterOfStrangers has more users than a meter remembers: those it knows are held to their own use, all others to
// one bucket, and once their buckets are full nobody is remembered.
func TestMeterOfStrangers(t *testing.T) {
	m := meter{name: "m", amount: 1, per: time.Second, burst: 1}
	now := time.Unix(1e9, 0)
	for i := range 2 * maxMetered {
		_ = m.take(fmt.Sprint(i), 100, now, "uses")
		now = now.Add(time.Microsecond)
	}
	if len(m.full) > maxMetered+1 {
		t.Errorf("%d are remembered", len(m.full))
	}
	if m.take("0", 1, now, "uses") == nil {
		t.Error("the first is forgotten while its bucket is empty")
	}
	if m.take("stranger", 1, now, "uses") == nil {
		t.Error("a stranger has a bucket of its own")
	}
	now = now.Add(time.Hour)
	if err := m.take("stranger", 1, now, "uses"); err != nil || len(m.full) > maxMetered+1 {
		t.Errorf("an hour later: %v", err)
	}
	now = now.Add(time.Hour)
	for i := range 2 * minMetered {
		now = now.Add(2 * time.Second)
		if err := m.take(fmt.Sprint("later", i), 1, now, "uses"); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.full) > minMetered {
		t.Errorf("%d are remembered whose buckets are full", len(m.full))
	}
}
