//go:build !wasip1

package core_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// wideInterfaces has the interfaces with more than 8 methods, with the maximum of each.
var wideInterfaces = map[string]int{
	"wasm/simd.multiplier":       12, // one implementation for each instruction set, in one file each
	"wasm/guest/hostapi.Imports": 32, // all host functions of the module
	"sync/replica.Partition":     16, // the simulator and an edge implement it with wrappers
}

// TestInterfacesAreSmall checks that interfaces have at most 8 methods. Embedded interfaces count by their own methods.
func TestInterfacesAreSmall(t *testing.T) {
	type declared struct {
		at       string
		own      int
		embedded []string
	}
	all := map[string]declared{}
	walkGo(t, testkit.Root(t), func(path string, file *ast.File, fset *token.FileSet) {
		dir := filepath.ToSlash(filepath.Dir(path))
		imports := importsOf(file)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			it, ok := spec.Type.(*ast.InterfaceType)
			if !ok {
				return true
			}
			d := declared{at: fset.Position(spec.Pos()).String()}
			for _, f := range it.Methods.List {
				switch e := f.Type.(type) {
				case *ast.FuncType:
					d.own += len(f.Names)
				case *ast.Ident:
					d.embedded = append(d.embedded, dir+"."+e.Name)
				case *ast.SelectorExpr:
					if x, ok := e.X.(*ast.Ident); ok {
						d.embedded = append(d.embedded, strings.TrimPrefix(imports[x.Name], module+"/")+"."+e.Sel.Name)
					}
				}
			}
			all[dir+"."+spec.Name.Name] = d
			return true
		})
	})
	var count func(name string) int
	count = func(name string) int {
		n := all[name].own
		for _, e := range all[name].embedded {
			n += count(e)
		}
		return n
	}
	for name, d := range all {
		limit := 8
		if wide, ok := wideInterfaces[name]; ok {
			limit = wide
		}
		if n := count(name); n > limit {
			t.Errorf("%s: interface %s has %d methods, want at most %d: declare what its user needs, or pass the concrete type", d.at, name, n, limit)
		}
	}
}

// importsOf returns the import paths of a file by their local names.
func importsOf(file *ast.File) map[string]string {
	names := map[string]string{}
	for _, im := range file.Imports {
		path := strings.Trim(im.Path.Value, `"`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if im.Name != nil {
			name = im.Name.Name
		}
		names[name] = path
	}
	return names
}

// TestNoBools rejects bool parameters of exported functions and methods, because a caller's true does not show its meaning. Such functions
// must be two functions.
func TestNoBools(t *testing.T) {
	walkGo(t, testkit.Root(t), func(path string, file *ast.File, fset *token.FileSet) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || slices.Contains(takesBool, filepath.ToSlash(filepath.Dir(path))+"."+f.Name.Name) {
				continue
			}
			for _, param := range f.Type.Params.List {
				if id, ok := param.Type.(*ast.Ident); ok && id.Name == "bool" {
					t.Errorf("%s: %s takes a bool", fset.Position(f.Pos()), f.Name.Name)
				}
			}
		}
	})
}

// takesBool has the functions with a bool parameter that are allowed: encoders, setters of flags, and the groups below.
var takesBool = []string{
	"core/jsonio.Bool", "core/log/field.Bool", "core/api/show.WriteTrue",
	"core/testkit.Check", "core/blob/blobtest.FailAt", "core/kv/journal/journaltest.FailAt", // test helpers
	"wasm/guest.KVScan", "wasm/host/hostcalls.KVScan", // host function
}

// Maximum sizes of a file, a function and a package.
const (
	fileLines     = 600
	functionLines = 60
	packageLines  = 4000 // without blank and comment lines
	packageFiles  = 30
)

// TestSizes checks the sizes of files, functions and packages. The list of exceptions has the larger ones with their sizes, which may only
// shrink.
func TestSizes(t *testing.T) {
	root := testkit.Root(t)
	got := map[string]int{}
	lines, files := map[string]int{}, map[string]int{}
	walkGo(t, root, func(path string, file *ast.File, fset *token.FileSet) {
		at := filepath.ToSlash(path)
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text[:min(len(text), 2000)]), "// Code generated ") {
			return
		}
		if n := strings.Count(string(text), "\n"); n > fileLines {
			got[at] = n
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		files[dir]++
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				lines[dir]++
			}
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > functionLines {
					got[at+" "+f.Name.Name] = n
				}
			}
		}
	})
	for dir, n := range lines {
		if n > packageLines {
			got[dir+" lines"] = n
		}
		if files[dir] > packageFiles {
			got[dir+" files"] = files[dir]
		}
	}
	for name, n := range got {
		if limit, ok := larger[name]; !ok {
			t.Errorf("%q: %d is too large, split it: see the limits above TestSizes", name, n)
		} else if n > limit {
			t.Errorf("%q: %d, want at most %d", name, n, limit)
		}
	}
	for name, limit := range larger {
		if got[name] < limit {
			t.Errorf("%q is %d now: lower its exception of %d", name, got[name], limit)
		}
	}
}

// larger has the exceptions of [TestSizes] with their sizes in lines.
var larger = map[string]int{
	"core/api/apitest/program/model.go patchMeta":    61,
	"core/blob/blobtest/hosted.go againstModel":      63,
	"core/ingest/worker.go scan":                     63,
	"core/partition lines":                           4203,
	"core/kv/pebblekv/store.go open":                 69,
	"core/predict/raster/jpg/sequential.go meanRow":  96,
	"core/predict/raster/jpg/sequential.go valueRow": 95,
	"origin/server/cli/importer.go batches":          67,
	"origin/server/data/check.go inputs":             67,
	"origin/server/httpd/httpd.go route":             74,
	"web/runtime/test/guest/main.go do":              77,
}
