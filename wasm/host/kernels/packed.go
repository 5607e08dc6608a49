package kernels

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// The kinds of weights.
const (
	productS8 = 1 + iota
	depthwiseS8
	windowsS8 // a product for adjacent 3×3 windows in adjacent rows
)

// packedWeights holds weights of one kind in the layout that core's kernels read. The weights are immutable.
type packedWeights struct {
	hash  [sha256.Size]byte
	bytes int64 // size by packedBytes
	users int   // number of handles in all instances; guarded by sharedWeights.mu

	s8  *kernel.PackedS8
	dw8 *kernel.DepthwiseS8
}

// sharedWeights holds the packed weights of all instances, by the hash of their content.
type sharedWeights struct {
	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*packedWeights
	bytes  int64
}

// take returns the packed weights with this hash, and adds a user to them. If they do not exist, take calls make to pack them.
func (s *sharedWeights) take(hash [sha256.Size]byte, make func() *packedWeights) *packedWeights {
	if p := s.find(hash); p != nil {
		return p
	}
	weights := make()
	weights.hash = hash
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byHash[hash]; p != nil { // another instance has packed the same weights meanwhile
		p.users++
		return p
	}
	if s.byHash == nil {
		s.byHash = map[[sha256.Size]byte]*packedWeights{}
	}
	s.byHash[hash] = weights
	s.bytes += weights.bytes
	weights.users = 1
	return weights
}

func (s *sharedWeights) find(hash [sha256.Size]byte) *packedWeights {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byHash[hash]
	if p != nil {
		p.users++
	}
	return p
}

// release removes a user of p. After the last one, it deletes p.
func (s *sharedWeights) release(p *packedWeights) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(s.byHash, p.hash)
		s.bytes -= p.bytes
	}
}

// packRoom returns 0, because packed weights need no memory of the guest.
func (in *Instance) packRoom(s []uint64) { s[0] = 0 }

// maxHandles is the maximum number of handles of an instance.
const maxHandles = 1 << 16

// pack(kind, w, n, k, segs, room) → handle
func (in *Instance) pack(s []uint64) {
	kind, n, k, segs := int32(s[0]), count(s[2]), count(s[3]), count(s[4])
	if kind < productS8 || kind > windowsS8 {
		s[0] = 0
		return
	}
	if n == 0 || k == 0 || segs == 0 || k%segs != 0 || kind == windowsS8 && (segs != 3 || k%9 != 0) {
		wild()
	}
	w := in.bytes(s[1], times(n, k))
	bytes := packedBytes(kind, int64(n), int64(k), int64(segs))
	if in.weights+bytes > in.native.o.Weights || len(in.handles)-len(in.free) >= maxHandles {
		s[0] = 0
		return
	}
	p := in.native.shared.take(contentHash(kind, n, k, segs, w), func() *packedWeights {
		return newPacked(kind, w, n, k, segs, bytes)
	})
	in.weights += p.bytes
	s[0] = uint64(in.handle(p))
}

// packedBytes returns the size of packed weights in bytes. Columns are in panels of 16, and depth is in groups of four. Depthwise weights
// have three layouts. A 3×3 window has 36 more words of 16 bits.
func packedBytes(kind int32, n, k, segs int64) int64 {
	const overhead = 1 << 10
	columns := (n + 15) / 16 * 16
	product := columns*segs*((k/segs+3)/4*4) + 4*n + overhead
	switch kind {
	case productS8:
		return product
	case windowsS8:
		return product + 8*n*k
	}
	return columns*(k+4)*4 + 4*n + overhead
}

func contentHash(kind int32, n, k, segs int, w []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	var head [16]byte
	for i, v := range [...]int{int(kind), n, k, segs} {
		binary.LittleEndian.PutUint32(head[4*i:], uint32(v))
	}
	h.Write(head[:])
	h.Write(w)
	h.Sum(sum[:0])
	return sum
}

func newPacked(kind int32, w []byte, n, k, segs int, bytes int64) *packedWeights {
	switch kind {
	case productS8:
		return &packedWeights{bytes: bytes, s8: kernel.PackConvS8(cast[int8](w), n, segs, k/segs)}
	case windowsS8:
		return &packedWeights{bytes: bytes, s8: kernel.PackConv3x3S8(cast[int8](w), n, k/9)}
	}
	return &packedWeights{bytes: bytes, dw8: kernel.PackDepthwiseS8(cast[int8](w), n, segs, k/segs)}
}

// handle stores p under an unused handle, and returns the handle.
func (in *Instance) handle(p *packedWeights) int32 {
	if n := len(in.free); n > 0 {
		h := in.free[n-1]
		in.free = in.free[:n-1]
		in.handles[h-1] = p
		return h
	}
	in.handles = append(in.handles, p)
	return int32(len(in.handles))
}

// packing returns the packed weights with a handle. If there are none, it ends the instance.
func (in *Instance) packing(handle uint64) *packedWeights {
	i := int(int32(handle)) - 1
	if i < 0 || i >= len(in.handles) || in.handles[i] == nil {
		wild()
	}
	return in.handles[i]
}

// unpack(handle)
func (in *Instance) unpack(s []uint64) {
	p := in.packing(s[0])
	in.handles[int32(s[0])-1] = nil
	in.free = append(in.free, int32(s[0]))
	in.weights -= p.bytes
	in.native.shared.release(p)
}
