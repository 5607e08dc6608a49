//go:build !wasip1

package core_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

const module = "github.com/sightline-dev/sightline"

// layers are the folders of the tree from the inside out. A package may import packages of its layer and of the previous layers. Neither
// of models and web imports the other, and neither of origin and edge: their common part is in origin/server.
var layers = []string{"core", "models", "web", "sync", "wasm", "origin/server", "origin", "edge"}

// TestImportsPointInward keeps the order core < models, web < sync < wasm < origin/server < origin, edge, as compiled natively and as
// wasip1. Only tests of the program of an edge run an origin too. Within core/api it keeps the order of rankInAPI.
func TestImportsPointInward(t *testing.T) {
	testkit.SkipRace(t)
	targets := map[string][]string{
		"native": nil,
		"wasip1": {"GOOS=wasip1", "GOARCH=wasm"},
	}
	for name, env := range targets {
		t.Run(name, func(t *testing.T) {
			for _, p := range listPackages(t, env) {
				// Packages of helpers for tests import testing.
				if slices.Contains(p.Imports, module+"/core/testkit") && !slices.Contains(p.Imports, "testing") {
					t.Errorf("%s imports core/testkit outside its tests", p.ImportPath)
				}
				for _, imported := range p.Imports {
					from, within := rankInAPI(p.ImportPath)
					if to, ok := rankInAPI(imported); ok && within && to >= from {
						t.Errorf("%s imports %s: the order is call, show, a resource, api", p.ImportPath, imported)
					}
				}
				from, ok := layerOf(p.ImportPath)
				if !ok {
					t.Errorf("%s stands outside the top-level folders", p.ImportPath)
				}
				for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
					to, ok := layerOf(imported)
					if p.ImportPath == module+"/edge" && to == "origin" && !slices.Contains(p.Imports, imported) {
						continue
					}
					if ok && to != from && !inward(from, to) {
						t.Errorf("%s imports %s: imports point inward only", p.ImportPath, imported)
					}
					if from != "models" && slices.ContainsFunc(onnx, func(path string) bool { return strings.HasPrefix(imported, path) }) {
						t.Errorf("%s imports %s: only the bake reads ONNX files", p.ImportPath, imported)
					}
				}
				for _, imported := range p.Imports {
					if strings.HasPrefix(imported, "github.com/nlpodyssey/spago/") && p.ImportPath != heads {
						t.Errorf("%s imports %s: only %s knows spago", p.ImportPath, imported, heads)
					}
					if isOfCluster(imported) && !isOfCluster(p.ImportPath) && p.ImportPath != module+"/origin/program" {
						t.Errorf("%s imports %s: only the origin's program has clusters, so that the edge's does not grow", p.ImportPath, imported)
					}
					if imported == heads && from != "origin/server" && from != "origin" {
						t.Errorf("%s imports %s: the module and the pages have no spago", p.ImportPath, imported)
					}
				}
			}
		})
	}
}

// isOfCluster reports whether a package serves only clusters.
func isOfCluster(path string) bool {
	for _, prefix := range []string{module + "/origin/server/cluster", module + "/origin/server/s3", "go.etcd.io/", "github.com/minio/minio-go/"} {
		if path == prefix || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/") {
			return true
		}
	}
	return false
}

// onnx are packages of models that no program has: the bake reads ONNX files, and programs read plans.
var onnx = []string{"github.com/owulveryck/onnx-go", module + "/models/onnx", module + "/models/compile"}

// heads writes and reads heads as models of spago.
const heads = module + "/core/train/spago"

// rankInAPI is the place of a package in the order within core/api: call < show < one package a resource < api. No resource imports
// another.
func rankInAPI(importPath string) (rank int, ok bool) {
	switch rest, within := strings.CutPrefix(importPath, module+"/core/api"); {
	case !within || strings.HasPrefix(rest, "/apitest"):
		return 0, false
	case rest == "/call":
		return 1, true
	case rest == "/show":
		return 2, true
	case rest == "":
		return 4, true
	}
	return 3, true
}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T, env []string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func layerOf(importPath string) (layer string, ok bool) {
	rest, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return "", false
	}
	if rest == "origin/server" || strings.HasPrefix(rest, "origin/server/") {
		return "origin/server", true
	}
	layer, _, _ = strings.Cut(rest, "/")
	return layer, slices.Contains(layers, layer)
}

func inward(from, to string) bool {
	if from == "web" && to == "models" || from == "edge" && to == "origin" {
		return false
	}
	return slices.Index(layers, to) < slices.Index(layers, from)
}

// environment lists functions that use the environment of the process. Other packages get them as arguments from origin/server/system, the
// only place with the real clock, randomness, files and dialler. An empty list means every name of the package.
var environment = map[string][]string{
	"time":         {"Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep"},
	"crypto/rand":  nil,
	"math/rand":    nil,
	"math/rand/v2": {"Int", "IntN", "Float64", "Uint64", "Perm", "Shuffle", "N"},
	"os": {
		"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp",
		"Remove", "RemoveAll", "Rename", "Stat", "Lstat", "Link", "Symlink", "Truncate", "DirFS", "OpenRoot", "OpenInRoot", "Chmod", "Chtimes",
	},
	"path/filepath": {"Walk", "WalkDir", "Glob"},
	"net":           {"Dial", "DialTimeout", "DialTCP", "DialUDP", "Dialer", "Listen", "ListenTCP", "LookupHost", "LookupIP", "LookupAddr", "DefaultResolver"},
}

