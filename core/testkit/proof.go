// Package testkit holds what the tests of all packages share: the test data next to the project, and the size of a run.
// Only tests import it. A law is a promise that tests check with random programs or schedules. laws.md lists all laws.
//
//	make quick                        a tenth of the nightly size, by go test -short
//	make test                         a quarter of the nightly size: every change
//	make nightly                      the nightly size, by NIGHTLY=1: every night
//	make soak LAW=Kill FROM=200000    hours of one law, starting at a seed, by SOAK=1
//	make scale N=1000000              a benchmark of an application with N inputs, by SCALE=1000000
package testkit

import (
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Root returns the repository's folder: the nearest folder with a go.mod, starting at the test's folder.
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
			t.Fatal("no go.mod in a parent folder of the test")
		}
		dir = parent
	}
}

// DataPath returns the path of a file or folder of the test data next to the project, such as DataPath(t, "photos", "labels.tsv"). If it
// is missing, DataPath skips the test.
func DataPath(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{filepath.Dir(Root(t)), "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the test data is missing: %v", err)
	}
	return path
}

// Soaking reports whether the test runs under make soak.
func Soaking() bool { return os.Getenv("SOAK") != "" }

// Nightly skips a test that only make nightly and make soak run.
func Nightly(t testing.TB) {
	t.Helper()
	if Size(t, 0, 0, 1, 1) == 0 {
		t.Skip("run this test with make nightly")
	}
}

// Timing reports whether a test compares wall time or the memory of a process with a bound. Other work on the machine
// changes both, so only make timed, a part of make nightly, and make soak compare them. They run such a test alone. make timed
// runs it up to three times, and one success counts. A test function calls Timing or [RequireTiming] itself, so that make timed
// finds it.
func Timing() bool { return os.Getenv("TIMED") != "" || Soaking() }

// RequireTiming skips a test that has nothing to check without [Timing].
func RequireTiming(t testing.TB) {
	t.Helper()
	if !Timing() {
		t.Skip("it measures time or memory: run it with make timed")
	}
}

// SkipRace skips a test in make race. A long test calls it if the race detector finds nothing there that it does not find in other tests: the
// test does one thing at a time, or the programs that it runs are other processes. The race detector makes a test ten times as long.
func SkipRace(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("make race leaves it out: the race detector finds nothing in it")
	}
}

// Size returns the size of this run: quick with -short, test in make test, nightly in make nightly, and soak in make soak.
func Size(t testing.TB, quick, test, nightly, soak int) int {
	t.Helper()
	switch {
	case Soaking():
		return soak
	case testing.Short():
		return quick
	case os.Getenv("NIGHTLY") != "":
		return nightly
	}
	return test
}

// Rounds returns the seed of a law's first round and the number of rounds. It is nightly in make nightly, a quarter of that in make
// test, and a tenth in make quick. In make soak it is N, or soak without N. Rounds logs the seeds. CI does not repeat a failed test that
// logged its seeds, because they would fail again.
func Rounds(t testing.TB, nightly, soak int) (from uint64, rounds int) {
	t.Helper()
	from, rounds = number(t, "SOAK_FROM", 0), Size(t, max(nightly/10, 1), max(nightly/4, 1), nightly, soak)
	if Soaking() {
		rounds = int(number(t, "SOAK_N", uint64(soak)))
	}
	t.Logf("seeds %d to %d", from, from+uint64(rounds)-1)
	return from, rounds
}

// Seeds yields the seeds of a law's rounds, as many as [Rounds] returns. When a round fails the test, Seeds prints its seed and ends the
// test. The command make soak LAW=… FROM=seed N=1 runs only that round.
func Seeds(t testing.TB, nightly, soak int) iter.Seq[uint64] {
	t.Helper()
	from, rounds := Rounds(t, nightly, soak)
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

// Inputs returns the number of inputs of make scale, which is 0 for other commands.
func Inputs(t testing.TB) int {
	t.Helper()
	return int(number(t, "SCALE", 0))
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
