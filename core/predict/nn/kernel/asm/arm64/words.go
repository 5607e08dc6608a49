package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu/asm/arm64"
)

// words emits a tile of half a panel with SMULL, SMLAL and SADALP, for level neon. A word sums four products of a step if the weights allow
// it (see kernel.neonProduct), and chain products otherwise. Then SADALP adds the word to a dword.
type words struct {
	*tile
	chain int  // products per word: 2, or 1 if a weight is -128
	kinds bool // each kind of step has its code; otherwise all steps are of kind 0
}

// The vector registers of words. The bytes of row r are in registers 2r and 2r+1.
const (
	wordSign    = 4
	wordScale   = 5 // and 6
	wordZero    = 7
	wordWeights = 8  // to 11
	wordSums    = 12 // to 15: words of two rows and two columns
)

// kindShift is the binary logarithm of the bytes reserved for the code of one kind of step, which has at most 109 instructions of 4 bytes.
const kindShift = 9

// lastKind is the byte in kernel.neonProduct's chains that follows the last step of a segment.
const lastKind = 16

// sum returns the accumulator of column c of row r.
func (t *words) sum(r, c int) int { return 16 + 8*r + c }

func (t *words) emit(name string) {
	t.begin(fmt.Sprintf("%s%dx8NEON", name, t.rows))
	t.firstSums()
	load(t.File, argRows, regRows)
	t.Go("MOVD R%d, R%d", regA, regRowA)
	t.Go("MOVD R%d, R%d", regC, regRowC)
	t.V("movi v%d.16b, #128", wordSign)
	t.V("dup v%d.8h, w%d", wordZero, regZero)
	if !t.raw {
		t.V("ldp q%d, q%d, [x%d]", wordScale, wordScale+1, regScale)
	}
	if t.kinds {
		t.Go("ADR kinds, R%d", regFirst)
	}
	t.walk(0, func() {
		for r := range t.rows {
			t.V("ld1 %s, [x%d]", arm64.Four(t.sum(r, 0)), regStart)
			t.V("ld1 %s, [x%d]", arm64.Four(t.sum(r, 4)), regNextS)
		}
		load(t.File, argChains, regChain)
	}, t.segment, t.rest, func() {
		for r := range t.rows {
			for v := range 2 {
				a := t.sum(r, 4*v)
				t.V("addp v%d.4s, v%d.4s, v%d.4s", a, a, a+1)
				t.V("addp v%d.4s, v%d.4s, v%d.4s", a+2, a+2, a+3)
				t.V("addp v%d.4s, v%d.4s, v%d.4s", a, a, a+2)
			}
		}
		t.finish(func(r, v int) int { return t.sum(r, 4*v) })
	})
}

// firstSums stores the first values of the accumulators of 8 columns: bias + lift, and three zeros.
func (t *words) firstSums() {
	load(t.File, argBias, regTemp)
	load(t.File, argLift, regB)
	t.Go("MOVD R%d, R%d", regStart, regK)
	for range 8 {
		t.V("ldr s0, [x%d], #4", regTemp)
		t.V("ldr s1, [x%d], #4", regB)
		t.V("add v0.4s, v0.4s, v1.4s")
		t.V("str q0, [x%d], #16", regK)
	}
}

// nextRow continues with the next row of outputs, if there is one.
func (t *tile) nextRow() {
	t.Go("SUB $1, R%d", regRows)
	t.Go("CBZ R%d, end", regRows)
	for _, r := range [][3]int{{argSrcStep, regRowA, regA}, {argDstStep, regRowC, regC}} {
		load(t.File, r[0], regTemp)
		t.Go("ADD R%d, R%d", regTemp, r[1])
		t.Go("MOVD R%d, R%d", r[1], r[2])
	}
	load(t.File, argTiles, regTiles)
	t.Go("B tile")
	t.Label("end")
}

