package train

import (
	"math"

	"github.com/sightline-dev/sightline/core/train/kernel"
)

const (
	history   = 8   // pairs that a direction is computed from
	maxRounds = 300 // evaluations of one task; the cases of the tests end within 60
	maxTrials = 20  // evaluations along one direction
)

// lbfgs minimises a smooth convex function from its gradients alone, by the limited-memory
// method of Liu and Nocedal (1989) with the approximate Wolfe conditions of Hager and Zhang
// (2005). For a convex function these conditions need no values, so rounding of values near the minimum
// never stops the search. The caller computes the gradients:
//
//	begin ─▶ trial ─▶ (the gradient there) ─▶ observe ─▶ trial ─▶ … ─▶ done, x
//
// All vectors have the same length, a multiple of 32.
type lbfgs struct {
	x, g      []float32 // the best point and its gradient
	direction []float32
	trial     []float32 // point at which the caller computes the next gradient
	slope     float32   // of the function along direction, at x: negative
	alpha     float32   // trial = x + alpha·direction

	// The bracket of the search along direction.
	low, high           float32
	slopeLow, slopeHigh float32
	trials              int

	s, y   [][]float32 // steps and changes of the gradient, oldest first
	rho    []float32   // 1 / s·y
	first  float32     // step length of the first direction, −first·gradient
	tol    float32     // done when the gradient is no longer than this
	rounds int
	norm   float64 // length of g
	start  float64 // length of the first g
	done   bool
}

// begin starts at x, which l keeps and changes.
func (l *lbfgs) begin(x []float32, first, tol float32) {
	n := len(x)
	*l = lbfgs{x: x, first: first, tol: tol}
	l.g, l.direction = make([]float32, n), make([]float32, n)
	l.trial = append([]float32(nil), x...)
}

// observe reads the gradient at trial and sets the next trial or done. It does not keep g.
func (l *lbfgs) observe(g []float32) {
	l.rounds++
	if l.rounds == 1 {
		copy(l.g, g)
		l.norm = length(g)
		l.start = l.norm
		l.turn()
		return
	}
	slope := kernel.Dot(g, l.direction)
	l.trials++
	switch {
	case l.trials >= maxTrials || l.rounds >= maxRounds:
		// Rounding prevents further progress: the current point is the result.
		l.done = true
		return
	case slope > -0.5*l.slope:
		l.high, l.slopeHigh = l.alpha, slope
	case slope < 0.9*l.slope:
		l.low, l.slopeLow = l.alpha, slope
	default:
		l.accept(g)
		l.turn()
		return
	}
	l.aim(l.next())
}

// next returns the point at which the slope vanishes if it is linear, at a distance from the bracket's ends.
func (l *lbfgs) next() float32 {
	if l.high == 0 {
		// The slope has hardly changed: go to where it would vanish, at least twice as far and at most 64 times.
		bend := l.slope - l.slopeLow
		return l.alpha * min(max(l.slope/bend, 2), 64)
	}
	width := l.high - l.low
	step := float32(width * (l.slopeLow / (l.slopeLow - l.slopeHigh)))
	return l.low + min(max(step, float32(0.1*width)), float32(0.9*width))
}

// aim sets trial to x + alpha·direction.
func (l *lbfgs) aim(alpha float32) {
	l.alpha = alpha
	copy(l.trial, l.x)
	kernel.Axpy(l.trial, alpha, l.direction)
}

// accept moves x to trial and stores the pair.
func (l *lbfgs) accept(g []float32) {
	var s, y []float32
	if len(l.s) == history {
		s, y = l.s[0], l.y[0]
		copy(l.s, l.s[1:])
		copy(l.y, l.y[1:])
		copy(l.rho, l.rho[1:])
		l.s, l.y, l.rho = l.s[:history-1], l.y[:history-1], l.rho[:history-1]
	} else {
		s, y = make([]float32, len(l.x)), make([]float32, len(l.x))
	}
	scaleInto(s, l.alpha, l.direction)
	copy(y, g)
	kernel.Axpy(y, -1, l.g)
	if sy := kernel.Dot(s, y); sy > 0 {
		l.s, l.y, l.rho = append(l.s, s), append(l.y, y), append(l.rho, 1/sy)
	}
	l.x, l.trial = l.trial, l.x
	copy(l.g, g)
	l.norm = length(g)
}

// turn ends the search, or chooses a direction from x and sets the first trial along it.
func (l *lbfgs) turn() {
	if !(l.norm > float64(l.tol)) {
		l.done = true
		return
	}
	p := l.direction
	scaleInto(p, -1, l.g)
	var a [history]float32
	for i := len(l.s) - 1; i >= 0; i-- {
		a[i] = float32(l.rho[i] * kernel.Dot(l.s[i], p))
		kernel.Axpy(p, -a[i], l.y[i])
	}
	scale := l.first
	if n := len(l.s); n > 0 {
		scale = 1 / (l.rho[n-1] * kernel.Dot(l.y[n-1], l.y[n-1]))
	}
	scaleInto(p, scale, p)
	for i := range l.s {
		b := float32(l.rho[i] * kernel.Dot(l.y[i], p))
		kernel.Axpy(p, a[i]-b, l.s[i])
	}
	l.slope = kernel.Dot(l.g, p)
	if !(l.slope < 0) { // rounding has made the pairs useless
		l.s, l.y, l.rho = nil, nil, nil
		scaleInto(p, -l.first, l.g)
		l.slope = kernel.Dot(l.g, p)
	}
	l.low, l.slopeLow, l.high, l.slopeHigh, l.trials = 0, l.slope, 0, 0, 0
	l.aim(1)
}

// scaleInto sets dst to f·x.
func scaleInto(dst []float32, f float32, x []float32) {
	for i, v := range x {
		dst[i] = f * v
	}
}

// length returns the Euclidean length of x.
func length(x []float32) float64 { return math.Sqrt(float64(kernel.Dot(x, x))) }
