// Package wasm embeds the files that `make wasm` builds, for programs that run them: the module (the core, compiled for wasip1) and its
// kernels with SIMD128 instructions, for hosts without native kernels.
//
//	make wasm ──▶ dist/guest.wasm, dist/kernels.wasm, dist/kernels-relaxed.wasm ──embed──▶ Guest, Kernels, Relaxed
//	                                                               │
//	                     host (wazero, in Go) · a page's worker ◀──┘
//
// The files are built, not committed. In a program that was compiled without them, the functions return ErrNotBuilt.
// README.md in this folder is the complete contract between the module and its hosts.
package wasm

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt is returned by a program that was compiled before `make wasm` built the module.
var ErrNotBuilt = errors.New("this program was built without the module: run make wasm, then build again")

// Guest returns the module. The caller owns its bytes.
func Guest() ([]byte, error) { return read("guest.wasm") }

// Kernels returns the module of SIMD128 kernels that a page provides to the guest. The caller owns its bytes.
func Kernels() ([]byte, error) { return read("kernels.wasm") }

// RelaxedKernels returns the module of the same kernels with the relaxed dot product, for pages where that is exact. The caller owns its
// bytes.
func RelaxedKernels() ([]byte, error) { return read("kernels-relaxed.wasm") }

func read(name string) ([]byte, error) {
	data, err := dist.ReadFile("dist/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", name, ErrNotBuilt)
	}
	return data, err
}
