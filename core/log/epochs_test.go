package log_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// opened opens a log in an opening with a name.
func opened(t testing.TB, store kv.Store, name byte) *log.Store {
	t.Helper()
	l, err := log.Open(store, log.Options{Epoch: log.Epoch{name}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestEpochs: each opening that appends is an epoch of the log, and the log has a place only of the epoch and with the chain of its entry.
func TestEpochs(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	l := opened(t, store, 1)
	add(t, l, opsOf(2, 1, 5))
	opened(t, store, 2) // it appends nothing
	l = opened(t, store, 3)
	if l.Opening() != (log.Epoch{3}) || l.EpochOf(5) != (log.Mark{Epoch: log.Epoch{1}, To: 5}) {
		t.Errorf("before its first entry the opening is %x, and entry 5 of %x", l.Opening(), l.EpochOf(5))
	}
	add(t, l, opsOf(3, 1, 2))
	l.SetOpening(log.Epoch{4})
	add(t, l, opsOf(4, 1, 1))
	for _, open := range []func() *log.Store{func() *log.Store { return l }, func() *log.Store { return opened(t, store, 5) }} {
		x := open()
		for seq, want := range map[uint64]log.Mark{1: {Epoch: log.Epoch{1}, To: 5}, 5: {Epoch: log.Epoch{1}, To: 5}, 6: {Epoch: log.Epoch{3}, To: 7}, 8: {Epoch: log.Epoch{4}, To: 8}} {
			if got := x.EpochOf(seq); got != want {
				t.Errorf("entry %d is of %x, want %x", seq, got, want)
			}
			chain, err := x.Chain(seq)
			if err != nil {
				t.Fatal(err)
			}
			for name := byte(1); name < 6; name++ {
				m := log.Mark{Epoch: log.Epoch{name}, To: seq}
				has, err := x.Has(m, chain)
				if err != nil || has != (m.Epoch == want.Epoch) {
					t.Errorf("the log has %x: %v, %v", m, has, err)
				}
				if has, err = x.Has(m, log.Chain{1}); err != nil || has {
					t.Errorf("the log has %x with another chain: %v, %v", m, has, err)
				}
			}
		}
		for _, tt := range []struct {
			marks []log.Mark
			want  uint64
		}{
			{nil, 0},
			{[]log.Mark{{log.Epoch{1}, 9}}, 5},
			{[]log.Mark{{log.Epoch{1}, 3}, {log.Epoch{3}, 5}}, 3},
			{[]log.Mark{{log.Epoch{2}, 9}, {log.Epoch{3}, 9}, {log.Epoch{1}, 9}}, 7},
			{[]log.Mark{{log.Epoch{9}, 9}}, 0},
		} {
			if got := x.Common(tt.marks...); got != tt.want {
				t.Errorf("common with %x is %d, want %d", tt.marks, got, tt.want)
			}
		}
	}
	if err := l.Trim(7); err != nil {
		t.Fatal(err)
	}
	if has, err := l.Has(log.Mark{Epoch: log.Epoch{1}, To: 2}, log.Chain{9}); err != nil || !has {
		t.Errorf("the log has a trimmed entry: %v, %v", has, err)
	}
}

// TestEpochsOfOldLog: a log of version 0.1.0 has one epoch for all entries, also if it was restored from a backup. The next opening that
// appends adds another one.
func TestEpochsOfOldLog(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	settings := log.Options{Prefix: []byte("p/"), Epoch: log.Epoch{1}}
	add(t, openStore(t, store, settings), opsOf(2, 1, 5))
	epoch, before := log.Epoch{7}, log.Epoch{1} // a restore replaced the epoch, but not the chain before the first entry
	record := protowire.AppendBytes(protowire.AppendTag([]byte{1}, 1, protowire.BytesType), epoch[:])
	record = protowire.AppendVarint(protowire.AppendTag(record, 2, protowire.VarintType), 1)
	record = protowire.AppendBytes(protowire.AppendTag(record, 3, protowire.BytesType), before[:])
	record = protowire.AppendVarint(protowire.AppendTag(record, 4, protowire.VarintType), 1)
	record = protowire.AppendVarint(protowire.AppendTag(record, 5, protowire.VarintType), 3)
	put(t, store, "p/m", string(record))
	settings.Epoch = log.Epoch{2}
	l := openStore(t, store, settings)
	if got := l.EpochOf(2); got != (log.Mark{Epoch: epoch, To: 5}) || l.Opening() != settings.Epoch {
		t.Errorf("entry 2 is of %x in the opening %x, want %x", got, l.Opening(), epoch)
	}
	add(t, l, opsOf(2, 6, 1))
	for _, l := range []*log.Store{l, openStore(t, store, settings)} {
		if first, last := l.EpochOf(5), l.EpochOf(6); first != (log.Mark{Epoch: epoch, To: 5}) || last != (log.Mark{Epoch: settings.Epoch, To: 6}) {
			t.Errorf("the entries are of %x and %x", first, last)
		}
		if chain, err := l.Chain(0); err != nil || chain != log.Chain(before) || len(dotsFrom(t, l, 1)) != 6 {
			t.Errorf("the chain begins with %x, %v", chain, err)
		}
	}
}

// TestEpochOfFailedAppend: an append that fails adds no epoch to the log, and the next one adds it.
func TestEpochOfFailedAppend(t *testing.T) {
	store := &faulty{Store: kvtest.OrLate(t, memkv.New())}
	add(t, openStore(t, store, settings), opsOf(1, 1, 2))
	l := openStore(t, store, log.Options{Prefix: settings.Prefix, Epoch: log.Epoch{9}})
	store.commits = kv.ErrFull
	if _, _, err := l.Append(opsOf(1, 3, 1), nil); !errors.Is(err, kv.ErrFull) {
		t.Errorf("append = %v, want ErrFull", err)
	}
	if got := l.Common(log.Mark{Epoch: log.Epoch{9}, To: 9}); got != 0 {
		t.Errorf("after a failed append entry %d is of the opening", got)
	}
	l.SetOpening(log.Epoch{8})
	store.commits = nil
	add(t, l, opsOf(1, 3, 1))
	if got, last := l.EpochOf(2), l.EpochOf(3); got != (log.Mark{Epoch: settings.Epoch, To: 2}) || last != (log.Mark{Epoch: log.Epoch{8}, To: 3}) {
		t.Errorf("the entries are of %x and %x", got, last)
	}
}
