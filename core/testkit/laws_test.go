package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// law is a row of laws.md.
type law struct {
	text  string
	tests []string  // each is a folder, a space and a function
	sizes [4]string // quick, test, nightly and soak
}

var (
	lawName  = regexp.MustCompile("`([\\w/]+ (?:Test|Fuzz)\\w*)`")
	sized    = regexp.MustCompile(`\btestkit\.(Seeds|Rounds|Size)\(\w+, ([^()]*)\)`)
	numbered = regexp.MustCompile(`^Test[GR][0-9]`)
	sizeNote = regexp.MustCompile(`^(?:Sizes|A (?:size|round)|Each round|Timed)\b`)
)

// maxTests is the maximum number of tests of a law. A row with more tests states several laws.
const maxTests = 8

// noSize is the size of a law that a command leaves out.
const noSize = "–"

// TestLawsHaveTests checks the tables of laws.md. Every row names tests that exist. Every test that calls Seeds, Rounds or Size
// is in a row, and the row has the sizes that the test's call specifies. A row is one sentence, with a note about its sizes if it needs
// one.
func TestLawsHaveTests(t *testing.T) {
	bodies := functions(t)
	listed := map[string]bool{}
	for _, l := range laws(t) {
		if n := len(l.tests); n == 0 || n > maxTests {
			t.Errorf("%d tests, want 1 to %d: %s", n, maxTests, l.text)
		}
		for _, note := range strings.Split(l.text, ". ")[1:] {
			if !sizeNote.MatchString(note) {
				t.Errorf("more than one sentence: %s", l.text)
			}
		}
		if strings.HasPrefix(l.text, "The same holds") {
			t.Errorf("the row cannot be read alone: %s", l.text)
		}
		for _, test := range l.tests {
			body, ok := bodies[test]
			if !ok {
				t.Errorf("%s does not exist: %s", test, l.text)
			}
			if want, ok := sizes(body); ok && l.sizes != want {
				t.Errorf("%s has the sizes %q, want %q", test, l.sizes, want)
			}
			if strings.Contains(body, "{\n\ttestkit.Nightly(t)\n") && l.sizes[1] != noSize {
				t.Errorf("%s has the sizes %q, but only make nightly runs it", test, l.sizes)
			}
			listed[test] = true
		}
	}
	for _, test := range slices.Sorted(maps.Keys(bodies)) {
		if isTest(test) && hasSize(bodies, test) && !listed[test] {
			t.Errorf("%s calls Seeds, Rounds or Size and is in no row of laws.md", test)
		}
	}
}

// TestNamesDescribe rejects the number of a goal or of a rule as the name of a test: a number describes nothing.
func TestNamesDescribe(t *testing.T) {
	for _, test := range slices.Sorted(maps.Keys(functions(t))) {
		if _, name, _ := strings.Cut(test, " "); numbered.MatchString(name) {
			t.Errorf("%s has a number as a name", test)
		}
	}
}

// laws returns the rows of those tables of laws.md that begin with a column Law.
func laws(t *testing.T) (all []law) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "core", "testkit", "laws.md"))
	if err != nil {
		t.Fatal(err)
	}
	inTable := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case cells[0] == "Law":
			inTable = true
		case !inTable || strings.HasPrefix(cells[0], "---"):
		case len(cells) != 6:
			t.Errorf("%d cells, want 6: %s", len(cells), line)
		default:
			l := law{text: cells[0], sizes: [4]string(cells[2:])}
			for _, m := range lawName.FindAllStringSubmatch(cells[1], -1) {
				l.tests = append(l.tests, m[1])
			}
			if 2*len(l.tests) != strings.Count(cells[1], "`") {
				t.Errorf("not each of %s is a folder and a test", cells[1])
			}
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		t.Error("laws.md has no rows")
	}
	return all
}

// parsed has the result of parse, which several tests use.
var parsed struct {
	sync.Once
	bodies map[string]string
	err    error
}

// functions returns the source of every function in a test file of the project, by its folder, a space and its name.
func functions(t *testing.T) map[string]string {
	t.Helper()
	parsed.Do(func() { parsed.bodies, parsed.err = parse(Root(t)) })
	if parsed.err != nil {
		t.Fatal(parsed.err)
	}
	return parsed.bodies
}

func parse(root string) (map[string]string, error) {
	bodies := map[string]string{}
	return bodies, fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "node_modules" || name != "." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		tests, err := parser.ParseFile(files, file, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range tests.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				bodies[path.Dir(file)+" "+f.Name.Name] = string(text[files.Position(f.Pos()).Offset:files.Position(f.End()).Offset])
			}
		}
		return nil
	})
}

func isTest(function string) bool { return strings.Contains(function, " Test") }

// hasSize reports whether a function calls Seeds, Rounds or Size, directly or through a helper in its folder.
func hasSize(bodies map[string]string, function string) bool {
	if sized.MatchString(bodies[function]) {
		return true
	}
	folder, _, _ := strings.Cut(function, " ")
	for helper, body := range bodies {
		name, ok := strings.CutPrefix(helper, folder+" ")
		if ok && !isTest(helper) && sized.MatchString(body) && strings.Contains(bodies[function], "\t"+name+"(t, ") {
			return true
		}
	}
	return false
}

// sizes returns the sizes that a test's first call of Seeds, Rounds or Size specifies, and whether its arguments are numbers.
func sizes(body string) (want [4]string, ok bool) {
	call := sized.FindStringSubmatch(body)
	if call == nil {
		return want, false
	}
	var n []int
	for _, argument := range strings.Split(call[2], ", ") {
		x, err := strconv.ParseInt(argument, 0, 64)
		if err != nil {
			return want, false
		}
		n = append(n, int(x))
	}
	if call[1] != "Size" {
		nightly, soak := n[0], n[1]
		n = []int{max(nightly/10, 1), max(nightly/4, 1), nightly, soak}
	}
	for i := range want {
		want[i] = groupDigits(n[i])
	}
	if n[2] == 0 { // only soak runs it
		want[0], want[1], want[2] = noSize, noSize, noSize
	}
	if strings.Contains(body, "testkit.RequireTiming(t)") {
		want[0], want[1] = noSize, noSize
	}
	if strings.Contains(body, "if testing.Short() {\n\t\tt.Skip(") {
		want[0] = noSize
	}
	return want, true
}

// groupDigits formats a number with a comma before each three digits.
func groupDigits(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
