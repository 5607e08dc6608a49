package call

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// internal has the errors that callers see as an internal error. They concern the start of the program or are bugs. The cause of a failed
// training is in the model version, as one of package training's codes.
var internal = []string{
	"call.ErrOptions", "call.ErrNoResult", "auth.ErrScope", "blob.ErrNotFound", "blob.ErrHash", "blob.ErrCorrupt",
	"blob.ErrContentType", "blob.ErrRandom", "kv.ErrNotFound", "kv.ErrClosed", "kv.ErrCorrupt", "kv.ErrFailed", "kv.ErrForeign",
	"kv.ErrNewer", "fold.ErrNewer", "kv.ErrInUse", "kv.ErrBatch", "index.ErrCorrupt", "index.ErrPattern", "index.ErrSpace",
	"field.ErrFormat", "log.ErrTrimmed", "partition.ErrSequence", "partition.ErrForged", "partition.ErrName", "partition.ErrGaps",
	"partition.ErrChunk", "catalog.ErrOrder", "partition.ErrKind", "partition.ErrOpening", "partition.ErrSeal",
	"partition.ErrCursor", "partition.ErrChain", "lang.ErrFormat", "predict.ErrBundle",
	"predict.ErrEngine", "predict.ErrEmbedding", "predict.ErrNetwork", "nn.ErrUnsupported", "nn.ErrMemory", "nn.ErrInput",
	"nn.ErrWork", "nn.ErrFormat", "training.ErrNotAnalysed", "train.ErrNoExamples", "train.ErrNoPositives", "train.ErrSingleClass",
	"train.ErrHead", "train.ErrProblem", "hnsw.ErrCorrupt", "jsonio.ErrUnknown", "heif.ErrCorrupt", "heif.ErrUnsupported", "jxl.ErrCorrupt",
	"jxl.ErrUnsupported",
}

// TestEveryErrorHasAStatus checks that every exported Err variable of core is in the table or among the internal errors.
func TestEveryErrorHasAStatus(t *testing.T) {
	root := filepath.Join(testkit.Root(t), "core")
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
		// Errors of core and register reach requests only as errors of other packages. Package api only repeats errors of package call.
		if name := file.Name.Name; slices.Contains([]string{"main", "core", "register", "api"}, name) || strings.HasSuffix(name, "test") {
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
		if rows[name] == slices.Contains(internal, name) {
			t.Errorf("%s, of %s, has a row in statuses: %v; it must have one or be internal", name, path, rows[name])
		}
	}
	for _, name := range internal {
		if declared[name] == "" {
			t.Errorf("%s is internal and does not exist", name)
		}
	}
	if len(declared) < 30 {
		t.Errorf("only %d errors found: the walk is broken", len(declared))
	}
}

// tableRows returns the names of the errors in the source of the table.
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
					rows["call."+n.Name] = true
				}
				return true
			})
		}
	}
	return rows
}

// TestStatusesAgree checks that each code has one description, and that clients can rely on two of the descriptions.
func TestStatusesAgree(t *testing.T) {
	byCode := map[int]Status{}
	for _, s := range append([]Status{StatusOk, StatusMixed, StatusFailure, StatusTrained}, statuses...) {
		const header = 11102 // also the code of a request without credentials, whose HTTP status is 401
		if before, ok := byCode[s.Code]; ok && (before.Description != s.Description || before.HTTP != s.HTTP && s.Code != header) {
			t.Errorf("%d is both %d %q and %d %q", s.Code, before.HTTP, before.Description, s.HTTP, s.Description)
		}
		byCode[s.Code] = s
	}
	if StatusOk.Description != "Ok" || StatusMixed.Description != "Mixed Success" {
		t.Errorf("%q and %q: clients compare the text", StatusOk.Description, StatusMixed.Description)
	}
}

// TestEachTextHasOneCause checks that no two errors of the table give callers the same text. All causes of ErrFetch concern
// addresses, and those of timeouts are one cause: the host gave up.
func TestEachTextHasOneCause(t *testing.T) {
	causes := map[string]error{}
	for _, s := range statuses {
		text := DetailsOf(s.err, s)
		if s.err == context.DeadlineExceeded || s.err == context.Canceled {
			if text != ErrTimeout.Error() {
				t.Errorf("%v gives %q, want the text of ErrTimeout", s.err, text)
			}
			continue
		}
		if before, ok := causes[text]; ok && text != "" {
			t.Errorf("%v and %v give the same text", before, s.err)
		}
		causes[text] = s.err
	}
	for _, reason := range []string{"its server answered with HTTP status 404", "it is empty"} {
		err := DownloadError(reason)
		if details := DetailsOf(err, StatusOf(err)); !errors.Is(err, ErrFetch) || !strings.HasSuffix(details, reason) {
			t.Errorf("the details of a download that failed because %s are %q", reason, details)
		}
	}
	err := fmt.Errorf("%w: dial 10.0.0.1", ErrFetch)
	if details := DetailsOf(err, StatusOf(err)); details != ErrFetch.Error() {
		t.Errorf("the details of a failed connection are %q, want those of ErrFetch", details)
	}
}
