package nn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
	"github.com/sightline-dev/sightline/core/testkit"
)

// loadNetwork reads the plan of the released network.
func loadNetwork(t testing.TB) *nn.Network {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testkit.Root(t), "models", "general-v1.3", "network.plan"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := nn.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// prepare compiles n and makes its input, bytes of a fixed pattern.
func prepare(t testing.TB, n *nn.Network) (*nn.Session, nn.Tensor) {
	t.Helper()
	p := plan(t, n, nn.Options{})
	in := nn.Tensor{Type: p.Input().Type, Shape: p.Input().Shape}
	in.U8 = make([]uint8, in.Len())
	for i := range in.U8 {
		in.U8[i] = uint8(i * 7919 >> 4)
	}
	return p.NewSession(), in
}

// BenchmarkRun reports the least and the median processor time, since other work shares the machine.
func BenchmarkRun(b *testing.B) {
	s, in := prepare(b, loadNetwork(b))
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

// TestProfile prints how the time of the released network is spent, under -v and SIGHTLINE_PROFILE.
func TestProfile(t *testing.T) {
	if os.Getenv("SIGHTLINE_PROFILE") == "" {
		t.Skip("SIGHTLINE_PROFILE is not set")
	}
	t.Logf("level %s", kernel.Levels.Current())
	s, in := prepare(t, loadNetwork(t))
	runtime.LockOSThread() // one thread's clock
	defer runtime.UnlockOSThread()
	times, err := s.Profile(in, 30, cpuTime)
	if err != nil {
		t.Fatal(err)
	}
	var total time.Duration
	for _, st := range times {
		fmt.Printf("%8.1f µs  %-40s %v\n", float64(st.Best.Nanoseconds())/1000, st.Name, st.Shape)
		total += st.Best
	}
	fmt.Printf("%8.1f µs  together\n", float64(total.Nanoseconds())/1000)
}
