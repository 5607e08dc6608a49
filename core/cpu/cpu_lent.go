//go:build wasip1 && lent

package cpu

// The host provides the kernels: a module of this build does not start without them.
const lent = true
