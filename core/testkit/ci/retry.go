package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// failure is a failed test of which no subtest failed, or a package that failed without a test.
type failure struct {
	name
	seeded bool // the test printed its seeds
}

// seeds matches the output of a test that prints its seeds.
var seeds = regexp.MustCompile(`seeds? [0-9]`)

// failures returns what failed. Seeded tests are last.
func failures(events io.Reader) ([]failure, error) {
	failed, seeded, explained := map[name]bool{}, map[name]bool{}, map[name]bool{}
	top := func(n name) name {
		n.test, _, _ = strings.Cut(n.test, "/")
		return n
	}
	err := read(events, func(e event) {
		switch n := e.name(); {
		case e.Action == "output" && seeds.MatchString(e.Output):
			seeded[top(n)] = true
		case e.Action == "fail" && e.Package != "":
			failed[n] = true
			if e.Test != "" {
				explained[n.outer()] = true
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var all []failure
	for n := range failed {
		if !explained[n] {
			all = append(all, failure{n, seeded[top(n)]})
		}
	}
	slices.SortFunc(all, func(a, b failure) int {
		if a.seeded != b.seeded {
			if b.seeded {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	})
	return all, nil
}

// retry calls again with each test that failed, and prints FLAKY and its name if it passes then. It returns errFailed if one fails again. It
// does not repeat a test that printed its seeds: the same seeds fail again, and the failure is one of the product.
func retry(events io.Reader, out io.Writer, again func(name) error) error {
	all, err := failures(events)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(out, "FAIL without a failed test: see above")
		return errFailed
	}
	bad := false
	for _, f := range all {
		if f.seeded {
			fmt.Fprintf(out, "FAIL %s %s: its seeds are printed above\n", f.pkg, f.test)
			bad = true
			continue
		}
		verdict := "FLAKY"
		if err := again(f.name); err != nil {
			if !errors.Is(err, errFailed) {
				return err
			}
			verdict, bad = "FAIL", true
		}
		fmt.Fprintln(out, verdict, f.pkg, f.test)
	}
	if bad {
		return errFailed
	}
	return nil
}

// pattern returns the pattern of go test -run that matches only this test or subtest.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}
