package openapi_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/testkit"
)

// TestProtocol compares the document's operations of the sync protocol with the routes of package sync/feed, and whether they need the header
// with the version. It reads the routes from the source, because this package is below sync/feed and cannot import it.
func TestProtocol(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(testkit.Root(t), "sync", "feed", "feed.go"))
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`\{"([A-Z]+)", "(/[^"]*)", \(\*call\)\.\w+, \w+, (\w+)\}`)
	var want []string
	for _, m := range route.FindAllStringSubmatch(string(source), -1) {
		path := m[2]
		switch {
		case strings.HasSuffix(path, "/*"):
			path = strings.TrimSuffix(path, "*") + "{channel}"
		case strings.HasSuffix(path, "/"):
			path += "{hash}"
		}
		want = append(want, m[1]+" /sync"+path+" "+m[3])
	}
	if len(want) < 10 {
		t.Fatalf("only %d routes found in sync/feed", len(want))
	}
	got := map[string]bool{}
	for path, item := range load(t).Paths.Map() {
		for method, op := range item.Operations() {
			if !protocol(op) {
				continue
			}
			version := "anyVersion"
			if p := op.Parameters.GetByInAndName("header", "Sync-Protocol"); p != nil && p.Required {
				version = "thisVersion"
			}
			got[method+" "+path+" "+version] = true
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("calls of sync/feed -, of the document +:\n%s", diff)
	}
}
