package kernels

import "unsafe"

// PackingUsage returns the number of different packings, and their size in bytes.
func (n *Native) PackingUsage() (packings int, bytes int64) {
	n.shared.mu.Lock()
	defer n.shared.mu.Unlock()
	return len(n.shared.byHash), n.shared.bytes
}

// raw returns the bytes of v, without copying them.
func raw[T element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
