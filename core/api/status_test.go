package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/proof"
)

// TestEveryErrorHasAStatus walks every exported Err of core and looks for it in the table.
func TestEveryErrorHasAStatus(t *testing.T) {
	root := filepath.Join(proof.Root(t), "core")
	declared := map[string]string{} // "blob.ErrHash" → file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		// The errors of core and its register reach requests only as errors of other packages.
		if name := file.Name.Name; slices.Contains([]string{"main", "core", "register"}, name) || strings.HasSuffix(name, "test") {
			return nil
		}
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						declared[file.Name.Name+"."+name.Name] = path
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := tableRows(t)
	for name, path := range declared {
		if !rows[name] {
			t.Errorf("%s, of %s, has no row in statuses", name, path)
		}
	}
	if len(declared) < 30 {
		t.Errorf("only %d errors found: the walk is broken", len(declared))
	}
}

// tableRows are the errors that the source of the table names.
func tableRows(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "status.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			if !strings.HasPrefix(v.Names[0].Name, "status") {
				continue
			}
			ast.Inspect(v, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if p, ok := n.X.(*ast.Ident); ok {
						rows[p.Name+"."+n.Sel.Name] = true
					}
				case *ast.Ident:
					rows["api."+n.Name] = true
				}
				return true
			})
		}
	}
	return rows
}

// TestStatusesAgree holds that a code has one description, and that descriptions are what
// clients compare.
func TestStatusesAgree(t *testing.T) {
	said := map[int]status{}
	for _, s := range append([]status{statusOk, statusMixed, statusFailure, statusTrained}, statuses...) {
		const header = 11102 // also of a request without credentials, which is a 401 like all trouble with them
		if before, ok := said[s.code]; ok && (before.description != s.description || before.http != s.http && s.code != header) {
			t.Errorf("%d is both %d %q and %d %q", s.code, before.http, before.description, s.http, s.description)
		}
		said[s.code] = s
	}
	if statusOk.description != "Ok" || statusMixed.description != "Mixed Success" {
		t.Errorf("%q and %q: clients compare the text", statusOk.description, statusMixed.description)
	}
}

// TestWrites knows which calls change an application: all of another method than GET but for those that only
// look, and none for which the credential needs to read alone.
func TestWrites(t *testing.T) {
	reads := map[string]bool{
		"/models/{model_id}/outputs": true, "/models/{model_id}/versions/{version_id}/outputs": true, "/models/searches": true,
		"/models/{model_id}/activations": true, "/models/{model_id}/versions/{version_id}/metrics": true, "/concepts/searches": true, "/searches": true, "/searches/summary": true,
		"/workflows/{workflow_id}/results": true, "/token": true, "/login": true, "/users/{user_id}/apps": true, "/users/{user_id}/keys": true,
	}
	for _, r := range routes {
		want := r.method != "GET" && !reads[r.path]
		if got := Writes(r.method, "/v2"+r.path); got != want {
			t.Errorf("Writes(%s %s) = %v, want %v", r.method, r.path, got, want)
		}
	}
	for _, path := range []string{"", "/", "/v2", "/v2/nothing", "/v3/inputs", "/v2/%zz"} {
		if Writes("POST", path) {
			t.Errorf("Writes(POST %s)", path)
		}
	}
}

// TestRoutesHaveTheirLists holds that no two routes are the same and each id has its place.
func TestRoutesHaveTheirLists(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range routes {
		key := r.method + " " + r.path
		if seen[key] || r.handle == nil {
			t.Errorf("%s twice or without a handler", key)
		}
		seen[key] = true
		got, _, err := find(r.method, segments("/v2"+r.path))
		if err != nil || got.path != r.path {
			t.Errorf("%s finds %v, %v", key, got, err)
		}
	}
}

// TestTranscriptsShowEveryStatus holds that whatever the table can answer is in a transcript.
func TestTranscriptsShowEveryStatus(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, s := range append([]status{statusOk, statusMixed, statusFailure}, statuses...) {
		want := fmt.Sprintf(`"code":%d,"description":"%s"`, s.code, s.description)
		if !strings.Contains(all.String(), want) {
			t.Errorf("no transcript shows %s", want)
		}
	}
}

// TestFixedSegments holds that fixed lists what stands where another path has an id.
func TestFixedSegments(t *testing.T) {
	want := map[string]bool{}
	for _, a := range routes {
		for _, b := range routes {
			x, y := strings.Split(a.path, "/"), strings.Split(b.path, "/")
			if len(x) > 2 && len(y) > 2 && x[1] == y[1] && x[2][0] != '{' && y[2][0] == '{' {
				want[x[2]] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(want)); !slices.Equal(got, fixed) {
		t.Errorf("fixed = %v, want %v", fixed, got)
	}
}

// TestRouting draws a route with ids and writes its path in one of the ways that clients
// do: it is found again with its ids.
func TestRouting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SampledFrom(routes).Draw(t, "route")
		ids := map[string]string{}
		slashes := rapid.SampledFrom([]string{"/", "//", "///"})
		path := slashes.Draw(t, "slashes") + "v2"
		if rapid.Bool().Draw(t, "long address") {
			path += "/users/" + url.PathEscape(rapid.StringN(1, 8, -1).Draw(t, "user")) + "/apps//" + url.PathEscape(rapid.StringN(1, 8, -1).Draw(t, "app"))
		}
		for part := range strings.SplitSeq(want.path[1:], "/") {
			path += slashes.Draw(t, "slashes")
			switch {
			case part[0] == '{':
				id := rapid.StringN(1, 12, -1).Filter(func(s string) bool { return !slices.Contains(fixed, s) }).Draw(t, "id")
				ids[part[1:len(part)-1]] = id
				path += url.PathEscape(id)
			case part == "versions" && rapid.Bool().Draw(t, "singular"):
				path += "version"
			default:
				path += part
			}
		}
		if rapid.Bool().Draw(t, "trailing") {
			path += "/"
		}
		got, found, _, err := resolve(want.method, path)
		if err != nil || got.path != want.path || !maps.Equal(found, ids) {
			t.Fatalf("%s finds %+v with %v, %v; want %s with %v", path, got, found, err, want.path, ids)
		}
	})
}
