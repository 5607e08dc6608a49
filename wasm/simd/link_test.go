package simd_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// linker gives guests of one wazero runtime the module's kernels, as a page does. It is safe for concurrent use, a
// guest for one caller at a time.
type linker struct {
	runtime  wazero.Runtime
	kernels  wazero.CompiledModule
	guests   sync.Map // api.Module → *linked
	exported []string
}

// guestKernels is the kernels over one guest's memory.
type guestKernels struct {
	instance  api.Module
	functions []api.Function // in the order of exported
}

// link compiles the kernels and makes module "kernel" in r, whose functions forward to those of the calling
// guest. It is done once in a runtime, before guests are.
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

// Attach gives a guest its kernels. The guest has been instantiated, without its start functions,
// since those may use them; call them next. Detach ends what Attach began.
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

// Detach takes a guest's kernels away.
func (l *linker) Detach(ctx context.Context, guest api.Module) error {
	k, ok := l.guests.LoadAndDelete(guest)
	if !ok {
		return nil
	}
	return k.(*guestKernels).instance.Close(ctx)
}

// forward calls function i of a guest's kernels. An error there ends the guest's call, too.
func (l *linker) forward(ctx context.Context, guest api.Module, i int, stack []uint64) {
	k, ok := l.guests.Load(guest)
	if !ok {
		panic(fmt.Errorf("kernel.%s called by a guest without kernels", l.exported[i]))
	}
	if err := k.(*guestKernels).functions[i].CallWithStack(ctx, stack); err != nil {
		panic(err)
	}
}
