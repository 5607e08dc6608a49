package nn_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// benchCases are the networks that benchmarks run, with a shared input.
var benchCases = []struct{ name, dir, file, input string }{
	{"mobilenet_v2_1.0_224", "onnx", "mobilenet_v2_1.0_224.onnx", "input_224_cat.f32"},
	{"mobilenet_v1_0.25_128", "onnx", "mobilenet_v1_0.25_128.onnx", "input_128_cat.f32"},
	{"ultraface", "onnx", "ultraface_rfb-320_simplified.onnx", "input_face_240x320.f32"},
	{"general", "model", "general.onnx", "input_224_cat.f32"},
}

func BenchmarkRun(b *testing.B) {
	for _, tt := range benchCases {
		b.Run("net="+tt.name, func(b *testing.B) {
			runBenchmark(b, network(b, tt.dir, tt.file), floatsFile(b, "onnx", tt.input))
		})
	}
	b.Run("net=general_int8", func(b *testing.B) {
		runBenchmark(b, toQDQ(network(b, "model", "general.onnx")), nil)
	})
}

// runBenchmark reports processor time, median and least: other work shares the machine.
func runBenchmark(b *testing.B, g *onnx.Graph, x []float32) {
	s, in := prepare(b, g, x)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var times []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := cpuTime()
		if _, err := s.Run(in); err != nil {
			b.Fatal(err)
		}
		times = append(times, cpuTime()-start)
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[0].Microseconds()), "cpu-min-µs")
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "cpu-med-µs")
}

// prepare compiles g and makes its input: x, or bytes of a fixed pattern.
func prepare(t testing.TB, g *onnx.Graph, x []float32) (*nn.Session, []nn.Tensor) {
	t.Helper()
	p, err := nn.Compile(g, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := nn.Tensor{Type: p.Inputs()[0].Type, Shape: p.Inputs()[0].Shape, F32: x}
	if in.Type == onnx.Uint8 {
		in.U8 = make([]uint8, in.Len())
		for i := range in.U8 {
			in.U8[i] = uint8(i * 7919 >> 4)
		}
	}
	return p.NewSession(), []nn.Tensor{in}
}

// TestProfile prints where the time of each network goes, under -v and SIGHTLINE_PROFILE.
func TestProfile(t *testing.T) {
	only := os.Getenv("SIGHTLINE_PROFILE")
	if only == "" {
		t.Skip("SIGHTLINE_PROFILE names no network")
	}
	t.Logf("level %s", kernel.Levels.Now())
	for _, tt := range benchCases {
		if tt.name != only {
			continue
		}
		s, in := prepare(t, network(t, tt.dir, tt.file), floatsFile(t, "onnx", tt.input))
		printProfile(t, s, in)
	}
	if only == "general_int8" {
		s, in := prepare(t, toQDQ(network(t, "model", "general.onnx")), nil)
		printProfile(t, s, in)
	}
}

func printProfile(t *testing.T, s *nn.Session, in []nn.Tensor) {
	t.Helper()
	runtime.LockOSThread() // one thread's clock
	defer runtime.UnlockOSThread()
	times, err := s.Profile(in, 30, cpuTime)
	if err != nil {
		t.Fatal(err)
	}
	var total time.Duration
	for _, st := range times {
		fmt.Printf("%8.1f µs  %-60s %v\n", float64(st.Best.Nanoseconds())/1000, st.Name, st.Shape)
		total += st.Best
	}
	fmt.Printf("%8.1f µs  together\n", float64(total.Nanoseconds())/1000)
}
