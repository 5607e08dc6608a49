//go:build !(wasip1 && lent)

package kernel

// lease is empty in this build: no host packs weights.
type lease struct{}

func (*lease) alone() bool { return true }

func packAtHost[O any](*O, *lease, packing, []int8, int, int, int) {}
