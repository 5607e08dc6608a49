//go:build !purego

package kernel

import "github.com/sightline-dev/sightline/core/cpu"

//go:generate go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
//go:generate go run ./asm -level avx2 -out kernel_avx2_amd64.s -stubs stubs_avx2_amd64.go -pkg kernel

func product(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	for i := 0; i < m; {
		d, r, b := &dst[i*ldd], &a[i*lda], &panel[0]
		switch left := m - i; {
		case Levels.Current() == cpu.AVX512 && left >= 8:
			product8AVX512(d, ldd, r, lda, b, k)
			i += 8
		case Levels.Current() == cpu.AVX512 && left >= 4:
			product4AVX512(d, ldd, r, lda, b, k)
			i += 4
		case Levels.Current() == cpu.AVX512 && left >= 2:
			product2AVX512(d, ldd, r, lda, b, k)
			i += 2
		case Levels.Current() == cpu.AVX512:
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
	if Levels.Current() == cpu.AVX512 {
		return dotAVX512(&a[0], &b[0], len(a))
	}
	return dotAVX2(&a[0], &b[0], len(a))
}

func axpy(y []float32, f float32, x []float32) {
	if Levels.Current() == cpu.AVX512 {
		axpyAVX512(&y[0], f, &x[0], len(y))
		return
	}
	axpyAVX2(&y[0], f, &x[0], len(y))
}

func residual(r, z []float32, bias float32, w, y []float32) {
	if Levels.Current() == cpu.AVX512 {
		residualAVX512(&r[0], &z[0], bias, &w[0], &y[0], len(r))
		return
	}
	residualAVX2(&r[0], &z[0], bias, &w[0], &y[0], len(r))
}

func raise(top, z []float32, bias float32) {
	if Levels.Current() == cpu.AVX512 {
		raiseAVX512(&top[0], &z[0], bias, len(z))
		return
	}
	raiseAVX2(&top[0], &z[0], bias, len(z))
}

func exp(z []float32, bias float32, top, sum []float32) {
	if Levels.Current() == cpu.AVX512 {
		expAVX512(&z[0], bias, &top[0], &sum[0], len(z))
		return
	}
	expAVX2(&z[0], bias, &top[0], &sum[0], len(z))
}

func share(r, e, sum, w, y []float32) {
	if Levels.Current() == cpu.AVX512 {
		shareAVX512(&r[0], &e[0], &sum[0], &w[0], &y[0], len(r))
		return
	}
	shareAVX2(&r[0], &e[0], &sum[0], &w[0], &y[0], len(r))
}

func rows(dst, w []float32, q []int16) {
	if Levels.Current() == cpu.AVX512 {
		rowsAVX512(&dst[0], len(dst), &w[0], len(w), &q[0])
		return
	}
	rowsAVX2(&dst[0], len(dst), &w[0], len(w), &q[0])
}
