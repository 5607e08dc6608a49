//go:build !unix

package host

import "github.com/tetratelabs/wazero/experimental"

// newMemory leaves an instance's memory to wazero, which keeps it in slices.
func newMemory() (a experimental.MemoryAllocator, free func()) { return nil, func() {} }
