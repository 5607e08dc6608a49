// Command asm writes the amd64 assembly of package kernel, once per level:
//
//	go run ./asm -level avx512 -out kernel_avx512_amd64.s -stubs stubs_avx512_amd64.go -pkg kernel
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/sightline-dev/sightline/core/cpu/asm"
)

// lanes is kernel.Lanes. Lengths are multiples of it.
const lanes = 32

// set is an instruction set: the width of a vector and the numbers of rows of a product that fit its registers.
type set struct {
	suffix  string
	width   int // float32 in a vector
	vec     func() VecVirtual
	heights []int
	consts  map[string]Mem
}

func main() {
	asm.Levels(map[string]func(){
		"avx512": func() { emit(&set{suffix: "AVX512", width: 16, vec: ZMM, heights: []int{8, 4, 2, 1}}) },
		"avx2":   func() { emit(&set{suffix: "AVX2", width: 8, vec: YMM, heights: []int{2, 1}}) },
	})
}

func emit(s *set) {
	s.constants()
	for _, h := range s.heights {
		s.product(h)
	}
	s.dot()
	s.axpy()
	s.residual()
	s.raise()
	s.exp()
	s.share()
	s.rows()
}

func (s *set) constants() {
	s.consts = map[string]Mem{}
	for _, c := range []struct {
		name string
		bits uint32
	}{
		{"sign", 1 << 31},
		{"one", math.Float32bits(1)},
		{"limit", math.Float32bits(87)},
		{"unlimit", math.Float32bits(-87)},
		{"log2e", math.Float32bits(0x1.715476p+0)},
		{"ln2Hi", math.Float32bits(0x1.62e4p-1)},
		{"ln2Lo", math.Float32bits(0x1.7f7d1cp-20)},
		{"shifter", math.Float32bits(3 << 22)},
		{"c6", math.Float32bits(0x1.6c16c16c16c17p-10)},
		{"c5", math.Float32bits(0x1.1111111111111p-7)},
		{"c4", math.Float32bits(0x1.5555555555555p-5)},
		{"c3", math.Float32bits(0x1.5555555555555p-3)},
		{"c2", math.Float32bits(0.5)},
	} {
		s.consts[c.name] = asm.Dwords(c.name+s.suffix, c.bits, 1)
	}
}

// all returns a register with the constant in every lane.
func (s *set) all(name string) VecVirtual {
	v := s.vec()
	VBROADCASTSS(s.consts[name], v)
	return v
}

func (s *set) zero(v VecVirtual) {
	if s.width == 16 {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// begin begins a function of the level.
func (s *set) begin(name, signature string) { asm.Begin(name+s.suffix, signature) }

func (s *set) bytes() int { return 4 * s.width }

var at = asm.At

// product emits a function for a block of height rows by 32 columns, which it keeps in registers over all k.
func (s *set) product(height int) {
	s.begin(fmt.Sprintf("product%d", height), "func(dst *float32, ldd int, a *float32, lda int, panel *float32, k int)")
	vecs := lanes / s.width
	dst, ldd := Load(Param("dst"), GP64()), Load(Param("ldd"), GP64())
	a, lda := Load(Param("a"), GP64()), Load(Param("lda"), GP64())
	panel, k := Load(Param("panel"), GP64()), Load(Param("k"), GP64())
	SHLQ(Imm(2), ldd)
	SHLQ(Imm(2), lda)
	base := []Register{a}
	var three GPVirtual
	if height > 2 {
		three = GP64()
		LEAQ(Mem{Base: lda, Index: lda, Scale: 2}, three)
	}
	if height > 4 {
		second := GP64()
		LEAQ(Mem{Base: a, Index: lda, Scale: 4}, second)
		base = append(base, second)
	}
	acc := make([]VecVirtual, height*vecs)
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	b := make([]VecVirtual, vecs)
	for v := range b {
		b[v] = s.vec()
	}
	f, product := s.vec(), s.vec()
	step := func(u int) {
		for v := range b {
			VMOVUPS(at(panel, u*4*lanes+v*s.bytes()), b[v])
		}
		for r := range height {
			m := at(base[r/4], 4*u)
			switch r % 4 {
			case 1, 2:
				m.Index, m.Scale = lda, uint8(r%4)
			case 3:
				m.Index, m.Scale = three, 1
			}
			VBROADCASTSS(m, f)
			for v := range b {
				VMULPS(b[v], f, product)
				VADDPS(product, acc[r*vecs+v], acc[r*vecs+v])
			}
		}
	}
	advance := func(n int) {
		for _, p := range base {
			ADDQ(Imm(uint64(4*n)), p)
		}
		ADDQ(U32(uint32(4*lanes*n)), panel)
	}
	SUBQ(Imm(4), k)
	JLT(LabelRef("tail"))
	Label("loop")
	for u := range 4 {
		step(u)
	}
	advance(4)
	SUBQ(Imm(4), k)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(4), k)
	JZ(LabelRef("done"))
	Label("single")
	step(0)
	advance(1)
	DECQ(k)
	JNZ(LabelRef("single"))
	Label("done")
	for r := range height {
		for v := range b {
			VMOVUPS(acc[r*vecs+v], at(dst, v*s.bytes()))
		}
		if r+1 < height {
			ADDQ(ldd, dst)
		}
	}
	asm.End()
}

// fold adds the upper half of the 32 lanes to the lower until one is left, in acc[0].
func (s *set) fold(acc []VecVirtual) Register {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			VADDPS(acc[i+n], acc[i], acc[i])
		}
	}
	v := acc[0]
	if s.width == 16 {
		upper := YMM()
		VEXTRACTF64X4(Imm(1), v, upper)
		VADDPS(upper, v.AsY(), v.AsY())
	}
	x, upper := v.AsX(), XMM()
	VEXTRACTF128(Imm(1), v.AsY(), upper)
	VADDPS(upper, x, x)
	VMOVHLPS(x, x, upper)
	VADDPS(upper, x, x)
	VMOVSHDUP(x, upper)
	VADDSS(upper, x, x)
	return x
}

