package main_test

import (
	"cmp"
	"encoding/base64"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/web/process"
	assembled "github.com/sightline-dev/sightline/web/runtime/test"
)

// notRun has the reasons for the blocks of README.md that the test does not run. A key is the start of a block.
var notRun = map[string]string{
	"git clone ":             "it needs a network, and the demonstration runs until somebody ends it; TestJourneys runs it",
	"sightline serve --data": "it needs port 443, a domain and a certificate authority",
}

// TestReadme runs the commands of README.md and of core/auth/README.md in their order, and compares their output with the page. It fails
// for a block that it neither runs nor has in notRun. It also checks that every command, flag and make target exists that these pages,
// edge/README.md and CONTRIBUTING.md name.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts both programs")
	}
	for _, program := range []string{"bash", "curl"} {
		process.Need(t, program)
	}
	root := testkit.Root(t)
	r := newReader(t)
	k := r.commands(t)
	left := maps.Clone(notRun)
	for _, page := range []string{"README.md", "core/auth/README.md", "edge/README.md", ".github/CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		k.check(t, page, string(text))
		if page == "edge/README.md" || page == ".github/CONTRIBUTING.md" {
			continue // commands that need root and systemd, of which TestStepsForFailedDisks runs those for disks that fail; and targets that run all tests
		}
		for _, block := range blocks(string(text)) {
			start, _, _ := strings.Cut(block, "\n")
			ok := t.Run(start, func(t *testing.T) {
				switch {
				case strings.HasPrefix(block, "$ "):
					r.run(t, block)
				case strings.HasPrefix(block, "import "):
					runInNode(t, block)
				default:
					for prefix := range notRun {
						if strings.HasPrefix(block, prefix) {
							delete(left, prefix)
							return
						}
					}
					t.Errorf("%s has a block that the test neither runs nor has in notRun:\n%s", page, block)
				}
			})
			if !ok {
				return // the next commands need the results of these
			}
		}
	}
	for prefix := range left {
		t.Errorf("README.md has no block that starts with %q", prefix)
	}
	for _, s := range slices.Backward(r.servers) {
		s.terminate(t)
	}
	r.checkIgnored(t)
}

// checkIgnored checks that .gitignore names everything that the commands have made, so that a clone stays clean.
func (r *reader) checkIgnored(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Fields(string(text))
	made, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range made {
		name := "/" + entry.Name()
		if entry.IsDir() {
			name += "/"
		}
		if name != "/web/" && name != "/origin/" && !slices.Contains(ignored, name) { // these two are the checkout's
			t.Errorf(".gitignore has no %s", name)
		}
	}
}

// blocks returns the indented blocks of a page without their indentation.
func blocks(page string) (found []string) {
	const indent = "    "
	var block []string
	end := func() {
		if text := strings.TrimRight(strings.Join(block, "\n"), "\n"); text != "" {
			found = append(found, text+"\n")
		}
		block = nil
	}
	for line := range strings.SplitSeq(page, "\n") {
		inside, ok := strings.CutPrefix(line, indent)
		switch {
		case ok:
			block = append(block, inside)
		case line == "" && block != nil:
			block = append(block, "")
		default:
			end()
		}
	}
	end()
	return found
}

// reader is a user who follows the pages.
type reader struct {
	root    testing.TB
	dir     string
	env     []string
	servers []*server
	places  map[string]string // addresses of servers, by the address on the page
	values  map[string]string // keys, IDs and tokens, by the value on the page
}

// newReader builds both programs in a folder with the layout that the commands expect.
func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{root: t, dir: t.TempDir(), places: map[string]string{}, values: map[string]string{}}
	if err := os.Mkdir(filepath.Join(r.dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"sightline": process.Origin, "sightline-edge": process.Edge} {
		if err := os.Symlink(process.Build(t, program), filepath.Join(r.dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join("web", "samples"), filepath.Join("origin", "server", "video", "testdata")} {
		if err := os.CopyFS(filepath.Join(r.dir, dir), os.DirFS(filepath.Join(testkit.Root(t), dir))); err != nil {
			t.Fatal(err)
		}
	}
	process.Warm(t, filepath.Join(r.dir, "bin", "sightline-edge"))
	r.env = append(os.Environ(), "SIGHTLINE_LISTEN=127.0.0.1:0", "SIGHTLINE_LOG_FORMAT=text", "HOME="+r.dir)
	return r
}

var (
	exported = regexp.MustCompile(`^export (\w+=\S+)$`)
	serves   = regexp.MustCompile(`^bin/sightline(-edge)? serve `)
	listens  = regexp.MustCompile(`--listen (\S+)`)
	// A value differs from run to run: the digits of a key, an ID or a token, or its first digits and "…".
	valued = regexp.MustCompile(`[0-9a-f]{8,}…|[0-9a-f]{16,}|127\.0\.0\.1:[0-9]+|…`)
	// A command that takes longer than a second prints its progress, which the page omits.
	progress = regexp.MustCompile(`(?m)^[0-9]+ s: .*\n`)
)

// run runs the commands of a transcript.
func (r *reader) run(t *testing.T, block string) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+block, "\n$ ") {
		if part == "" {
			continue
		}
		lines := strings.SplitAfter(strings.TrimRight(part, "\n")+"\n", "\n")
		n := 1
		for strings.HasSuffix(lines[n-1], "\\\n") {
			n++
		}
		command, want := strings.TrimSpace(strings.Join(lines[:n], "")), strings.Join(lines[n:], "")
		switch {
		case exported.MatchString(command):
			r.env = append(r.env, exported.FindStringSubmatch(r.actual(t, command))[1])
		case serves.MatchString(command):
			r.serve(t, command, want)
		default:
			r.compare(t, command, want)
		}
	}
}

