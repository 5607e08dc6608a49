package host

import (
	"sync"

	"github.com/sightline-dev/sightline/core/predict"
)

// networks are the networks that guests have requested, compiled natively and shared by all instances. A base identifies a network down
// to its bytes, so it may be read from any instance's bundles.
type networks struct {
	mu     sync.Mutex
	byBase map[[32]byte]*predict.Set // nil: of no use here
}

// network returns the one with a base, of the newest bundles or of an older network's; nil: there is none, and the guest reports the
// fault of its bundles.
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
