// Package proof is what the tests of every package share: the test data that lies beside the
// project, and the size of a reliability goal's run. Only tests import it.
//
//	make test                            tier P of each goal: every change
//	make soak G=G11 FROM=200000 [N=…]    tier N of one goal, going on from a seed
package proof

import (
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Root is the repository's folder: the nearest one above the test that holds go.mod.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// Shared is the path of an element of the test data beside the project, such as
// Shared(t, "photos", "labels.tsv"). Where it is missing the test skips and says so.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{filepath.Dir(Root(t)), "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the test data is missing: %v", err)
	}
	return path
}

// Soaking reports whether the test runs at tier N.
func Soaking() bool { return os.Getenv("SOAK") != "" }

// Rounds is how many rounds of a goal to run, and the seed of the first: p of them inside make test
// (a tenth with -short), n under make soak unless N says otherwise.
func Rounds(t testing.TB, p, n int) (from uint64, rounds int) {
	t.Helper()
	rounds = p
	if testing.Short() {
		rounds = max(p/10, 1)
	}
	if Soaking() {
		rounds = int(number(t, "SOAK_N", uint64(n)))
	}
	return number(t, "SOAK_FROM", 0), rounds
}

// Seeds yields the seeds of a goal's rounds, as [Rounds] sizes it. A test that has failed stops at
// that seed, which is printed and replays alone with FROM=seed N=1.
func Seeds(t testing.TB, p, n int) iter.Seq[uint64] {
	t.Helper()
	from, rounds := Rounds(t, p, n)
	t.Logf("seeds %d to %d", from, from+uint64(rounds)-1)
	return func(yield func(uint64) bool) {
		for seed := from; seed < from+uint64(rounds); seed++ {
			if !yield(seed) {
				return
			}
			if t.Failed() {
				t.Fatalf("failed at seed %d", seed)
			}
		}
	}
}

func number(t testing.TB, name string, absent uint64) uint64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return absent
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is not a whole number", name, s)
	}
	return n
}
