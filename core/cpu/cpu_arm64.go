//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

var lowest = NEON // of the levels of this architecture

// Every arm64 that Go supports has NEON. The field that is named after double precision is the bit of FEAT_DotProd.
var best = highest(lowest, true, cpu.ARM64.HasASIMDDP, cpu.ARM64.HasI8MM)
