//go:build !(wasip1 && lent)

package cpu

const hostKernels = false
