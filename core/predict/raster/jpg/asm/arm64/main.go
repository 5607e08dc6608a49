// Command arm64 writes the arm64 assembly of package jpg:
//
//	go run ./asm/arm64 -out inverse_arm64.s -stubs stubs_arm64.go -pkg jpg
//
// Every function takes one pointer to a struct of 8-byte fields (inverse_arm64.go), so a field's offset is 8 times its index.
package main

import "github.com/sightline-dev/sightline/core/cpu/asm/arm64"

// The general registers. They hold the fields of jpg.inverseArgs, in order.
const (
	dst = 1 + iota
	stride
	block
	quant
	factors
	temp
)

// The registers of the factors: [cos, sin-cos, cos+sin, other], see jpg.inverseFactors.
const (
	cos6Row    = 26 // lane other is for the odd half of rows
	cos6Column = 27 // lane other is for the odd half of columns
	cos3       = 28
	cos1       = 29 // lane other rounds the shifts at the end
	other      = 3  // the last lane of a factor register
)

func main() {
	arm64.Generate(func(f *arm64.File) {
		(&inverse{File: f}).eight()
		(&inverse{File: f}).four()
	})
}

// inverse emits a transform. take gets a register from a list and give returns it.
type inverse struct {
	*arm64.File
	free []int
}

func (t *inverse) begin(name string, vectors int) {
	t.Func(name)
	for reg := dst; reg <= factors; reg++ {
		t.Go("MOVD %d(R0), R%d", 8*(reg-dst), reg)
	}
	for v := range vectors {
		t.V("ldr q%d, [x%d], #16", cos6Row+v, factors)
	}
	for v := cos6Row - 1; v >= 0; v-- {
		t.free = append(t.free, v)
	}
}

func (t *inverse) take() int {
	v := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	return v
}

func (t *inverse) give(vs ...int) { t.free = append(t.free, vs...) }

// three emits an instruction on three registers of dwords.
func (t *inverse) three(op string, d, a, b int) { t.V("%s v%d.4s, v%d.4s, v%d.4s", op, d, a, b) }

// times emits a multiplication by a factor.
func (t *inverse) times(op string, d, a, factor, lane int) {
	t.V("%s v%d.4s, v%d.4s, v%d.s[%d]", op, d, a, factor, lane)
}

func (t *inverse) shift(op string, v, by int) { t.V("%s v%d.4s, v%d.4s, #%d", op, v, v, by) }

// butterfly replaces a and b by a+b and a-b.
func (t *inverse) butterfly(a, b *int) {
	d := t.take()
	t.three("sub", d, *a, *b)
	t.three("add", *a, *a, *b)
	t.give(*b)
	*b = d
}

// rotate replaces a and b by their rotation.
func (t *inverse) rotate(a, b *int, factor int) {
	sum, y0, y1 := t.take(), t.take(), t.take()
	t.three("add", sum, *a, *b)
	t.times("mul", y0, sum, factor, 0)
	t.times("mul", y1, sum, factor, 0)
	t.times("mla", y0, *b, factor, 1)
	t.times("mls", y1, *a, factor, 2)
	t.give(sum, *a, *b)
	*a, *b = y0, y1
}

// place holds, for each element k of a row, the index of the variable of inverse8.go in which it begins.
var place = [8]int{0, 7, 2, 5, 1, 6, 3, 4}

// pass transforms four rows or columns. elements holds the registers of their elements, in order.
func (t *inverse) pass(elements [8]int, cos6, shift int, first, second func(x *[8]int)) (x [8]int) {
	for k, p := range place {
		x[p] = elements[k]
	}
	first(&x)
	t.rotate(&x[2], &x[3], cos6)
	t.butterfly(&x[1], &x[2])
	t.butterfly(&x[0], &x[3])
	second(&x)
	t.times("mul", x[5], x[5], cos6, other)
	t.times("mul", x[6], x[6], cos6, other)
	t.butterfly(&x[7], &x[5])
	t.butterfly(&x[4], &x[6])
	for _, i := range []int{4, 7, 5, 6} {
		t.shift("sshr", x[i], shift)
	}
	t.rotate(&x[4], &x[7], cos3)
	t.rotate(&x[5], &x[6], cos1)
	for i := range 4 {
		t.butterfly(&x[i], &x[7-i])
	}
	return x
}

func (t *inverse) rows(elements [8]int) [8]int {
	return t.pass(elements, cos6Row, 2, func(x *[8]int) {
		t.shift("shl", x[0], 17)
		t.shift("shl", x[1], 17)
		t.butterfly(&x[0], &x[1])
	}, func(x *[8]int) {
		t.shift("shl", x[4], 7)
		t.shift("shl", x[7], 7)
		t.butterfly(&x[7], &x[4])
	})
}

