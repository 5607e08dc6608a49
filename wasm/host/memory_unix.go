//go:build unix

package host

import (
	"os"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// newMemory gives an instance a separate mapping. It grows in place, whereas a slice would be copied with its content. It uses only
// touched pages, and returns to the system when the instance ends, without waiting for the collector. free is called when nothing runs in
// it.
func newMemory() (a experimental.MemoryAllocator, free func()) {
	m := &mapping{}
	return experimental.MemoryAllocatorFunc(func(_, most uint64) experimental.LinearMemory {
		m.most = most
		return m
	}), m.Free
}

// mapping is a reservation of most bytes, of which a part can be used.
type mapping struct {
	most uint64
	all  []byte // reserved; nil before the first use, and after Free
	used uint64
}

// Reallocate implements [experimental.LinearMemory]: nil if the system has no memory left.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if m.all == nil {
		if m.most == 0 {
			return []byte{}
		}
		all, err := unix.Mmap(-1, 0, int(m.most), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return nil
		}
		hugeMemory(all)
		m.all = all
	}
	page := uint64(os.Getpagesize())
	end := min((size+page-1)/page*page, m.most)
	if end > m.used {
		if unix.Mprotect(m.all[m.used:end], unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		m.used = end
	}
	return m.all[:size:m.most]
}

// Free implements [experimental.LinearMemory].
func (m *mapping) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all) // we mapped all of it
		m.all = nil
	}
}
