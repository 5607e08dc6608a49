package simd_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel/kerneltest"
	"github.com/sightline-dev/sightline/wasm/simd"
)

// Maximum sizes in bytes of the two modules of kernels. A page downloads one of them.
const (
	maxModule  = 24 << 10
	maxRelaxed = 30 << 10
)

func TestModulesAreSmall(t *testing.T) {
	for limit, module := range map[int][]byte{maxModule: simd.Module(), maxRelaxed: simd.Relaxed()} {
		if len(module) > limit {
			t.Errorf("a module takes %d bytes, want at most %d", len(module), limit)
		}
		if !bytes.HasPrefix(module, []byte("\x00asm\x01\x00\x00\x00")) {
			t.Error("a module has no header")
		}
	}
}

func TestModulesAreAlwaysTheSame(t *testing.T) {
	if !bytes.Equal(simd.Build(), simd.Module()) || !bytes.Equal(simd.BuildRelaxed(), simd.Relaxed()) {
		t.Error("a module made anew has other bytes")
	}
}

// guest is a module that exports memory and imports kernel.quote, which its export f calls:
//
//	(import "kernel" "quote" (func (param i32 i32) (result i32)))
//	(memory (export "memory") 1)
//	(func (export "f") (param i32 i32) (result i32) local.get 0 local.get 1 call 0)
var guest = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x07\x01\x60\x02\x7f\x7f\x01\x7f" +
	"\x02\x10\x01\x06kernel\x05quote\x00\x00" +
	"\x03\x02\x01\x00" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x0e\x02\x06memory\x02\x00\x01f\x00\x01" +
	"\x0a\x0a\x01\x08\x00\x20\x00\x20\x01\x10\x00\x0b")

func TestLink(t *testing.T) {
	ctx := context.Background()
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	l, err := link(ctx, r, simd.Module())
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := r.CompileModule(ctx, guest)
	if err != nil {
		t.Fatal(err)
	}
	// Two guests, each with a separate memory.
	for i, text := range []string{`one"`, `twelve\"`} {
		g, err := r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(""))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.ExportedFunction("f").Call(ctx, 0, 1); err == nil || !strings.Contains(err.Error(), "without kernels") {
			t.Errorf("a call before Attach: %v, want an error", err)
		}
		if err := l.Attach(ctx, g); err != nil {
			t.Fatal(err)
		}
		g.Memory().WriteString(100, text)
		out, err := g.ExportedFunction("f").Call(ctx, 100, uint64(len(text)))
		if want := strings.IndexAny(text, `"\`); err != nil || int(out[0]) != want {
			t.Errorf("guest %d: %v, %v, want %d", i, out, err, want)
		}
		if _, err := g.ExportedFunction("f").Call(ctx, 1<<31, 100); err == nil {
			t.Error("a wild address is no error")
		}
		if err := l.Detach(ctx, g); err != nil {
			t.Error(err)
		}
		if err := l.Detach(ctx, g); err != nil {
			t.Errorf("a second Detach: %v", err)
		}
		if _, err := g.ExportedFunction("f").Call(ctx, 0, 1); err == nil {
			t.Error("a call after Detach is no error")
		}
	}
	if _, err := link(ctx, r, simd.Module()); err == nil {
		t.Error("a second Link in one runtime is no error")
	}
}

// FuzzConv compares products and depthwise convolutions of any shape with their definition.
func FuzzConv(f *testing.F) {
	f.Add(uint64(1), uint8(5), uint8(9), uint8(2), uint8(7))
	f.Add(uint64(2), uint8(1), uint8(8), uint8(1), uint8(16))
	f.Add(uint64(3), uint8(17), uint8(33), uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, segs, seg uint8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		a := newArena(t, rng)
		testConv(a, kerneltest.NewProduct(rng, 1+int(m)%64, 1+int(n)%64, 1+int(segs)%5, 1+int(seg)%64))
		a.reset()
		s := kerneltest.NewWindow(rng, 1+int(n)%64)
		s.StrideX, s.Width = int(segs)%4, 1+int(m)%20
		s.SrcStride, s.DstStep = ((s.Width-1)*s.StrideX+(s.KW-1)*s.DilationX+1)*s.C, s.Width*s.C
		s.SrcStep = s.StrideX * s.SrcStride
		testDepthwise(a, s)
	})
}
