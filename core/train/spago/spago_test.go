package spago_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nlpodyssey/spago/ag"
	"github.com/nlpodyssey/spago/mat"
	"github.com/nlpodyssey/spago/nn"
	"github.com/nlpodyssey/spago/nn/activation"
	"github.com/nlpodyssey/spago/nn/linear"
	"github.com/nlpodyssey/spago/optimizers/adam"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/core/train/spago"
)

var identity = hex.EncodeToString(bytes.Repeat([]byte{7}, 32))

// numbers are n values around 0.
func numbers(rnd *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	return x
}

// heads are a head of each kind.
func heads() []*train.Head {
	rnd := rand.New(rand.NewPCG(5, 1))
	return []*train.Head{
		{Concepts: []string{"a", "b"}, Weights: numbers(rnd, 2*predict.Dim), Bias: numbers(rnd, 2)},
		{Concepts: []string{"a", "b", "ü"}, Weights: numbers(rnd, 3*predict.Dim), Bias: numbers(rnd, 3), Exclusive: true},
		{Concepts: []string{"a", "b"}, Weights: numbers(rnd, 3*predict.Dim), Bias: numbers(rnd, 3), Exclusive: true},
	}
}

func writeHead(t testing.TB, h *train.Head) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := spago.Write(&file, h, identity); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestHeadRoundTrips checks that spago computes the values of a head, and that the head is the same to the bit after spago has written it.
func TestHeadRoundTrips(t *testing.T) {
	for _, h := range heads() {
		m, err := nn.Load[*spago.Model](bytes.NewReader(writeHead(t, h)))
		if err != nil {
			t.Fatal(err)
		}
		e, err := predict.NewEmbedding(numbers(rand.New(rand.NewPCG(6, 1)), predict.Dim))
		if err != nil {
			t.Fatal(err)
		}
		theirs := m.Forward(mat.NewDense[float32](mat.WithShape(predict.Dim), mat.WithBacking(e.Unit(nil))))[0].Value().Data().F32()
		for i, v := range h.Values(nil, &e) {
			if math.Abs(float64(v-theirs[i])) > 1e-5 {
				t.Errorf("value %d is %v, spago says %v", i, v, theirs[i])
			}
		}
		var buf bytes.Buffer
		if err := nn.Dump(m, &buf); err != nil {
			t.Fatal(err)
		}
		back, embedding, err := spago.Read(buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(h, back); d != "" || embedding != identity {
			t.Errorf("another head comes back from spago, of embedding %q:\n%s", embedding, d)
		}
	}
}

// elsewhere is the struct of a program without this package, which trains in float64.
type elsewhere struct {
	nn.Module
	Linear     *linear.Model
	Activation *activation.Model
	Concepts   []string
	Embedding  string
}

func sigmoid() *elsewhere {
	return &elsewhere{Linear: linear.New[float64](predict.Dim, 1), Activation: activation.New(activation.Sigmoid), Concepts: []string{"a"}, Embedding: identity}
}

func dumpModel(t testing.TB, m any) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := nn.Dump(m, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestHeadOfAnotherProgram reads a float64 model with an optimiser's state, which another program has made.
func TestHeadOfAnotherProgram(t *testing.T) {
	m := sigmoid()
	x := mat.NewDense[float64](mat.WithShape(predict.Dim), mat.WithBacking(append(make([]float64, predict.Dim-1), 1)))
	y := m.Activation.Forward(m.Linear.Forward(x)...)[0]
	ag.Backward(ag.Neg(ag.Log(y)))
	optimiser := adam.New(adam.NewDefaultConfig())
	nn.ForEachParam(m, func(p *nn.Param) {
		if err := optimiser.OptimizeParams(p); err != nil {
			t.Fatal(err)
		}
	})
	file := dumpModel(t, m)
	if !bytes.Contains(file, []byte("adam.State")) {
		t.Error("the file has no state of the optimiser: that case is not tested")
	}
	h, embedding, err := spago.Read(file)
	if err != nil || embedding != identity {
		t.Fatalf("Read: %q, %v", embedding, err)
	}
	want := &train.Head{Concepts: []string{"a"}, Weights: m.Linear.W.Data().F32(), Bias: m.Linear.B.Data().F32()}
	if d := cmp.Diff(want, h); d != "" || h.Bias[0] <= 0 {
		t.Errorf("another head comes back, with a bias of %v:\n%s", h.Bias, d)
	}
}

// TestInvalidHeadsAreRefused names what is wrong with files.
func TestInvalidHeadsAreRefused(t *testing.T) {
	with := func(change func(m *elsewhere)) []byte {
		m := sigmoid()
		change(m)
		return dumpModel(t, m)
	}
	good := dumpModel(t, sigmoid())
	for name, tt := range map[string]struct {
		file    []byte
		message string
	}{
		"nothing":       {nil, "not a spago model: EOF"},
		"a part":        {good[:len(good)-100], "not a spago model"},
		"something":     {dumpModel(t, "hello"), "not a spago model"},
		"another model": {dumpModel(t, &struct{ Other *linear.Model }{linear.New[float32](1, 1)}), "not a spago model: gob: type mismatch"},
		"layer":         {with(func(m *elsewhere) { m.Linear = nil }), "no Linear.W, Linear.B or Activation"},
		"no activation": {with(func(m *elsewhere) { m.Activation = nil }), "no Linear.W, Linear.B or Activation"},
		"concepts":      {with(func(m *elsewhere) { m.Concepts = nil }), "no Concepts or Embedding; keep these fields"},
		"embedding":     {with(func(m *elsewhere) { m.Embedding = "" }), "no Concepts or Embedding; keep these fields"},
		"activation":    {with(func(m *elsewhere) { m.Activation = activation.New(activation.ReLU) }), "want Sigmoid or Softmax"},
		"dimensions":    {with(func(m *elsewhere) { m.Linear = linear.New[float32](8, 1) }), "shape [1 8] of Linear.W, want 256 columns"},
		"outputs":       {with(func(m *elsewhere) { m.Linear = linear.New[float32](predict.Dim, 2) }), "2 outputs for 1 concepts"},
		"biases":        {with(func(m *elsewhere) { m.Linear.B = linear.New[float32](1, 2).B }), "1 rows of Linear.W and 2 values of Linear.B"},
		"infinite": {with(func(m *elsewhere) {
			m.Linear.B.ReplaceValue(mat.NewDense[float64](mat.WithShape(1), mat.WithBacking([]float64{1e300})))
		}), "a parameter is not a number"},
		"values":      {patchModel(t, append([]byte{0, 1, 0, 0}, make([]byte, 16)...), 1, 2), "matrix of 2 dimensions and 512 values"},
		"shape":       {patchModel(t, []byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0}, 3, 0x7f), "matrix of 2130706434 dimensions and 256 values"},
		"other shape": {patchModel(t, []byte{2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0}, 4, 2), "matrix of shape [2 256] with 256 values"},
		"type":        {patchModel(t, []byte("*mat.Dense[float64]"), 16, '3', '2'), "matrix of type"},
	} {
		h, _, err := spago.Read(tt.file)
		if !errors.Is(err, train.ErrHead) || !strings.Contains(err.Error(), tt.message) || h != nil {
			t.Errorf("%s: %v, want %q", name, err, tt.message)
		}
	}
}

// patchModel returns a model's file with other bytes at an offset from the first place of some bytes.
func patchModel(t testing.TB, behind []byte, at int, bytesTo ...byte) []byte {
	t.Helper()
	file := dumpModel(t, sigmoid())
	found := bytes.Index(file, behind)
	if found < 0 {
		t.Fatalf("the file has no %v", behind)
	}
	copy(file[found+at:], bytesTo)
	return file
}

// FuzzRead checks that Read returns ErrHead or a head, and that the head is the same after it is written and read again.
func FuzzRead(f *testing.F) {
	for _, h := range heads() {
		f.Add(writeHead(f, h))
	}
	f.Add(dumpModel(f, sigmoid()))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, embedding, err := spago.Read(file)
		if err != nil {
			if !errors.Is(err, train.ErrHead) {
				t.Errorf("Read: %v, want that it wraps ErrHead", err)
			}
			return
		}
		var buf bytes.Buffer
		if err := spago.Write(&buf, h, embedding); err != nil {
			t.Fatal(err)
		}
		if back, _, err := spago.Read(buf.Bytes()); err != nil || cmp.Diff(h, back) != "" {
			t.Errorf("another head comes back, %v:\n%s", err, cmp.Diff(h, back))
		}
	})
}
