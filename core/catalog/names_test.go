package catalog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
)

// TestNames adds numbers in any order. The set has these and no others, in as few ranges as possible, also after it was stored.
func TestNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var n Names
		want := map[uint64]bool{}
		for _, seq := range rapid.SliceOfNDistinct(rapid.Uint64Range(1, 40), 1, 30, func(n uint64) uint64 { return n }).Draw(t, "numbers") {
			n.Add(seq)
			want[seq] = true
		}
		read, err := readNames(n.encode())
		if err != nil {
			t.Fatal(err)
		}
		ranges := 0
		for seq := range uint64(42) {
			if known := want[seq] || seq == 0; n.Has(seq) != known || read.Has(seq) != known {
				t.Fatalf("%d in %+v: %v, read %v", seq, n.Ranges, n.Has(seq), read.Has(seq))
			}
			if want[seq] && !want[seq+1] {
				ranges++
			}
		}
		if last := slices.Max(slices.Collect(maps.Keys(want))); len(n.Ranges) != ranges || n.Last() != last {
			t.Fatalf("%+v, want %d ranges up to %d", n.Ranges, ranges, last)
		}
	})
}

// TestNamesOfSite: the names of a site without gaps keep the form of earlier rules, and no other record is read as that.
func TestNamesOfSite(t *testing.T) {
	for _, n := range []Names{
		{},
		{Ranges: []NameRange{{1, 3}}},
		{Ranges: []NameRange{{1, 1<<32 - 1}}},
		{Ranges: []NameRange{{5, 200}}}, // 8 bytes as a message
		{Ranges: []NameRange{{1, 3}}, DeletedUpTo: 2},
		{Ranges: []NameRange{{1, 3}}, Newest: 9},
		{DeletedUpTo: 7, Until: 9},
	} {
		data := n.encode()
		site := len(n.Ranges) == 1 && n.Ranges[0].First == 1 && n.DeletedUpTo == 0 && n.Newest == 0
		if got, err := readNames(data); err != nil || fmt.Sprint(got) != fmt.Sprint(n) || (data[0] == 0) != site || site && len(data) != 8 {
			t.Errorf("%+v is %x, read as %+v, %v", n, data, got, err)
		}
	}
}

// TestHorizonDropsOldRecords: a horizon drops the records that only operations below it need, and no record of a site.
func TestHorizonDropsOldRecords(t *testing.T) {
	store := memkv.New()
	thing := log.Dot{Writer: 9, Seq: 9}
	write(t, store, func(w *Writer) {
		for i, n := range []Names{
			{Ranges: []NameRange{{1, 3}}},
			{Ranges: []NameRange{{1, 3}}, DeletedUpTo: 3, Until: 1},
			{Ranges: []NameRange{{1, 3}}, Newest: 9},
			{Ranges: []NameRange{{1, 3}}, Newest: 9, Until: 10},
			{Ranges: []NameRange{{1, 3}}, Newest: 10},
			{DeletedUpTo: 3, Until: 9},
		} {
			w.PutNames(log.Writer(i), &n)
		}
		w.PutDeletion(log.Dot{Writer: 9, Seq: 8}, 9)
		w.PutDeletion(thing, 10)
		if err := w.Forget(10); err != nil {
			t.Fatal(err)
		}
	})
	var left []log.Writer
	r := Read(store, testApp)
	if err := r.Writers(func(w log.Writer, _ Names) bool { left = append(left, w); return true }); err != nil || !slices.Equal(left, []log.Writer{0, 1, 3, 4}) {
		t.Errorf("writers %v, %v", left, err)
	}
	if at, err := r.Deletion(thing); at != 10 || err != nil {
		t.Errorf("a deletion at the horizon: %d, %v", at, err)
	}
	if at, err := r.Deletion(log.Dot{Writer: 9, Seq: 8}); at != 0 || err != nil {
		t.Errorf("a deletion below the horizon: %d, %v", at, err)
	}
}

// TestNewestInputs finds the newest live input of each writer, and the inputs of one writer.
func TestNewestInputs(t *testing.T) {
	store := memkv.New()
	rng := rand.New(rand.NewPCG(1, 1))
	newest := map[log.Writer]log.Dot{}
	of := map[log.Writer][]uint32{}
	write(t, store, func(w *Writer) {
		for ord := range uint32(50) {
			in := input(ord, "p")
			in.Dot = log.Dot{Writer: log.Writer(rng.IntN(5))*1000 + 1, Seq: uint64(ord) * 300}
			newest[in.Dot.Writer] = in.Dot
			if in.Dot.Seq >= 600 && in.Dot.Seq <= 9000 {
				of[in.Dot.Writer] = append(of[in.Dot.Writer], ord)
			}
			if err := w.InsertInput(in); err != nil {
				t.Fatal(err)
			}
		}
	})
	r := Read(store, testApp)
	got, err := Collect(r.NewestInputs)
	if len(got) != len(newest) || err != nil {
		t.Errorf("%d writers, %v, want %d", len(got), err, len(newest))
	}
	for _, d := range got {
		if newest[d.Writer] != d {
			t.Errorf("newest %v, want %v", d, newest[d.Writer])
		}
		var ords []uint32
		if err := r.InputsOf(d.Writer, 600, 9000, func(ord uint32) bool { ords = append(ords, ord); return true }); err != nil || !slices.Equal(ords, of[d.Writer]) {
			t.Errorf("inputs %v, %v, want %v", ords, err, of[d.Writer])
		}
	}
}

// TestSizeOfWriters: ten thousand writers take at most 400 kB of a snapshot. Each has one range and the clock of its newest operation.
func TestSizeOfWriters(t *testing.T) {
	store := memkv.New()
	rng := rand.New(rand.NewPCG(1, 1))
	const writers = 10_000
	write(t, store, func(w *Writer) {
		for i := range log.Writer(writers) {
			w.PutNames(log.FirstRandomWriter-writers+i, &Names{Ranges: []NameRange{{1, 1 + rng.Uint64N(5000)}}, Newest: log.HLC(1_790_000_000_000+rng.Uint64N(1<<33)) << 16})
		}
	})
	bytes := 0
	if err := Read(store, testApp).StateTables(func(key, value []byte) bool {
		bytes += 2 + len(key) + 8 + len(value) // two lengths, and the part of a writer's key that a site's key lacks
		return true
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d writers take %d bytes", writers, bytes)
	if bytes > 400_000 {
		t.Errorf("%d writers take %d bytes, want at most 400,000", writers, bytes)
	}
}
