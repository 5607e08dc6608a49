package simd_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// linker provides the module's kernels to the guests of one wazero runtime, as a page does. It is safe for concurrent
// use, but each guest only by one caller at a time.
type linker struct {
	runtime  wazero.Runtime
	kernels  wazero.CompiledModule
	guests   sync.Map // api.Module → *linked
	exported []string
}

// guestKernels is an instance of the kernels over one guest's memory.
type guestKernels struct {
	instance  api.Module
	functions []api.Function // in the order of exported
}

// link compiles the kernels and creates module "kernel" in r, whose functions forward to the calling guest's
// kernels. Call it once for a runtime, before its guests are instantiated.
func link(ctx context.Context, r wazero.Runtime, module []byte) (*linker, error) {
	compiled, err := r.CompileModule(ctx, module)
	if err != nil {
		return nil, fmt.Errorf("kernels: %w", err)
	}
	l := &linker{runtime: r, kernels: compiled}
	b := r.NewHostModuleBuilder("kernel")
	for name, def := range compiled.ExportedFunctions() {
		i := len(l.exported)
		l.exported = append(l.exported, name)
		forward := api.GoModuleFunc(func(ctx context.Context, guest api.Module, stack []uint64) { l.forward(ctx, guest, i, stack) })
		b.NewFunctionBuilder().WithGoModuleFunction(forward, def.ParamTypes(), def.ResultTypes()).Export(name)
	}
	if _, err := b.Instantiate(ctx); err != nil {
		return nil, fmt.Errorf("module kernel: %w", err)
	}
	return l, nil
}

// Attach creates a guest's kernels. Instantiate the guest without its start functions before, and call
// these after Attach, since they may use the kernels. Detach frees the kernels.
func (l *linker) Attach(ctx context.Context, guest api.Module) error {
	ctx = experimental.WithImportResolver(ctx, func(string) api.Module { return guest })
	instance, err := l.runtime.InstantiateModule(ctx, l.kernels, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return fmt.Errorf("kernels: %w", err)
	}
	k := &guestKernels{instance: instance}
	for _, name := range l.exported {
		k.functions = append(k.functions, instance.ExportedFunction(name))
	}
	l.guests.Store(guest, k)
	return nil
}

// Detach closes a guest's kernels. It does nothing if the guest has none.
func (l *linker) Detach(ctx context.Context, guest api.Module) error {
	k, ok := l.guests.LoadAndDelete(guest)
	if !ok {
		return nil
	}
	return k.(*guestKernels).instance.Close(ctx)
}

// forward calls function i of a guest's kernels. An error there also ends the guest's call.
func (l *linker) forward(ctx context.Context, guest api.Module, i int, stack []uint64) {
	k, ok := l.guests.Load(guest)
	if !ok {
		panic(fmt.Errorf("kernel.%s called by a guest without kernels", l.exported[i]))
	}
	if err := k.(*guestKernels).functions[i].CallWithStack(ctx, stack); err != nil {
		panic(err)
	}
}
