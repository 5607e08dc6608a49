//go:build purego || !amd64

package kernel

// Level names the level in use.
func Level() string { return Generic }

// Levels lists the levels this machine can run, fastest first.
func Levels() []string { return []string{Generic} }

// Force switches to a level of [Levels] and returns a function that switches
// back. It is for tests and benchmarks: it must not run beside other calls. It
// panics for a level the machine cannot run.
func Force(level string) (restore func()) {
	if level != Generic {
		panic("kernel: level " + level + " is not available")
	}
	return func() {}
}

func (v *Vectors) distances(dst []uint32, z *Query, rows []uint32) {
	v.distancesGeneric(dst, z, rows)
}

func (v *Vectors) dots(dst []int64, z *Query, rows []uint32) { v.dotsGeneric(dst, z, rows) }

func (l *Lists) find(rows []uint32, x uint32) int { return l.findGeneric(rows, x) }
