package emit

// Shape is a way to see a V128 as lanes. Its methods are the instructions on them.
type Shape struct {
	name string
	elem Type
	ops  map[string]uint64 // opcodes after the prefix 0xfd
}

// The shapes.
var (
	I8x16 = Shape{"i8x16", I32, map[string]uint64{
		"splat": 0x0f, "extract": 0x16, "eq": 0x23, "lt_s": 0x25, "gt_u": 0x28, "bitmask": 0x64,
		"narrow_s": 0x65, "narrow_u": 0x66, "add": 0x6e, "sub": 0x71, "shr_u": 0x6d,
	}}
	I16x8 = Shape{"i16x8", I32, map[string]uint64{
		"splat": 0x10, "extract": 0x19, "narrow_s": 0x85, "low_s": 0x87, "high_s": 0x88, "low_u": 0x89, "high_u": 0x8a,
		"shl": 0x8b, "shr_s": 0x8c, "shr_u": 0x8d, "add": 0x8e, "sub": 0x91, "mul": 0x95,
	}}
	I32x4 = Shape{"i32x4", I32, map[string]uint64{
		"splat": 0x11, "extract": 0x1b, "low_s": 0xa7, "high_s": 0xa8, "low_u": 0xa9, "high_u": 0xaa,
		"shl": 0xab, "shr_s": 0xac, "shr_u": 0xad, "add": 0xae, "sub": 0xb1, "mul": 0xb5, "dot": 0xba,
	}}
	I64x2 = Shape{"i64x2", I64, map[string]uint64{
		"splat": 0x12, "extract": 0x1d, "low_s": 0xc7, "high_s": 0xc8, "low_u": 0xc9, "high_u": 0xca,
		"shl": 0xcb, "shr_u": 0xcd, "add": 0xce, "sub": 0xd1,
	}}
	F32x4 = Shape{"f32x4", F32, map[string]uint64{
		"splat": 0x13, "extract": 0x1f, "neg": 0xe1, "add": 0xe4, "sub": 0xe5, "mul": 0xe6, "div": 0xe7,
		"pmin": 0xea, "pmax": 0xeb, "convert_s": 0xfa,
	}}
)

func vectorOp(typ Type, code uint64, operands ...Value) Value {
	return op(typ, appendUnsigned([]byte{0xfd}, code), operands...)
}

func (s Shape) op(name string, operands ...Value) Value {
	code, ok := s.ops[name]
	if !ok {
		panic("emit: no " + s.name + "." + name)
	}
	for _, v := range operands {
		value(V128, v)
	}
	return vectorOp(V128, code, operands...)
}

// Splat is v, a [Value] or a constant, in every lane.
func (s Shape) Splat(v any) Value {
	return vectorOp(V128, s.ops["splat"], value(s.elem, v))
}

// Lane is one lane of a; bytes and words are unsigned.
func (s Shape) Lane(a Value, lane int) Value {
	v := vectorOp(s.elem, s.ops["extract"], value(V128, a))
	v.code = append(v.code, byte(lane))
	return v
}

// Add is a + b in each lane.
func (s Shape) Add(a, b Value) Value { return s.op("add", a, b) }

// Sub is a - b.
func (s Shape) Sub(a, b Value) Value { return s.op("sub", a, b) }

// Mul is a * b.
func (s Shape) Mul(a, b Value) Value { return s.op("mul", a, b) }

// Div is a / b.
func (s Shape) Div(a, b Value) Value { return s.op("div", a, b) }

// Neg is -a.
func (s Shape) Neg(a Value) Value { return s.op("neg", a) }

// PMin is b where b < a, and otherwise a.
func (s Shape) PMin(a, b Value) Value { return s.op("pmin", a, b) }

// PMax is b where a < b, and otherwise a.
func (s Shape) PMax(a, b Value) Value { return s.op("pmax", a, b) }

// Shl is a << n.
func (s Shape) Shl(a Value, n int) Value { return s.shift("shl", a, n) }

// ShrS is a >> n of signed lanes.
func (s Shape) ShrS(a Value, n int) Value { return s.shift("shr_s", a, n) }

// ShrU is a >> n of unsigned lanes.
func (s Shape) ShrU(a Value, n int) Value { return s.shift("shr_u", a, n) }

func (s Shape) shift(name string, a Value, n int) Value {
	s.op(name) // panics where there is none
	return vectorOp(V128, s.ops[name], value(V128, a), C(n))
}

// Eq is all ones where a == b.
func (s Shape) Eq(a, b Value) Value { return s.op("eq", a, b) }

