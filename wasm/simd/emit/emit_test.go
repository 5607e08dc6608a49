package emit_test

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/wasm/simd/emit"
)

const (
	i32  = emit.I32
	i64  = emit.I64
	f32  = emit.F32
	v128 = emit.V128
)

// run compiles m, without an imported memory, and calls its function f.
func run(t *testing.T, m *emit.Module, args ...uint64) uint64 {
	t.Helper()
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	in, err := r.Instantiate(ctx, m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	out, err := in.ExportedFunction("f").Call(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// expression is a value and its expected result.
type expression struct {
	name string
	v    emit.Value
	want uint64
}

func evaluate(t *testing.T, tests []expression) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m emit.Module
			f := m.Func("f", nil, tt.v.Type())
			f.Return(tt.v)
			if got := run(t, &m); got != tt.want {
				t.Errorf("= %#x, want %#x", got, tt.want)
			}
		})
	}
}

func TestScalars(t *testing.T) {
	a, b := emit.C(-7), emit.C(3)
	x, y := i64.Int(-1<<40), i64.Int(5)
	tests := []expression{
		{"add", a.Add(b), uint64(uint32(0xfffffffc))},
		{"add nothing", a.Add(0), uint64(uint32(0xfffffff9))},
		{"sub", a.Sub(3), uint64(uint32(0xfffffff6))},
		{"mul", a.Mul(b), uint64(uint32(0xffffffeb))},
		{"div", a.DivU(b), uint64(uint32(0xfffffff9) / 3)},
		{"and or xor", a.And(0xff).Or(0x100).Xor(b), 0x1fa},
		{"shifts", a.Shl(4).ShrS(2).ShrU(28), 15},
		{"rotr", b.RotR(1), 0x80000001},
		{"rune", emit.C('b').Sub('a'), 1},
		{"ctz", emit.C(40).Ctz(), 3},
		{"compare", a.LtS(b).Add(a.LtU(b)).Add(a.GtS(b)).Add(a.LeS(-7)).Add(a.GeS(b)).Add(a.GeU(b)), 3},
		{"eq", a.Eq(-7).Add(a.Ne(-7)), 1},
		{"select", emit.Select(b, a, b), uint64(uint32(0xfffffff9))},
		{"min", emit.Min(a, b), uint64(uint32(0xfffffff9))},
		{"wrap", x.Add(y).Wrap(), 5},
		{"extend", a.ExtendS().ShrS(1), math.MaxUint64 - 3},
		{"extend unsigned", a.ExtendU(), 0xfffffff9},
		{"float", emit.Float(1.5).Mul(float32(3)).Sub(float32(0.25)), uint64(math.Float32bits(4.25))},
		{"to float", a.ToFloat().Truncate(), 0xfffffff9},
		{"nearest", emit.Float(2.5).Nearest().Truncate(), 2},
		{"compare floats", emit.Float(1).Lt(float32(2)).Add(emit.Float(1).Gt(float32(2))), 1},
	}
	evaluate(t, tests)
}

