package host

import (
	"sync"

	"github.com/sightline-dev/sightline/core/predict"
)

// networks caches the networks that guests have requested. They run natively, and all instances share them. A base identifies the bytes of
// a network, so the host can read the network from the bundles of any instance.
type networks struct {
	mu     sync.Mutex
	byBase map[[32]byte]*predict.Set // a value is nil if the network cannot be loaded
}

// network returns the network with this base. It loads the network from the newest bundles or, for another base, from an older network's
// files. It returns nil if no valid network has this base; then the guest reports the error in its bundles.
func (n *networks) network(services *Services, base [32]byte) *predict.Set {
	n.mu.Lock()
	defer n.mu.Unlock()
	if set, ok := n.byBase[base]; ok {
		return set
	}
	if n.byBase == nil {
		n.byBase = map[[32]byte]*predict.Set{}
	}
	if services.Bundles != nil {
		if tables, err := predict.LoadTables(services.Bundles); err == nil && tables.Base() == base {
			n.byBase[base], _ = predict.LoadNetwork(services.Bundles)
			return n.byBase[base]
		}
	}
	if services.Older == nil {
		return nil
	}
	files, err := services.Older(base)
	if err != nil {
		return nil
	}
	if set, err := predict.LoadNetwork(files); err == nil && set.Base() == base {
		n.byBase[base] = set
	}
	return n.byBase[base]
}
