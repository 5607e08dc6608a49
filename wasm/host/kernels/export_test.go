package kernels

import "unsafe"

// PackingUsage returns the number of packings, each counted once, and their bytes.
func (n *Native) PackingUsage() (packings int, bytes int64) {
	n.shared.mu.Lock()
	defer n.shared.mu.Unlock()
	return len(n.shared.byHash), n.shared.bytes
}

// raw is the bytes of elements.
func raw[T element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))
}
