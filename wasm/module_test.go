package wasm

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
)

// TestModules checks that embedded files are modules, and that the functions return ErrNotBuilt for missing ones.
func TestModules(t *testing.T) {
	magic := []byte("\x00asm\x01\x00\x00\x00")
	for _, name := range []File{Guest, Kernels, RelaxedKernels} {
		_, err := fs.Stat(packed, "packed/"+string(name)+".br")
		data, got := name.Read()
		switch {
		case err != nil:
			if !errors.Is(got, ErrNotBuilt) {
				t.Errorf("%s is not built, and asking for it gives %v", name, got)
			}
		case got != nil || !bytes.HasPrefix(data, magic):
			t.Errorf("%s is no module: %v, %.8x", name, got, data)
		}
	}
	if _, err := File("none.wasm").Read(); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("asking for a module that no program has gives %v", err)
	}
}
