//go:build !purego

package kernel

import "golang.org/x/sys/cpu"

// level is what Level names. It changes only in Force.
var level = Levels()[0]

// Level names the level in use.
func Level() string { return level }

// Levels lists the levels this machine can run, fastest first.
func Levels() []string {
	x := &cpu.X86
	var have []string
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512DQ && x.HasAVX512VNNI {
		have = append(have, AVX512VNNI)
	}
	if x.HasAVX2 && x.HasFMA {
		have = append(have, AVX2)
	}
	return append(have, Generic)
}

// Force switches to a level of [Levels] and returns a function that switches
// back. It is for tests and benchmarks: it must not run beside other calls. It
// panics for a level the machine cannot run.
func Force(to string) (restore func()) {
	for _, l := range Levels() {
		if l == to {
			was := level
			level = to
			return func() { level = was }
		}
	}
	panic("kernel: level " + to + " is not available")
}
