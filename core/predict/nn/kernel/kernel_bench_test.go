package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// mobileNetV2 lists the products of MobileNetV2-1.0 at 224: m, k, n.
var mobileNetV2 = [][3]int{
	{12544, 27, 32},
	{12544, 32, 16},
	{12544, 16, 96},
	{3136, 96, 24},
	{3136, 24, 144},
	{3136, 144, 24},
	{784, 144, 32},
	{784, 32, 192},
	{784, 192, 32},
	{196, 192, 64},
	{196, 64, 384},
	{196, 384, 64},
	{196, 384, 96},
	{196, 96, 576},
	{196, 576, 96},
	{49, 576, 160},
	{49, 160, 960},
	{49, 960, 160},
	{49, 960, 320},
	{49, 320, 1280},
	{1, 1280, 1000},
	{1, 1280, 256},
	{196, 1152, 256},
}

// perLevel runs a benchmark at each level the machine has and reports the rate of
// ops operations (a multiply-add is two).
func perLevel(b *testing.B, name string, ops int, f func()) {
	for _, level := range Levels() {
		b.Run(fmt.Sprintf("%s/%s", name, level), func(b *testing.B) {
			defer Force(level)()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(ops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GOP/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e3, "µs/op")
		})
	}
}

func floats(rng *rand.Rand, n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = rng.Float32() - 0.5
	}
	return f
}

func BenchmarkGemmF32(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range mobileNetV2 {
		m, k, n := s[0], s[1], s[2]
		w := PackF32(floats(rng, n*k), floats(rng, n), n, k)
		a, dst := floats(rng, m*k), make([]float32, m*n)
		perLevel(b, fmt.Sprintf("m=%d/k=%d/n=%d", m, k, n), 2*m*k*n, func() {
			GemmF32(dst, n, a, k, m, w, nil, 0, 0, 6)
		})
	}
}

func BenchmarkGemmU8(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range mobileNetV2 {
		m, k, n := s[0], s[1], s[2]
		w := PackS8(int8sOf(rng, n*k), n, k)
		a, dst := bytesOf(rng, m*k), make([]uint8, m*n)
		q := &Requant{Bias: make([]int32, n), Scale: floats(rng, n), Hi: 255}
		perLevel(b, fmt.Sprintf("m=%d/k=%d/n=%d", m, k, n), 2*m*k*n, func() {
			GemmU8(dst, n, a, k, m, w, q, nil)
		})
	}
}
