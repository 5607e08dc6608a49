// Package emit writes WebAssembly modules: functions, one imported memory, and the instructions of
// the core language with fixed-width SIMD that kernels need.
//
// A [Value] is an expression, whose instructions leave its result on the stack. A [Func] is a list of statements:
//
//	f := m.Func("sum", emit.Params(emit.I32, emit.I32), emit.I32)   // (p, n) → i32
//	p, n, sum := f.Param(0), f.Param(1), f.Local(emit.I32)
//	f.While(n.Ne(0), func() {
//		f.Set(sum, sum.Add(p.Load8U(0)))
//		f.Set(p, p.Add(1))
//		f.Set(n, n.Sub(1))
//	})
//	f.Return(sum)
//
// The package checks the types of operands when it makes an expression. It panics at a mistake, because a module depends on the program
// only and never on input. An engine finds the remaining mistakes when it compiles the module. The encoding follows the WebAssembly
// specification 2.0, chapter 5.
//
// The package does not support tables, globals, data segments, references or exceptions.
package emit

// Type is the type of a value.
type Type byte

// The types of values.
const (
	V128 Type = 0x7b
	F32  Type = 0x7d
	I64  Type = 0x7e
	I32  Type = 0x7f

	none Type = 0
)

func (t Type) String() string {
	switch t {
	case V128:
		return "v128"
	case F32:
		return "f32"
	case I64:
		return "i64"
	case I32:
		return "i32"
	}
	return "nothing"
}

// Params is a list of types, for [Module.Func].
func Params(types ...Type) []Type { return types }

// Module is a module under construction. The zero value is an empty module.
type Module struct {
	types  [][]byte // encoded types of functions, without duplicates
	funcs  []*Func
	memory []byte // encoded import of the memory; nil if the module has no memory
}

// ImportMemory imports the memory, with a minimum size of pages pages of 64 KiB. A later call replaces the import.
func (m *Module) ImportMemory(module, name string, pages int) {
	m.memory = append(text(nil, module), text(nil, name)...)
	m.memory = append(m.memory, 0x02, 0x00)
	m.memory = appendUnsigned(m.memory, uint64(pages))
}

// Func begins a function. If name is not empty, the module exports the function under it. The function returns one value, or none if
// result is absent.
func (m *Module) Func(name string, params []Type, result ...Type) *Func {
	if len(result) > 1 {
		panic("emit: " + name + " has more than one result")
	}
	f := &Func{name: name, index: len(m.funcs), params: params, result: none}
	typ := append([]byte{0x60}, vector(params)...)
	typ = append(typ, vector(result)...)
	if len(result) == 1 {
		f.result = result[0]
	}
	f.typ = m.typeIndex(typ)
	m.funcs = append(m.funcs, f)
	return f
}

func (m *Module) typeIndex(typ []byte) int {
	for i, t := range m.types {
		if string(t) == string(typ) {
			return i
		}
	}
	m.types = append(m.types, typ)
	return len(m.types) - 1
}

// Bytes encodes the module.
func (m *Module) Bytes() []byte {
	var types, imports, funcs, exports, code []byte
	for _, t := range m.types {
		types = append(types, t...)
	}
	exported := 0
	for _, f := range m.funcs {
		funcs = appendUnsigned(funcs, uint64(f.typ))
		if f.name != "" {
			exports = append(text(exports, f.name), 0x00)
			exports = appendUnsigned(exports, uint64(f.index))
			exported++
		}
		body := f.encode()
		code = appendUnsigned(code, uint64(len(body)))
		code = append(code, body...)
	}
	count := 0
	if m.memory != nil {
		imports, count = m.memory, 1
	}
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = section(out, 1, len(m.types), types)
	out = section(out, 2, count, imports)
	out = section(out, 3, len(m.funcs), funcs)
	out = section(out, 7, exported, exports)
	return section(out, 10, len(m.funcs), code)
}

// section appends a section of count entries to dst. If count is 0, it appends nothing.
func section(dst []byte, id byte, count int, entries []byte) []byte {
	if count == 0 {
		return dst
	}
	head := appendUnsigned(nil, uint64(count))
	dst = appendUnsigned(append(dst, id), uint64(len(head)+len(entries)))
	return append(append(dst, head...), entries...)
}

func vector(types []Type) []byte {
	out := appendUnsigned(nil, uint64(len(types)))
	for _, t := range types {
		out = append(out, byte(t))
	}
	return out
}

func text(dst []byte, s string) []byte {
	return append(appendUnsigned(dst, uint64(len(s))), s...)
}

// appendUnsigned appends v as LEB128.
func appendUnsigned(dst []byte, v uint64) []byte {
	for ; v >= 0x80; v >>= 7 {
		dst = append(dst, byte(v)|0x80)
	}
	return append(dst, byte(v))
}

// appendSigned appends v as signed LEB128.
func appendSigned(dst []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && b&0x40 == 0) || (v == -1 && b&0x40 != 0) {
			return append(dst, b)
		}
		dst = append(dst, b|0x80)
	}
}
