package emit

// Func builds a function. Its methods append statements, in the order of the calls.
type Func struct {
	name   string
	index  int
	typ    int
	params []Type
	result Type
	locals []Type
	code   []byte
	depth  int // number of open blocks
}

// Param returns parameter i, which is a local.
func (f *Func) Param(i int) Value { return local(f.params[i], i) }

// Args returns all parameters.
func (f *Func) Args() []Value {
	out := make([]Value, len(f.params))
	for i := range out {
		out[i] = f.Param(i)
	}
	return out
}

func local(t Type, i int) Value {
	return Value{typ: t, code: appendUnsigned([]byte{0x20}, uint64(i)), local: i + 1}
}

// Local declares a local, which is zero when the function starts. A loop does not reset it.
func (f *Func) Local(t Type) Value {
	f.locals = append(f.locals, t)
	return local(t, len(f.params)+len(f.locals)-1)
}

// Let declares a local and sets it to v.
func (f *Func) Let(v Value) Value {
	x := f.Local(v.typ)
	f.Set(x, v)
	return x
}

// Set sets a local to v, a [Value] or a constant.
func (f *Func) Set(x Value, v any) {
	if x.local == 0 {
		panic("emit: Set needs a local")
	}
	f.code = append(f.code, value(x.typ, v).code...)
	f.code = appendUnsigned(append(f.code, 0x21), uint64(x.local-1))
}

// Inc adds n to a local.
func (f *Func) Inc(x Value, n any) { f.Set(x, x.Add(n)) }

// Label identifies an open block, for [Func.BreakIf].
type Label struct{ depth int }

func (f *Func) open(code byte, body func()) {
	f.code = append(f.code, code, 0x40)
	f.depth++
	body()
	f.depth--
	f.code = append(f.code, 0x0b)
}

// Block appends a block with the statements that body appends. A [Func.BreakIf] to end jumps to the end of the block.
func (f *Func) Block(body func(end Label)) {
	f.open(0x02, func() { body(Label{f.depth}) })
}

// BreakIf jumps to the end of a block, or to the beginning of a loop, if cond is not 0.
func (f *Func) BreakIf(to Label, cond Value) {
	f.code = append(f.code, value(I32, cond).code...)
	f.code = appendUnsigned(append(f.code, 0x0d), uint64(f.depth-to.depth))
}

// While repeats body as long as cond, which it computes before each round, is not 0.
func (f *Func) While(cond Value, body func()) {
	f.If(cond, func() { f.DoWhile(body, cond) })
}

// DoWhile runs body once, and again as long as cond is not 0.
func (f *Func) DoWhile(body func(), cond Value) {
	f.open(0x03, func() {
		top := Label{f.depth}
		body()
		f.BreakIf(top, cond)
	})
}

// If runs then if cond is not 0, and otherwise the functions in or.
func (f *Func) If(cond Value, then func(), or ...func()) {
	f.code = append(f.code, value(I32, cond).code...)
	f.open(0x04, func() {
		then()
		for _, body := range or {
			f.code = append(f.code, 0x05)
			body()
		}
	})
}

// Return ends the function. v is its result, if it has one.
func (f *Func) Return(v ...Value) {
	if len(v) == 0 && f.result == none {
		f.code = append(f.code, 0x0f)
		return
	}
	f.code = append(f.code, value(f.result, v[0]).code...)
	f.code = append(f.code, 0x0f)
}

func (f *Func) call(g *Func, args []Value) []byte {
	if len(args) != len(g.params) {
		panic("emit: a call with too few or too many arguments")
	}
	var code []byte
	for i, a := range args {
		code = append(code, value(g.params[i], a).code...)
	}
	return appendUnsigned(append(code, 0x10), uint64(g.index))
}

// Call calls g, which has no result.
func (f *Func) Call(g *Func, args ...Value) {
	if g.result != none {
		panic("emit: the result of the call is not used")
	}
	f.code = append(f.code, f.call(g, args)...)
}

// CallValue returns the result of calling g. Each use of the Value calls g again.
func (f *Func) CallValue(g *Func, args ...Value) Value {
	if g.result == none {
		panic("emit: a call without a result")
	}
	return Value{typ: g.result, code: f.call(g, args)}
}

func (f *Func) store(code []byte, at Value, offset int, v Value) {
	f.code = append(f.code, value(I32, at).code...)
	f.code = append(f.code, v.code...)
	f.code = append(f.code, memory(code, offset)...)
}

// Store writes v at address at + offset.
func (f *Func) Store(at Value, offset int, v Value) {
	f.store(map[Type][]byte{I32: {0x36}, I64: {0x37}, F32: {0x38}, V128: {0xfd, 0x0b}}[v.typ], at, offset, v)
}

// Store8 writes the low byte of an I32.
func (f *Func) Store8(at Value, offset int, v Value) {
	f.store([]byte{0x3a}, at, offset, value(I32, v))
}

// Store16 writes the two low bytes of an I32.
func (f *Func) Store16(at Value, offset int, v Value) {
	f.store([]byte{0x3b}, at, offset, value(I32, v))
}

// StoreLane writes one lane of v: 1, 2, 4 or 8 bytes.
func (f *Func) StoreLane(at Value, offset int, v Value, size, lane int) {
	code := map[int]byte{1: 0x58, 2: 0x59, 4: 0x5a, 8: 0x5b}[size]
	f.store([]byte{0xfd, code}, at, offset, value(V128, v))
	f.code = append(f.code, byte(lane))
}

// encode returns the body of the function: its locals, as runs of one type, and its code.
func (f *Func) encode() []byte {
	var runs []byte
	n := 0
	for i := 0; i < len(f.locals); n++ {
		j := i
		for j < len(f.locals) && f.locals[j] == f.locals[i] {
			j++
		}
		runs = append(appendUnsigned(runs, uint64(j-i)), byte(f.locals[i]))
		i = j
	}
	out := append(appendUnsigned(nil, uint64(n)), runs...)
	out = append(out, f.code...)
	if f.result != none {
		out = append(out, 0x00) // unreachable: every path returns earlier
	}
	return append(out, 0x0b)
}
