//go:build !purego

package cpu

import "golang.org/x/sys/cpu"

var lowest = AVX2 // first level of this architecture after Generic

var best = highest(
	lowest,
	cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1,
	cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ,
	cpu.X86.HasAVX512VNNI,
)
