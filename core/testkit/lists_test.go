package testkit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// assigned matches an assignment of a variable of the Makefile, with its continuation lines.
	assigned = regexp.MustCompile(`(?m)^(\w+) *:?= *((?:.*\\\n)*.*)$`)
	// folder matches a package or a pattern of packages, such as core/api/...
	folder = regexp.MustCompile(`^\.?/?(?:core|edge|models|origin|sync|wasm|web)(?:/[\w-]+)*(?:/\.\.\.)?$`)
	// variable matches a use of a variable of the Makefile.
	variable = regexp.MustCompile(`^\$\(\w+\)$`)
	// testName matches the name of a test or the start of one.
	testName = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
)

// TestLists checks that the lists in the Makefile name packages with tests, and that names of tests in the Makefile and in .ci are those of
// tests. A list is a variable with folders and other lists only. The name of a test may be the start of several.
func TestLists(t *testing.T) {
	root := Root(t)
	var dirs, names []string
	for function := range functions(t) {
		dir, name, _ := strings.Cut(function, " ")
		dirs, names = append(dirs, dir), append(names, name)
	}
	lists := 0
	for _, m := range assigned.FindAllStringSubmatch(read(t, root, "Makefile"), -1) {
		folders := slices.DeleteFunc(strings.Fields(strings.ReplaceAll(m[2], "\\\n", " ")), variable.MatchString)
		if len(folders) == 0 || slices.ContainsFunc(folders, func(word string) bool { return !folder.MatchString(word) }) {
			continue
		}
		lists++
		for _, word := range folders {
			dir, pattern := strings.CutSuffix(strings.TrimPrefix(word, "./"), "/...")
			if !slices.ContainsFunc(dirs, func(f string) bool { return f == dir || pattern && strings.HasPrefix(f, dir+"/") }) {
				t.Errorf("%s in the Makefile: %s has no tests", m[1], word)
			}
		}
	}
	if lists < 8 {
		t.Errorf("the Makefile has %d lists: does this test still recognise them?", lists)
	}
	scripts, err := filepath.Glob(filepath.Join(root, ".ci", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(scripts, filepath.Join(root, "Makefile")) {
		if filepath.Base(path) == "plain" {
			continue // it reads texts and runs no tests
		}
		for line := range strings.Lines(read(t, path)) {
			for _, name := range testName.FindAllString(line, -1) {
				fuzz := strings.HasPrefix(name, "Fuzz")
				if !slices.ContainsFunc(names, func(n string) bool { return n == name || !fuzz && strings.HasPrefix(n, name) }) {
					t.Errorf("%s: no test is called %s", filepath.Base(path), name)
				}
			}
		}
	}
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
