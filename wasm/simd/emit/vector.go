package emit

// Shape is a division of a V128 into lanes. Its methods are the instructions on these lanes.
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

// Splat returns a vector with v, a [Value] or a constant, in every lane.
func (s Shape) Splat(v any) Value {
	return vectorOp(V128, s.ops["splat"], value(s.elem, v))
}

// Lane returns one lane of a. Lanes of 8 and 16 bits are unsigned.
func (s Shape) Lane(a Value, lane int) Value {
	v := vectorOp(s.elem, s.ops["extract"], value(V128, a))
	v.code = append(v.code, byte(lane))
	return v
}

// Add returns a + b in each lane.
func (s Shape) Add(a, b Value) Value { return s.op("add", a, b) }

// Sub returns a - b.
func (s Shape) Sub(a, b Value) Value { return s.op("sub", a, b) }

// Mul returns a * b.
func (s Shape) Mul(a, b Value) Value { return s.op("mul", a, b) }

// Div returns a / b.
func (s Shape) Div(a, b Value) Value { return s.op("div", a, b) }

// Neg returns -a.
func (s Shape) Neg(a Value) Value { return s.op("neg", a) }

// PMin returns b where b < a, and otherwise a.
func (s Shape) PMin(a, b Value) Value { return s.op("pmin", a, b) }

// PMax returns b where a < b, and otherwise a.
func (s Shape) PMax(a, b Value) Value { return s.op("pmax", a, b) }

// Shl returns a << n.
func (s Shape) Shl(a Value, n int) Value { return s.shift("shl", a, n) }

// ShrS returns a >> n of signed lanes.
func (s Shape) ShrS(a Value, n int) Value { return s.shift("shr_s", a, n) }

// ShrU returns a >> n of unsigned lanes.
func (s Shape) ShrU(a Value, n int) Value { return s.shift("shr_u", a, n) }

func (s Shape) shift(name string, a Value, n int) Value {
	s.op(name) // panics if the shape has no such instruction
	return vectorOp(V128, s.ops[name], value(V128, a), C(n))
}

// Eq returns all ones in the lanes where a == b, and zeros elsewhere.
func (s Shape) Eq(a, b Value) Value { return s.op("eq", a, b) }

// LtS returns all ones in the lanes where a < b, as signed numbers.
func (s Shape) LtS(a, b Value) Value { return s.op("lt_s", a, b) }

// GtU returns all ones in the lanes where a > b, as unsigned numbers.
func (s Shape) GtU(a, b Value) Value { return s.op("gt_u", a, b) }

// LowS widens the lower half of a, whose lanes are signed and have half the width.
func (s Shape) LowS(a Value) Value { return s.op("low_s", a) }

// HighS widens the upper half of a, whose lanes are signed.
func (s Shape) HighS(a Value) Value { return s.op("high_s", a) }

// LowU widens the lower half of a, whose lanes are unsigned.
func (s Shape) LowU(a Value) Value { return s.op("low_u", a) }

// HighU widens the upper half of a, whose lanes are unsigned.
func (s Shape) HighU(a Value) Value { return s.op("high_u", a) }

// NarrowS halves the width of the lanes of a, followed by those of b, and clamps them to the range of signed lanes.
func (s Shape) NarrowS(a, b Value) Value { return s.op("narrow_s", a, b) }

// NarrowU halves the width of the signed lanes of a, followed by those of b, and clamps them to the range of unsigned lanes.
func (s Shape) NarrowU(a, b Value) Value { return s.op("narrow_u", a, b) }

// Dot multiplies signed 16-bit lanes and returns the sums of neighbouring pairs of products, as 32-bit lanes.
func (s Shape) Dot(a, b Value) Value { return s.op("dot", a, b) }

// RelaxedDot returns sum plus, in each 32-bit lane, the products of four signed bytes of a with those of b. An engine chooses how it reads
// bytes of b above 127: see the relaxed operations in chapter 4 of the WebAssembly specification 3.0.
func RelaxedDot(a, b, sum Value) Value {
	return vectorOp(V128, 0x113, value(V128, a), value(V128, b), value(V128, sum))
}

// Convert converts signed 32-bit lanes to floats, rounded to nearest even.
func (s Shape) Convert(a Value) Value { return s.op("convert_s", a) }

// Bitmask returns the top bits of the lanes, as an I32.
func (s Shape) Bitmask(a Value) Value {
	v := s.op("bitmask", a)
	v.typ = I32
	return v
}

// BitAnd returns a & b of all 128 bits.
func BitAnd(a, b Value) Value { return vectorOp(V128, 0x4e, value(V128, a), value(V128, b)) }

// BitOr returns a | b of all 128 bits.
func BitOr(a, b Value) Value { return vectorOp(V128, 0x50, value(V128, a), value(V128, b)) }

// BitXor returns a ^ b of all 128 bits.
func BitXor(a, b Value) Value { return vectorOp(V128, 0x51, value(V128, a), value(V128, b)) }

// Bytes returns a constant of sixteen bytes.
func Bytes(b [16]byte) Value {
	return Value{typ: V128, code: append([]byte{0xfd, 0x0c}, b[:]...)}
}

// Shuffle returns a vector whose byte i is byte lanes[i] of a (0…15) or of b (16…31).
func Shuffle(a, b Value, lanes [16]byte) Value {
	v := vectorOp(V128, 0x0d, value(V128, a), value(V128, b))
	v.code = append(v.code, lanes[:]...)
	return v
}

// Shuffle32 is [Shuffle] for 32-bit lanes: 0…3 are those of a and 4…7 those of b.
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
