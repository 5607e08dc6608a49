package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
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

// mobileNetV2Rows lists its depthwise convolutions: output side, channels, stride.
var mobileNetV2Rows = [][3]int{
	{112, 32, 1},
	{56, 96, 2},
	{56, 144, 1},
	{28, 144, 2},
	{28, 192, 1},
	{14, 192, 2},
	{14, 384, 1},
	{14, 576, 1},
	{7, 576, 2},
	{7, 960, 1},
}

// perLevel runs a benchmark at each level the machine has and reports the rate of
// ops operations (a multiply-add is two).
func perLevel(b *testing.B, name string, ops int, f func()) {
	for level := range kernel.Levels.Each() {
		b.Run(fmt.Sprintf("%s/level=%s", name, level), func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(ops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GOP/s")
		})
	}
}

// alignedCopy copies v to new memory. A large slice begins at a page there, as activations do in an arena.
func alignedCopy[T any](v []T) []T { return append(make([]T, 0, len(v)), v...) }

func benchRequant(rng *rand.Rand, n int) *kernel.Requant {
	q := &kernel.Requant{Bias: make([]int32, n), Scale: make([]float32, n), Hi: 255}
	for j := range q.Scale {
		q.Scale[j] = rng.Float32() / 1000
	}
	return q
}

func BenchmarkGemm(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range mobileNetV2 {
		m, k, n := s[0], s[1], s[2]
		name := fmt.Sprintf("m=%d/k=%d/n=%d", m, k, n)
		w, a, dst := kernel.PackF32(kerneltest.Floats(rng, n*k), nil, n, k), alignedCopy(kerneltest.Floats(rng, m*k)), make([]float32, m*n)
		perLevel(b, name+"/f32", 2*m*k*n, func() { kernel.GemmF32(dst, n, a, k, m, w, nil, 0, 0, 6) })
		w8, q := kernel.PackS8(kerneltest.Int8s(rng, n*k), n, k), benchRequant(rng, n)
		a8, dst8 := alignedCopy(kerneltest.Bytes(rng, m*k)), make([]uint8, m*n)
		perLevel(b, name+"/u8", 2*m*k*n, func() { kernel.GemmU8(dst8, n, a8, k, m, w8, q, nil) })
	}
}

func BenchmarkDepthwise(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range mobileNetV2Rows {
		o, c, stride := s[0], s[1], s[2]
		name := fmt.Sprintf("side=%d/c=%d/stride=%d", o, c, stride)
		in := (o-1)*stride + 3
		d := kernel.Depthwise{Rows: o, Width: o, DstStep: o * c, SrcStep: stride * in * c, SrcStride: in * c, StrideX: stride, DilationX: 1}
		ops := 2 * 9 * o * o * c
		w := kernel.PackDepthwiseF32(kerneltest.Floats(rng, 9*c), nil, c, 3, 3)
		a, dst := alignedCopy(kerneltest.Floats(rng, in*in*c)), make([]float32, o*o*c)
		perLevel(b, name+"/f32", ops, func() { kernel.DepthwiseRowsF32(dst, a, d, w, 0, 6) })
		w8, q := kernel.PackDepthwiseS8(kerneltest.Int8s(rng, 9*c), c, 3, 3), benchRequant(rng, c)
		a8, dst8 := alignedCopy(kerneltest.Bytes(rng, in*in*c)), make([]uint8, o*o*c)
		perLevel(b, name+"/u8", ops, func() { kernel.DepthwiseRowsU8(dst8, a8, d, w8, q) })
	}
}

func BenchmarkAddF32(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	y, r := alignedCopy(kerneltest.Floats(rng, 784*32)), alignedCopy(kerneltest.Floats(rng, 784*32))
	dst := make([]float32, len(y))
	perLevel(b, "n=25088", len(y), func() { kernel.AddF32(dst, y, r) })
}

func BenchmarkAddU8(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	y, r, p := alignedCopy(kerneltest.Bytes(rng, 784*32)), alignedCopy(kerneltest.Bytes(rng, 784*32)), kerneltest.NewAdd(rng)
	dst := make([]uint8, len(y))
	perLevel(b, "n=25088", len(y), func() { kernel.AddU8(dst, y, r, p) })
}
