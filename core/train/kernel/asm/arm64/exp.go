package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// The constants of the exponential, in the order of kernel.exponentials: registers 16 to 27. The bias is in register 31.
const (
	below = 16 + iota
	above
	log2e
	shifter
	ln2Hi
	ln2Lo
	sixth // the first of five coefficients, which fall from 1/6! to 1/2!
	_
	_
	_
	half
	one
	bias = 31
)

// The general registers of the further operands.
const (
	x = 13
	y = 14
)

// slices begins a function on slices of argN elements and its loop, which handles 16 elements at a time.
func (k kernel) slices(name string) {
	k.begin(name, argDst, argA, argB, argN)
	k.Go("MOVD %d(R0), R%d", argX, x)
	k.Go("MOVD %d(R0), R%d", argY, y)
	k.Go("MOVD %d(R0), R%d", argF, temp)
	k.V("dup v%d.4s, w%d", bias, temp)
	k.Go("MOVD %d(R0), R%d", argConstants, temp)
	for v := below; v <= one; v++ {
		k.V("ld1r {v%d.4s}, [x%d], #4", v, temp)
	}
	k.Label("loop")
}

// again ends the loop and the function.
func (k kernel) again() {
	k.Go("SUB $16, R%d", n)
	k.Go("CBNZ R%d, loop", n)
	k.Go("RET")
}

func (k kernel) load16(v, from int) { k.V("ld1 %s, [x%d], #64", arm64.Four(v), from) }
func (k kernel) store16(v, to int)  { k.V("st1 %s, [x%d], #64", arm64.Four(v), to) }
func (k kernel) peek(v, from int)   { k.V("ld1 %s, [x%d]", arm64.Four(v), from) }

// each emits op on the registers of four vectors: d+i, p+i and q+i, where q is the same for all if it is a constant's.
func (k kernel) each(op string, d, p, q int) {
	for i := range 4 {
		if q < below {
			k.V("%s v%d.4s, v%d.4s, v%d.4s", op, d+i, p+i, q+i)
			continue
		}
		k.V("%s v%d.4s, v%d.4s, v%d.4s", op, d+i, p+i, q)
	}
}

// exponential replaces registers 0 to 3 by their exponentials. It overwrites registers 4 to 15.
func (k kernel) exponential() {
	k.each("fmaxnm", 0, 0, below)
	k.each("fminnm", 0, 0, above)
	k.each("fmul", 4, 0, log2e)
	k.each("fadd", 4, 4, shifter)
	k.each("fsub", 4, 4, shifter)
	k.each("fmul", 8, 4, ln2Hi)
	k.each("fsub", 0, 0, 8)
	k.each("fmul", 8, 4, ln2Lo)
	k.each("fsub", 0, 0, 8)
	for i := range 4 {
		k.V("fmul v%d.4s, v%d.4s, v%d.4s", 8+i, i, sixth)
	}
	for c := sixth + 1; c <= half; c++ {
		k.each("fadd", 8, 8, c)
		k.each("fmul", 8, 8, 0)
	}
	k.each("fadd", 8, 8, one)
	k.each("fmul", 8, 8, 0)
	k.each("fadd", 8, 8, one)
	for i := range 4 {
		k.V("fcvtzs v%d.4s, v%d.4s", 4+i, 4+i)
		k.V("shl v%d.4s, v%d.4s, #23", 4+i, 4+i)
		k.V("add v%d.4s, v%d.4s, v%d.4s", i, 8+i, 4+i)
	}
}

// storeWeightedDifference stores b·(registers 0 to 3 − x) to dst.
func (k kernel) storeWeightedDifference(weights, targets int) {
	k.load16(4, targets)
	k.load16(8, weights)
	k.each("fsub", 0, 0, 4)
	k.each("fmul", 0, 8, 0)
	k.store16(0, dst)
	k.again()
}

func (k kernel) residual() {
	k.slices("residualNEON")
	k.load16(0, a)
	k.each("fadd", 0, 0, bias)
	for i := range 4 {
		k.V("fneg v%d.4s, v%d.4s", i, i)
	}
	k.exponential()
	for i := range 4 {
		k.V("fadd v%d.4s, v%d.4s, v%d.4s", i, one, i)
	}
	for i := range 4 {
		k.V("fdiv v%d.4s, v%d.4s, v%d.4s", i, one, i)
	}
	k.storeWeightedDifference(b, x)
}

func (k kernel) raise() {
	k.slices("raiseNEON")
	k.peek(0, dst)
	k.load16(4, a)
	k.each("fadd", 4, 4, bias)
	for i := range 4 {
		k.V("fcmgt v%d.4s, v%d.4s, v%d.4s", 8+i, 4+i, i)
		k.V("bit v%d.16b, v%d.16b, v%d.16b", i, 4+i, 8+i)
	}
	k.store16(0, dst)
	k.again()
}

func (k kernel) exp() {
	k.slices("expNEON")
	k.peek(0, dst)
	k.load16(4, a)
	k.each("fadd", 0, 0, bias)
	k.each("fsub", 0, 0, 4)
	k.exponential()
	k.store16(0, dst)
	k.peek(4, b)
	k.each("fadd", 4, 4, 0)
	k.store16(4, b)
	k.again()
}

func (k kernel) share() {
	k.slices("shareNEON")
	k.load16(0, a)
	k.load16(4, y)
	k.each("fdiv", 0, 0, 4)
	k.storeWeightedDifference(b, x)
}