// segment emits the steps of 32 bytes of a segment. Each kind of step has its code, and the jump to the next step replaces a loop counter.
func (t *words) segment() {
	if !t.kinds {
		t.Label("loop")
		t.Go("MOVBU.P 1(R%d), R%d", regChain, regTemp)
		t.Go("TBNZ $4, R%d, tail", regTemp) // lastKind
		t.step(0)
		t.Go("B loop")
		return
	}
	next := func() {
		t.Go("MOVBU.P 1(R%d), R%d", regChain, regTemp)
		t.Go("ADD R%d<<%d, R%d, R%d", regTemp, kindShift, regFirst, regTemp)
		t.Go("JMP (R%d)", regTemp)
	}
	next()
	for kind := range lastKind {
		t.Go("PCALIGN $%d", 1<<kindShift)
		if kind == 0 {
			t.Label("kinds")
		}
		t.step(kind)
		next()
	}
	t.Go("PCALIGN $%d", 1<<kindShift)
}

// step emits the products of 32 bytes of each row. Bit p of kind is set if words sum all four products of columns 2p and 2p+1.
func (t *words) step(kind int) {
	t.bytes(2, "ldp q%d, q%d, [x%d], #32")
	for pair := range 4 {
		t.weights()
		chain := t.chain
		if kind>>pair&1 > 0 {
			chain = 4
		}
		t.products(pair, chain, 4, func(i, c int) (row, w, half int) { return i / 2, 2*c + i/2, i % 2 })
	}
}

// rest emits the products of the last 16 and the last 8 bytes of each row, if they remain after the steps.
func (t *words) rest() {
	t.Go("TBZ $1, R%d, last", regTail)
	t.bytes(1, "ldr q%[1]d, [x%[3]d], #16")
	for pair := range 4 {
		if pair%2 == 0 {
			t.weights()
		}
		t.products(pair, t.chain, 2, func(i, c int) (row, w, half int) { return 0, 2*(pair%2) + c, i })
	}
	t.Label("last")
	t.Go("TBZ $0, R%d, done", regTail)
	t.bytes(1, "ld1r {v%[1]d.2d}, [x%[3]d], #8")
	t.weights()
	for pair := range 4 {
		t.products(pair, 1, 1, func(_, c int) (row, w, half int) { return 0, pair, c })
	}
	t.Label("done")
}

// bytes emits the load of bytes of each row into one or two registers, and subtracts 128 from each byte.
func (t *words) bytes(registers int, load string) {
	for r := range t.rows {
		t.V(load, 2*r, 2*r+1, regRow+r)
	}
	for r := range t.rows {
		for v := range registers {
			t.V("eor v%d.16b, v%d.16b, v%d.16b", 2*r+v, 2*r+v, wordSign)
		}
	}
}

func (t *words) weights() { t.V("ld1 %s, [x%d], #64", arm64.Four(wordWeights), regB) }

// products emits n products, of eight lanes each, for every row and each of a pair of columns. A word sums chain of them. For product i of
// column c, at returns the register of the row, the register of the weights (both counted from the first) and the half of both registers.
func (t *words) products(pair, chain, n int, at func(i, c int) (row, w, half int)) {
	each := func(f func(r, c, sum int)) {
		for c := range 2 {
			for r := range t.rows {
				f(r, c, wordSums+2*r+c)
			}
		}
	}
	for i := range n {
		op := "smlal"
		if i%chain == 0 {
			op = "smull"
		}
		each(func(r, c, sum int) {
			row, w, half := at(i, c)
			t.V([]string{"%s v%d.8h, v%d.8b, v%d.8b", "%s2 v%d.8h, v%d.16b, v%d.16b"}[half], op, sum, 2*r+row, wordWeights+w)
		})
		if i%chain == chain-1 {
			each(func(r, c, sum int) { t.V("sadalp v%d.4s, v%d.8h", t.sum(r, 2*pair+c), sum) })
		}
	}
}