// LtS is all ones where a < b of signed lanes.
func (s Shape) LtS(a, b Value) Value { return s.op("lt_s", a, b) }

// GtU is all ones where a > b of unsigned lanes.
func (s Shape) GtU(a, b Value) Value { return s.op("gt_u", a, b) }

// LowS widens the lower half of a, signed lanes of half the width.
func (s Shape) LowS(a Value) Value { return s.op("low_s", a) }

// HighS widens the upper half of a.
func (s Shape) HighS(a Value) Value { return s.op("high_s", a) }

// LowU widens the lower half of a, unsigned lanes.
func (s Shape) LowU(a Value) Value { return s.op("low_u", a) }

// HighU widens the upper half of a, unsigned lanes.
func (s Shape) HighU(a Value) Value { return s.op("high_u", a) }

// NarrowS halves the width of the lanes of a and then b, held to the range of signed lanes.
func (s Shape) NarrowS(a, b Value) Value { return s.op("narrow_s", a, b) }

// NarrowU halves the width of signed lanes, held to the range of unsigned ones.
func (s Shape) NarrowU(a, b Value) Value { return s.op("narrow_u", a, b) }

// Dot is the sums of the products of neighbouring pairs of signed 16-bit lanes, as 32-bit lanes.
func (s Shape) Dot(a, b Value) Value { return s.op("dot", a, b) }

// RelaxedDot is sum plus, in each 32-bit lane, the products of four signed bytes of a with those of b. An engine takes bytes of b above 127
// as it likes: see the relaxed operations in chapter 4 of the specification 3.0.
func RelaxedDot(a, b, sum Value) Value {
	return vectorOp(V128, 0x113, value(V128, a), value(V128, b), value(V128, sum))
}

// Convert is signed 32-bit lanes as floats, rounded to nearest even.
func (s Shape) Convert(a Value) Value { return s.op("convert_s", a) }

// Bitmask is the top bits of the lanes, as an I32.
func (s Shape) Bitmask(a Value) Value {
	v := s.op("bitmask", a)
	v.typ = I32
	return v
}

// BitAnd is a & b of whole vectors.
func BitAnd(a, b Value) Value { return vectorOp(V128, 0x4e, value(V128, a), value(V128, b)) }

// BitOr is a | b.
func BitOr(a, b Value) Value { return vectorOp(V128, 0x50, value(V128, a), value(V128, b)) }

// BitXor is a ^ b.
func BitXor(a, b Value) Value { return vectorOp(V128, 0x51, value(V128, a), value(V128, b)) }

// Bytes is a constant of sixteen bytes.
func Bytes(b [16]byte) Value {
	return Value{typ: V128, code: append([]byte{0xfd, 0x0c}, b[:]...)}
}

// Shuffle takes byte lanes[i] of a (0…15) or of b (16…31).
func Shuffle(a, b Value, lanes [16]byte) Value {
	v := vectorOp(V128, 0x0d, value(V128, a), value(V128, b))
	v.code = append(v.code, lanes[:]...)
	return v
}

// Shuffle32 is [Shuffle] of 32-bit lanes, 0…3 of a and 4…7 of b.
func Shuffle32(a, b Value, l0, l1, l2, l3 byte) Value {
	var lanes [16]byte
	for i, l := range [4]byte{l0, l1, l2, l3} {
		for j := range byte(4) {
			lanes[4*i+int(j)] = 4*l + j
		}
	}
	return Shuffle(a, b, lanes)
}

func (a Value) vectorLoad(code byte, offset int) Value {
	return op(V128, memory([]byte{0xfd, code}, offset), value(I32, a))
}

// Load8x8S reads eight signed bytes as 16-bit lanes.
func (a Value) Load8x8S(offset int) Value { return a.vectorLoad(0x01, offset) }

// Load8x8U reads eight unsigned bytes as 16-bit lanes.
func (a Value) Load8x8U(offset int) Value { return a.vectorLoad(0x02, offset) }

// Load16x4S reads four signed 16-bit numbers as 32-bit lanes.
func (a Value) Load16x4S(offset int) Value { return a.vectorLoad(0x03, offset) }

// Load32Splat reads four bytes into each 32-bit lane.
func (a Value) Load32Splat(offset int) Value { return a.vectorLoad(0x09, offset) }

// Load32Zero reads four bytes into the lowest lane; the others are zero.
func (a Value) Load32Zero(offset int) Value { return a.vectorLoad(0x5c, offset) }

// Load64Zero reads eight bytes into the lower half; the upper one is zero.
func (a Value) Load64Zero(offset int) Value { return a.vectorLoad(0x5d, offset) }