// exempt are the package that owns them, code outside the product (tools, and helpers of tests), and a file that asks the system for the
// addresses of the process's code.
var exempt = []string{
	"origin/server/system", "models/bake", "models/compare", "core/testkit", "web/process", "web/runtime/test", "wasm/pack", "wasm/prebuilt", "wasm/simd/cmd", "wasm/slim/cmd",
	"core/log/field/gen", "wasm/host/huge_linux.go",
}

// TestOnlySystemUsesTheOS bans the direct use of clock, randomness, file system and dialler, since the simulations and fault tests replace
// all four.
func TestOnlySystemUsesTheOS(t *testing.T) {
	root := testkit.Root(t)
	walkGo(t, root, func(path string, file *ast.File, fset *token.FileSet) {
		at := filepath.ToSlash(path)
		if slices.ContainsFunc(exempt, func(e string) bool { return at == e || strings.HasPrefix(at, e+"/") }) {
			return
		}
		names := map[string]string{} // local name → import path
		for _, im := range file.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			if _, watched := environment[p]; !watched {
				continue
			}
			local := filepath.Base(strings.TrimSuffix(p, "/v2"))
			if im.Name != nil {
				local = im.Name.Name
			}
			names[local] = p
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || x.Obj != nil {
				return true
			}
			p, watched := names[x.Name]
			if watched && (environment[p] == nil || slices.Contains(environment[p], sel.Sel.Name)) {
				t.Errorf("%s uses %s.%s: take it as an argument; origin/server/system has the real one",
					fset.Position(sel.Pos()), x.Name, sel.Sel.Name)
			}
			return true
		})
	})
}

// TestCoreStartsNoGoroutine keeps core and sync to steps that a host drives: the guest has one thread.
func TestCoreStartsNoGoroutine(t *testing.T) {
	root := testkit.Root(t)
	walkGo(t, root, func(path string, file *ast.File, fset *token.FileSet) {
		if layer, _, _ := strings.Cut(filepath.ToSlash(path), "/"); layer != "core" && layer != "sync" {
			return
		}
		if strings.HasSuffix(filepath.Dir(path), "test") {
			return // a suite of tests, such as core/kv/kvtest
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", fset.Position(g.Pos()))
			}
			return true
		})
	})
}

// TestCodecsAreGenerated refuses decoders by hand: a switch over the number of a field is in generated files alone.
// core/log/field/gen holds those to the structs that they come from.
func TestCodecsAreGenerated(t *testing.T) {
	walkGo(t, testkit.Root(t), func(path string, file *ast.File, fset *token.FileSet) {
		if strings.HasSuffix(path, "_gen.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SwitchStmt)
			if !ok {
				return true
			}
			value := s.Tag
			if init, ok := s.Init.(*ast.AssignStmt); ok && len(init.Rhs) == 1 {
				value = init.Rhs[0]
			}
			if sel, ok := value.(*ast.SelectorExpr); ok && sel.Sel.Name == "Number" {
				t.Errorf("%s: a switch over the number of a field: tag a struct and generate its codec with core/log/field/gen", fset.Position(s.Pos()))
			}
			return true
		})
	})
}

// walkGo parses every Go file of the project that is not a test, path relative to root.
func walkGo(t *testing.T, root string, visit func(path string, file *ast.File, fset *token.FileSet)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "node_modules" || (strings.HasPrefix(name, ".") && path != root) || name == "asm" || name == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if match, err := build.Default.MatchFile(filepath.Dir(path), "generate.go"); d.Name() == "generate.go" && !match {
			return err // go generate runs it: the program does not contain it
		}
		file, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		visit(rel, file, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestModulesAreRecentEnough checks what can be checked without a network: modules that had
// vulnerabilities stay at or above the version that mended them, every version is exact,
// and go.sum pins it.
func TestModulesAreRecentEnough(t *testing.T) {
	minimum := map[string][3]int{
		"golang.org/x/image":            {0, 43, 0}, // TIFF and WebP panics and memory, mended up to 2026
		"github.com/valyala/fasthttp":   {1, 74, 0}, // framing mended in 2026
		"github.com/tetratelabs/wazero": {1, 12, 0},
		"google.golang.org/protobuf":    {1, 33, 0}, // endless loop on malformed JSON
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Version}} {{if .Replace}}replaced{{end}}", "all").Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	sum, err := os.ReadFile(filepath.Join(testkit.Root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue // the project itself
		}
		if len(f) > 2 {
			t.Errorf("%s is replaced: what is built must be what is pinned", f[0])
		}
		want, watched := minimum[f[0]]
		if !watched {
			continue
		}
		if got := semver(f[1]); slices.Compare(got[:], want[:]) < 0 {
			t.Errorf("%s is %s, want at least %v", f[0], f[1], want)
		}
		if !strings.Contains(string(sum), f[0]+" "+f[1]+" h1:") {
			t.Errorf("%s %s is not pinned in go.sum", f[0], f[1])
		}
	}
}

func semver(v string) (n [3]int) {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "-")
	for i, part := range strings.SplitN(v, ".", 3) {
		n[i], _ = strconv.Atoi(part)
	}
	return n
}
