package emit

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Value is an expression: code that leaves one value of its type on the stack. A local is a Value too, and code may use it any number of
// times. Each use of another Value emits its code again, which computes with the locals' values at that point. [Func.Let] computes once.
type Value struct {
	typ   Type
	code  []byte
	local int // index of a local, plus 1; 0: the Value is not a local
}

// Int returns the constant v of type I32 or I64.
func (t Type) Int(v int64) Value {
	switch t {
	case I32:
		return Value{typ: I32, code: appendSigned([]byte{0x41}, int64(int32(v)))}
	case I64:
		return Value{typ: I64, code: appendSigned([]byte{0x42}, v)}
	}
	panic("emit: an integer of type " + t.String())
}

// C returns the constant v of type I32.
func C(v int) Value { return I32.Int(int64(v)) }

// Float returns the constant v of type F32.
func Float(v float32) Value {
	return Value{typ: F32, code: binary.LittleEndian.AppendUint32([]byte{0x43}, math.Float32bits(v))}
}

// value returns v as a Value of type t. v is a Value of that type, or an int, a rune or a float32 for a constant. It panics if v has
// another type.
func value(t Type, v any) Value {
	switch v := v.(type) {
	case Value:
		if v.typ != t {
			panic(fmt.Sprintf("emit: %v where %v is wanted", v.typ, t))
		}
		return v
	case int:
		return t.Int(int64(v))
	case rune:
		return t.Int(int64(v))
	case float32:
		if t == F32 {
			return Float(v)
		}
	}
	panic(fmt.Sprintf("emit: %T where %v is wanted", v, t))
}

// op returns the code of the operands, in their order on the stack, followed by an instruction that consumes them.
func op(typ Type, code []byte, operands ...Value) Value {
	var out []byte
	for _, v := range operands {
		out = append(out, v.code...)
	}
	return Value{typ: typ, code: append(out, code...)}
}

// binary applies the instruction for a's type to a and b. An opcode of 0 means that the type has no such instruction.
func (a Value) binary(result Type, b any, i32, i64, f32 byte) Value {
	code := map[Type]byte{I32: i32, I64: i64, F32: f32}[a.typ]
	if code == 0 {
		panic("emit: no such operation on " + a.typ.String())
	}
	if result == none {
		result = a.typ
	}
	return op(result, []byte{code}, a, value(a.typ, b))
}

// The following methods compute on I32, I64 and, if WebAssembly has the instruction, F32. The operand b is a [Value] of the same type,
// or an int or float32 for a constant.

// Add returns a + b.
func (a Value) Add(b any) Value {
	if b == 0 {
		return a
	}
	return a.binary(none, b, 0x6a, 0x7c, 0x92)
}

// Sub returns a - b.
func (a Value) Sub(b any) Value { return a.binary(none, b, 0x6b, 0x7d, 0x93) }

// Mul returns a * b.
func (a Value) Mul(b any) Value { return a.binary(none, b, 0x6c, 0x7e, 0x94) }

// DivU returns a / b of unsigned numbers.
func (a Value) DivU(b any) Value { return a.binary(none, b, 0x6e, 0x80, 0) }

// And returns a & b.
func (a Value) And(b any) Value { return a.binary(none, b, 0x71, 0x83, 0) }

// Or returns a | b.
func (a Value) Or(b any) Value { return a.binary(none, b, 0x72, 0x84, 0) }

// Xor returns a ^ b.
func (a Value) Xor(b any) Value { return a.binary(none, b, 0x73, 0x85, 0) }

// Shl returns a << b.
func (a Value) Shl(b any) Value { return a.binary(none, b, 0x74, 0x86, 0) }

// ShrS returns a >> b of signed numbers.
func (a Value) ShrS(b any) Value { return a.binary(none, b, 0x75, 0x87, 0) }

// ShrU returns a >> b of unsigned numbers.
func (a Value) ShrU(b any) Value { return a.binary(none, b, 0x76, 0x88, 0) }

// RotR rotates the bits of a to the right by b.
func (a Value) RotR(b any) Value { return a.binary(none, b, 0x78, 0x8a, 0) }

