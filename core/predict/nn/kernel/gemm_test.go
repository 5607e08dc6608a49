package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// testConvU8 holds one product to the contract.
func testConvU8(t *testing.T, p *product) {
	t.Helper()
	w := PackConvS8(p.w, p.n, p.segs, p.seg)
	dst, check := guarded((p.m-1)*p.ldd+p.n, p.ldd, p.n)
	ConvRowU8(dst, p.ldd, p.src, p.stepX, p.srcStride, p.m, w, p.q, nil)
	check(t)
	for i := range p.m {
		for j := range p.n {
			if got, want := dst[i*p.ldd+j], byteFor(p.q, p.acc(i, j), j); got != want {
				t.Errorf("ConvRowU8(m=%d n=%d segs=%d seg=%d)[%d,%d] = %d, want %d", p.m, p.n, p.segs, p.seg, i, j, got, want)
				return
			}
		}
	}
}

func TestConvU8AtRandom(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
			testConvU8(t, newProduct(rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40)))
		})
	})
}

func TestConvU8EveryLength(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 3))
		for size := 1; size <= 257 && !t.Failed(); size++ {
			testConvU8(t, newProduct(rng, 3, 5, 1, size))
			testConvU8(t, newProduct(rng, size, 5, 1, 4))
			testConvU8(t, newProduct(rng, 3, size, 1, 9))
		}
	})
}

func TestGemmU8ThenAdd(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 200, func(t *testing.T, rng *rand.Rand) {
			p := newProduct(rng, 1+rng.IntN(40), 1+rng.IntN(70), 1, 1+rng.IntN(40))
			if rng.IntN(20) == 0 {
				p = newProduct(rng, 3, 4100, 1, 3)
			}
			add := addOf(rng)
			dst, check := guarded((p.m-1)*p.ldd+p.n, p.ldd, p.n)
			if rng.IntN(2) == 0 {
				add.R, add.LDR = dst, p.ldd
				for i := range p.m {
					copy(dst[i*p.ldd:][:p.n], bytesOf(rng, p.n))
				}
			} else {
				add.LDR = p.n + 3
				add.R = bytesOf(rng, p.m*add.LDR)
			}
			r := append([]uint8(nil), add.R...)
			GemmU8(dst, p.ldd, p.src, p.stepX, p.m, PackS8(p.w, p.n, p.seg), p.q, add)
			check(t)
			for i := range p.m {
				for j := range p.n {
					want := addByte(add, byteFor(p.q, p.acc(i, j), j), r[i*add.LDR+j])
					if got := dst[i*p.ldd+j]; got != want {
						t.Errorf("GemmU8 and add (m=%d n=%d k=%d)[%d,%d] = %d, want %d", p.m, p.n, p.seg, i, j, got, want)
						return
					}
				}
			}
		})
	})
}

func TestGemvU16IsExact(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 300, func(t *testing.T, rng *rand.Rand) {
			n, k := 1+rng.IntN(70), 1+rng.IntN(257)
			if rng.IntN(10) == 0 {
				k = 1280 + rng.IntN(1500)
			}
			w := int8sOf(rng, n*k)
			a := make([]uint16, k)
			for i := range a {
				if a[i] = uint16(rng.Uint32()); rng.IntN(3) == 0 {
					a[i] = math.MaxUint16
				}
			}
			bias := make([]int32, n)
			for j := range bias {
				bias[j] = int32(rng.Uint32())
			}
			got := make([]int64, n)
			GemvU16(got, a, PackS8(w, n, k), bias)
			for j := range n {
				want := int64(bias[j])
				for i, v := range a {
					want += int64(v) * int64(w[j*k+i])
				}
				if got[j] != want {
					t.Errorf("GemvU16(n=%d k=%d)[%d] = %d, want %d", n, k, j, got[j], want)
					return
				}
			}
		})
	})
}

// within reports whether got is want up to terms roundings of parts that together
// have magnitude mass: the tolerance the package states.
func within(got float32, want, mass float64, terms int) bool {
	return math.Abs(float64(got)-want) <= float64(terms+2)*mass*0x1p-23
}

func testConvF32(t *testing.T, rng *rand.Rand, m, n, segs, seg int) {
	t.Helper()
	stepX := rng.IntN(seg + 9)
	srcStride := (m-1)*stepX + seg + rng.IntN(5)
	ldd, ldr := n+rng.IntN(7), n+rng.IntN(7)
	src := floatsOf(rng, (m-1)*stepX+(segs-1)*srcStride+seg)
	w, bias := floatsOf(rng, n*segs*seg), floatsOf(rng, n)
	lo, hi := float32(-1), float32(1.5)
	if rng.IntN(2) == 0 {
		lo, hi = float32(math.Inf(-1)), float32(math.Inf(1))
	}
	var res []float32
	if rng.IntN(2) == 0 {
		res = floatsOf(rng, m*ldr)
	}
	dst := make([]float32, (m-1)*ldd+n+33)
	for i := range dst {
		dst[i] = guard
	}
	ConvRowF32(dst[:(m-1)*ldd+n], ldd, src, stepX, srcStride, m, PackConvF32(w, bias, n, segs, seg), res, ldr, lo, hi)
	for at, got := range dst {
		i, j := at/ldd, at%ldd
		if i >= m || j >= n {
			if got != guard {
				t.Errorf("ConvRowF32(m=%d n=%d segs=%d seg=%d) wrote outside, at %d", m, n, segs, seg, at)
				return
			}
			continue
		}
		want, mass := float64(bias[j]), math.Abs(float64(bias[j]))
		for s := range segs {
			for k := range seg {
				term := float64(src[i*stepX+s*srcStride+k]) * float64(w[(j*segs+s)*seg+k])
				want, mass = want+term, mass+math.Abs(term)
			}
		}
		if res != nil {
			want, mass = want+float64(res[i*ldr+j]), mass+math.Abs(float64(res[i*ldr+j]))
		}
		want = math.Min(math.Max(want, float64(lo)), float64(hi))
		if !within(got, want, mass, segs*seg) {
			t.Errorf("ConvRowF32(m=%d n=%d segs=%d seg=%d)[%d,%d] = %v, want %v", m, n, segs, seg, i, j, got, want)
			return
		}
	}
}

func TestConvF32(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
			testConvF32(t, rng, 1+rng.IntN(33), 1+rng.IntN(70), 1+rng.IntN(3), 1+rng.IntN(40))
		})
		rng := rand.New(rand.NewPCG(3, 3))
		for size := 1; size <= 257 && !t.Failed(); size++ {
			testConvF32(t, rng, 3, 5, 1, size)
			testConvF32(t, rng, size, 5, 1, 4)
			testConvF32(t, rng, 3, size, 1, 9)
		}
	})
}

func TestGemmF32AddsInPlace(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		const m, k, n = 17, 3, 37
		rng := rand.New(rand.NewPCG(1, 1))
		a, w := floatsOf(rng, m*k), PackF32(floatsOf(rng, n*k), nil, n, k)
		dst := floatsOf(rng, m*n)
		want := make([]float32, m*n)
		inf := float32(math.Inf(1))
		GemmF32(want, n, a, k, m, w, dst, n, -inf, inf)
		GemmF32(dst, n, a, k, m, w, dst, n, -inf, inf)
		for i := range dst {
			if dst[i] != want[i] {
				t.Fatalf("GemmF32 in place [%d] = %v, want %v", i, dst[i], want[i])
			}
		}
	})
}
