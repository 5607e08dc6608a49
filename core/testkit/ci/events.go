package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is a line of `go test -json`. The command `go doc test2json` describes it.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

// name is a test. The tests of a package together have an empty test. A subtest has the name of its test, a slash and its own name.
type name struct{ pkg, test string }

func (e event) name() name { return name{e.Package, e.Test} }

// outer returns the test of a subtest, and the package of a test.
func (n name) outer() name {
	if i := strings.LastIndexByte(n.test, '/'); i >= 0 {
		return name{n.pkg, n.test[:i]}
	}
	return name{pkg: n.pkg}
}

// read calls use with each event. It ignores other lines.
func read(r io.Reader, use func(event)) error {
	for in := bufio.NewReader(r); ; {
		line, err := in.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil {
			use(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

var (
	// result starts the line of a package.
	result = regexp.MustCompile(`^(ok  |FAIL|\?   )`)
	// progress starts a line that go test -v adds to the output of a test.
	progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME)`)
)

// report prints a line for each package, the errors of builds, and the output of each failed test when it ends.
func report(events io.Reader, out io.Writer) error {
	outputs := map[name][]byte{}
	return read(events, func(e event) {
		switch e.Action {
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			if e.Test == "" && result.MatchString(e.Output) {
				fmt.Fprintln(out, strings.TrimSuffix(e.Output, "\n"))
			} else if !progress.MatchString(e.Output) {
				outputs[e.name()] = append(outputs[e.name()], e.Output...)
			}
		case "fail":
			fmt.Fprintf(out, "%s", outputs[e.name()])
			delete(outputs, e.name())
		case "pass", "skip":
			delete(outputs, e.name())
		}
	})
}