func TestVectors(t *testing.T) {
	ramp := emit.Bytes([16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	i8x16, i16x8, i32x4, i64x2, f32x4 := emit.I8x16, emit.I16x8, emit.I32x4, emit.I64x2, emit.F32x4
	words := i16x8.LowU(ramp)
	floats := f32x4.Convert(i32x4.LowS(words))
	tests := []expression{
		{"byte", i8x16.Lane(ramp, 9), 9},
		{"shuffle", i8x16.Lane(emit.Shuffle(ramp, i8x16.Splat(77), [16]byte{3, 16}), 1), 77},
		{"shuffle words", i32x4.Lane(emit.Shuffle32(ramp, ramp, 1, 2, 3, 0), 0), 0x07060504},
		{"bitmask", i8x16.Bitmask(i8x16.GtU(ramp, i8x16.Splat(13))), 0xc000},
		{"eq", i8x16.Bitmask(i8x16.Eq(ramp, i8x16.Splat(2))), 4},
		{"lt", i8x16.Bitmask(i8x16.LtS(ramp, i8x16.Splat(2))), 3},
		{"words", i16x8.Lane(i16x8.Mul(words, i16x8.Add(words, words)), 3), 18},
		{"shift words", i16x8.Lane(i16x8.Shl(i16x8.ShrU(words, 1), 3), 7), 24},
		{"high", i32x4.Lane(i32x4.HighU(i16x8.HighS(ramp)), 3), 15},
		{"dot", i32x4.Lane(i32x4.Dot(words, words), 1), 13},
		{"narrow", i8x16.Lane(i8x16.NarrowU(i16x8.Splat(300), words), 0), 255},
		{"narrow signed", i16x8.Lane(i16x8.NarrowS(i32x4.Splat(1<<20), i32x4.Splat(0)), 0), 0x7fff},
		{"shift", i32x4.Lane(i32x4.ShrS(i32x4.Shl(i32x4.Splat(-5), 4), 3), 2), 0xfffffff6},
		{"long", i64x2.Lane(i64x2.Add(i64x2.LowS(i32x4.Splat(-1)), i64x2.HighU(i32x4.Splat(3))), 1), 2},
		{"floats", f32x4.Lane(f32x4.Div(f32x4.Mul(floats, floats), f32x4.Splat(float32(2))), 3), uint64(math.Float32bits(4.5))},
		{"pmin", f32x4.Lane(f32x4.PMin(f32x4.Neg(floats), f32x4.Splat(float32(-2))), 1), uint64(math.Float32bits(-2))},
		{"pmax", f32x4.Lane(f32x4.PMax(f32x4.Sub(floats, floats), floats), 1), uint64(math.Float32bits(1))},
		{"bits", i32x4.Lane(emit.BitOr(emit.BitAnd(ramp, i8x16.Splat(6)), i8x16.Splat(8)), 1), 0x0e0e0c0c},
	}
	evaluate(t, tests)
}

// TestControl: a module sums the results of a helper function for the numbers below n. It skips multiples of three, and stops at 20.
func TestControl(t *testing.T) {
	var m emit.Module
	square := m.Func("", emit.Params(i32), i32)
	square.If(square.Param(0).Eq(5), func() { square.Return(emit.C(1000)) }, func() {})
	square.Return(square.Param(0).Mul(square.Param(0)))
	nothing := m.Func("", nil)
	nothing.Return()

	f := m.Func("f", emit.Params(i32), i32)
	i, sum, n := f.Local(i32), f.Local(i32), f.Args()[0]
	f.Local(v128)
	f.Block(func(end emit.Label) {
		f.While(i.LtS(n), func() {
			f.BreakIf(end, i.Eq(20))
			f.Block(func(next emit.Label) {
				f.If(i.Eq(i.DivU(3).Mul(3)), func() { f.BreakIf(next, emit.C(1)) })
				f.Inc(sum, f.CallValue(square, i))
			})
			f.Call(nothing)
			f.Inc(i, 1)
		})
	})
	f.Return(sum)
	for n, want := range map[uint64]uint64{0: 0, 3: 5, 7: 1 + 4 + 16 + 1000, 25: 1 + 4 + 16 + 1000 + 49 + 64 + 100 + 121 + 169 + 196 + 256 + 289 + 361} {
		if got := run(t, &m, n); got != want {
			t.Errorf("f(%d) = %d, want %d", n, got, want)
		}
	}
}

// memory is a module that exports a memory of one page.
var memory = []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06memory\x02\x00")

func TestMemory(t *testing.T) {
	var m emit.Module
	m.ImportMemory("env", "memory", 1)
	f := m.Func("f", emit.Params(i32))
	p := f.Param(0)
	f.Store(p, 16, p.Load8U(0))
	f.Store(p, 20, p.Load8S(1))
	f.Store(p, 24, p.Load16U(2))
	f.Store(p, 28, p.Load(i64, 0))
	f.Store(p, 36, p.Load(f32, 0))
	f.Store8(p, 40, p.Load(i32, 0))
	f.Store16(p, 41, p.Load(i32, 1))
	f.Store(p, 48, p.Load(v128, 0))
	f.Store(p, 64, p.Load8x8U(0))
	f.Store(p, 80, p.Load8x8S(0))
	f.Store(p, 96, p.Load16x4S(0))
	f.Store(p, 112, p.Load32Splat(0))
	f.Store(p, 128, p.Load32Zero(0))
	f.Store(p, 144, p.Load64Zero(0))
	for i, size := range []int{1, 2, 4, 8} {
		f.StoreLane(p, 160+8*i, p.Load(v128, 0), size, 1)
	}

	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	env, err := r.InstantiateWithConfig(ctx, memory, wazero.NewModuleConfig().WithName("env"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.Instantiate(ctx, m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	src := []byte{0x81, 0xfe, 0x34, 0x12, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	env.Memory().Write(1000, src)
	if _, err := in.ExportedFunction("f").Call(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		at   uint32
		want []byte
	}{
		{16, []byte{0x81, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x34, 0x12, 0, 0}},
		{28, append(src[:8:8], src[:4]...)},
		{40, []byte{0x81, 0xfe, 0x34, 0}},
		{48, src},
		{64, []byte{0x81, 0, 0xfe, 0, 0x34, 0, 0x12, 0}},
		{80, []byte{0x81, 0xff, 0xfe, 0xff, 0x34, 0, 0x12, 0}},
		{96, []byte{0x81, 0xfe, 0xff, 0xff, 0x34, 0x12, 0, 0, 5, 6, 0, 0}},
		{112, bytes.Repeat(src[:4], 4)},
		{128, append(src[:4:4], make([]byte, 12)...)},
		{144, append(src[:8:8], make([]byte, 8)...)},
		{160, []byte{0xfe, 0}},
		{168, []byte{0x34, 0x12, 0}},
		{176, append(src[4:8:8], 0)},
		{184, src[8:16]},
	}
	for _, tt := range tests {
		if got, _ := env.Memory().Read(1000+tt.at, uint32(len(tt.want))); !bytes.Equal(got, tt.want) {
			t.Errorf("at %d: % x, want % x", tt.at, got, tt.want)
		}
	}
}

func TestConstants(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 127, 128, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		var m emit.Module
		m.Func("f", nil, i64).Return(i64.Int(v))
		if got := int64(run(t, &m)); got != v {
			t.Errorf("i64 %d = %d", v, got)
		}
		var n emit.Module
		n.Func("f", nil, i32).Return(i32.Int(v))
		if got := int32(run(t, &n)); got != int32(v) {
			t.Errorf("i32 %d = %d", v, got)
		}
	}
}

// TestMistakes checks that each invalid call panics.
func TestMistakes(t *testing.T) {
	var m emit.Module
	f := m.Func("f", emit.Params(i32, f32))
	g := m.Func("g", emit.Params(i32), i32)
	x, y := f.Param(0), f.Param(1)
	tests := []struct {
		name string
		make func()
	}{
		{"other type", func() { x.Add(y) }},
		{"no such constant", func() { x.Add("1") }},
		{"integer float", func() { f32.Int(1) }},
		{"no such operation", func() { y.Shl(y) }},
		{"no vector", func() { emit.I32x4.Add(x, x) }},
		{"no such vector operation", func() { emit.I8x16.Mul(emit.I8x16.Splat(1), emit.I8x16.Splat(1)) }},
		{"no such shift", func() { emit.F32x4.Shl(emit.I8x16.Splat(1), 1) }},
		{"select", func() { emit.Select(x, x, y) }},
		{"set an expression", func() { f.Set(x.Add(1), x) }},
		{"set another type", func() { f.Set(x, y) }},
		{"negative offset", func() { x.Load(i32, -1) }},
		{"result left", func() { f.Call(g, x) }},
		{"no result", func() { f.CallValue(f, x, y) }},
		{"few arguments", func() { f.CallValue(g) }},
		{"other arguments", func() { f.CallValue(g, y) }},
		{"two results", func() { m.Func("h", nil, i32, i32) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			tt.make()
		})
	}
}

func TestTypes(t *testing.T) {
	for typ, want := range map[emit.Type]string{i32: "i32", i64: "i64", f32: "f32", v128: "v128", 0: "nothing"} {
		if got := typ.String(); got != want {
			t.Errorf("%d = %q, want %q", byte(typ), got, want)
		}
	}
	if byte(i32) != api.ValueTypeI32 || byte(i64) != api.ValueTypeI64 || byte(f32) != api.ValueTypeF32 {
		t.Error("types have other numbers than the specification's")
	}
}
