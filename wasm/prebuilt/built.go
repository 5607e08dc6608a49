// Package prebuilt provides the module that make builds to tests. Only tests import it.
package prebuilt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
)

// Guest returns the module that make wasm builds. It imports its kernels from the host.
func Guest(t testing.TB) []byte {
	t.Helper()
	process.Make(t, "wasm")
	data, err := os.ReadFile(filepath.Join(testkit.Root(t), "wasm", "dist", "guest.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
