package main_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/edge/node"
	origin "github.com/sightline-dev/sightline/origin/program"
	floor "github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
)

// TestHelpListsOwnCommands: every command in a program's help is one of its commands. The help of an origin's command edge also names the
// start of an edge.
func TestHelpListsOwnCommands(t *testing.T) {
	for name, program := range map[string]cli.Program{originName: origin.New(), node.Name: node.New()} {
		help := func(command []string) string {
			var out, errs bytes.Buffer
			args := append(slices.Clone(command), "--help")
			env := floor.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Environ: func() []string { return nil }}
			if code := cli.Run(t.Context(), program, env); code != floor.ExitOK {
				t.Fatalf("%s %q ends with %d: %s", name, args, code, &errs)
			}
			return out.String()
		}
		texts := map[string]string{} // by command
		var walk func(command []string)
		walk = func(command []string) {
			text := help(command)
			texts[strings.Join(command, " ")] = text
			_, list, _ := strings.Cut(text, "Available Commands:\n")
			list, _, _ = strings.Cut(list, "\n\n")
			for line := range strings.Lines(list) {
				if below := strings.Fields(line)[0]; below != "help" {
					walk(append(slices.Clone(command), below))
				}
			}
		}
		walk(nil)
		if len(texts) < 20 {
			t.Errorf("%s has %d commands", name, len(texts))
		}
		mention := regexp.MustCompile(`(?m)(?:^ {2,}|'|\| )(sightline(?:-edge)?) ([a-z][a-z-]*)`) // in examples and in quotes
		for command, text := range texts {
			if strings.Contains(text, "{prog}") {
				t.Errorf("%s %s: the help shows a placeholder", name, command)
			}
			for _, m := range mention.FindAllStringSubmatch(text, -1) {
				if m[1] == node.Name && m[2] == "serve" && strings.HasPrefix(command, "edge") && name == originName {
					continue
				}
				if _, one := texts[m[2]]; m[1] != name || !one {
					t.Errorf("the help of %s %s names %q", name, command, m[0])
				}
			}
		}
	}
}
