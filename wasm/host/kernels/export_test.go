package kernels

// Held returns the number of packings, each counted once, and their bytes.
func (n *Native) Held() (packings int, bytes int64) {
	n.shared.mu.Lock()
	defer n.shared.mu.Unlock()
	return len(n.shared.byHash), n.shared.bytes
}
