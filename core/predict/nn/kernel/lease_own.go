//go:build !(wasip1 && lent)

package kernel

// lease would be weights that a host has packed: here all are our own.
type lease struct{}

func (*lease) alone() bool { return true }

func lend[O any, T int8 | float32](*O, *lease, packing, []T, []T, int, int, int) {}
