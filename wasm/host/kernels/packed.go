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
	windowsS8 // a product whose windows lie side by side
)

// packedWeights is weights in the layout that core's kernels read, of one kind. It is immutable.
type packedWeights struct {
	hash  [sha256.Size]byte
	bytes int64 // as accounted
	users int   // handles of all instances; guarded by shared.mu

	s8  *kernel.PackedS8
	dw8 *kernel.DepthwiseS8
}

// sharedWeights is all packings, by content.
type sharedWeights struct {
	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*packedWeights
	bytes  int64
}

// take returns the packing of this content with one user more; make packs it.
func (s *sharedWeights) take(hash [sha256.Size]byte, make func() *packedWeights) *packedWeights {
	if p := s.find(hash); p != nil {
		return p
	}
	made := make()
	made.hash = hash
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byHash[hash]; p != nil { // another instance has been faster
		p.users++
		return p
	}
	if s.byHash == nil {
		s.byHash = map[[sha256.Size]byte]*packedWeights{}
	}
	s.byHash[hash] = made
	s.bytes += made.bytes
	made.users = 1
	return made
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

// release takes a user away, and the packing with the last.
func (s *sharedWeights) release(p *packedWeights) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(s.byHash, p.hash)
		s.bytes -= p.bytes
	}
}

// packRoom: nothing of a packing lies in the guest's memory.
func (in *Instance) packRoom(s []uint64) { s[0] = 0 }

// maxHandles bounds the handles of an instance.
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

// packedBytes returns the size of a packing: columns in panels of 16, depth in groups of four. Depthwise weights have three layouts.
// Windows of 3x3 weights have 36 words of 16 bits in addition.
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

// handle gives p a number.
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

// packing returns the packing of a handle.
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
