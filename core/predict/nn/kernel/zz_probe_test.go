package kernel

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

func minTime(f func()) float64 {
	best := 1e18
	for r := 0; r < 200; r++ {
		t := time.Now()
		f()
		if d := float64(time.Since(t).Nanoseconds()); d < best {
			best = d
		}
	}
	return best
}

func TestProbe(t *testing.T) {
	what := os.Getenv("PROBE")
	if what == "" {
		t.Skip()
	}
	if l := os.Getenv("LEVEL"); l != "" {
		defer Force(l)()
	}
	rng := rand.New(rand.NewPCG(1, 2))
	// peak
	{
		m, k, n := 14, 256, 32
		w := PackF32(floats(rng, n*k), floats(rng, n), n, k)
		a, dst := floats(rng, m*k), make([]float32, m*n)
		d := minTime(func() {
			for range 50 {
				GemmF32(dst, n, a, k, m, w, nil, 0, 0, 6)
			}
		})
		fmt.Printf("L1 14x256x32 f32 %.1f\n", float64(100*m*k*n)/d)
		ws := PackS8(int8sOf(rng, n*k*4), n, k*4)
		as, ds := bytesOf(rng, m*k*4), make([]uint8, m*n)
		q := &Requant{Bias: make([]int32, n), Scale: floats(rng, n), Hi: 255}
		d = minTime(func() {
			for range 50 {
				GemmU8(ds, n, as, k*4, m, ws, q, nil)
			}
		})
		fmt.Printf("L1 14x1024x32 u8 %.1f\n", float64(400*m*k*n)/d)
	}
	tf, ti := 0.0, 0.0
	for _, s := range mobileNetV2[:21] {
		m, k, n := s[0], s[1], s[2]
		w := PackF32(floats(rng, n*k), floats(rng, n), n, k)
		a, dst := floats(rng, m*k), make([]float32, m*n)
		df := minTime(func() { GemmF32(dst, n, a, k, m, w, nil, 0, 0, 6) })
		ws := PackS8(int8sOf(rng, n*k), n, k)
		as, ds := bytesOf(rng, m*k), make([]uint8, m*n)
		q := &Requant{Bias: make([]int32, n), Scale: floats(rng, n), Hi: 255}
		di := minTime(func() { GemmU8(ds, n, as, k, m, ws, q, nil) })
		fmt.Printf("%5d x %4d x %4d  f32 %7.1f us %6.1f   u8 %7.1f us %6.1f\n", m, k, n, df/1e3, float64(2*m*k*n)/df, di/1e3, float64(2*m*k*n)/di)
		tf += df
		ti += di
	}
	fmt.Printf("total f32 %.3f ms u8 %.3f ms\n", tf/1e6, ti/1e6)
	tf, ti = 0, 0
	for _, s := range [][4]int{{112, 32, 1, 1}, {56, 96, 2, 1}, {56, 144, 1, 1}, {28, 144, 2, 1}, {28, 192, 1, 2}, {14, 192, 2, 1}, {14, 384, 1, 4}, {14, 576, 1, 2}, {7, 576, 2, 1}, {7, 960, 1, 3}} {
		o, c, st := s[0], s[1], s[2]
		iw := (o-1)*st + 3
		w := PackDepthwiseF32(floats(rng, c*9), floats(rng, c), c, 3, 3)
		a, dst := floats(rng, iw*iw*c), make([]float32, o*o*c)
		df := minTime(func() {
			for y := range o {
				DepthwiseRowF32(dst[y*o*c:], a[y*st*iw*c:], iw*c, o, st, 1, w, 0, 6)
			}
		})
		ws := PackDepthwiseS8(int8sOf(rng, c*9), c, 3, 3)
		as, ds := bytesOf(rng, iw*iw*c), make([]uint8, o*o*c)
		q := &Requant{Bias: make([]int32, c), Scale: floats(rng, c), Hi: 255}
		di := minTime(func() {
			for y := range o {
				DepthwiseRowU8(ds[y*o*c:], as[y*st*iw*c:], iw*c, o, st, 1, ws, q)
			}
		})
		ops := float64(2 * o * o * c * 9)
		fmt.Printf("dw %3d x %4d / %d  f32 %7.1f us %6.1f   u8 %7.1f us %6.1f  x%d\n", o, c, st, df/1e3, ops/df, di/1e3, ops/di, s[3])
		tf += df * float64(s[3])
		ti += di * float64(s[3])
	}
	fmt.Printf("depthwise f32 %.3f ms u8 %.3f ms\n", tf/1e6, ti/1e6)
	{
		y, r := bytesOf(rng, 784*32), bytesOf(rng, 784*32)
		p := addOf(rng)
		fmt.Printf("addU8 25088: %.1f us\n", minTime(func() { AddU8(y, y, r, p) })/1e3)
		s := make([]uint32, 1280)
		src := bytesOf(rng, 49*1280)
		fmt.Printf("sum 49x1280: %.1f us\n", minTime(func() { SumRowsU8(s, src, 1280, 49) })/1e3)
	}
}
