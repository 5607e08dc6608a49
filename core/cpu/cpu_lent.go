//go:build wasip1 && lent

package cpu

// The host provides the kernels as imports. A host without them cannot start a module of this build.
const hostKernels = true
