package partition_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

var network = [32]byte{7}

// large adds n inputs, so that the state of the partition takes several chunks.
func large(t testing.TB, p *partition.Origin, from, n int) {
	t.Helper()
	for i := from; i < from+n; i += 100 {
		var bodies []log.Body
		for j := i; j < i+100; j++ {
			c := create(fmt.Sprintf("input-%06d", j))
			c.Meta = fmt.Appendf(nil, `{"number":%d,"text":"%0200d"}`, j, j*j)
			bodies = append(bodies, c)
		}
		_, err := p.Submit(t.Context(), "key", bodies, func(b *kv.Batch) {
			for _, body := range bodies {
				x := catalog.DerivedData{Embedding: bytes.Repeat([]byte{byte(i)}, 256)}
				catalog.PutDerived(b, app, network, body.(*log.InputCreate).Blob, raster.Crop{}, x)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// export takes a snapshot and compares every chunk with the list of chunks.
func export(t testing.TB, p *partition.Origin, base [32]byte) (x *partition.Export, chunks [][]byte) {
	t.Helper()
	x, err := p.Export(base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, c := range x.Chunks {
		data, err := x.Read(i)
		if err != nil || blob.Sum(data) != c.Hash || uint64(len(data)) != c.Size {
			t.Fatalf("chunk %d of %d bytes: %v, want %+v", i, len(data), err, c)
		}
		if n, ok := x.Find(c.Hash); !ok || n > i {
			t.Fatalf("chunk %d is found at %d, %v", i, n, ok)
		}
		if len(data) > 1<<20 {
			t.Errorf("chunk %d has %d bytes, more than a MiB", i, len(data))
		}
		chunks = append(chunks, data)
	}
	return x, chunks
}

// take returns a store that contains only these chunks.
func take(t testing.TB, chunks [][]byte) kv.Store {
	t.Helper()
	store := kvtest.OrLate(t, memkv.New())
	prefix, _ := app.Range()
	for i, c := range chunks {
		var b kv.Batch
		err := partition.Unpack(c, func(key, value []byte) bool {
			b.Put(append(bytes.Clone(prefix), key...), value)
			return true
		})
		if err != nil {
			t.Fatalf("chunk %d: %v", i, err)
		}
		if err := store.Apply(&b); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestExport joins the chunks of a snapshot again. The state is that of the moment of the snapshot, byte for byte, whatever is written
// meanwhile.
func TestExport(t *testing.T) {
	store := kvtest.OrLate(t, memkv.New())
	p := open(t, store)
	large(t, p, 0, 4000)
	submit(t, p, &log.ModelCreate{ID: "m", Concepts: []string{"cat"}})
	want := digest(t, store)
	x, err := p.Export(network)
	if err != nil {
		t.Fatal(err)
	}
	large(t, p, 4000, 200)
	submit(t, p, &log.InputDeleteAll{})
	var chunks [][]byte
	for i := range x.Chunks {
		data, err := x.Chunk(i)
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, data)
	}
	if len(chunks) < 4 {
		t.Errorf("only %d chunks", len(chunks))
	}
	copied := take(t, chunks)
	if got := digest(t, copied); got != want || x.Digest != want {
		t.Errorf("state %x, listed %x, want %x", got, x.Digest, want)
	}
	chain, err := p.Log().Chain(4001)
	if err != nil || x.Seq != 4001 || x.Chain != chain || x.Epoch != p.Opening() || x.Fold != fold.FirstVersion {
		t.Errorf("snapshot of entry %d, epoch %x, chain %x, rules %d; %v", x.Seq, x.Epoch, x.Chain, x.Fold, err)
	}
	derived := 0
	r := catalog.Read(copied, app)
	err = r.Inputs(0, func(in catalog.Input) bool {
		if _, err := r.DerivedOfInput(network, &in); err == nil {
			derived++
		}
		return true
	})
	if err != nil || derived != 4000 {
		t.Errorf("%d inputs have their derived records, %v", derived, err)
	}
	if _, err := x.Chunk(len(chunks)); !errors.Is(err, partition.ErrChunk) {
		t.Errorf("chunk beyond the last: %v", err)
	}
	if _, ok := x.Find(blob.Sum(nil)); ok {
		t.Error("found what is no chunk")
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExportOmitsDerivedRecords checks that a snapshot leaves out derived records if none are requested, and always those of other
// networks.
func TestExportOmitsDerivedRecords(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	defer p.Close()
	if x, chunks := export(t, p, [32]byte{}); len(chunks) != 0 || x.Seq != 0 || x.Chain != log.Chain(x.Epoch) {
		t.Errorf("the empty state has %d chunks, entry %d, chain %x", len(chunks), x.Seq, x.Chain)
	}
	large(t, p, 0, 100)
	count := func(base [32]byte) (keys, derived int) {
		_, chunks := export(t, p, base)
		for _, c := range chunks {
			if err := partition.Unpack(c, func(key, _ []byte) bool {
				keys++
				if catalog.IsDerivedKey(key) {
					derived++
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
		}
		return keys, derived
	}
	all, derived := count(network)
	none, no := count([32]byte{})
	other, others := count([32]byte{8})
	if derived != 100 || no != 0 || others != 0 || all != none+100 || other != none {
		t.Errorf("keys %d, %d, %d, of these derived %d, %d, %d", all, none, other, derived, no, others)
	}
}

// dotAt returns the dot of an entry of a log.
func dotAt(t tb, p *partition.Origin, seq uint64) (dot log.Dot) {
	t.Helper()
	err := p.Log().Read(seq, func(e log.Entry) bool {
		dot = e.Op.Dot
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return dot
}

// TestExportResumes changes a small part of a large state. Most chunks of the next snapshot equal chunks of the previous one, so an
// interrupted download continues.
func TestExportResumes(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	defer p.Close()
	n := 20_000
	if testing.Short() {
		n = 8000
	}
	large(t, p, 0, n)
	before, _ := export(t, p, network)
	submit(t, p, &log.InputLabels{Input: dotAt(t, p, 4000), Labels: []log.Label{{Concept: "cat", Value: log.True}}})
	after, _ := export(t, p, network)
	fetch, all := uint64(0), uint64(0)
	for _, c := range after.Chunks {
		all += c.Size
		if _, ok := before.Find(c.Hash); !ok {
			fetch += c.Size
		}
	}
	t.Logf("%d of %d bytes are to be fetched, in chunks of %d bytes", fetch, all, all/uint64(len(after.Chunks)))
	if fetch*3 > all {
		t.Errorf("%d of %d bytes have changed with one label", fetch, all)
	}
}

func FuzzUnpack(f *testing.F) {
	p := open(f, memkv.New())
	defer p.Close()
	submit(f, p, create("a"), &log.ModelCreate{ID: "m"})
	x, err := p.Export([32]byte{})
	if err != nil {
		f.Fatal(err)
	}
	chunk, err := x.Chunk(0)
	if err = errors.Join(err, x.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(chunk)
	f.Add(chunk[:len(chunk)-1])
	f.Add([]byte{1, 'i', 0x80})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var again []byte
		err := partition.Unpack(data, func(key, value []byte) bool {
			if len(key) == 0 {
				t.Fatal("an empty key")
			}
			again = append(append(again, byte(len(key))), key...)
			again = append(append(again, byte(len(value))), value...)
			return len(key) < 128 && len(value) < 128
		})
		if err != nil && !errors.Is(err, partition.ErrChunk) {
			t.Fatalf("%v is not ErrChunk", err)
		}
		if !bytes.HasPrefix(again, data) && err == nil && len(again) == len(data) {
			t.Fatalf("%x was read as %x", data, again)
		}
	})
}

// TestUnpackRandom reads damaged chunks.
func TestUnpackRandom(t *testing.T) {
	p := open(t, kvtest.OrLate(t, memkv.New()))
	defer p.Close()
	large(t, p, 0, 100)
	_, chunks := export(t, p, [32]byte{})
	rng := rand.New(rand.NewPCG(1, 1))
	wrong := 0
	for range 300 {
		data := bytes.Clone(chunks[0])
		data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
		if err := partition.Unpack(data[:rng.IntN(len(data))], func([]byte, []byte) bool { return true }); err != nil {
			wrong++
			if !errors.Is(err, partition.ErrChunk) {
				t.Fatal(err)
			}
		}
	}
	if wrong == 0 {
		t.Error("every damaged chunk was taken")
	}
}