func (s *set) accumulators() []VecVirtual {
	acc := make([]VecVirtual, lanes/s.width)
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	return acc
}

func (s *set) dot() {
	s.begin("dot", "func(a, b *float32, n int) float32")
	a, b, n := Load(Param("a"), GP64()), Load(Param("b"), GP64()), Load(Param("n"), GP64())
	acc, t := s.accumulators(), s.vec()
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	for i, v := range acc {
		VMOVUPS(at(a, i*s.bytes()), t)
		VMULPS(at(b, i*s.bytes()), t, t)
		VADDPS(t, v, v)
	}
	ADDQ(U32(4*lanes), a)
	ADDQ(U32(4*lanes), b)
	SUBQ(Imm(lanes), n)
	JNZ(LabelRef("loop"))
	Label("done")
	Store(s.fold(acc), ReturnIndex(0))
	asm.End()
}

// each emits a loop over n elements, a vector at a time. step addresses the pointers at displacement 0.
func (s *set) each(pointers []Register, n Register, step func()) {
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("loop")
	step()
	for _, p := range pointers {
		ADDQ(Imm(uint64(s.bytes())), p)
	}
	SUBQ(Imm(uint64(s.width)), n)
	JNZ(LabelRef("loop"))
	Label("done")
	asm.End()
}

// scalar broadcasts a float32 parameter.
func (s *set) scalar(name string) VecVirtual {
	x, v := XMM(), s.vec()
	Load(Param(name), x)
	VBROADCASTSS(x, v)
	return v
}

func (s *set) axpy() {
	s.begin("axpy", "func(y *float32, f float32, x *float32, n int)")
	p, f, n := asm.Params("y", "x"), s.scalar("f"), Load(Param("n"), GP64())
	t := s.vec()
	s.each(p, n, func() {
		VMULPS(at(p[1], 0), f, t)
		VADDPS(at(p[0], 0), t, t)
		VMOVUPS(t, at(p[0], 0))
	})
}

// exponential emits eˣ of a clipped x in place. Its fields are the constants in registers.
type exponential struct {
	s                                                 *set
	limit, unlimit, log2e, ln2Hi, ln2Lo, shifter, one VecVirtual
}

func (s *set) exponential() *exponential {
	return &exponential{
		s: s, limit: s.all("limit"), unlimit: s.all("unlimit"), log2e: s.all("log2e"), ln2Hi: s.all("ln2Hi"), ln2Lo: s.all("ln2Lo"),
		shifter: s.all("shifter"), one: s.all("one"),
	}
}

