package raster

// axis is one direction of a resize. It holds, for every pixel of the result, the source samples
// and their weights. Every pixel has the same number of samples; some weights are zero.
type axis struct {
	taps  int
	first []int32  // (n) first sample of each pixel, counted from lo; first+taps ≤ hi-lo
	w     []uint32 // (n, taps) weights, ≤ sum
	sum   uint32   // Σ w of every pixel, < 1<<21
	lo    int      // samples lo…hi-1 of the plane are touched
	hi    int

	groups groups // the same weights for eight pixels at a time, if a vector unit uses them
}

// span describes an axis. build computes its weights from it.
type span struct {
	lo, hi int  // full-size interval, in units of 1/unit of a pixel
	n      int  // pixels of the result
	origin int  // full-size position of the plane's first sample, in pixels
	pitch  int  // full-size pixels that a sample covers
	box    bool // if the axis shrinks, count centres instead of areas
}

// build computes the weights for s, reusing a's memory.
func (a *axis) build(s span) {
	a.lo = (s.lo - unit*s.origin) / (unit * s.pitch)
	a.hi = (s.hi-unit*s.origin-1)/(unit*s.pitch) + 1
	each := (s.hi - s.lo) / (unit * s.n)
	switch {
	case each == 0:
		a.bilinear(s)
	case s.box && each < maxBox:
		a.box(s, each)
	default:
		a.area(s)
	}
}

// reset allocates weights for n pixels of at most taps samples, and limits the taps to the touched samples.
func (a *axis) reset(n, taps int) {
	a.taps = min(taps, a.hi-a.lo)
	a.first = resize(a.first, n)
	a.w = resize(a.w, n*a.taps)
	clear(a.w)
}

// begin sets the first sample of pixel i to j, or to a lower one if the plane ends before the last tap, and returns the weights that
// start at sample j.
func (a *axis) begin(i, j int) []uint32 {
	first := min(j, a.hi-a.taps) - a.lo
	a.first[i] = int32(first)
	return a.w[i*a.taps:][:a.taps][j-a.lo-first:]
}

// area sets the overlaps of each pixel's interval with the samples, in units of 1/(unit·n) of a full-size pixel, divided by their common
// divisor.
func (a *axis) area(s span) {
	size, step := s.hi-s.lo, unit*s.pitch*s.n
	from := (s.lo - unit*s.origin) * s.n
	common := gcd(gcd(size, step), from)
	size, step, from = size/common, step/common, from/common
	a.sum = uint32(size)
	a.reset(s.n, (size-1)/step+2)
	for i := range s.n {
		to := from + size
		j := from / step
		w := a.begin(i, j)
		for k := 0; from < to; k++ {
			edge := min(to, (j+k+1)*step)
			w[k] = uint32(edge - from)
			from = edge
		}
	}
}

// maxBox is the maximum number of full-size pixels per result pixel in a box. It keeps the sums of weights small. At this ratio a
// pixel's fraction hardly matters, so build computes areas instead.
const maxBox = 1 << 10

// box sets the weight of a sample in a result pixel to the number of its full-size pixels whose centres lie in that pixel's
// interval. Every interval holds few or few+1 centres.
func (a *axis) box(s span, few int) {
	taps, anyFew, anyMore := 1, false, false
	for i := range s.n {
		from, to := s.centres(i)
		if to-from == few {
			anyFew = true
		} else {
			anyMore = true
		}
		taps = max(taps, (to-1-s.origin)/s.pitch-(from-s.origin)/s.pitch+1)
	}
	weightFew, weightMore := 1, 1
	a.sum = uint32(few)
	switch {
	case anyFew && anyMore:
		weightFew, weightMore = few+1, few
		a.sum = uint32(few * (few + 1))
	case anyMore:
		a.sum = uint32(few + 1)
	}
	a.reset(s.n, taps)
	for i := range s.n {
		from, to := s.centres(i)
		weight := weightMore
		if to-from == few {
			weight = weightFew
		}
		j := (from - s.origin) / s.pitch
		w := a.begin(i, j)
		for k := 0; from < to; k++ {
			edge := min(to, s.origin+(j+k+1)*s.pitch)
			w[k] = uint32(weight * (edge - from))
			from = edge
		}
	}
}

// centres returns the full-size pixels from…to-1 whose centres lie in the interval of pixel i. A centre on the border of two intervals
// belongs to the outer one. In the very middle it belongs to both. So the mirrored picture has the mirrored result.
func (s *span) centres(i int) (from, to int) {
	pixel := unit * s.n
	lo := s.lo*s.n + i*(s.hi-s.lo) - pixel/2 // where pixel x's centre is at x·pixel
	hi := lo + s.hi - s.lo
	from, to = floorDiv(lo, pixel)+1, floorDiv(hi, pixel)+1
	if 2*i+1 >= s.n && from*pixel-lo == pixel {
		from--
	}
	if 2*i+1 > s.n && (to-1)*pixel == hi {
		to--
	}
	return from, to
}

// floorDiv returns a/b rounded towards minus infinity, for b > 0.
func floorDiv(a, b int) int {
	q := a / b
	if q*b > a {
		q--
	}
	return q
}

// bilinear sets the weights of the two samples nearest each pixel's centre, in units of 1/(2·unit·n·pitch), divided by their common
// divisor.
func (a *axis) bilinear(s span) {
	size, denominator := s.hi-s.lo, 2*unit*s.n*s.pitch
	at := 2*(s.lo-unit*s.origin)*s.n + size - unit*s.n*s.pitch
	common := gcd(gcd(2*size, denominator), at)
	step := 2 * size / common
	denominator, at = denominator/common, at/common
	a.sum = uint32(denominator)
	a.reset(s.n, 2)
	for i := range s.n {
		j := floorDiv(at, denominator)
		right := at - j*denominator
		switch {
		case j < a.lo:
			j, right = a.lo, 0
		case j >= a.hi-1:
			j, right = a.hi-1, 0
		}
		w := a.begin(i, j)
		w[0] = uint32(denominator - right)
		if right > 0 {
			w[1] = uint32(right)
		}
		at += step
	}
}

func gcd(a, b int) int {
	if b < 0 {
		b = -b
	}
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
