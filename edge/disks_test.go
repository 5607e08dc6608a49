package main_test

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/web/process"
)

// TestStepsForFailedDisks follows the steps of README.md for disks that fail. Each case runs its commands on an origin and an edge, in a
// folder that looks to the commands like the machine of both, and wants what the page promises.
func TestStepsForFailedDisks(t *testing.T) {
	parent := t
	if testing.Short() {
		t.Skip("it starts both programs, many times")
	}
	process.Need(t, "bash")
	binary := own(t)
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "edge", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(text), "\n## When a disk fails\n")
	page, _, _ = strings.Cut(page, "\n## ")
	tests := map[string]func(o *operator){
		"The origin's disk failed, and you have a backup":  originRestored,
		"The origin's disk failed, and you have no backup": originMadeAgain,
		"An edge's disk failed, and it has no backup":      edgeReplaced,
		"An edge's disk failed, and you have its backup":   edgeRestored,
		restarted: edgeRestarted,
		full:      func(o *operator) { o.run(0) },
		failing:   func(o *operator) { o.run(0) },
	}
	var healthy *operator // of the cases that leave both as they are
	for i, part := range strings.Split(page, "\n### ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		t.Run(string(rune('a'+i)), func(t *testing.T) {
			test := tests[title]
			if test == nil {
				t.Fatalf("README.md has the case %q, which the test does not know", title)
			}
			o := healthy
			if title != restarted && title != full && title != failing {
				o = newOperator(t, binary)
			} else if o == nil {
				o = newOperator(parent, binary)
				healthy = o
			}
			o.blocks = blocks(body)
			o.ran = make([]bool, len(o.blocks))
			test(o)
			for i, ran := range o.ran {
				if !ran {
					t.Errorf("%s: the test does not run\n%s", title, o.blocks[i])
				}
			}
		})
		delete(tests, title)
	}
	for title := range tests {
		t.Errorf("README.md has no case %q", title)
	}
}

// Titles of the cases that leave the origin and the edge as they are.
const (
	restarted = "A disk or virtual machine was set back to an older image"
	full      = "A disk is full"
	failing   = "A disk fails to write"
)

// operator follows the steps of one case.
type operator struct {
	*living
	root   string // of the file system that the commands see
	blocks []string
	ran    []bool
	values map[string]string // by the page's names
	token  string            // in the edge's settings
	listen string            // address of the origin
}

func newOperator(t *testing.T, binary string) *operator {
	t.Helper()
	l := newLiving(t, binary)
	root, err := os.MkdirTemp("", "disk") // short, for the names of sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	o := &operator{
		living: l, root: root, values: map[string]string{"APP_ID": l.app}, listen: strings.TrimPrefix(l.hub.base, "http://"),
	}
	for name, target := range map[string]string{
		"bin/sightline": hubOf(t, binary), "bin/sightline-edge": binary, "var/lib/sightline/data": l.data, "var/lib/sightline-edge/data": l.folder,
	} {
		o.link(name, target)
	}
	for name, script := range map[string]string{"bin/sudo": "#!/bin/sh\nexec \"$@\"\n", "backup/.keep": ""} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func (o *operator) link(name, target string) {
	o.t.Helper()
	file := filepath.Join(o.root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		o.t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		o.t.Fatal(err)
	}
}

// at is a file of the page.
func (o *operator) at(name string) string { return filepath.Join(o.root, name) }

var (
	paths    = regexp.MustCompile(`/(var/lib|backup)/`)
	ids      = regexp.MustCompile(`\b[A-Z_]+_ID\b`)
	services = regexp.MustCompile(`^sudo systemctl (stop|start|restart) (sightline(?:-edge)?)\.`)
	newAppID = regexp.MustCompile(`(?m)^app_id +([0-9a-f]+)`)
	northID  = regexp.MustCompile(`(?m)^([0-9a-f]+) +north `)
)

// run runs a block of the case.
func (o *operator) run(block int) {
	o.t.Helper()
	if block >= len(o.blocks) {
		o.t.Fatalf("the case has %d blocks", len(o.blocks))
	}
	o.ran[block] = true
	for line := range strings.Lines(o.blocks[block]) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
		if m := services.FindStringSubmatch(line); m != nil {
			o.service(m[1], m[2])
			continue
		}
		line = ids.ReplaceAllStringFunc(line, func(name string) string {
			return cmp.Or(o.values[name], name)
		})
		line = paths.ReplaceAllStringFunc(line, func(path string) string { return o.root + path })
		var out, stderr bytes.Buffer
		cmd := exec.CommandContext(o.t.Context(), "bash", "-c", line)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Join(o.root, "bin")+":"+os.Getenv("PATH"))
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			o.t.Fatalf("$ %s: %v\n%s%s", line, err, &out, &stderr)
		}
		o.learn(line, out.String())
	}
}

