// Package asm has the common parts of the generators of the kernels' assembly. Each generator is a command that emits amd64 with
// github.com/mmcloughlin/avo. A go:generate line of the kernel's package runs it.
package asm

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Generator runs emit and writes the assembly and the stubs to the files that the flags of avo name.
func Generator(emit func()) {
	ConstraintExpr("!purego")
	emit()
	Generate()
}

// Levels is [Generator] with the function that the flag -level names.
func Levels(emit map[string]func()) {
	level := flag.String("level", "", "avx512 or avx2")
	flag.Parse()
	f, ok := emit[*level]
	if !ok {
		log.Fatal("asm: -level must be avx512 or avx2")
	}
	Generator(f)
}

// Begin begins a function that retains none of its arguments.
func Begin(name, signature string) {
	TEXT(name, NOSPLIT, signature)
	Pragma("noescape")
}

// End returns from a function that used vector registers.
func End() {
	VZEROUPPER()
	RET()
}

// Params returns new registers that hold the parameters of these names, of 8 bytes each.
func Params(names ...string) []Register {
	out := make([]Register, len(names))
	for i, name := range names {
		out[i] = Load(Param(name), GP64())
	}
	return out
}

// At returns the memory at disp bytes after p.
func At(p Register, disp int) Mem { return Mem{Base: p, Disp: disp} }

// Field returns a new register that holds the 8 bytes at disp of the struct that p points to.
func Field(p Register, disp int) GPVirtual {
	r := GP64()
	MOVQ(At(p, disp), r)
	return r
}

// Dwords returns a constant of n times v.
func Dwords(name string, v uint32, n int) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range n {
		DATA(4*i, U32(v))
	}
	return m
}

// Raw emits an instruction that avo has no constructor for. It reads and writes the last operand.
func Raw(opcode string, ops ...Op) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: ops, Inputs: ops, Outputs: ops[len(ops)-1:]})
}
