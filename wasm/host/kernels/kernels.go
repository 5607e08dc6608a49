// Package kernels provides a guest with the native kernels of package core, as the imports of module kernel. They work on the guest's
// memory without a copy.
//
//	guest's memory  ┌──────── src ──────── q ───── dst ───────────────┐
//	                └──────────┼──────────┼─────────▲──────────────────┘
//	   conv_u8(handle, dst…) ──┤ ranges are checked in 64 bits         ▲
//	                           ▼                                       │
//	handle ──▶ packed weights, shared by content ──▶ core/predict/nn/kernel
//	           between instances
//
// wasm/README.md describes the arguments of each import, and the Go functions of core describe its result. Every call takes a new view of
// the memory, since memory moves when it grows, and slices it by the shapes. So a call never reads or writes outside the guest's memory.
// If a range is outside of it or a shape is invalid, the instance ends with [abi.ErrRange].
//
// The costs that a guest can cause are bounded: the weights of an instance by [Options.Weights], the work of a call by [Options.Work], a
// picture by raster's own limits and the time of the call it belongs to. Only packing and pictures allocate.
package kernels

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	wapi "github.com/tetratelabs/wazero/api"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// DefaultWeights is the maximum number of bytes of packed weights in an instance, unless Options set another.
const DefaultWeights = 256 << 20

// DefaultWork is the maximum work of one call, unless Options set another. It is some seconds of plain Go, and several times the largest
// layer of any network that analyses pictures.
const DefaultWork = 1 << 33

// Module is the name of the module that guests import.
const Module = "kernel"

// Options are the settings of a [Native].
type Options struct {
	Weights int64         // bytes of packed weights that one instance may hold; 0 means DefaultWeights
	Work    int64         // multiply-adds of one call, or its most frequent other operations; 0 means DefaultWork
	Limits  raster.Limits // upper bounds of the guest's limits of a picture; zero fields mean raster's defaults; Expired is not used
}

// Native provides any number of instances with native kernels. It is safe for concurrent use.
type Native struct {
	o      Options
	shared sharedWeights
}

// New returns a Native without weights.
func New(o Options) *Native {
	if o.Weights <= 0 {
		o.Weights = DefaultWeights
	}
	if o.Work <= 0 {
		o.Work = DefaultWork
	}
	o.Limits = o.Limits.WithDefaults()
	return &Native{o: o}
}

// Instantiate adds module kernel to a runtime. The caller calls it once for each runtime, before it instantiates guests.
func (n *Native) Instantiate(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(Module)
	for i := range imports {
		im := &imports[i]
		b.NewFunctionBuilder().WithGoModuleFunction(im, Types(im.params), Types(im.results)).Export(im.name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return fmt.Errorf("module %s: %w", Module, err)
	}
	return nil
}

// Open returns the kernels for one instance of a guest. The caller closes them when the instance has ended.
func (n *Native) Open() *Instance { return &Instance{native: n} }

// function is one function of module kernel.
type function struct {
	name            string
	params, results string // types, one letter each, as in Types
	run             func(in *Instance, s []uint64)
}

// Call implements api.GoModuleFunction.
func (f *function) Call(ctx context.Context, m wapi.Module, s []uint64) {
	in, ok := ctx.Value(key{}).(*Instance)
	if !ok {
		panic(fmt.Errorf("%s.%s called without an instance bound to its context", Module, f.name))
	}
	memory := m.Memory()
	if memory == nil {
		panic(abi.ErrRange)
	}
	if in.mem, ok = memory.Read(0, memory.Size()); !ok {
		panic(abi.ErrRange)
	}
	in.ctx = ctx
	f.run(in, s)
	// The old memory must not stay alive because of this view after the memory has moved.
	in.mem, in.ctx = nil, nil
}

// Types returns the types of an import's parameters or results. Each letter is a type: i means i32, I means i64, and f means f32.
func Types(letters string) []wapi.ValueType {
	t := make([]wapi.ValueType, len(letters))
	for i, c := range letters {
		t[i] = map[rune]wapi.ValueType{'i': wapi.ValueTypeI32, 'I': wapi.ValueTypeI64, 'f': wapi.ValueTypeF32}[c]
	}
	return t
}

// imports are the functions, in the order of wasm/README.md.
var imports = [...]function{
	{"pack_room", "iiii", "i", (*Instance).packRoom},
	{"pack", "iiiiii", "i", (*Instance).pack},
	{"unpack", "i", "", (*Instance).unpack},
	{"conv_u8", "iiiiiiiii", "", (*Instance).convU8},
	{"conv_rows_u8", "iiiiiiiiiii", "", (*Instance).convRowsU8},
	{"gemv_u16", "iiii", "", (*Instance).gemvU16},
	{"depthwise_u8", "iiiii", "", (*Instance).depthwiseU8},
	{"add_u8", "iiiii", "", (*Instance).addU8},
	{"sum_rows_u8", "iiiii", "", (*Instance).sumRowsU8},
	{"distances", "iiiifiiiii", "", (*Instance).distances},
	{"dots", "iiiiiiii", "", (*Instance).dots},
	{"product", "iiiiiii", "", (*Instance).product},
	{"dot", "iii", "f", (*Instance).dot},
	{"axpy", "ifii", "", (*Instance).axpy},
	{"residual", "iifiii", "", (*Instance).residual},
	{"raise", "iifi", "", (*Instance).raise},
	{"exp", "ifiii", "", (*Instance).exp},
	{"share", "iiiiii", "", (*Instance).share},
	{"rows", "iiiii", "", (*Instance).evaluate},
	{"inspect", "iii", "i", (*Instance).inspect},
	{"decode", "iiiiii", "I", (*Instance).decode},
	{"add_rows", "iiiiii", "", (*Instance).addRows},
	{"across", "iiiiiiII", "", (*Instance).across},
	{"ycbcr", "iiiii", "", (*Instance).ycbcr},
	{"inverse8", "iiii", "", (*Instance).inverse8},
	{"inverse4", "iiii", "", (*Instance).inverse4},
	{"base64", "iiii", "I", (*Instance).base64},
	{"quote", "ii", "i", (*Instance).quote},
	{"sha256", "iii", "", (*Instance).sha256},
	{"network", "i", "i", (*Instance).network},
	{"recognise", "iiiiiiii", "i", (*Instance).recognise},
	{"cells", "iiiii", "I", (*Instance).cells},
}