func (t *inverse) columns(elements [8]int) [8]int {
	round := t.take()
	t.V("dup v%d.4s, v%d.s[%d]", round, cos1, other)
	x := t.pass(elements, cos6Column, 14, func(x *[8]int) {
		t.three("add", x[0], x[0], round)
		t.butterfly(&x[0], &x[1])
		t.shift("sshr", x[0], 2)
		t.shift("sshr", x[1], 2)
		t.shift("sshr", x[2], 13)
		t.shift("sshr", x[3], 13)
	}, func(x *[8]int) {
		t.butterfly(&x[7], &x[4])
		t.shift("sshr", x[5], 13)
		t.shift("sshr", x[6], 13)
	})
	t.give(round)
	for _, v := range x {
		t.shift("sshr", v, 18)
	}
	return x
}

// transpose4 transposes four registers of four dwords.
func (t *inverse) transpose4(r []int) []int {
	var a, b [2]int
	for i := range 2 {
		a[i], b[i] = t.take(), t.take()
		t.three("trn1", a[i], r[2*i], r[2*i+1])
		t.three("trn2", b[i], r[2*i], r[2*i+1])
		t.give(r[2*i], r[2*i+1])
	}
	out := []int{t.take(), t.take(), t.take(), t.take()}
	for i, from := range [][2]int{a, b} {
		t.V("zip1 v%d.2d, v%d.2d, v%d.2d", out[i], from[0], from[1])
		t.V("zip2 v%d.2d, v%d.2d, v%d.2d", out[i+2], from[0], from[1])
	}
	t.give(a[:]...)
	t.give(b[:]...)
	return out
}

// eight emits inverse8Generic, in two halves of four rows, and then of four columns.
func (t *inverse) eight() {
	t.begin("inverse8NEON", 4)
	var x [2][8]int
	zero := t.take()
	t.V("movi v%d.16b, #0", zero)
	for k := range 8 {
		q0, q1 := t.take(), t.take()
		x[0][k], x[1][k] = t.take(), t.take()
		t.V("ldp q%d, q%d, [x%d]", x[0][k], x[1][k], block)
		t.V("ldp q%d, q%d, [x%d], #32", q0, q1, quant)
		t.V("stp q%d, q%d, [x%d], #32", zero, zero, block)
		t.three("mul", x[0][k], x[0][k], q0)
		t.three("mul", x[1][k], x[1][k], q1)
		t.give(q0, q1)
	}
	t.give(zero)
	for h := range x {
		x[h] = t.rows(x[h])
	}
	var y [2][8]int // by half of the columns, and row
	for g := range y {
		for h := range x {
			copy(y[g][4*h:], t.transpose4(x[h][4*g:4*g+4]))
		}
	}
	for g := range y {
		y[g] = t.columns(y[g])
	}
	sign := t.take()
	t.V("movi v%d.16b, #128", sign)
	for row := range 8 {
		lo, hi := y[0][row], y[1][row]
		t.V("sqxtn v%d.4h, v%d.4s", lo, lo)
		t.V("sqxtn2 v%d.8h, v%d.4s", lo, hi)
		t.store(lo, sign, "d")
	}
	t.Go("RET")
}

// store saturates a row of words, adds 128 and stores it.
func (t *inverse) store(v, sign int, size string) {
	t.V("sqxtn v%d.8b, v%d.8h", v, v)
	t.V("eor v%d.16b, v%d.16b, v%d.16b", v, v, sign)
	t.V("str %s%d, [x%d]", size, v, dst)
	t.Go("ADD R%d, R%d", stride, dst)
}

// four emits inverse4Generic: rows, transposition, columns, each of four dwords.
func (t *inverse) four() {
	const factor = cos6Row // [10703, 4433, 1<<10, 1<<17]
	t.begin("inverse4NEON", 1)
	x := make([]int, 4)
	zero := t.take()
	t.V("movi v%d.16b, #0", zero)
	for k := range x {
		q := t.take()
		x[k] = t.take()
		t.V("ldr q%d, [x%d]", x[k], block)
		t.V("ldr q%d, [x%d], #16", q, quant)
		t.V("str q%d, [x%d], #16", zero, block)
		t.three("mul", x[k], x[k], q)
		t.give(q)
	}
	round := t.take()
	for pass, shift := range []int{11, 18} {
		t.butterfly(&x[0], &x[2])
		t.shift("shl", x[0], 13)
		t.shift("shl", x[2], 13)
		o0, o1 := t.take(), t.take()
		t.times("mul", o0, x[1], factor, 0)
		t.times("mla", o0, x[3], factor, 1)
		t.times("mul", o1, x[1], factor, 1)
		t.times("mls", o1, x[3], factor, 0)
		t.give(x[1], x[3])
		t.V("dup v%d.4s, v%d.s[%d]", round, factor, 2+pass)
		t.butterfly(&x[0], &o0)
		t.butterfly(&x[2], &o1)
		x = []int{x[0], x[2], o1, o0}
		for _, v := range x {
			t.three("add", v, v, round)
			t.shift("sshr", v, shift)
		}
		if pass == 0 {
			x = t.transpose4(x)
		}
	}
	t.V("movi v%d.16b, #128", zero)
	for _, v := range x {
		t.V("sqxtn v%d.4h, v%d.4s", v, v)
		t.store(v, zero, "s")
	}
	t.Go("RET")
}
