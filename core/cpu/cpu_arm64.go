//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

var lowest = NEON // first level of this architecture after Generic

// Every arm64 processor that Go supports has NEON. HasASIMDDP is the bit of FEAT_DotProd, although x/sys describes it as double precision.
var best = highest(lowest, true, cpu.ARM64.HasASIMDDP, cpu.ARM64.HasI8MM)
