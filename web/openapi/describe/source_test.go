package describe

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/testkit"
)

// source parses the files of core/api, of the packages in that folder and of the form of operations, except tests.
func source(t testing.TB) []*ast.File {
	t.Helper()
	var names []string
	for _, pattern := range []string{"api/*.go", "api/*/*.go", "log/form/*.go"} {
		some, err := filepath.Glob(filepath.Join(testkit.Root(t), "core", pattern))
		if err != nil || len(some) == 0 {
			t.Fatalf("%v: %d files of core", err, len(some))
		}
		names = append(names, some...)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// TestCodes compares the table of codes with the statuses in the source of core/api: literals of type call.Status, with or without names
// of fields.
func TestCodes(t *testing.T) {
	want := map[string]bool{}
	http := map[string]map[string]bool{}
	for _, f := range source(t) {
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if row, status, ok := statusRow(lit); ok {
					want[row] = true
					if http[row] == nil {
						http[row] = map[string]bool{}
					}
					http[row][status] = true
				}
			}
			return true
		})
	}
	for row, status := range http { // core/api derives a video's status from a picture's
		if slices.Contains([]string{"30002", "30101", "30104", "30105", "30106", "30300"}, row[:5]) {
			row = "31" + strings.Replace(row[2:], "image", "video", 1)
			want[row], http[row] = true, status
		}
	}
	got := map[string]bool{}
	for _, c := range codes {
		row := fmt.Sprintf("%d %s", c.Number, c.Text)
		got[row] = true
		if status := strconv.Itoa(c.HTTP); want[row] && !http[row][status] {
			t.Errorf("%s: HTTP %s, want one of %v", row, status, http[row])
		}
	}
	if len(want) < 40 {
		t.Fatalf("only %d codes found in core/api", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("codes of core/api -, of status.go +:\n%s", diff)
	}
}

// statusRow parses {err, http, code, "text"} or {HTTP: http, Code: code, Description: "text"}. ok is false for other literals.
func statusRow(lit *ast.CompositeLit) (row, http string, ok bool) {
	parts := map[string]ast.Expr{}
	for i, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				parts[key.Name] = kv.Value
			}
		} else if len(lit.Elts) == 4 {
			parts[[]string{"err", "HTTP", "Code", "Description"}[i]] = e
		}
	}
	code := wholeNumber(parts["Code"])
	words, _ := parts["Description"].(*ast.BasicLit)
	if code == "" || words == nil || words.Kind != token.STRING {
		return "", "", false
	}
	text, err := strconv.Unquote(words.Value)
	http = "0"
	if n, ok := parts["HTTP"].(*ast.BasicLit); ok {
		http = n.Value
	}
	return code + " " + text, http, err == nil
}

// wholeNumber returns the digits of a literal of five digits, or of one of catalog's constants. It returns "" if e is neither.
func wholeNumber(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT && len(e.Value) == 5 {
			return e.Value
		}
	case *ast.SelectorExpr:
		return map[string]string{"InputReady": "30000", "InputPending": "30001", "VersionTrained": "21100"}[e.Sel.Name]
	}
	return ""
}

// TestLimits compares the limits in the texts of the document with the constants in the source.
func TestLimits(t *testing.T) {
	got := map[string]int{}
	for _, f := range source(t) {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						if n, ok := evaluate(spec.Values[i]); ok {
							got[name.Name] = n
						}
					}
				}
			}
		}
	}
	for name, want := range map[string]int{
		"MaxMetaBytes": 64 << 10, "MaxMetaDepth": 32, "MaxMetaMembers": 2000, "MaxFeedbackBytes": 64 << 10, "MaxPictureBytes": 64_000_000,
		"ShownConcepts": 20, "MaxConcepts": 200, "MaxInputs": 128, "MaxPerPage": 1000, "DefaultPerPage": 20,
	} {
		if n, ok := got[name]; !ok || n != want {
			t.Errorf("%s is %d in core/api (there: %t), %d in the document", name, n, ok, want)
		}
	}
}

// evaluate returns the value of a whole number or of a shift of whole numbers. It reports false for any other expression.
func evaluate(e ast.Expr) (int, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		n, err := strconv.ParseInt(e.Value, 0, 64)
		return int(n), err == nil && e.Kind == token.INT
	case *ast.BinaryExpr:
		x, okX := evaluate(e.X)
		y, okY := evaluate(e.Y)
		if e.Op == token.SHL {
			return x << y, okX && okY
		}
	}
	return 0, false
}