func (e *exponential) emit(x VecVirtual) {
	s := e.s
	k, t, p := s.vec(), s.vec(), s.vec()
	VMAXPS(e.unlimit, x, x)
	VMINPS(e.limit, x, x)
	VMULPS(e.log2e, x, k)
	VADDPS(e.shifter, k, k)
	VSUBPS(e.shifter, k, k)
	VMULPS(e.ln2Hi, k, t)
	VSUBPS(t, x, x)
	VMULPS(e.ln2Lo, k, t)
	VSUBPS(t, x, x)
	VBROADCASTSS(s.consts["c6"], p)
	for _, c := range []string{"c5", "c4", "c3", "c2"} {
		VBROADCASTSS(s.consts[c], t)
		VMULPS(x, p, p)
		VADDPS(t, p, p)
	}
	for range 2 {
		VMULPS(x, p, p)
		VADDPS(e.one, p, p)
	}
	VCVTPS2DQ(k, k)
	VPSLLD(Imm(23), k, k)
	VPADDD(k, p, x)
}

func (s *set) residual() {
	s.begin("residual", "func(r, z *float32, bias float32, w, y *float32, n int)")
	p, bias, n := asm.Params("r", "z", "w", "y"), s.scalar("bias"), Load(Param("n"), GP64())
	e, sign, x, t := s.exponential(), s.all("sign"), s.vec(), s.vec()
	s.each(p, n, func() {
		VADDPS(at(p[1], 0), bias, x)
		if s.width == 16 {
			VPXORD(sign, x, x)
		} else {
			VXORPS(sign, x, x)
		}
		e.emit(x)
		VADDPS(e.one, x, x)
		VDIVPS(x, e.one, t)
		VSUBPS(at(p[3], 0), t, t)
		VMULPS(at(p[2], 0), t, t)
		VMOVUPS(t, at(p[0], 0))
	})
}

func (s *set) raise() {
	s.begin("raise", "func(top, z *float32, bias float32, n int)")
	p, bias, n := asm.Params("top", "z"), s.scalar("bias"), Load(Param("n"), GP64())
	x := s.vec()
	s.each(p, n, func() {
		VADDPS(at(p[1], 0), bias, x)
		VMAXPS(at(p[0], 0), x, x)
		VMOVUPS(x, at(p[0], 0))
	})
}

func (s *set) exp() {
	s.begin("exp", "func(z *float32, bias float32, top, sum *float32, n int)")
	p, bias, n := asm.Params("z", "top", "sum"), s.scalar("bias"), Load(Param("n"), GP64())
	e, x, t := s.exponential(), s.vec(), s.vec()
	s.each(p, n, func() {
		VADDPS(at(p[0], 0), bias, x)
		VSUBPS(at(p[1], 0), x, x)
		e.emit(x)
		VMOVUPS(x, at(p[0], 0))
		VADDPS(at(p[2], 0), x, t)
		VMOVUPS(t, at(p[2], 0))
	})
}

func (s *set) share() {
	s.begin("share", "func(r, e, sum, w, y *float32, n int)")
	p, n := asm.Params("r", "e", "sum", "w", "y"), Load(Param("n"), GP64())
	x := s.vec()
	s.each(p, n, func() {
		VMOVUPS(at(p[1], 0), x)
		VDIVPS(at(p[2], 0), x, x)
		VSUBPS(at(p[4], 0), x, x)
		VMULPS(at(p[3], 0), x, x)
		VMOVUPS(x, at(p[0], 0))
	})
}

func (s *set) rows() {
	s.begin("rows", "func(dst *float32, n int, w *float32, d int, q *int16)")
	dst, n := Load(Param("dst"), GP64()), Load(Param("n"), GP64())
	w, d, q := Load(Param("w"), GP64()), Load(Param("d"), GP64()), Load(Param("q"), GP64())
	i, t := GP64(), s.vec()
	acc := make([]VecVirtual, lanes/s.width)
	for v := range acc {
		acc[v] = s.vec()
	}
	Label("row")
	for _, v := range acc {
		s.zero(v)
	}
	XORQ(i, i)
	Label("loop")
	for v := range acc {
		VPMOVSXWD(Mem{Base: q, Disp: 2 * v * s.width}, t)
		VCVTDQ2PS(t, t)
		VMULPS(Mem{Base: w, Index: i, Scale: 4, Disp: v * s.bytes()}, t, t)
		VADDPS(t, acc[v], acc[v])
	}
	ADDQ(Imm(2*lanes), q)
	ADDQ(Imm(lanes), i)
	CMPQ(i, d)
	JLT(LabelRef("loop"))
	VMOVSS(s.fold(acc).(Vec).AsX(), at(dst, 0))
	ADDQ(Imm(4), dst)
	DECQ(n)
	JNZ(LabelRef("row"))
	asm.End()
}
