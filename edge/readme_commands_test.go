package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// commandIndex has the commands, flags and targets that the pages may name.
type commandIndex struct {
	flags   map[string][]string // of each command of a program, such as "sightline key create"
	targets []string            // targets of make
	root    string
}

var (
	subcommand  = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) +\S`)
	flag        = regexp.MustCompile(`--[a-z][a-z-]*`)
	target      = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	spans       = regexp.MustCompile("`([^`\n]+)`")
	invoked     = regexp.MustCompile(`(?:^|[ /(])(sightline(?:-edge)?)((?: [a-z][a-z-]*)+)`)
	makeCommand = regexp.MustCompile(`(?:^|&& )make ([a-z-]+)`)
	words       = regexp.MustCompile(`^[a-z]+( [a-z][a-z-]*)?`)
	folders     = regexp.MustCompile(`(?:^| )([a-z0-9]+)/(?: |$)`)
)

// commands reads the commands and flags of both programs from their help texts.
func (r *reader) commands(t *testing.T) *commandIndex {
	t.Helper()
	k := &commandIndex{flags: map[string][]string{}, root: testkit.Root(t)}
	var ask func(program string, path ...string)
	ask = func(program string, path ...string) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(r.dir, "bin", program), append(path, "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		k.flags[strings.Join(append([]string{program}, path...), " ")] = flag.FindAllString(string(out), -1)
		_, list, _ := strings.Cut(string(out), "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range subcommand.FindAllStringSubmatch(list, -1) {
			if m[1] != "help" {
				ask(program, append(slices.Clone(path), m[1])...)
			}
		}
	}
	ask("sightline")
	ask("sightline-edge")
	makefile, err := os.ReadFile(filepath.Join(k.root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range target.FindAllStringSubmatch(string(makefile), -1) {
		k.targets = append(k.targets, m[1])
	}
	return k
}

// check checks that every command, flag, target and folder that a page names exists.
func (k *commandIndex) check(t *testing.T, page, text string) {
	t.Helper()
	var code []string
	for _, block := range blocks(text) {
		code = append(code, strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n")...)
		if strings.HasPrefix(block, "core/ ") {
			k.layout(t, block)
		}
	}
	for _, m := range spans.FindAllStringSubmatch(text, -1) {
		code = append(code, m[1])
	}
	for _, line := range code {
		line, _, _ = strings.Cut(line, "  #")
		for _, m := range makeCommand.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(k.targets, m[1]) {
				t.Errorf("%s: %s: make has no target %s", page, line, m[1])
			}
		}
		name := ""
		if at := invoked.FindStringSubmatchIndex(line); at != nil {
			program, path := line[at[2]:at[3]], line[at[4]:at[5]]
			if name = k.command(program, path); name == program {
				t.Errorf("%s: %s: %s has no command%s", page, line, program, path)
			}
			line = line[at[0]:] // flags before it belong to another program, such as sudo
		} else if m := words.FindString(line); m != "" {
			name = k.command("sightline", " "+m) // a span may leave the program out
		}
		for _, f := range flag.FindAllString(line, -1) {
			if name == "" && k.has(f) || name == "sightline" || slices.Contains(k.flags[name], f) {
				continue
			}
			t.Errorf("%s: %s: %s has no flag %s", page, line, name, f)
		}
	}
}

// command returns the longest name of a command at the beginning of words, or the program's name.
func (k *commandIndex) command(program, words string) string {
	name := program
	for _, word := range strings.Fields(words) {
		if k.flags[name+" "+word] == nil {
			break
		}
		name += " " + word
	}
	return name
}

// has reports whether any command has a flag.
func (k *commandIndex) has(flag string) bool {
	for _, flags := range k.flags {
		if slices.Contains(flags, flag) {
			return true
		}
	}
	return false
}

// layout checks that the folders of a list exist. Each line has names and then a text. The text can name folders in those or next to them.
func (k *commandIndex) layout(t *testing.T, block string) {
	t.Helper()
	exists := func(path string) bool {
		_, err := os.Stat(filepath.Join(k.root, path))
		return err == nil
	}
	var path []string
	for line := range strings.Lines(block) {
		entry := strings.TrimLeft(line, " ")
		path = path[:(len(line)-len(entry))/2]
		above := filepath.Join(path...)
		names, text, _ := strings.Cut(entry, "  ")
		inside := []string{above}
		for _, name := range strings.Fields(names) {
			inside = append(inside, filepath.Join(above, name))
			if !exists(filepath.Join(above, name)) {
				t.Errorf("%s: %s does not exist in %s/", line, name, above)
			}
		}
		for _, m := range folders.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(inside, func(folder string) bool { return exists(filepath.Join(folder, m[1])) }) {
				t.Errorf("%s: %s/ does not exist in %q", line, m[1], inside)
			}
		}
		path = append(path, strings.Fields(names)[0])
	}
}
