package call

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/train"
)

// LoadedHead is a trained head in memory. It is immutable.
type LoadedHead struct {
	train.Head
	Places map[string]int // indices of its concepts, by id
	bytes  int
}

// heads caches the most recently used heads, by the hashes of their manifests. It is safe for concurrent use.
type heads struct {
	mu    sync.Mutex
	byKey map[blob.Hash]*list.Element
	order *list.List // of cachedHead, most recently used first
	bytes int
}

type cachedHead struct {
	key  blob.Hash
	head *LoadedHead
}

// maxHeadBytes is the approximate maximum size of the cached heads.
const maxHeadBytes = 64 << 20

// Load returns the head of a trained version. base is the hash of the network that
// makes the embeddings. For a head that was trained on another network, Load returns an error.
func (h *heads) Load(v *partition.View, version *catalog.Version, base [32]byte) (*LoadedHead, error) {
	if head := h.find(version.Manifest); head != nil {
		return head, nil
	}
	data, err := v.Object(version.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%w: manifest of version %q: %v", ErrInternal, version.ID, err)
	}
	m, err := catalog.UnmarshalManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%w: manifest of version %q: %w", ErrInternal, version.ID, err)
	}
	if m.Base != base {
		return nil, Refusef(ErrQueued, "model_version_id '%s' %s.", version.ID, m.OutdatedReason())
	}
	head := &LoadedHead{Places: map[string]int{}, bytes: 2 * len(m.Head)}
	if err := head.UnmarshalBinary(m.Head); err != nil {
		return nil, fmt.Errorf("%w: head of version %q: %w", ErrInternal, version.ID, err)
	}
	for i, id := range head.Concepts {
		head.Places[id] = i
	}
	h.keep(version.Manifest, head)
	return head, nil
}

func (h *heads) find(key blob.Hash) *LoadedHead {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, ok := h.byKey[key]
	if !ok {
		return nil
	}
	h.order.MoveToFront(e)
	return e.Value.(cachedHead).head
}

func (h *heads) keep(key blob.Hash, head *LoadedHead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKey == nil {
		h.byKey, h.order = map[blob.Hash]*list.Element{}, list.New()
	}
	if _, ok := h.byKey[key]; ok {
		return
	}
	h.byKey[key] = h.order.PushFront(cachedHead{key, head})
	for h.bytes += head.bytes; h.bytes > maxHeadBytes && h.order.Len() > 1; {
		last := h.order.Remove(h.order.Back()).(cachedHead)
		delete(h.byKey, last.key)
		h.bytes -= last.head.bytes
	}
}
