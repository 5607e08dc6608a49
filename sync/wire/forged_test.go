package wire_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestForgedFrames mutates frames of log entries but keeps the framing: it flips, removes or doubles bytes, or copies them from
// another frame. No replica accepts operations that the log lacks from a mutated frame.
func TestForgedFrames(t *testing.T) {
	refused, same := 0, 0
	for seed := range testkit.Seeds(t, 200, 100_000) {
		rng := rand.New(rand.NewPCG(seed, 20))
		tr := newTraffic(seed % 16)
		at := log.Chain(tr.bytes(16))
		body, ops := run(tr, rng, at)
		other, _ := run(tr, rng, at)
		forged := forge(rng, body, other)
		var r wire.Reader
		_, _ = r.Write(wire.AppendFrame(nil, wire.TypeEntries, forged))
		f, ok, err := r.Next()
		if err != nil || !ok {
			t.Fatalf("seed %d: Next = %v, %v", seed, ok, err)
		}
		got, ok := accept(f.Body, at, ops[0].Seq-1)
		switch {
		case !ok:
			refused++
		case !equal(got, ops) && !bytes.Equal(forged, other):
			t.Errorf("seed %d: other operations were taken for the log's", seed)
		default:
			same++
		}
	}
	t.Logf("%d refused, %d without a change of what they say", refused, same)
	if refused <= same {
		t.Errorf("only %d of %d forged frames were refused", refused, refused+same)
	}
}

// run returns an encoded message of random entries that continue the chain at, and the entries.
func run(tr *traffic, rng *rand.Rand, at log.Chain) ([]byte, []log.Entry) {
	kinds := []func() log.Op{tr.patch, tr.create, tr.fetch, tr.remove}
	m := wire.Entries{Epoch: log.Epoch{1}, From: 77}
	var entries []log.Entry
	for range 1 + rng.IntN(20) {
		op := kinds[rng.IntN(len(kinds))]()
		entries = append(entries, log.Entry{Seq: m.From + 1 + uint64(len(entries)), Op: op})
		at = at.Next(log.Encode(nil, &op))
	}
	m.To, m.Chain, m.Rows = m.From+uint64(len(entries)), at, logtest.Rows(entries)
	return m.Encode(), entries
}

// accept decodes and checks a message of entries as every replica does.
func accept(body []byte, at log.Chain, from uint64) ([]log.Entry, bool) {
	m, err := wire.DecodeEntriesFrame(body)
	if err != nil || m.Epoch != (log.Epoch{1}) || m.From != from {
		return nil, false
	}
	entries, err := log.DecodeRows(m.Rows, m.From)
	if err != nil || m.To != m.From+uint64(len(entries)) {
		return nil, false
	}
	for i := range entries {
		at = at.Next(log.Encode(nil, &entries[i].Op))
	}
	return entries, at == m.Chain
}

func equal(a, b []log.Entry) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Seq != b[i].Seq || !bytes.Equal(log.Encode(nil, &a[i].Op), log.Encode(nil, &b[i].Op)) {
			return false
		}
	}
	return true
}

// forge returns a changed message. other is another message.
func forge(rng *rand.Rand, body, other []byte) []byte {
	p := bytes.Clone(body)
	i := rng.IntN(len(p))
	switch rng.IntN(6) {
	case 0:
		p[i] ^= 1 << rng.IntN(8)
	case 1:
		p[i] = byte(rng.Uint32())
	case 2:
		p = append(p[:i], p[min(i+1+rng.IntN(8), len(p)):]...)
	case 3:
		p = append(p[:i], append(bytes.Clone(p[max(i-rng.IntN(8), 0):i]), p[i:]...)...)
	case 4: // a part of the other message replaces a part
		n := copy(p[i:], other[min(i, len(other)):])
		p = p[:i+n]
	default: // a number grows by one
		if i+8 <= len(p) {
			binary.LittleEndian.PutUint64(p[i:], binary.LittleEndian.Uint64(p[i:])+1)
		}
	}
	return p
}
