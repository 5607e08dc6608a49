package main

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/cpu/asm/arm64"
)

// The fields of kernel.tileArgs, in order.
const (
	argA       = 8 * iota // first row
	argB                  // first panel
	argC                  // first output
	argBias               // bias of the first column
	argLift               // addend to the first column's bias
	argScale              // scale of the first column
	argLDA                // bytes between rows of a
	argSegStep            // bytes between segments of a row
	argSegs               // segments
	argK                  // steps of 16 bytes per segment
	argTail               // groups of weights after these steps
	argBStep              // bytes between panels
	argLDC                // bytes between rows of c
	argTiles              // tiles, one below the other
	argLo                 // byte
	argHi                 // byte
	argZero               // zero point
	argClamp              // 1 unless lo is 0 and hi is 255
	argChains             // one byte for each step of 32 bytes (level neon)
	argRows               // rows of outputs, of argTiles tiles each (level neon)
	argSrcStep            // bytes between the inputs of rows of outputs
	argDstStep            // bytes between rows of outputs
	argStart              // memory for the first values of the accumulators
)

// The general registers of a tile; R0 is the struct. R18, R27 and higher are reserved.
const (
	regA     = 1  // first row of the tile
	regC     = 2  // first output of the tile
	regLDA   = 3  // bytes
	regLDC   = 4  // bytes
	regTiles = 5  // tiles left
	regSegs  = 6  // segments left
	regSeg   = 7  // first row at the current segment
	regK     = 8  // steps left
	regB     = 9  // weights; the second panel's are in the next register
	regRow   = 11 // to 14: rows
	regStart = 15
	regScale = 19
	regTemp  = 20
	regStep  = 21 // bytes between the weights of the panels
	regNextS = 22 // regStart of the second panel
	regNextQ = 23 // regScale of the second panel
	regZero  = 24
	regClamp = 25
	regTail  = 26
	regSkip  = 16 // bytes between segments
	regSteps = 17

	// At level neon a tile has at most two rows, so these are free:
	regChain = regK     // byte for the current step
	regFirst = regSteps // code of the first kind of step
	regRows  = regNextQ // rows of outputs left
	regRowA  = regRow + 2
	regRowC  = regRow + 3
)

// tile is a block of rows by panels of 16 columns, or by half a panel if panels is 0.
type tile struct {
	*arm64.File
	rows, panels int
	raw          bool // the results are the sums, not bytes
}

// begin begins the function and loads the constants that stay in registers.
func (t *tile) begin(name string) {
	t.Func(name)
	load(t.File, argA, regA)
	load(t.File, argC, regC)
	load(t.File, argLDA, regLDA)
	load(t.File, argLDC, regLDC)
	load(t.File, argTiles, regTiles)
	load(t.File, argScale, regScale)
	load(t.File, argBStep, regStep)
	load(t.File, argZero, regZero)
	load(t.File, argClamp, regClamp)
	load(t.File, argTail, regTail)
	load(t.File, argSegStep, regSkip)
	load(t.File, argK, regSteps)
	t.Go("ADD $%d, R0, R%d", argStart, regStart)
	t.Go("ADD $64, R%d, R%d", regStart, regNextS)
	t.Go("ADD $64, R%d, R%d", regScale, regNextQ)
}

// start stores the first values of the accumulators of cols columns: bias + lift.
func (t *tile) start(cols int) {
	load(t.File, argBias, regTemp)
	load(t.File, argLift, regB)
	t.Go("MOVD R%d, R%d", regStart, regK)
	for i := 0; i < cols; i += 8 {
		t.V("ldp q0, q1, [x%d], #32", regTemp)
		t.V("ldp q2, q3, [x%d], #32", regB)
		t.V("add v0.4s, v0.4s, v2.4s")
		t.V("add v1.4s, v1.4s, v3.4s")
		t.V("str q0, [x%d], #16", regK)
		t.V("str q1, [x%d], #16", regK)
	}
}

