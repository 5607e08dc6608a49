package host

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
)

// TestSelfTest has modules show what they compute: the same one again does, and what dies, says nothing or something
// else does not.
func TestSelfTest(t *testing.T) {
	n := newNode(t, anotherRuntime(t), nil)
	good := anotherRuntime(t)
	if err := n.fleet.Test(t.Context(), good); err != nil {
		t.Errorf("the same module: %v", err)
	}
	if good.Instances() != 0 || n.fleet.Runtime() == good {
		t.Errorf("%d instances of what was tried are open", good.Instances())
	}
	if err := good.Close(context.Background()); err != nil {
		t.Error(err)
	}
	for name, module := range map[string][]byte{
		"silent": moods("well"), "dying of the log": newGuestWith("ask", trap), "not opening": newGuestWith("open", trap),
	} {
		bad, err := NewRuntime(t.Context(), options(module))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.fleet.Test(t.Context(), bad); !errors.Is(err, ErrSelfTest) && !errors.Is(err, ErrDead) {
			t.Errorf("%s: %v", name, err)
		}
		if err := bad.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestDiffers tells results apart.
func TestDiffers(t *testing.T) {
	of := func(change func(*shown)) *shown {
		e := make([]float32, 256)
		for i := range e {
			e[i] = float32(i%7) - 2
		}
		embedding, err := predict.NewEmbedding(e)
		if err != nil {
			t.Fatal(err)
		}
		s := &shown{state: [32]byte{1}, picture: predict.Analysis{Has: predict.WantConcepts, Embedding: embedding, General: []float32{0.1, 0.9}, Food: []float32{0.5}}}
		if change != nil {
			change(s)
		}
		return s
	}
	want := of(nil)
	if err := of(func(s *shown) { s.picture.General[1] -= 0.005 }).differs(want); err != nil {
		t.Errorf("another order of sums: %v", err)
	}
	for name, change := range map[string]func(*shown){
		"another state":        func(s *shown) { s.state[31] = 1 },
		"fewer concepts":       func(s *shown) { s.picture.General = s.picture.General[:1] },
		"no food":              func(s *shown) { s.picture.Food = nil },
		"nothing":              func(s *shown) { s.picture = predict.Analysis{} },
		"another value":        func(s *shown) { s.picture.General[0] = 0.2 },
		"a value of no number": func(s *shown) { s.picture.General[0] = float32(math.NaN()) },
		"another embedding": func(s *shown) {
			e := make([]float32, 256)
			e[0] = 1
			s.picture.Embedding, _ = predict.NewEmbedding(e)
		},
	} {
		if err := of(change).differs(want); !errors.Is(err, ErrSelfTest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if a := testPicture(); !slices.Equal(a, testPicture()) {
		t.Error("the picture is another each time")
	}
}
