package predict

import (
	"math"

	"github.com/sightline-dev/sightline/core/predict/elementary"
)

// oklab is a colour in the OKLab space of Björn Ottosson (2020). In it Euclidean distance is close to the difference that people see. The
// unit of every axis is 1/65536; L ranges from 0 (black) to 65536 (white).
type oklab struct{ l, a, b int64 }

func (p oklab) distance(q oklab) int64 {
	return square(p.l-q.l) + square(p.a-q.a) + square(p.b-q.b)
}

func square(x int64) int64 { return x * x }

// linear[v] is the linear light of the sRGB byte v in units of 1/2³⁰, rounded to nearest. It uses
// the transfer function of IEC 61966-2-1 and package elementary, whose results are the same on
// every host.
var linear = func() (t [256]int64) {
	for v := range t {
		c := float64(v) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = elementary.Exp(2.4 * elementary.Log((c+0.055)/1.055))
		}
		t[v] = int64(math.Round(c * (1 << 30)))
	}
	return t
}()

// The matrices of OKLab in units of 1/2²⁴. toLMS converts linear sRGB to cone responses, toLab converts their cube roots to Lab.
var (
	toLMS = toFixedPoint([3][3]float64{
		{0.4122214708, 0.5363325363, 0.0514459929},
		{0.2119034982, 0.6806995451, 0.1073969566},
		{0.0883024619, 0.2817188376, 0.6299787005},
	})
	toLab = toFixedPoint([3][3]float64{
		{0.2104542553, 0.7936177850, -0.0040720468},
		{1.9779984951, -2.4285922050, 0.4505937099},
		{0.0259040371, 0.7827717662, -0.8086757660},
	})
)

func toFixedPoint(m [3][3]float64) (out [3][3]int64) {
	for i := range m {
		for j := range m[i] {
			out[i][j] = int64(math.Round(m[i][j] * (1 << 24)))
		}
	}
	return out
}

// toOKLab converts an sRGB colour in fixed-point arithmetic. Shifts round down.
func toOKLab(r, g, b byte) oklab {
	var root [3]int64
	for i, row := range &toLMS {
		cone := (row[0]*linear[r] + row[1]*linear[g] + row[2]*linear[b]) >> 24 // in 1/2³⁰
		root[i] = int64(cubeRoot(uint64(cone) << 18))                          // in 1/2¹⁶
	}
	lab := func(row *[3]int64) int64 {
		return (row[0]*root[0] + row[1]*root[1] + row[2]*root[2]) >> 24
	}
	return oklab{lab(&toLab[0]), lab(&toLab[1]), lab(&toLab[2])}
}

// cubeRoot returns ⌊∛x⌋ for x < 2⁵¹. A third of the float64's bits is a guess with an error within
// 6 %, and two of Halley's steps reduce it below 10⁻⁹. Integer arithmetic then corrects the
// result, so that the rounding of the floats makes no difference.
func cubeRoot(x uint64) uint64 {
	if x == 0 {
		return 0
	}
	f := float64(x)
	t := math.Float64frombits(math.Float64bits(f)/3 + 715094163<<32)
	for range 2 {
		c := float64(t * t * t)
		t *= (c + 2*f) / (2*c + f)
	}
	y := uint64(t)
	if y*y*y > x {
		return y - 1
	}
	if (y+1)*(y+1)*(y+1) <= x {
		return y + 1
	}
	return y
}
