package kernels

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/models"
)

// TestRecognise checks that a guest gets the same bytes from the host as from a recogniser, and that the instance requests each network
// once from its host.
func TestRecognise(t *testing.T) {
	set, err := predict.LoadNetwork(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	in := New(Options{}).Open()
	defer in.Close()
	in.mem, in.ctx = make([]byte, 1<<20), context.Background()
	const baseAt, embeddingAt, generalAt, foodAt, pixelsAt = 64, 128, 1024, 8192, 16384
	number := func(base [32]byte) uint64 {
		copy(in.mem[baseAt:], base[:])
		s := []uint64{baseAt}
		in.network(s)
		return s[0]
	}
	if n := number(set.Base()); n != 0 {
		t.Errorf("network = %d without a network of the host, want 0", n)
	}
	in.ShareNetworks(func(base [32]byte) *predict.Set {
		if requests++; base == set.Base() {
			return set
		}
		return nil
	})
	if n := number([32]byte{1}); n != 0 {
		t.Errorf("network = %d of a base that nobody has, want 0", n)
	}
	for range 2 {
		if n := number(set.Base()); n != 1 {
			t.Fatalf("network = %d, want 1", n)
		}
	}
	if requests != 2 {
		t.Errorf("the host was asked %d times, want once for each base", requests)
	}

	r := set.NewRecogniser()
	side, concepts, foods := r.Shape()
	pix := in.mem[pixelsAt : pixelsAt+3*side*side]
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range pix {
		pix[i] = byte(rng.Uint32())
	}
	var want predict.Embedding
	general, food := make([]float32, concepts), make([]float32, foods)
	if err := r.Recognise(pix, &want, general, food); err != nil {
		t.Fatal(err)
	}
	args := func() []uint64 {
		return []uint64{1, pixelsAt, uint64(len(pix)), embeddingAt, generalAt, uint64(concepts), foodAt, uint64(foods)}
	}
	s := args()
	if in.recognise(s); s[0] != 1 {
		t.Fatalf("recognise = %d, want 1", s[0])
	}
	embedding, err := want.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name      string
		got, want []byte
	}{
		{"embedding", in.mem[embeddingAt : embeddingAt+predict.EmbeddingBytes], embedding},
		{"general", in.mem[generalAt : generalAt+4*concepts], raw(general)},
		{"food", in.mem[foodAt : foodAt+4*foods], raw(food)},
	} {
		if !bytes.Equal(part.got, part.want) {
			t.Errorf("%s: other bytes than natively", part.name)
		}
	}

	cellsOf(t, in, r, pix)

	f := &function{name: "recognise", run: (*Instance).recognise}
	end := uint64(len(in.mem))
	for i, wrong := range [][]uint64{0: {0, 2, 1 << 31}, 1: {end, end - 9}, 2: {0, uint64(len(pix)) - 1}, 3: {end - 515, 129}, 4: {end, 3}, 5: {0, 1 << 31}, 6: {end}, 7: {0, 1}} {
		for _, v := range wrong {
			s := args()
			s[i] = v
			if call(t, in, f, s) {
				t.Errorf("parameter %d = %d: the guest lives on, want ErrWild", i, v)
			}
		}
	}
}

// cellsOf compares the cells of a picture in the guest's memory with the result of a recogniser.
func cellsOf(t *testing.T, in *Instance, r *predict.Recogniser, pix []byte) {
	t.Helper()
	const pixelsAt, rowsAt = 16384, 256 << 10
	ask := func(s ...uint64) uint64 {
		in.cells(s)
		return s[0]
	}
	if got := ask(1, 0, 0, 0, 0); got != 7<<32|7 {
		t.Fatalf("cells are %#x, want 7 by 7", got)
	}
	want := make([]float32, 49*(r.Classes()+predict.Dim))
	if err := r.Cells(pix, want); err != nil {
		t.Fatal(err)
	}
	n, room := uint64(len(pix)), uint64(len(want))
	if got := ask(1, pixelsAt, n, rowsAt, room); got != 7<<32|7 {
		t.Fatalf("cells = %#x, want 7 by 7", got)
	}
	if !bytes.Equal(in.mem[rowsAt:rowsAt+4*int(room)], raw(want)) {
		t.Error("cells: other bytes than natively")
	}
	f := &function{name: "cells", run: (*Instance).cells}
	end := uint64(len(in.mem))
	for i, wrong := range [][]uint64{0: {0, 2}, 1: {end, end - 9}, 2: {0, n - 1}, 3: {end - 4*room + 4, rowsAt + 1}, 4: {0, room - 1}} {
		for _, v := range wrong {
			s := []uint64{1, pixelsAt, n, rowsAt, room}
			s[i] = v
			if call(t, in, f, s) {
				t.Errorf("cells: parameter %d = %d: the guest lives on, want ErrWild", i, v)
			}
		}
	}
}
