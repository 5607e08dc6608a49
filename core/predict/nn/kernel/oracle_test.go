package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// product is a random byte product with the slow obvious answer: one output at a
// time, straight from the contract.
type product struct {
	m, n, segs, seg       int
	stepX, srcStride, ldd int
	src                   []uint8
	w                     []int8
	q                     *Requant
}

func newProduct(rng *rand.Rand, m, n, segs, seg int) *product {
	p := &product{m: m, n: n, segs: segs, seg: seg}
	p.stepX = rng.IntN(seg + 9)
	p.srcStride = (m-1)*p.stepX + seg + rng.IntN(5)
	p.ldd = n + rng.IntN(7)
	p.src = bytesOf(rng, (m-1)*p.stepX+(segs-1)*p.srcStride+seg)
	p.w = int8sOf(rng, n*segs*seg)
	p.q = requantOf(rng, n)
	return p
}

func (p *product) acc(i, j int) int32 {
	var s int32
	for g := range p.segs {
		for t := range p.seg {
			s += int32(p.src[i*p.stepX+g*p.srcStride+t]) * int32(p.w[(j*p.segs+g)*p.seg+t])
		}
	}
	return s + p.q.Bias[j]
}

// requantOf returns constants whose results fall below, inside and above the clamp,
// some beyond int32, some exactly halfway.
func requantOf(rng *rand.Rand, n int) *Requant {
	q := &Requant{Bias: make([]int32, n), Scale: make([]float32, n), Hi: 255}
	for j := range n {
		q.Bias[j] = int32(rng.IntN(1<<16) - 1<<15)
		q.Scale[j] = float32(math.Exp2(rng.Float64()*24 - 22))
		switch rng.IntN(12) {
		case 0:
			q.Bias[j] = int32(rng.Uint32())
		case 1:
			q.Scale[j] = 1.0 / 1024
		case 2:
			q.Scale[j] = -q.Scale[j]
		case 3:
			q.Scale[j] = 1e30
		}
	}
	if rng.IntN(2) == 0 {
		q.Zero = int32(rng.IntN(256))
		q.Lo = uint8(rng.IntN(256))
		q.Hi = q.Lo + uint8(rng.IntN(256-int(q.Lo)))
	}
	return q
}

// byteFor is the requantised byte of a whole accumulator.
func byteFor(q *Requant, acc int32, j int) uint8 {
	p := float32(acc) * q.Scale[j]
	return clampByte(math.RoundToEven(float64(p))+float64(q.Zero), q.Lo, q.Hi)
}

func clampByte(v float64, lo, hi uint8) uint8 {
	return uint8(math.Min(math.Max(v, float64(lo)), float64(hi)))
}

// bytesOf returns n random bytes at an odd alignment, sometimes only extremes. Its
// capacity ends with its length, so that reading on is a fault or a wrong result.
func bytesOf(rng *rand.Rand, n int) []uint8 {
	off := rng.IntN(64)
	b := make([]uint8, n+off)[off:]
	extreme := rng.IntN(4) == 0
	for i := range b {
		b[i] = uint8(rng.Uint32())
		if extreme {
			b[i] = 255 * uint8(rng.IntN(2)|rng.IntN(2))
		}
	}
	return b
}

func int8sOf(rng *rand.Rand, n int) []int8 {
	w := make([]int8, n)
	extreme := rng.IntN(4) == 0
	for i := range w {
		w[i] = int8(rng.Uint32())
		if extreme {
			w[i] = [...]int8{-128, 127}[rng.IntN(2)]
		}
	}
	return w
}

func floatsOf(rng *rand.Rand, n int) []float32 {
	off := rng.IntN(16)
	f := make([]float32, n+off)[off:]
	for i := range f {
		f[i] = float32(rng.NormFloat64())
	}
	return f
}

const guard = 0xA5

// guarded returns n bytes inside a larger array and a check that nothing around
// them, and nothing between rows of width bytes ld apart, has changed.
func guarded(n, ld, width int) (b []uint8, check func(t *testing.T)) {
	const margin = 64
	whole := make([]uint8, n+2*margin)
	for i := range whole {
		whole[i] = guard
	}
	return whole[margin : margin+n : margin+n], func(t *testing.T) {
		t.Helper()
		for i, v := range whole {
			at := i - margin
			if v != guard && (at < 0 || at >= n || at%ld >= width) {
				t.Fatalf("wrote %d outside the result, at offset %d", v, at)
			}
		}
	}
}

// atEveryLevel runs f as a subtest of each level the machine has.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	for level := range Levels.Each() {
		t.Run(level.String(), f)
	}
}

// seeds runs f with n seeded random sources and names the seed of a failure.
func seeds(t *testing.T, n uint64, f func(t *testing.T, rng *rand.Rand)) {
	for seed := range n {
		f(t, rand.New(rand.NewPCG(seed, 7)))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
