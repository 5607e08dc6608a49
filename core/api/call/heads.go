package call

import (
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/train"
)

// LoadedHead is a trained head in memory. It is immutable.
type LoadedHead struct {
	train.Head
	Indices map[string]int // indices of its concepts, by id
}

// heads caches heads by the hashes of their manifests. It is safe for concurrent use.
type heads struct {
	*recent[blob.Hash, *LoadedHead]
}

// maxHeadBytes is the approximate maximum size of the cached heads.
const maxHeadBytes = 64 << 20

// Load returns the head of a trained version. base is the hash of the network that
// makes the embeddings. For a head that was trained on another network, Load returns an error.
func (h heads) Load(v *partition.View, version *catalog.Version, base [32]byte) (*LoadedHead, error) {
	if head, ok := h.Find(version.Manifest); ok {
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
	head := &LoadedHead{Indices: map[string]int{}}
	if err := head.UnmarshalBinary(m.Head); err != nil {
		return nil, fmt.Errorf("%w: head of version %q: %w", ErrInternal, version.ID, err)
	}
	for i, id := range head.Concepts {
		head.Indices[id] = i
	}
	h.Put(version.Manifest, head, 2*len(m.Head))
	return head, nil
}