// actual replaces the page's values in a command with those of this run.
func (r *reader) actual(t *testing.T, command string) string {
	t.Helper()
	return valued.ReplaceAllStringFunc(command, func(s string) string {
		value := cmp.Or(r.places[s], r.values[s])
		if value == "" && (strings.HasSuffix(s, "…") || strings.Contains(s, ":")) {
			t.Fatalf("%s: the page shows %s nowhere before", command, s)
		}
		return cmp.Or(value, s)
	})
}

// compare runs a command and compares its output with the page. At the edge it repeats the command until they agree.
func (r *reader) compare(t *testing.T, command, want string) {
	t.Helper()
	var got []byte
	var err error
	agrees := func() bool {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", r.actual(t, command))
		cmd.Dir, cmd.Env = r.dir, r.env
		got, err = cmd.CombinedOutput()
		return err == nil && r.match(want, progress.ReplaceAllString(string(got), ""))
	}
	if strings.Contains(command, "127.0.0.1:8081") { // the edge needs some time to copy the application
		until(t, "the edge answers as README.md shows", agrees)
		return
	}
	if !agrees() {
		t.Errorf("$ %s: %v\n%s\nThe page shows:\n%s", command, err, got, want)
	}
}

// serve starts a server and compares its first output with the page. Other lines may come between those of the page. The server runs until
// the test ends.
func (r *reader) serve(t *testing.T, command, want string) {
	t.Helper()
	place := "127.0.0.1:8080"
	if m := listens.FindStringSubmatch(command); m != nil {
		place, command = m[1], strings.Replace(command, m[0], "--listen 127.0.0.1:0", 1)
		r.places["127.0.0.1:0"] = "127.0.0.1:0"
	}
	words := strings.Fields(r.actual(t, command))
	cmd := exec.Command(filepath.Join(r.dir, words[0]), words[1:]...)
	cmd.Dir, cmd.Env = r.dir, r.env
	s := launch(r.root, cmd)
	r.servers = append(r.servers, s)
	r.places[place] = s.find(t, serving, 1)
	r.env = append(r.env, "SIGHTLINE_URL=http://"+r.places["127.0.0.1:8080"])
	s.mu.Lock()
	output := strings.Join(s.lines, "\n") + "\n"
	s.mu.Unlock()
	want = "…\n" + strings.ReplaceAll(want, "\n", "\n…\n")
	if !r.match(want, output) {
		t.Errorf("$ %s\n%s\nThe page shows:\n%s", command, output, want)
	}
}

// match reports whether an output matches the page. In want, … means any text, and a line with only … means any lines. It stores the values
// that the page shows for the first time.
func (r *reader) match(want, got string) bool {
	var pattern strings.Builder
	var names []string
	for line := range strings.Lines(want) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		end := 0
		for _, at := range valued.FindAllStringIndex(line, -1) {
			pattern.WriteString(regexp.QuoteMeta(line[end:at[0]]))
			value := line[at[0]:at[1]]
			end = at[1]
			switch actual := cmp.Or(r.places[value], r.values[value]); {
			case actual != "":
				pattern.WriteString(regexp.QuoteMeta(actual))
			case value == "…":
				pattern.WriteString(`[^\n]*?`)
			default:
				pattern.WriteString(`([0-9a-f]{16,})`)
				names = append(names, value)
			}
		}
		pattern.WriteString(regexp.QuoteMeta(strings.TrimRight(line[end:], "\n")) + ` *\n`)
	}
	if got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	m := regexp.MustCompile(`^` + pattern.String() + `$`).FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, name := range names {
		r.values[name] = m[i+1]
	}
	return true
}

// runInNode runs the browser script in Node, with the runtime's files in the layout of make and with one picture.
func runInNode(t *testing.T, script string) {
	t.Helper()
	dir := assembled.AssembleRuntime(t)
	defer assembled.Forget()
	picture, err := os.ReadFile(filepath.Join(testkit.Root(t), "web", "samples", "21-dragonfly-face-on.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	script = strings.NewReplacer("'/runtime/index.js'", "'"+filepath.Join(dir, "node.js")+"'", "'/runtime/'", "'"+dir+"'").Replace(script)
	script = "const base64 = '" + base64.StdEncoding.EncodeToString(picture) + "';\n" + script +
		"console.log(outputs[0].data.concepts[0].name);\nawait s.close();\n"
	file := filepath.Join(t.TempDir(), "page.mjs")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), process.Need(t, "node"), file).CombinedOutput()
	if err != nil || string(out) != "animal\n" {
		t.Errorf("the script prints %q, %v, want animal", out, err)
	}
}