// walk emits the loops over tiles, segments and steps. One turn of the loop takes unroll steps, 1 or 2. If unroll is 0, step is the loop
// itself. tail emits the remaining groups of weights.
func (t *tile) walk(unroll int, init, step, tail, finish func()) {
	t.Label("tile")
	init()
	load(t.File, argB, regB)
	if t.panels == 2 {
		t.Go("ADD R%d, R%d, R%d", regStep, regB, regB+1)
	}
	load(t.File, argSegs, regSegs)
	t.Go("MOVD R%d, R%d", regA, regSeg)
	t.Label("segment")
	t.Go("MOVD R%d, R%d", regSeg, regRow)
	for r := 1; r < t.rows; r++ {
		t.Go("ADD R%d, R%d, R%d", regLDA, regRow+r-1, regRow+r)
	}
	if unroll > 0 {
		t.steps(unroll, step)
	} else {
		step()
	}
	t.Label("tail")
	tail()
	t.Go("SUB $1, R%d", regSegs)
	t.Go("CBZ R%d, finish", regSegs)
	t.Go("ADD R%d, R%d", regSkip, regSeg)
	t.Go("B segment")
	t.Label("finish")
	finish()
	switch t.rows {
	case 4:
		t.Go("ADD R%d<<2, R%d", regLDA, regA)
	case 3:
		t.Go("ADD R%d<<1, R%d", regLDA, regA)
		t.Go("ADD R%d, R%d", regLDA, regA)
	case 2:
		t.Go("ADD R%d<<1, R%d", regLDA, regA)
	default:
		t.Go("ADD R%d, R%d", regLDA, regA)
	}
	t.Go("SUB $1, R%d", regTiles)
	t.Go("CBNZ R%d, tile", regTiles)
	if t.panels == 0 {
		t.nextRow()
	}
	t.Go("RET")
}

// steps emits the loop over the steps of a segment.
func (t *tile) steps(unroll int, step func()) {
	t.Go("MOVD R%d, R%d", regSteps, regK)
	if unroll == 2 {
		t.Go("TBZ $0, R%d, even", regK)
		step()
		t.Label("even")
		t.Go("LSR $1, R%d", regK)
	}
	t.Go("CBZ R%d, tail", regK)
	t.Label("loop")
	for range unroll {
		step()
	}
	t.Go("SUB $1, R%d", regK)
	t.Go("CBNZ R%d, loop", regK)
}

// dots emits a tile with SDOT: a register holds four weights of four columns, and a register of a row 16 bytes, each minus 128.
func (t *tile) dots(name string) {
	acc := func(r, v int) int { return 32 - 4*t.rows*t.panels + 4*t.panels*r + v }
	sign, w := t.rows, (t.rows+4)/4*4
	t.begin(fmt.Sprintf("%s%dx%dDotProd", name, t.rows, 16*t.panels))
	t.start(16 * t.panels)
	rows := func(load string, step int) {
		for r := range t.rows {
			t.V("ldr %s%d, [x%d], #%d", load, r, regRow+r, step)
		}
		for r := range t.rows {
			t.V("eor v%d.16b, v%d.16b, v%d.16b", r, r, sign)
		}
	}
	turn := 0
	group := func(g int) {
		for p := range t.panels {
			t.V("ld1 %s, [x%d], #64", arm64.Four(w+turn), regB+p)
			for v := range 4 {
				for r := range t.rows {
					t.V("sdot v%d.4s, v%d.16b, v%d.4b[%d]", acc(r, 4*p+v), w+turn+v, r, g)
				}
			}
			if turn += 4; w+turn+4 > acc(0, 0) {
				turn = 0
			}
		}
	}
	t.walk(2, func() {
		for r := range t.rows {
			for p := range t.panels {
				t.V("ld1 %s, [x%d]", arm64.Four(acc(r, 4*p)), []int{regStart, regNextS}[p])
			}
		}
		t.V("movi v%d.16b, #128", sign)
	}, func() {
		rows("q", 16)
		for g := range 4 {
			group(g)
		}
	}, func() {
		t.Go("TBZ $1, R%d, last", regTail)
		rows("d", 8)
		group(0)
		group(1)
		t.Label("last")
		t.Go("TBZ $0, R%d, done", regTail)
		rows("s", 4)
		group(0)
		t.Label("done")
	}, func() { t.finish(acc) })
}

