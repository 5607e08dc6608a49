// Package wasm embeds the files that `make wasm` builds, for programs that run them: the module (the core, compiled for wasip1) and its
// kernels with SIMD128 instructions, for hosts without native kernels. They are compressed by brotli.
//
//	make wasm ──▶ dist/guest.wasm, dist/kernels.wasm, dist/kernels-relaxed.wasm ──▶ packed/….br ──embed──▶ Guest, Kernels, Relaxed
//	                                                                                  │
//	                                        host (wazero, in Go) · a page's worker ◀──┘
//
// The files are built, not committed. In a program that was compiled without them, reading one returns ErrNotBuilt.
// README.md in this folder is the complete contract between the module and its hosts.
package wasm

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/andybalholm/brotli"
)

//go:embed all:packed
var packed embed.FS

// ErrNotBuilt is returned by a program that was compiled before `make wasm` built the module.
var ErrNotBuilt = errors.New("this program was built without the module: run make wasm, then build again")

// File is the name of a module in this package.
type File string

// The modules.
const (
	Guest          File = "guest.wasm"           // the core
	Kernels        File = "kernels.wasm"         // SIMD128 kernels that a page provides to the guest
	RelaxedKernels File = "kernels-relaxed.wasm" // the same kernels with the relaxed dot product, for pages where that is exact
)

// Packed returns the module, compressed by brotli. The caller must not change it.
func (f File) Packed() ([]byte, error) {
	data, err := packed.ReadFile("packed/" + string(f) + ".br")
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", f, ErrNotBuilt)
	}
	return data, err
}

// Read returns the module. The caller owns its bytes. It takes 0.1 s for the guest.
func (f File) Read() ([]byte, error) {
	data, err := f.Packed()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(brotli.NewReader(bytes.NewReader(data)))
}
