//go:build !wasip1

package main

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestGenerated fails if a generated file of any package is out of date.
func TestGenerated(t *testing.T) {
	line := regexp.MustCompile(`(?m)^//go:generate go run \S*log/field/gen(.*)$`)
	n := 0
	root := testkit.Root(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == "testdata" || strings.HasPrefix(name, ".") && path != root) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || filepath.Base(filepath.Dir(path)) == "gen" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if m := line.FindSubmatch(data); m != nil {
			n++
			holdGenerated(t, filepath.Dir(path), strings.Fields(string(m[1]))...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("no package has generated codecs")
	}
}

// holdGenerated fails if a generated file of a package is out of date.
func holdGenerated(t *testing.T, dir string, args ...string) {
	t.Helper()
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	tables, pages := flags.String("tables", "", ""), flags.String("pages", "", "")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	files, err := generate(dir, *tables, *pages)
	if err != nil {
		t.Errorf("%s: %v", dir, err)
	}
	for name, want := range files {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: make generate", name)
		}
	}
}

// TestSample generates the files of a package that uses every option.
func TestSample(t *testing.T) {
	holdGenerated(t, "testdata/sample", "-tables", "page.md", "-pages", "sample.gen.ts")
}

func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct{ source, want string }{
		"same number":    {"type T struct {\nA, B uint64 `wire:\"1\"`\n}", "A and B have the same number"},
		"reserved":       {"// T is it.\n//\n//field:message\n//field:reserved 4 5\ntype T struct {\nA uint64 `wire:\"5\"`\n}", "A has the number of an earlier field"},
		"no number":      {"type T struct {\nA uint64 `wire:\"first\"`\n}", `A: tag "first"`},
		"number 0":       {"type T struct {\nA uint64 `wire:\"0\"`\n}", `A: tag "0"`},
		"option":         {"type T struct {\nA uint64 `wire:\"1,fast\"`\n}", `A: option "fast" is not known`},
		"inline number":  {"type T struct {\nA uint64 `wire:\"+1\"`\n}", `A: tag "+1"`},
		"map":            {"type T struct {\nA map[string]int `wire:\"1\"`\n}", "A: type map[string]int"},
		"list of lists":  {"type T struct {\nA [][]string `wire:\"1\"`\n}", "A: list of []string"},
		"list of ints":   {"type T struct {\nA []int `wire:\"1\"`\n}", "A: list of int"},
		"array of ints":  {"type T struct {\nA [4]int `wire:\"1\"`\n}", "A: type [4]int"},
		"int16":          {"type T struct {\nA int16 `wire:\"1\"`\n}", "A: type int16"},
		"pointer":        {"type T struct {\nA *int16 `wire:\"1\"`\n}", "A: type int16"},
		"time":           {"type T struct {\nA time.Time `wire:\"1\"`\n}", "A: type time.Time without a unit"},
		"no struct":      {"type T uint64", "T: not a struct"},
		"no tag":         {"type T struct{ A uint64 }", "T: no tagged field"},
		"inner no tag":   {"type T struct {\nA U `wire:\"1\"`\n}\ntype U struct{ B uint64 }", "U: no tagged field"},
		"page's message": {"type T struct {\nA uint64 `wire:\"1\"`\n}", "no message V"},
	} {
		dir := t.TempDir()
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("go.mod", "module example.test/m\n")
		if !strings.HasPrefix(tt.source, "//") {
			tt.source = "//field:message\n" + tt.source
		}
		write("t.go", "package m\n\nimport \"time\"\n\n"+tt.source+"\n")
		write("page.md", "<!-- fields: V -->\n<!-- end -->\n")
		if _, err := generate(dir, "page.md", ""); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
