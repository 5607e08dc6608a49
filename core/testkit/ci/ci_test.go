package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recorded opens testdata/events.json. It has the events of packages of a module that pass, fail, crash, do not compile and have no tests.
func recorded(t *testing.T) *bytes.Reader {
	t.Helper()
	return bytes.NewReader(file(t, "events.json"))
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestReport(t *testing.T) {
	var out strings.Builder
	if err := report(recorded(t), &out); err != nil {
		t.Fatal(err)
	}
	if want := string(file(t, "report.txt")); out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
}

// TestReportAtOnce checks that a result is printed when its event comes, not at the end.
func TestReportAtOnce(t *testing.T) {
	var out strings.Builder
	events := `{"Action":"output","Package":"a","Test":"TestX","Output":"wrong\n"}` + "\n" + `{"Action":"fail","Package":"a","Test":"TestX"}` + "\n"
	if err := report(&failsAtEnd{strings.NewReader(events)}, &out); !errors.Is(err, errEnd) {
		t.Errorf("error %v", err)
	}
	if out.String() != "wrong\n" {
		t.Errorf("printed %q before the end of the events", &out)
	}
}

var errEnd = errors.New("the end")

// failsAtEnd is a reader that returns errEnd instead of io.EOF.
type failsAtEnd struct{ *strings.Reader }

func (r *failsAtEnd) Read(b []byte) (int, error) {
	if r.Len() == 0 {
		return 0, errEnd
	}
	return r.Reader.Read(b)
}

func TestTimes(t *testing.T) {
	for count, want := range map[int]string{
		0: string(file(t, "times.txt")),
		3: "1.3\tpass\tsound TestSleeps\n1.1\tpass\tsound TestGrows/slowly\n0.1\tpass\tsound TestSleeps/short\n",
	} {
		var out strings.Builder
		if err := times(recorded(t), &out, "example.org/garden", count); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("count %d: printed\n%s\nwant\n%s", count, &out, want)
		}
	}
}

// TestRetry repeats the innermost failures of each package. One passes the second time. The seeded one is not repeated.
func TestRetry(t *testing.T) {
	const garden = "example.org/garden/"
	var out strings.Builder
	var repeated []name
	err := retry(recorded(t), &out, func(n name) error {
		repeated = append(repeated, n)
		if n.test == "TestOnce/inner_(first)" {
			return nil
		}
		return errFailed
	})
	if !errors.Is(err, errFailed) {
		t.Errorf("error %v, want errFailed", err)
	}
	want := []name{{garden + "broken", ""}, {garden + "crash", "TestCrash"}, {garden + "failing", "TestAlways"}, {garden + "failing", "TestOnce/inner_(first)"}}
	if !slices.Equal(repeated, want) {
		t.Errorf("repeated %q, want %q", repeated, want)
	}
	const printed = "FAIL example.org/garden/broken \n" +
		"FAIL example.org/garden/crash TestCrash\n" +
		"FAIL example.org/garden/failing TestAlways\n" +
		"FLAKY example.org/garden/failing TestOnce/inner_(first)\n" +
		"FAIL example.org/garden/failing TestRandom/round: its seeds are printed above\n"
	if out.String() != printed {
		t.Errorf("printed\n%s\nwant\n%s", &out, printed)
	}
}

// TestRetryEnds checks the result of retry if each test passes, if none failed, and if the command go does not run.
func TestRetryEnds(t *testing.T) {
	const flaky = `{"Action":"fail","Package":"a","Test":"TestX"}`
	missing := errors.New("no such command")
	for _, tt := range []struct {
		events  string
		again   error
		err     error
		printed string
	}{
		{flaky, nil, nil, "FLAKY a TestX\n"},
		{`{"Action":"pass","Package":"a"}`, nil, errFailed, "FAIL without a failed test: see above\n"},
		{flaky, missing, missing, ""},
	} {
		var out strings.Builder
		err := retry(strings.NewReader(tt.events), &out, func(name) error { return tt.again })
		if !errors.Is(err, tt.err) || out.String() != tt.printed {
			t.Errorf("%s: %v, printed %q, want %v and %q", tt.events, err, &out, tt.err, tt.printed)
		}
	}
}

func TestPattern(t *testing.T) {
	for test, want := range map[string]string{
		"TestA":                  "^TestA$",
		"TestOnce/inner_(first)": `^TestOnce$/^inner_\(first\)$`,
	} {
		got := pattern(test)
		if got != want {
			t.Errorf("pattern of %s is %s, want %s", test, got, want)
		}
		parts, patterns := strings.Split(test, "/"), strings.Split(got, "/")
		for i, part := range parts {
			if !regexp.MustCompile(patterns[i]).MatchString(part) {
				t.Errorf("%s does not match %s", patterns[i], part)
			}
		}
	}
}

// TestConcurrent finds the packages with tests that may run several goroutines.
func TestConcurrent(t *testing.T) {
	var packages []goPackage
	var want []string
	for _, tt := range []struct {
		path, code, test string // code of the package and of its tests
		imports          []string
		found            bool
	}{
		{path: "statement", code: "func F() { go F() }", test: "func f() {}", found: true},
		{path: "group", test: "func f() { wg.Go(func() {}) }", found: true},
		{path: "parallel", test: "func f() { t.Parallel() }", found: true},
		{path: "imports", test: "func f() {}", imports: []string{"untested"}, found: true},
		{path: "through", test: "func f() {}", imports: []string{"sync", "imports"}, found: true},
		{path: "assembler", code: `func f() { a.Go("MOVD R0, R1") }`, test: "func f() {}"},
		{path: "sequential", test: "func f() {}", imports: []string{"sync"}},
		{path: "untested", code: "func F() { go F() }"},
	} {
		p := goPackage{Dir: t.TempDir(), ImportPath: tt.path, GoFiles: []string{"x.go"}, Imports: tt.imports}
		if tt.test != "" {
			p.TestGoFiles = []string{"x_test.go"}
		}
		for name, code := range map[string]string{"x.go": tt.code, "x_test.go": tt.test} {
			if err := os.WriteFile(filepath.Join(p.Dir, name), []byte("package x\n"+code), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		packages = append(packages, p)
		if tt.found {
			want = append(want, tt.path)
		}
	}
	got, err := concurrent(packages)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
