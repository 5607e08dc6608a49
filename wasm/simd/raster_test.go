package simd_test

import (
	"encoding/binary"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
)

func f32bytes(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }

func uint32sOf(rng *rand.Rand, n int, below uint32) []uint32 {
	v := make([]uint32, n)
	for i := range v {
		v[i] = rng.Uint32N(below)
	}
	return v
}

func TestAddRows(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n, taps := newArena(t, rng), 1+rng.IntN(50), rng.IntN(6)
		stride := n + rng.IntN(9)
		pix, w, sums := kerneltest.Bytes(rng, max(taps-1, 0)*stride+n), uint32sOf(rng, taps, 1<<21), uint32sOf(rng, n, 1<<30)
		dst := put(a, sums)
		a.may(dst, 1, 0, 4*n)
		for k, f := range w {
			for i := range sums {
				sums[i] += f * uint32(pix[k*stride+i])
			}
		}
		a.call("add_rows", dst, last(a, pix), stride, put(a, w), taps, n)
		equal(t, "add_rows", get[uint32](a, dst, n), sums)
	})
}

func TestAcross(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n, taps := newArena(t, rng), 1+rng.IntN(30), 1+rng.IntN(5)
		sums, first, w := uint32sOf(rng, 40+taps, 1<<16), make([]int32, n), uint32sOf(rng, n*taps, 1<<8)
		half, m := uint64(rng.Uint32N(1<<20)), rng.Uint64N(1<<40)
		want := make([]uint8, n)
		for i := range want {
			first[i] = rng.Int32N(41)
			sum := uint32(0)
			for k := range taps {
				sum += sums[int(first[i])+k] * w[i*taps+k]
			}
			want[i] = byte((uint64(sum) + half) * m >> 56)
		}
		dst := a.out(1, 0, n)
		a.call("across", dst, last(a, sums), put(a, first), put(a, w), taps, n, half, m)
		equal(t, "across", get[uint8](a, dst, n), want)
	})
}

func TestColours(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a, n := newArena(t, rng), 1+rng.IntN(40)
		y, cb, cr, want := kerneltest.Bytes(rng, n), kerneltest.Bytes(rng, n), kerneltest.Bytes(rng, n), make([]uint8, 3*n)
		for i := range n {
			want[3*i], want[3*i+1], want[3*i+2] = color.YCbCrToRGB(y[i], cb[i], cr[i])
		}
		dst := a.out(1, 0, 3*n)
		a.call("ycbcr", dst, put(a, y), put(a, cb), last(a, cr), n)
		equal(t, "ycbcr", get[uint8](a, dst, 3*n), want)
	})
}

// TestInverse compares the kernels with the cosine transform in float64. The tests of raster/jpg, which
// also run over the module, compare the bits with image/jpeg.
func TestInverse(t *testing.T) {
	rounds(t, 50, func(t *testing.T, rng *rand.Rand) {
		a := newArena(t, rng)
		for _, side := range []int{8, 4} {
			b, quant := make([]int32, 64), make([]int32, 64)
			for i := range side * side {
				quant[i] = 1 + rng.Int32N(8)
				b[i] = rng.Int32N(41) - 20
			}
			b[0] = rng.Int32N(200) - 100
			stride := side + rng.IntN(9)
			dst := put(a, make([]uint8, (side-1)*stride+side))
			at := put(a, b)
			a.may(dst, side, stride, side)
			a.may(at, 1, 0, 256)
			a.call(map[int]string{8: "inverse8", 4: "inverse4"}[side], dst, stride, at, last(a, quant))
			got := get[uint8](a, dst, (side-1)*stride+side)
			for y := range side {
				for x := range side {
					want := math.Min(math.Max(128+cosines(b, quant, side, x, y), 0), 255)
					if math.Abs(float64(got[y*stride+x])-want) > 1.5 {
						t.Fatalf("inverse%d at %d, %d = %d, want about %.1f", side, x, y, got[y*stride+x], want)
					}
				}
			}
			for i, v := range get[int32](a, at, side*side) {
				if v != 0 {
					t.Fatalf("inverse%d leaves %d in coefficient %d", side, v, i)
				}
			}
		}
	})
}

// cosines returns sample x, y of a block whose coefficients are stored column by column. A block of side
// four has the same scale as one of side eight.
func cosines(b, quant []int32, side, x, y int) float64 {
	sum, n := 0.0, float64(2*side)
	for u := range side {
		for v := range side {
			c := float64(b[u*side+v]*quant[u*side+v]) * math.Cos(float64(2*x+1)*float64(u)*math.Pi/n) * math.Cos(float64(2*y+1)*float64(v)*math.Pi/n)
			for _, f := range []int{u, v} {
				if f == 0 {
					c /= math.Sqrt2
				}
			}
			sum += c / 4
		}
	}
	return sum
}

func TestGuestDecodesPictures(t *testing.T) {
	a := newArena(t, rand.New(rand.NewPCG(1, 1)))
	if got := int64(a.call("decode", 0, 0, 0, 0, 0, 0)); got != -1 {
		t.Errorf("decode = %d, want -1", got)
	}
}
