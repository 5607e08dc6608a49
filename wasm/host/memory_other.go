//go:build !unix

package host

import "github.com/tetratelabs/wazero/experimental"

// newMemory returns no allocator, so wazero stores an instance's memory in slices.
func newMemory() (a experimental.MemoryAllocator, free func()) { return nil, func() {} }
