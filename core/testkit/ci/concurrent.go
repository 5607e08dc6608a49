package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// goPackage is a package of the project as go list prints it.
type goPackage struct {
	Dir, ImportPath                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func printConcurrent([]string) error {
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	var packages []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		packages = append(packages, p)
	}
	found, err := concurrent(packages)
	for _, path := range found {
		fmt.Println(path)
	}
	return err
}

// concurrent returns the import paths of the packages with tests that may run several goroutines. In them, one of these starts goroutines:
// the tests, the package, or another of the packages that both import directly or through others. In other tests the race detector has
// nothing to find.
func concurrent(packages []goPackage) ([]string, error) {
	byPath := map[string]goPackage{}
	for _, p := range packages {
		byPath[p.ImportPath] = p
	}
	known := map[string]bool{} // results of starts
	var starts func(path string) (bool, error)
	starts = func(path string) (bool, error) {
		p, ok := byPath[path]
		if !ok {
			return false, nil // another module's
		}
		found, ok := known[path]
		if ok {
			return found, nil
		}
		found, err := startGoroutines(p.Dir, p.GoFiles)
		for _, imported := range p.Imports {
			if !found && err == nil {
				found, err = starts(imported)
			}
		}
		known[path] = found
		return found, err
	}
	var all []string
	for _, p := range packages {
		tests := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		if len(tests) == 0 {
			continue
		}
		found, err := startGoroutines(p.Dir, tests)
		for _, path := range slices.Concat([]string{p.ImportPath}, p.TestImports, p.XTestImports) {
			if !found && err == nil {
				found, err = starts(path)
			}
		}
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, p.ImportPath)
		}
	}
	return all, nil
}

// startGoroutines reports whether a file in a folder has a go statement, a call of Go with a function, or a call of Parallel.
func startGoroutines(dir string, files []string) (found bool, err error) {
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok {
					if len(n.Args) == 1 {
						_, function := n.Args[0].(*ast.FuncLit)
						found = found || function && method.Sel.Name == "Go"
					}
					found = found || len(n.Args) == 0 && method.Sel.Name == "Parallel"
				}
			}
			return true
		})
		if found {
			return true, nil
		}
	}
	return false, nil
}
