//go:build !purego

package kernel

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// level is what Level names. It changes only in Force.
var level = Levels()[0]

// Level names the level in use.
func Level() string { return level }

// Levels lists the levels this machine can run, fastest first.
func Levels() []string {
	x := &cpu.X86
	var have []string
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI {
		have = append(have, AVX512VNNI)
	}
	return append(have, Generic)
}

// Force switches to a level of [Levels] and returns a function that switches
// back. It is for tests and benchmarks: it must not run beside other calls. It
// panics for a level the machine cannot run.
func Force(to string) (restore func()) {
	for _, l := range Levels() {
		if l == to {
			was := level
			level = to
			return func() { level = was }
		}
	}
	panic("kernel: level " + to + " is not available")
}

// gemmChunk is how many bytes of a the products keep close while they go through
// the panels of the weights.
const gemmChunk = 128 << 10

func gemmF32(dst []float32, ldd int, a []float32, lda, segStride, m int, w *PackedF32, res []float32, ldr int, lo, hi float32) {
	if level == Generic || w.K == 0 {
		gemmF32Generic(dst, ldd, a, lda, segStride, m, w, res, ldr, lo, hi)
		return
	}
	args := tileArgs{
		lda: lda * 4, segStep: segStride * 4, segs: w.Segs, k: w.Seg, bStep: w.K * panel * 4,
		ldc: ldd * 4, lo: bits(lo), hi: bits(hi),
	}
	if res != nil {
		args.ldr = ldr * 4
	}
	eachPanelPair(m, w.N, w.K*4, func(i, rows, j, width int) {
		args.b = unsafe.Pointer(&w.b[j*w.K])
		args.bias = unsafe.Pointer(&w.Bias[j])
		args.mask = 1<<min(w.N-j, 32) - 1
		tilesF32.block(rows, width, &args, func(row int) {
			args.a = unsafe.Pointer(&a[(i+row)*lda])
			args.c = unsafe.Pointer(&dst[(i+row)*ldd+j])
			if res != nil {
				args.res = unsafe.Pointer(&res[(i+row)*ldr+j])
			}
		})
	})
}

// eachPanelPair calls f for blocks of rows whose part of a (rowBytes each) stays
// in cache and, inside each, for every one or two panels of columns.
func eachPanelPair(m, n, rowBytes int, f func(i, rows, j, width int)) {
	chunk := max(gemmChunk/rowBytes/14, 1) * 14
	for i := 0; i < m; i += chunk {
		for j := 0; j < n; j += 2 * panel {
			f(i, min(chunk, m-i), j, min((n-j+panel-1)/panel, 2))
		}
	}
}

// safeRows is how many of m rows assembly that reads whole groups of four may
// take: it must not pass the end of a.
func safeRows(n, lda, segStride, m int, w *PackedS8) int {
	if w.Seg%4 == 0 {
		return m
	}
	need := (w.Segs-1)*segStride + w.seg4*4
	for m > 0 && (m-1)*lda+need > n {
		m--
	}
	return m
}

func byteArgs(lda, segStride int, w *PackedS8) tileArgs {
	return tileArgs{lda: lda, segStep: segStride, segs: w.Segs, k: w.seg4, bStep: w.panelBytes()}
}

func gemmU8(dst []uint8, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, q *Requant) {
	safe := 0
	if level != Generic && w.K > 0 {
		safe = safeRows(len(a), lda, segStride, m, w)
	}
	if safe < m {
		gemmU8Generic(dst[safe*ldd:], ldd, a[safe*lda:], lda, segStride, m-safe, w, q)
	}
	args := byteArgs(lda, segStride, w)
	args.ldc, args.lo, args.hi, args.zero = ldd, uint64(q.Lo), bits(float32(int32(q.Hi)-q.Zero)), int(q.Zero)
	eachPanelPair(safe, w.N, w.K, func(i, rows, j, width int) {
		args.b = unsafe.Pointer(&w.b[j/panel*w.panelBytes()])
		args.bias = unsafe.Pointer(&q.Bias[j])
		args.scale = unsafe.Pointer(&q.Scale[j])
		args.mask = 1<<min(w.N-j, 32) - 1
		tilesU8.block(rows, width, &args, func(row int) {
			args.a = unsafe.Pointer(&a[(i+row)*lda])
			args.c = unsafe.Pointer(&dst[(i+row)*ldd+j])
		})
	})
}

// noBias stands for a missing bias: as wide as one call reads.
var noBias [2 * panel]int32

func gemmI32(dst []int32, ldd int, a []uint8, lda, segStride, m int, w *PackedS8, bias []int32) {
	safe := 0
	if level != Generic && w.K > 0 {
		safe = safeRows(len(a), lda, segStride, m, w)
	}
	if safe < m {
		gemmI32Generic(dst[safe*ldd:], ldd, a[safe*lda:], lda, segStride, m-safe, w, bias)
	}
	args := byteArgs(lda, segStride, w)
	args.ldc = ldd * 4
	eachPanelPair(safe, w.N, w.K, func(i, rows, j, width int) {
		args.b = unsafe.Pointer(&w.b[j/panel*w.panelBytes()])
		args.bias = unsafe.Pointer(&noBias)
		if bias != nil {
			args.bias = unsafe.Pointer(&bias[j])
		}
		args.mask = 1<<min(w.N-j, 32) - 1
		tilesI32.block(rows, width, &args, func(row int) {
			args.a = unsafe.Pointer(&a[(i+row)*lda])
			args.c = unsafe.Pointer(&dst[(i+row)*ldd+j])
		})
	})
}

// gemvU16 splits a into its low and high bytes, two rows of one exact product.
func gemvU16(dst []int64, a []uint16, w *PackedS8, bias []int32) {
	const most = 4096
	k4 := w.seg4 * 4
	if level == Generic || 2*k4 > most || w.K > math.MaxInt32/(255*128) {
		gemvU16Generic(dst, a, w, bias)
		return
	}
	var bytes [most]uint8
	for k, v := range a {
		bytes[k] = uint8(v)
		bytes[k4+k] = uint8(v >> 8)
	}
	var acc [2 * panel]int32
	for j := 0; j < w.N; j += panel {
		part := PackedS8{N: min(panel, w.N-j), K: w.K, Segs: 1, Seg: w.Seg, seg4: w.seg4, b: w.b[j/panel*w.panelBytes():]}
		gemmI32(acc[:], panel, bytes[:], k4, 0, 2, &part, nil)
		for c := range part.N {
			dst[j+c] = int64(acc[c]) + int64(acc[panel+c])<<8
			if bias != nil {
				dst[j+c] += int64(bias[j+c])
			}
		}
	}
}
