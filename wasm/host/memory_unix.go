//go:build unix

package host

import (
	"os"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// newMemory returns an allocator that gives one instance a separate mapping. The mapping grows in place, whereas wazero would copy a
// slice to grow it. The system backs only the touched pages, and free returns them without waiting for the collector. The caller calls
// free once no code runs in the instance.
func newMemory() (a experimental.MemoryAllocator, free func()) {
	m := &mapping{}
	return experimental.MemoryAllocatorFunc(func(_, maxBytes uint64) experimental.LinearMemory {
		m.maxBytes = maxBytes
		return m
	}), m.Free
}

// mapping is a reservation of maxBytes bytes of addresses. Only its first used bytes can be read and written.
type mapping struct {
	maxBytes uint64
	all      []byte // reserved addresses; nil before the first Reallocate and after Free
	used     uint64
}

// Reallocate implements [experimental.LinearMemory]. It returns nil if size exceeds the reservation or the system has no memory left.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > m.maxBytes {
		return nil
	}
	if m.all == nil {
		if m.maxBytes == 0 {
			return []byte{}
		}
		all, err := unix.Mmap(-1, 0, int(m.maxBytes), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return nil
		}
		hugeMemory(all)
		m.all = all
	}
	page := uint64(os.Getpagesize())
	end := min((size+page-1)/page*page, m.maxBytes)
	if end > m.used {
		if unix.Mprotect(m.all[m.used:end], unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		m.used = end
	}
	return m.all[:size:m.maxBytes]
}

// Free implements [experimental.LinearMemory].
func (m *mapping) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all) // we mapped all of it
		m.all = nil
	}
}
