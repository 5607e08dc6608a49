//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

//go:generate go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//go:generate go run ./asm -level avx2 -out kernel_avx2_amd64.s -stubs stubs_avx2_amd64.go -pkg kernel

// level is what Level names. It changes only in Force.
var level = Levels()[0]

// Level names the level in use.
func Level() string { return level }

// Levels lists the levels this machine can run, fastest first.
func Levels() []string {
	x := &cpu.X86
	var have []string
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ {
		have = append(have, AVX512)
	}
	if x.HasAVX2 {
		have = append(have, AVX2)
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

func product(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	if level == Generic || k == 0 {
		productGeneric(dst, ldd, a, lda, m, panel, k)
		return
	}
	for i := 0; i < m; {
		d, r, b := &dst[i*ldd], &a[i*lda], &panel[0]
		switch left := m - i; {
		case level == AVX512 && left >= 8:
			product8AVX512(d, ldd, r, lda, b, k)
			i += 8
		case level == AVX512 && left >= 4:
			product4AVX512(d, ldd, r, lda, b, k)
			i += 4
		case level == AVX512 && left >= 2:
			product2AVX512(d, ldd, r, lda, b, k)
			i += 2
		case level == AVX512:
			product1AVX512(d, ldd, r, lda, b, k)
			i++
		case left >= 2:
			product2AVX2(d, ldd, r, lda, b, k)
			i += 2
		default:
			product1AVX2(d, ldd, r, lda, b, k)
			i++
		}
	}
}

func dot(a, b []float32) float32 {
	switch {
	case len(a) == 0 || level == Generic:
		return dotGeneric(a, b)
	case level == AVX512:
		return dotAVX512(&a[0], &b[0], len(a))
	}
	return dotAVX2(&a[0], &b[0], len(a))
}

func axpy(y []float32, f float32, x []float32) {
	switch {
	case len(y) == 0 || level == Generic:
		axpyGeneric(y, f, x)
	case level == AVX512:
		axpyAVX512(&y[0], f, &x[0], len(y))
	default:
		axpyAVX2(&y[0], f, &x[0], len(y))
	}
}

func residual(r, z []float32, bias float32, w, y []float32) {
	switch {
	case len(r) == 0 || level == Generic:
		residualGeneric(r, z, bias, w, y)
	case level == AVX512:
		residualAVX512(&r[0], &z[0], bias, &w[0], &y[0], len(r))
	default:
		residualAVX2(&r[0], &z[0], bias, &w[0], &y[0], len(r))
	}
}

func raise(top, z []float32, bias float32) {
	switch {
	case len(z) == 0 || level == Generic:
		raiseGeneric(top, z, bias)
	case level == AVX512:
		raiseAVX512(&top[0], &z[0], bias, len(z))
	default:
		raiseAVX2(&top[0], &z[0], bias, len(z))
	}
}

func exp(z []float32, bias float32, top, sum []float32) {
	switch {
	case len(z) == 0 || level == Generic:
		expGeneric(z, bias, top, sum)
	case level == AVX512:
		expAVX512(&z[0], bias, &top[0], &sum[0], len(z))
	default:
		expAVX2(&z[0], bias, &top[0], &sum[0], len(z))
	}
}

func share(r, e, sum, w, y []float32) {
	switch {
	case len(r) == 0 || level == Generic:
		shareGeneric(r, e, sum, w, y)
	case level == AVX512:
		shareAVX512(&r[0], &e[0], &sum[0], &w[0], &y[0], len(r))
	default:
		shareAVX2(&r[0], &e[0], &sum[0], &w[0], &y[0], len(r))
	}
}

func rows(dst, w []float32, q []int16) {
	switch {
	case len(dst) == 0 || len(w) == 0 || level == Generic:
		rowsGeneric(dst, w, q)
	case level == AVX512:
		rowsAVX512(&dst[0], len(dst), &w[0], len(w), &q[0])
	default:
		rowsAVX2(&dst[0], len(dst), &w[0], len(w), &q[0])
	}
}
