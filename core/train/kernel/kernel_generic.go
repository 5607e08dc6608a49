package kernel

import "math"

func productGeneric(dst []float32, ldd int, a []float32, lda, m int, panel []float32, k int) {
	for i := range m {
		productRow((*[Lanes]float32)(dst[i*ldd:]), a[i*lda:i*lda+k], panel)
	}
}

// productRow keeps eight columns at a time in registers.
func productRow(dst *[Lanes]float32, a, panel []float32) {
	for j := 0; j < Lanes; j += 8 {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for p, f := range a {
			c := (*[8]float32)(panel[p*Lanes+j:])
			s0 += float32(f * c[0])
			s1 += float32(f * c[1])
			s2 += float32(f * c[2])
			s3 += float32(f * c[3])
			s4 += float32(f * c[4])
			s5 += float32(f * c[5])
			s6 += float32(f * c[6])
			s7 += float32(f * c[7])
		}
		*(*[8]float32)(dst[j:]) = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
}

func dotGeneric(a, b []float32) float32 {
	var s [Lanes]float32
	for ; len(a) >= Lanes; a, b = a[Lanes:], b[Lanes:] {
		x, y := (*[Lanes]float32)(a), (*[Lanes]float32)(b)
		for l := range s {
			s[l] += float32(x[l] * y[l])
		}
	}
	return fold(&s)
}

// fold adds the upper half of the lanes to the lower until one is left.
func fold(s *[Lanes]float32) float32 {
	for half := Lanes / 2; half > 0; half /= 2 {
		for l := range half {
			s[l] += s[l+half]
		}
	}
	return s[0]
}

func axpyGeneric(y []float32, f float32, x []float32) {
	for i, v := range x {
		y[i] += float32(f * v)
	}
}

const (
	expLimit = 87 // e^±87 is a normal float32
	log2e    = float32(0x1.715476p+0)
	ln2Hi    = float32(0x1.62e4p-1)           // 15 bits: k·ln2Hi is exact for |k| < 512
	ln2Lo    = float32(0x1.7f7d1cp-20)        // the rest
	shifter  = float32(3 << 22)               // x + shifter − shifter rounds |x| < 2²² to the nearest even integer
	expC6    = float32(0x1.6c16c16c16c17p-10) // 1/6!
	expC5    = float32(0x1.1111111111111p-7)
	expC4    = float32(0x1.5555555555555p-5)
	expC3    = float32(0x1.5555555555555p-3)
	expC2    = float32(0.5)
)

// exponential returns eˣ with x clipped to ±87: x = k·ln 2 + r, with a Taylor series in r up to the sixth power.
func exponential(x float32) float32 {
	x = clip(x)
	k := float32(float32(x*log2e)+shifter) - shifter
	r := x - float32(k*ln2Hi)
	r -= float32(k * ln2Lo)
	p := expC6
	p = float32(p*r) + expC5
	p = float32(p*r) + expC4
	p = float32(p*r) + expC3
	p = float32(p*r) + expC2
	p = float32(p*r) + 1
	p = float32(p*r) + 1
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(k))<<23)
}

// clip returns min(87, max(−87, x)) like the processor's two instructions: NaN gives −87.
func clip(x float32) float32 {
	if !(x > -expLimit) {
		x = -expLimit
	}
	if !(x < expLimit) {
		x = expLimit
	}
	return x
}

func residualGeneric(r, z []float32, bias float32, w, y []float32) {
	for i := range r {
		e := exponential(-(z[i] + bias))
		p := 1 / (1 + e)
		r[i] = w[i] * (p - y[i])
	}
}

func raiseGeneric(top, z []float32, bias float32) {
	for i, t := range top {
		if v := z[i] + bias; v > t {
			top[i] = v
		}
	}
}

func expGeneric(z []float32, bias float32, top, sum []float32) {
	for i, v := range z {
		e := exponential((v + bias) - top[i])
		z[i] = e
		sum[i] += e
	}
}

func shareGeneric(r, e, sum, w, y []float32) {
	for i := range r {
		p := e[i] / sum[i]
		r[i] = w[i] * (p - y[i])
	}
}

func rowsGeneric(dst, w []float32, q []int16) {
	for r := range dst {
		row := q[r*len(w) : (r+1)*len(w)]
		var s [Lanes]float32
		for i := 0; i < len(w); i += Lanes {
			x, y := (*[Lanes]int16)(row[i:]), (*[Lanes]float32)(w[i:])
			for l := range s {
				s[l] += float32(float32(x[l]) * y[l])
			}
		}
		dst[r] = fold(&s)
	}
}
