package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// timed is a test, or a package, that has ended.
type timed struct {
	name
	seconds float64
	result  string // pass or fail
}

// times prints the seconds of each package and of the tests that took a second or more, the slowest first. With a count, it prints only so many
// tests. It leaves out a test whose subtests took its time.
func times(events io.Reader, out io.Writer, module string, count int) error {
	ended, subtests := map[name]timed{}, map[name]float64{}
	total := 0.0
	err := read(events, func(e event) {
		if e.Action != "pass" && e.Action != "fail" {
			return
		}
		n := e.name()
		n.pkg = strings.TrimPrefix(n.pkg, module+"/")
		ended[n] = timed{n, e.Elapsed, e.Action}
		if n.test == "" {
			total += e.Elapsed
		} else {
			subtests[n.outer()] += e.Elapsed
		}
	})
	if err != nil {
		return err
	}
	var packages, tests []timed
	for n, x := range ended {
		switch inside := subtests[n]; {
		case n.test == "":
			packages = append(packages, x)
		case count == 0 && x.seconds < 1 || inside > 0 && x.seconds-inside < 1:
		default:
			tests = append(tests, x)
		}
	}
	if count > 0 {
		packages = nil
	}
	for _, list := range [][]timed{packages, tests} {
		slices.SortFunc(list, func(a, b timed) int {
			return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
		})
		if count > 0 {
			list = list[:min(count, len(list))]
		}
		for _, x := range list {
			fmt.Fprintf(out, "%.1f\t%s\t%s %s\n", x.seconds, x.result, x.pkg, x.test)
		}
	}
	if count == 0 {
		fmt.Fprintf(out, "%.1f\tin all packages\n", total)
	}
	return nil
}