// matrices emits a tile with USMMLA: a register of weights holds eight weights of two columns, a register of rows eight bytes of two rows.
func (t *tile) matrices(name string) {
	acc := func(pair, v int) int { return 16 + 8*pair + v }
	pairs := (t.rows + 1) / 2
	row := func(r int) int { return min(r, t.rows-1) }
	t.begin(fmt.Sprintf("%s%dx16I8MM", name, t.rows))
	load(t.File, argBias, regTemp)
	t.V("ld1 %s, [x%d]", arm64.Four(0), regTemp)
	for v := range 4 {
		t.V("zip1 v%d.2d, v%d.2d, v%d.2d", 4+2*v, v, v)
		t.V("zip2 v%d.2d, v%d.2d, v%d.2d", 5+2*v, v, v)
	}
	t.Go("MOVD R%d, R%d", regStart, regK)
	t.V("st1 %s, [x%d], #64", arm64.Four(4), regK)
	t.V("st1 %s, [x%d]", arm64.Four(8), regK)
	// group multiplies eight pairs of columns by the rows in the registers starting at from.
	group := func(from int) {
		for h := range 2 {
			w := 8 + 4*h
			t.V("ld1 %s, [x%d], #64", arm64.Four(w), regB)
			for v := range 4 {
				for p := range pairs {
					t.V("usmmla v%d.4s, v%d.16b, v%d.16b", acc(p, 4*h+v), from+p, w+v)
				}
			}
		}
	}
	rows := func(load string, step int) {
		for r := range t.rows {
			t.V("ldr %s%d, [x%d], #%d", load, r, regRow+r, step)
		}
		for p := range pairs {
			t.V("zip1 v%d.2d, v%d.2d, v%d.2d", 4+p, 2*p, row(2*p+1))
		}
	}
	t.walk(1, func() {
		for p := range pairs {
			t.V("ld1 %s, [x%d]", arm64.Four(acc(p, 0)), regStart)
			t.V("ld1 %s, [x%d]", arm64.Four(acc(p, 4)), regNextS)
		}
	}, func() {
		rows("q", 16)
		for p := range pairs {
			t.V("zip2 v%d.2d, v%d.2d, v%d.2d", 6+p, 2*p, row(2*p+1))
		}
		group(4)
		group(6)
	}, func() {
		t.Go("CBZ R%d, done", regTail)
		rows("d", 8)
		group(4)
		t.Label("done")
	}, func() {
		for p := range pairs {
			for v := range 4 {
				t.V("zip1 v%d.2d, v%d.2d, v%d.2d", 8+4*p+v, acc(p, 2*v), acc(p, 2*v+1))
				t.V("zip2 v%d.2d, v%d.2d, v%d.2d", acc(p, v), acc(p, 2*v), acc(p, 2*v+1))
			}
		}
		t.finish(func(r, v int) int {
			if r%2 == 0 {
				return 8 + 2*r + v
			}
			return acc(r/2, v)
		})
	})
}

// finish stores the tile. Columns 4v to 4v+3 of row r are in register sums(r, v).
func (t *tile) finish(sums func(r, v int) int) {
	vecs := max(2, 4*t.panels)
	if t.raw {
		for r := range t.rows {
			t.Go("MOVD R%d, R%d", regC, regTemp)
			for v := range vecs {
				t.V("str q%d, [x%d], #16", sums(r, v), regTemp)
			}
			t.Go("ADD R%d, R%d", regLDC, regC)
		}
		return
	}
	scales := 0 // the first of the registers
	if t.panels == 0 {
		scales = wordScale
	}
	for p := range t.panels {
		t.V("ld1 %s, [x%d]", arm64.Four(4*p), []int{regScale, regNextQ}[p])
	}
	var all []int
	scale := map[int]int{}
	for r := range t.rows {
		for v := range vecs {
			all = append(all, sums(r, v))
			scale[sums(r, v)] = scales + v
		}
	}
	toWords(t.File, all, func(v int) int { return scale[v] })
	var rows [][]int
	narrowed := func(zero int) {
		rows = nil
		for r := range t.rows {
			var out []int
			for v := 0; v < vecs; v += 4 {
				var from []int
				for i := range min(4, vecs-v) {
					from = append(from, sums(r, v+i))
				}
				narrow(t.File, from, zero)
				out = append(out, from[0])
			}
			rows = append(rows, out)
		}
	}
	if t.panels == 0 {
		narrowed(wordZero)
	} else { // most layers have no zero point
		t.Go("CBZ R%d, plain", regZero)
		t.V("dup v0.8h, w%d", regZero)
		narrowed(0)
		t.Go("B clamp")
		t.Label("plain")
		narrowed(noZero)
		t.Label("clamp")
	}
	t.clampBytes(rows)
	for _, out := range rows {
		switch {
		case t.panels == 0:
			t.V("str d%d, [x%d]", out[0], regC)
		case t.panels == 1:
			t.V("str q%d, [x%d]", out[0], regC)
		default:
			t.V("stp q%d, q%d, [x%d]", out[0], out[1], regC)
		}
		t.Go("ADD R%d, R%d", regLDC, regC)
	}
}

// clampBytes clamps rows of registers of bytes, unless the bounds are 0 and 255. It uses registers 1 and 2.
func (t *tile) clampBytes(rows [][]int) {
	t.Go("CBZ R%d, store", regClamp)
	dupByte(t.File, argLo, 1, "16b")
	dupByte(t.File, argHi, 2, "16b")
	for _, row := range rows {
		for _, v := range row {
			t.V("umax v%d.16b, v%d.16b, v1.16b", v, v)
			t.V("umin v%d.16b, v%d.16b, v2.16b", v, v)
		}
	}
	t.Label("store")
}
