//go:build !wasip1

package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// A mutant is a plausible bug: one changed place in the product. The sources do not change: the compiler gets copies in which
// mutant.Is switches the bug on.
type mutant struct {
	name string
	file string
	from string // occurs once in the file
	to   string // replacement of from; $ is the switch
	test string // test that catches the bug, with the folder of another package before it; empty: TestConverge
}

// mutantSource is the source of package mutant, which exists only in the overlay.
const mutantSource = `// Package mutant switches seeded bugs on.
package mutant

import "os"

var on = os.Getenv("MUTANT")

// Is reports whether a bug is on.
func Is(name string) bool { return on == name }
`

const mutantImport = "\n\nimport \"github.com/sightline-dev/sightline/core/mutant\"\n"

var packageLine = regexp.MustCompile(`(?m)^package \w+$`)

// overlay writes the mutated sources to dir, with a file for go build -overlay. It returns the path of that file.
func overlay(t *testing.T, root, dir string) string {
	t.Helper()
	replace := map[string]string{}
	put := func(path string, data []byte) {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = file
	}
	sources := map[string]string{}
	for _, m := range mutants {
		if sources[m.file] == "" {
			data, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			at := packageLine.FindIndex(data)
			if at == nil {
				t.Fatalf("%s has no package line", m.file)
			}
			sources[m.file] = string(data[:at[1]]) + mutantImport + string(data[at[1]:])
		}
		if n := strings.Count(sources[m.file], m.from); n != 1 {
			t.Fatalf("mutant %q: %s has %d times\n%s", m.name, m.file, n, m.from)
		}
		to := strings.ReplaceAll(m.to, "$", fmt.Sprintf("mutant.Is(%q)", m.name))
		sources[m.file] = strings.Replace(sources[m.file], m.from, to, 1)
	}
	for file, source := range sources {
		put(filepath.Join(root, file), []byte(source))
	}
	put(filepath.Join(root, "core/mutant/mutant.go"), []byte(mutantSource))
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// mutantSeeds is the maximum number of schedules within which a test must catch a mutant.
const mutantSeeds = 10_000

// TestMutants builds the simulator with seeded bugs in the product. It passes if all bugs are off,
// and catches each bug that is on.
func TestMutants(t *testing.T) {
	testkit.Nightly(t)
	root, binaries := testkit.Root(t), map[string]string{}
	run := func(name, test string, n int) (string, error) {
		folder, test, ok := strings.Cut(test, " ")
		if !ok {
			folder, test = "sync/sim", cmp.Or(folder, "TestConverge")
		}
		if binaries[folder] == "" {
			binaries[folder] = filepath.Join(t.TempDir(), "mutants.test")
			buildMutants(t, []string{folder}, "test", "-c", "-vet=off", "-o", binaries[folder])
		}
		cmd := exec.Command(binaries[folder], "-test.run", "^"+test+"$", "-test.timeout", "0")
		cmd.Env = append(os.Environ(), "MUTANT="+name, "SOAK=1", "SOAK_FROM=0", fmt.Sprintf("SOAK_N=%d", n))
		cmd.Dir = filepath.Join(root, folder)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, test := range []string{"", "core/fold TestHorizonsChangeNoState"} {
		if out, err := run("", test, 20); err != nil {
			t.Fatalf("with every bug off: %v\n%s", err, out)
		}
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, err := run(m.name, m.test, mutantSeeds)
			if err == nil {
				t.Fatalf("not caught in %d schedules", mutantSeeds)
			}
			t.Log(firstLine(out))
		})
	}
}

var caught = regexp.MustCompile(`seed \d+: [^\n]*|panic: [^\n]*`)

func firstLine(out string) string {
	if s := caught.FindString(out); s != "" {
		return s
	}
	line, _, _ := bytes.Cut([]byte(out), []byte("\n"))
	return string(line)
}

// TestMutantsCompile checks that each mutant applies to its file and compiles, since TestMutants runs only at night.
func TestMutantsCompile(t *testing.T) {
	folders := map[string]bool{}
	for _, m := range mutants {
		folders[filepath.Dir(m.file)] = true
	}
	buildMutants(t, slices.Sorted(maps.Keys(folders)), "build")
}

// buildMutants runs a go command, such as build, on packages with the seeded bugs.
func buildMutants(t *testing.T, folders []string, command ...string) {
	t.Helper()
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go tool: %v", err)
	}
	root := testkit.Root(t)
	command = append(command, "-overlay", overlay(t, root, t.TempDir()))
	for _, folder := range folders {
		command = append(command, "./"+folder)
	}
	build := exec.Command(tool, command...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
