package predict

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func randomVector(rng *rand.Rand, size float64) []float32 {
	e := make([]float32, Dim)
	for i := range e {
		e[i] = float32(rng.NormFloat64() * size)
	}
	return e
}

func mustEmbed(t testing.TB, e []float32) Embedding {
	t.Helper()
	out, err := NewEmbedding(e)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEmbeddingIsUnitVector(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, size := range []float64{1e-38, 1e-10, 1, 1e10, 1e37} {
		for range 50 {
			e := randomVector(rng, size)
			got := mustEmbed(t, e)
			length, dot, norm := 0.0, 0.0, 0.0
			for i, u := range got.Unit(nil) {
				length += float64(u) * float64(u)
				dot += float64(u) * (float64(e[i]) / size)
				norm += (float64(e[i]) / size) * (float64(e[i]) / size)
			}
			if cos := dot / math.Sqrt(norm*length); math.Abs(length-1) > 1e-6 || cos < 1-1e-8 {
				t.Errorf("size %v: length² %v, cosine %v, want 1 and above 1 − 1e−8", size, length, cos)
			}
		}
	}
}

func TestEmbeddingRounding(t *testing.T) {
	const tiny = math.SmallestNonzeroFloat32
	tests := []struct {
		name string
		e    []float32
		want []int16
	}{
		{"the largest is 32767", []float32{2, -1, 0.5}, []int16{32767, -16384, 8192}},
		{"negative largest", []float32{-4, 4}, []int16{-32767, 32767}},
		{"halves away from zero", []float32{65534, 1, -1, 3, -3, 2}, []int16{32767, 1, -1, 2, -2, 1}},
		{"under a half", []float32{65536, 1, -1}, []int16{32767, 0, 0}},
		{"subnormal", []float32{tiny, -tiny}, []int16{32767, -32767}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustEmbed(t, append(tt.e, make([]float32, Dim-len(tt.e))...))
			for i, q := range tt.want {
				if got.Q[i] != q {
					t.Errorf("Q[%d] = %d, want %d", i, got.Q[i], q)
				}
			}
		})
	}
}

func TestEmbeddingRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, e := range [][]float32{nil, make([]float32, Dim-1), make([]float32, Dim+1), append(make([]float32, Dim-1), nan), append(make([]float32, Dim-1), inf)} {
		if got, err := NewEmbedding(e); !errors.Is(err, ErrNetwork) || got != (Embedding{}) {
			t.Errorf("NewEmbedding of %d elements = %v, want ErrNetwork", len(e), err)
		}
	}
}

func TestZeroEmbedding(t *testing.T) {
	zero := mustEmbed(t, make([]float32, Dim))
	other := mustEmbed(t, randomVector(rand.New(rand.NewPCG(2, 1)), 1))
	if zero != (Embedding{}) || zero.Cosine(&other) != 0 || zero.Cosine(&zero) != 0 {
		t.Errorf("zeros = scale %v, cosines %v and %v, want 0", zero.Scale, zero.Cosine(&other), zero.Cosine(&zero))
	}
}

func TestCosine(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 200 {
		a, b := mustEmbed(t, randomVector(rng, 1)), mustEmbed(t, randomVector(rng, 5))
		dot, na, nb := new(big.Int), new(big.Int), new(big.Int)
		for i := range a.Q {
			x, y := big.NewInt(int64(a.Q[i])), big.NewInt(int64(b.Q[i]))
			dot.Add(dot, new(big.Int).Mul(x, y))
			na.Add(na, new(big.Int).Mul(x, x))
			nb.Add(nb, new(big.Int).Mul(y, y))
		}
		if a.Dot(&b) != dot.Int64() || b.Dot(&a) != dot.Int64() {
			t.Errorf("Dot = %d, want %v", a.Dot(&b), dot)
		}
		d, _ := dot.Float64()
		x, _ := na.Float64()
		y, _ := nb.Float64()
		if want := d / math.Sqrt(x*y); math.Abs(a.Cosine(&b)-want) > 2e-7 {
			t.Errorf("Cosine = %v, want %v", a.Cosine(&b), want)
		}
		if c := a.Cosine(&a); c < 1-2e-7 || c > 1 {
			t.Errorf("Cosine with itself = %v, want 1", c)
		}
	}
	var lo, hi Embedding
	for i := range lo.Q {
		lo.Q[i], hi.Q[i] = -maxQ, maxQ
	}
	if got, want := lo.Dot(&hi), int64(-Dim)*maxQ*maxQ; got != want {
		t.Errorf("Dot of the extremes = %d, want %d", got, want)
	}
}

func FuzzUnmarshalEmbedding(f *testing.F) {
	good, err := func() ([]byte, error) {
		e := mustEmbed(f, randomVector(rand.New(rand.NewPCG(4, 1)), 1))
		return e.MarshalBinary()
	}()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(make([]byte, EmbeddingBytes))
	f.Add(good[:EmbeddingBytes-1])
	lowest := bytes.Clone(good)
	binary.LittleEndian.PutUint16(lowest, 0x8000)
	f.Add(lowest)
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Embedding
		if err := e.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrEmbedding) || e != (Embedding{}) {
				t.Errorf("UnmarshalBinary = %v and changed the embedding, want ErrEmbedding", err)
			}
			return
		}
		again, err := e.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("marshalled again: %x, want %x", again, b)
		}
		if got, err := NewEmbedding(e.Unit(nil)); err != nil || got != e {
			t.Errorf("quantising its own unit vector changes it: %v", err)
		}
	})
}

func TestUnmarshalRefuses(t *testing.T) {
	e := mustEmbed(t, randomVector(rand.New(rand.NewPCG(5, 1)), 1))
	good, err := e.MarshalBinary()
	if err != nil || len(good) != EmbeddingBytes {
		t.Fatalf("MarshalBinary = %d bytes, %v, want %d", len(good), err, EmbeddingBytes)
	}
	for bit := range 8 * len(good) {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		got := e
		if err := got.UnmarshalBinary(bad); err == nil && bit >= 16*Dim {
			t.Errorf("another scale (bit %d) is accepted", bit)
		} else if err != nil && got != e {
			t.Errorf("a refused embedding was written to")
		}
	}
	half := e
	for i := range half.Q {
		half.Q[i] /= 2
	}
	half.Scale = scaleOf(&half.Q)
	b, err := half.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := half.UnmarshalBinary(b); !errors.Is(err, ErrEmbedding) {
		t.Errorf("a vector that does not fill int16 = %v, want ErrEmbedding", err)
	}
}

func BenchmarkNewEmbedding(b *testing.B) {
	e := randomVector(rand.New(rand.NewPCG(6, 1)), 1)
	for b.Loop() {
		mustEmbed(b, e)
	}
}

func BenchmarkDot(b *testing.B) {
	x := mustEmbed(b, randomVector(rand.New(rand.NewPCG(7, 1)), 1))
	y := mustEmbed(b, randomVector(rand.New(rand.NewPCG(8, 1)), 1))
	for b.Loop() {
		x.Dot(&y)
	}
}