// learn notes what a command prints for later ones.
func (o *operator) learn(line, out string) {
	o.t.Helper()
	switch {
	case strings.Contains(line, " app create "):
		o.values["NEW_APP_ID"] = newAppID.FindStringSubmatch(out)[1]
	case strings.Contains(line, " key create "):
		o.key = strings.TrimSpace(out)
	case strings.Contains(line, " edge create "):
		o.token = strings.TrimSpace(out)
	case strings.Contains(line, " edge list "):
		o.values["EDGE_ID"] = northID.FindStringSubmatch(out)[1]
	}
}

// service does what systemd does.
func (o *operator) service(do, unit string) {
	o.t.Helper()
	srv, folder := &o.hub, o.at("var/lib/sightline/data")
	if unit == "sightline-edge" {
		srv, folder = &o.edge, o.at("var/lib/sightline-edge/data")
	}
	if do != "start" && *srv != nil {
		(*srv).terminate(o.t)
		*srv = nil
	}
	switch {
	case do == "stop":
	case unit == "sightline":
		*srv = serve(o.t, hubOf(o.t, o.binary), folder, "--listen", o.listen)
	default:
		process.Warm(o.t, o.binary)
		var args []string
		if o.token != "" {
			args = []string{"--origin", o.way.base, "--token", o.token}
		}
		*srv = serve(o.t, o.binary, folder, args...)
	}
}

// edgeStatus returns the edge's report of its replica.
func (o *operator) edgeStatus() control.ReplicaStatus {
	o.t.Helper()
	return copies(o.t, o.binary, o.at("var/lib/sightline-edge/data"))[0]
}

// addAndSync adds inputs at the edge, and waits until the origin has them.
func (o *operator) addAndSync(ids ...string) {
	o.t.Helper()
	for _, id := range ids {
		o.add(o.edge, id)
	}
	o.until("the origin has what the edge wrote", func() bool { return o.has(o.hub, ids...) && o.edgeStatus().Pending == 0 })
}

func originRestored(o *operator) {
	o.addAndSync("before")
	command(o.t, hubOf(o.t, o.binary), "backup", o.at("backup/origin"), "--data", o.data, "--quiet")
	o.addAndSync("after")
	o.run(0)
	o.until("the origin has the edge's writes again", func() bool { return o.has(o.hub, "before", "after") && o.edgeStatus().Pending == 0 })
	o.run(1)
}

func originMadeAgain(o *operator) {
	o.addAndSync("one", "two")
	o.hub.terminate(o.t)
	o.hub = nil
	old := o.app
	o.run(0)
	o.run(1)
	if o.app = o.values["NEW_APP_ID"]; o.app == old || !o.has(o.hub, "one", "two") {
		o.t.Error("the origin has no new application with the inputs of the old one")
	}
	o.run(2)
	o.until("the edge has the new application", func() bool { return o.has(o.edge, "one", "two") })
	o.addAndSync("three")
}

func edgeReplaced(o *operator) {
	o.addAndSync("one")
	o.run(0)
	o.run(1)
	o.until("the edge has what the origin has", func() bool { return o.has(o.edge, "one") })
	o.addAndSync("two")
}

func edgeRestored(o *operator) {
	for _, earlier := range []bool{false, true} {
		backup := o.at("backup/edge")
		command(o.t, o.binary, "backup", backup, "--data", o.at("var/lib/sightline-edge/data"), "--quiet")
		ids := []string{"one", "two"}
		if earlier {
			ids = []string{"three", "four"}
			if err := os.Remove(filepath.Join(backup, "edge.json")); err != nil {
				o.t.Fatal(err)
			}
		}
		o.addAndSync(ids...)
		o.run(0)
		if earlier {
			o.run(1)
		}
		o.run(2)
		o.until("the restored edge has joined", func() bool { return o.has(o.edge, ids...) })
		o.addAndSync("after-" + ids[0])
		if c := o.edgeStatus(); c.Conflicts > 0 || c.Problem != "" {
			o.t.Errorf("the restored edge reports %+v", c)
		}
		for _, old := range []string{backup, o.at("var/lib/sightline-edge/data.failed")} {
			if err := os.RemoveAll(old); err != nil {
				o.t.Fatal(err)
			}
		}
	}
}

func edgeRestarted(o *operator) {
	o.run(0)
	o.addAndSync("after")
}
