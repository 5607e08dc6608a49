// Package cpu determines which instructions the kernels of this program may use: those that the processor supports and that the build has
// code for.
//
//	Generic ─▶ AVX2 ─▶ AVX512 ─▶ AVX512VNNI     each level has all that those before it have
//	 every     amd64, not purego
//	 target
//
//	Generic ─▶ NEON ─▶ DotProd ─▶ I8MM
//	           arm64, not purego
//
//	Generic ─▶ Lent                             a guest's host computes, and has what it has
//	           wasip1 with the tag lent
//
// A package of kernels is written for some of the levels, always for Generic, which is plain
// Go and defines the results. It makes a [Choice] once, when the program starts:
//
//	// Levels is the level of the kernels of this package.
//	var Levels = cpu.Choose(cpu.AVX2, cpu.AVX512VNNI)
//
// The environment can take features from a program, for measurements: GODEBUG=cpu.avx512f=off leaves AVX2, and cpu.avx2=off plain Go.
//
// A level determines how fast a result comes, and never changes the result.
package cpu

import (
	"fmt"
	"iter"
	"slices"
)

// Level is a set of instructions.
type Level uint8

// The levels, slowest first.
const (
	Generic    Level = iota // plain Go, every target
	AVX2                    // amd64 with AVX2, FMA and BMI1
	AVX512                  // with AVX-512 F, BW, VL and DQ as well
	AVX512VNNI              // with VNNI as well
	NEON                    // arm64
	DotProd                 // with FEAT_DotProd as well
	I8MM                    // with FEAT_I8MM as well
	Lent                    // imports that the host of a WebAssembly module provides
)

// String returns the level's name, such as avx2.
func (l Level) String() string {
	names := [...]string{"generic", "avx2", "avx512", "avx512vnni", "neon", "dotprod", "i8mm", "lent"}
	if int(l) < len(names) {
		return names[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// Has reports whether this program may use the instructions of a level.
func Has(l Level) bool {
	switch l {
	case Generic:
		return true
	case Lent:
		return hostKernels
	}
	return lowest <= l && l <= best
}

// Choice is the level that a package's kernels work at. Any number of goroutines may read it. While [Choice.Force] or [Choice.Each] changes
// it, no other goroutine may use it.
type Choice struct {
	now Level
	all []Level
}

// Choose returns the choice of a package that has code for the levels in written and for Generic: the highest of them that this program may
// use.
func Choose(written ...Level) Choice {
	all := slices.DeleteFunc(append(written[:len(written):len(written)], Generic), func(l Level) bool { return !Has(l) })
	slices.Sort(all)
	slices.Reverse(all)
	all = slices.Compact(all)
	return Choice{now: all[0], all: all}
}

// Current returns the level in use.
func (c *Choice) Current() Level { return c.now }

// Each yields the levels that this program can choose from, fastest first; the last is Generic. The yielded level is in use while the body
// of the loop runs. It is for tests and measurements.
func (c *Choice) Each() iter.Seq[Level] {
	return func(yield func(Level) bool) {
		defer c.Force(c.now)()
		for _, l := range c.all {
			if c.now = l; !yield(l) {
				return
			}
		}
	}
}

// Force switches to a level of [Choice.Each] and returns a function that switches back. It is for tests and measurements. It panics if
// the level is unavailable.
func (c *Choice) Force(to Level) (restore func()) {
	if !slices.Contains(c.all, to) {
		panic("cpu: level " + to.String() + " is not available")
	}
	was := c.now
	c.now = to
	return func() { c.now = was }
}

// highest returns the last of the levels, counted from lowest, that the processor supports. has reports for each level whether the
// processor has what it adds to the level before. The first false ends the count. If the processor lacks even lowest, highest returns
// Generic.
func highest(lowest Level, has ...bool) Level {
	best := Generic
	for i, ok := range has {
		if !ok {
			break
		}
		best = lowest + Level(i)
	}
	return best
}