// Eq returns a == b. Like all comparisons it returns an I32: 1 for true, and 0 for false.
func (a Value) Eq(b any) Value { return a.binary(I32, b, 0x46, 0x51, 0x5b) }

// Ne returns a != b.
func (a Value) Ne(b any) Value { return a.binary(I32, b, 0x47, 0x52, 0x5c) }

// LtS returns a < b of signed numbers.
func (a Value) LtS(b any) Value { return a.binary(I32, b, 0x48, 0x53, 0) }

// LtU returns a < b of unsigned numbers.
func (a Value) LtU(b any) Value { return a.binary(I32, b, 0x49, 0x54, 0) }

// GtS returns a > b of signed numbers.
func (a Value) GtS(b any) Value { return a.binary(I32, b, 0x4a, 0x55, 0) }

// LeS returns a <= b of signed numbers.
func (a Value) LeS(b any) Value { return a.binary(I32, b, 0x4c, 0x57, 0) }

// GeS returns a >= b of signed numbers.
func (a Value) GeS(b any) Value { return a.binary(I32, b, 0x4e, 0x59, 0) }

// GeU returns a >= b of unsigned numbers.
func (a Value) GeU(b any) Value { return a.binary(I32, b, 0x4f, 0x5a, 0) }

// Lt returns a < b of floats.
func (a Value) Lt(b any) Value { return a.binary(I32, b, 0, 0, 0x5d) }

// Gt returns a > b of floats.
func (a Value) Gt(b any) Value { return a.binary(I32, b, 0, 0, 0x5e) }

func (a Value) unary(from, to Type, code ...byte) Value {
	return op(to, code, value(from, a))
}

// Ctz counts the zero bits at the low end of an I32.
func (a Value) Ctz() Value { return a.unary(I32, I32, 0x68) }

// Nearest rounds an F32 to a whole number, half to even.
func (a Value) Nearest() Value { return a.unary(F32, F32, 0x90) }

// Wrap returns the low half of an I64.
func (a Value) Wrap() Value { return a.unary(I64, I32, 0xa7) }

// ExtendS returns a signed I32 as an I64.
func (a Value) ExtendS() Value { return a.unary(I32, I64, 0xac) }

// ExtendU returns an unsigned I32 as an I64.
func (a Value) ExtendU() Value { return a.unary(I32, I64, 0xad) }

// ToFloat returns a signed I32 as an F32, rounded to nearest even.
func (a Value) ToFloat() Value { return a.unary(I32, F32, 0xb2) }

// Truncate returns an F32 as a signed I32, rounded towards zero and clamped to the range of I32.
func (a Value) Truncate() Value { return a.unary(F32, I32, 0xfc, 0x00) }

// Select returns a if cond is not 0, and b otherwise. Both are always computed.
func Select(cond, a, b Value) Value {
	if a.typ != b.typ || a.typ == V128 {
		panic("emit: select between other types")
	}
	return op(a.typ, []byte{0x1b}, a, b, value(I32, cond))
}

// Min returns the smaller of two signed I32.
func Min(a, b Value) Value { return Select(a.LtS(b), a, b) }

// memory appends the immediate of a memory access at offset, without an alignment.
func memory(code []byte, offset int) []byte {
	if offset < 0 {
		panic("emit: an offset below zero")
	}
	return appendUnsigned(append(code, 0), uint64(offset))
}

// Load reads a value of type t at address a + offset.
func (a Value) Load(t Type, offset int) Value {
	code := map[Type][]byte{I32: {0x28}, I64: {0x29}, F32: {0x2a}, V128: {0xfd, 0x00}}[t]
	return op(t, memory(code, offset), value(I32, a))
}

// Load8S reads a signed byte as an I32.
func (a Value) Load8S(offset int) Value { return op(I32, memory([]byte{0x2c}, offset), value(I32, a)) }

// Load8U reads an unsigned byte as an I32.
func (a Value) Load8U(offset int) Value { return op(I32, memory([]byte{0x2d}, offset), value(I32, a)) }

// Load16U reads two bytes, unsigned, as an I32.
func (a Value) Load16U(offset int) Value { return op(I32, memory([]byte{0x2f}, offset), value(I32, a)) }
