package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// oracle is the slow obvious model: one output at a time, straight from the contract.
type oracle struct {
	m, n, segs, seg  int
	stepX, srcStride int
	src              []uint8
	w                []int8
	bias             []int32
	scale            []float32
	zero             int32
	lo, hi           uint8
	ldd              int
	rng              *rand.Rand
}

func newOracle(rng *rand.Rand, m, n, segs, seg int) *oracle {
	o := &oracle{m: m, n: n, segs: segs, seg: seg, rng: rng}
	o.stepX = rng.IntN(seg + 9)
	o.srcStride = (m-1)*o.stepX + seg + rng.IntN(5)
	o.ldd = n + rng.IntN(7)
	o.src = bytesOf(rng, (m-1)*o.stepX+(segs-1)*o.srcStride+seg)
	o.w = int8sOf(rng, n*segs*seg)
	o.bias = make([]int32, n)
	o.scale = make([]float32, n)
	for j := range n {
		o.bias[j] = int32(rng.IntN(1<<16) - 1<<15)
		o.scale[j] = float32(math.Exp2(rng.Float64()*24 - 22))
		if rng.IntN(20) == 0 {
			o.bias[j] = int32(rng.Uint32())
		}
	}
	o.zero = int32(rng.IntN(256))
	o.lo = uint8(rng.IntN(256))
	o.hi = o.lo + uint8(rng.IntN(256-int(o.lo)))
	if rng.IntN(2) == 0 {
		o.zero, o.lo, o.hi = 0, 0, 255
	}
	return o
}

// bytesOf returns n random bytes at an odd alignment, with runs of extremes.
func bytesOf(rng *rand.Rand, n int) []uint8 {
	off := rng.IntN(64)
	b := make([]uint8, n+off)[off:]
	extreme := rng.IntN(4) == 0
	for i := range b {
		b[i] = uint8(rng.Uint32())
		if extreme {
			b[i] = 255 * uint8(rng.IntN(8)/1&1|rng.IntN(2))
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

func (o *oracle) acc(i, j int) int32 {
	var s int32
	for g := range o.segs {
		for t := range o.seg {
			s += int32(o.src[i*o.stepX+g*o.srcStride+t]) * int32(o.w[(j*o.segs+g)*o.seg+t])
		}
	}
	return s
}

func (o *oracle) q(acc int32, j int) uint8 {
	p := float32(acc+o.bias[j]) * o.scale[j]
	v := math.RoundToEven(float64(p)) + float64(o.zero)
	return uint8(math.Min(math.Max(v, float64(o.lo)), float64(o.hi)))
}

func (o *oracle) requant() *Requant {
	return &Requant{Bias: o.bias, Scale: o.scale, Zero: o.zero, Lo: o.lo, Hi: o.hi}
}

// atEveryLevel runs f as a subtest of each level the machine has.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	for _, level := range Levels() {
		t.Run(level, func(t *testing.T) {
			defer Force(level)()
			f(t)
		})
	}
}

func TestConvRowU8IsTheContract(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for seed := range uint64(600) {
			rng := rand.New(rand.NewPCG(seed, 1))
			o := newOracle(rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
			w := PackConvS8(o.w, o.n, o.segs, o.seg)
			const guard = 0xA5
			dst := make([]uint8, (o.m-1)*o.ldd+o.n+64)
			for i := range dst {
				dst[i] = guard
			}
			ConvRowU8(dst[:(o.m-1)*o.ldd+o.n], o.ldd, o.src, o.stepX, o.srcStride, o.m, w, o.requant(), nil)
			raw := make([]int32, (o.m-1)*o.ldd+o.n)
			ConvRowI32(raw, o.ldd, o.src, o.stepX, o.srcStride, o.m, w, o.bias)
			for p, got := range dst {
				i, j := p/o.ldd, p%o.ldd
				want := uint8(guard)
				if i < o.m && j < o.n {
					acc := o.acc(i, j)
					want = o.q(acc, j)
					if raw[p] != acc+o.bias[j] {
						t.Fatalf("seed %d: ConvRowI32(m=%d n=%d segs=%d seg=%d)[%d,%d] = %d, want %d", seed, o.m, o.n, o.segs, o.seg, i, j, raw[p], acc+o.bias[j])
					}
				}
				if got != want {
					t.Fatalf("seed %d: ConvRowU8(m=%d n=%d segs=%d seg=%d)[%d,%d] = %d, want %d", seed, o.m, o.n, o.segs, o.seg, i, j, got, want)
				}
			}
		}
	})
}
