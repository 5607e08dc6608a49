//go:build !wasip1

package journeys

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// proven is a promise and the tests that check it. A test is a folder and a Go function, or a script and one of its steps.
type proven struct {
	promise string
	by      []string
}

// steps are the steps of a newcomer's first minutes, numbered from 0.
var steps = []proven{
	{"it is ready in five seconds, with pictures and a key, and downloads nothing", []string{
		"web/journeys/studio.js: it is there at once, and reaches nobody", "origin/program TestSamples", "core TestWorldIsLent",
	}},
	{"forty pictures with three words each, in one's own language, on a map, for everybody", []string{
		"web/journeys/studio.js: there are pictures, with what is in them and where they were",
		"web/journeys/studio.js: who reads Arabic is spoken to in it",
	}},
	{"another language at once, the same concepts, mirrored", []string{"web/journeys/studio.js: everything is in Arabic and Japanese at once"}},
	{"it starts again without a network", []string{
		"web/journeys/studio.js: without a network it starts, and takes a picture",
		"web/journeys/look.js: it starts without a network, with everything there",
	}},
	{"a picture is read in a second, on the device, with where things are seen", []string{
		"web/journeys/look.js: a dropped picture is read on the device", "web/journeys/look.js: it starts without a network, with everything there",
	}},
	{"three equal hashes", []string{"web/journeys/look.js: browser, origin and edge give the same hashes"}},
	{"five pictures of two concepts are a model in two seconds, judged", []string{
		"web/journeys/studio.js: a model is taught, trained, judged and tried", "web/journeys/look.js: two concepts are taught, trained and seen",
	}},
	{"it is right about a new picture, and reads the camera five times a second", []string{
		"web/journeys/studio.js: a model is taught, trained, judged and tried", "web/journeys/studio.js: the camera is read as it runs",
		"web/journeys/look.js: the camera is read as it runs",
	}},
	{"one key corrects it, and the version before stays", []string{"web/journeys/studio.js: what was wrong is corrected, and it is trained again"}},
	{"similar pictures as a scan finds them, a cut-off, the same file", []string{
		"web/journeys/studio.js: a picture finds its like, and its copy", "core/index TestNearestRecall",
	}},
	{"place, concept and likeness are one request of the interface, as a program", []string{
		"web/journeys/studio.js: place, concept and likeness are one request, in three programs", "web/openapi TestGeneratedRequests",
	}},
	{"what is changed without a network waits, is counted, and outlasts the tab", []string{
		"web/journeys/studio.js: labels and a deletion wait, and outlast the tab", "web/journeys/copies.js: it is there after a start without a network",
	}},
	{"with a network it is sent and seen to be; conflicts are shown; all places are equal", []string{
		"web/journeys/studio.js: with a network everything is sent, and confirmed when it is",
		"web/journeys/copies.js: what the log decides otherwise is listed, and agreed to",
		"web/journeys/second.js: with it the label comes to the other edge and to the page",
	}},
	{"a pasted command is answered alike at origin and edge", []string{"web/journeys/studio.js: a pasted command is answered alike at the edge"}},
	{"the vendor's last client works", []string{
		"origin/conformance TestOfficialJavaScriptClient", "origin/conformance TestOfficialJavaScriptClientAtAnEdge",
		"origin/conformance TestOfficialJavaScriptClientInAPage",
	}},
}

// complaints are common complaints about similar products, numbered from 1. Each is written as the promise of this project instead.
var complaints = []proven{
	{"offline means that nobody is called", []string{
		"web/journeys/demo.js: what must not happen would be told", "web/journeys/studio.js: it is there at once, and reaches nobody",
		"origin/conformance TestOnlyLoopback", "core TestWorldIsLent",
	}},
	{"a search tells scores, learns where to cut, and pages as a sorted list would", []string{
		"core/search TestCutOffs", "core/search TestEvaluatedCutOffs", "core/search TestPageAgreesWithSort", "core/search TestRunAgreesWithScan",
		"web/journeys/studio.js: a picture finds its like, and its copy",
	}},
	{"what is wrong is corrected and learned in seconds, everywhere", []string{
		"web/journeys/studio.js: what was wrong is corrected, and it is trained again", "models TestTenPhotosSuffice", "models TestNextTeaches",
		"core/train TestWrongLabelIsTheWeakest",
	}},
	{"browser, edge and server give the same bits", []string{
		"core/predict/elementary TestBitsAreTheSameEverywhere", "core/train TestBitsAreTheSameEverywhere", "wasm/host TestTranscripts",
		"wasm/host TestTranscriptsInPage", "web/runtime/test TestSame", "web/journeys/look.js: browser, origin and edge give the same hashes",
	}},
	{"one static program for any amd64 or arm64, without containers", []string{"web/journeys TestJourneys", "core/predict TestShippedModels"}},
	{"ten thousand pictures to learn from fit in a page, and each label is stored before it is shown", []string{
		"web/runtime/test/pages/many.js: memory", "web/runtime/test TestPages", "wasm/guest/instance TestKilledTab",
		"web/src/views/next/queue.test.ts: 200 pictures by 200 keys: each is stored before the next is shown",
	}},
	{"660 concepts in 23 languages, offline", []string{
		"core/lang TestRealNames", "models TestBundlesLoad",
		"web/src/messages.test.ts: every language has a file in every folder, no file is of another, and no message is in two",
		"web/journeys/look.js: names are in any language at once",
	}},
	{"nothing is said to be sent before it is; what is deleted stays so", []string{
		"web/src/syncMarks.test.ts: no tick before the log has said so", "core/fold TestAgainstOracle", "core/partition TestCopies", "sync/sim TestConverge",
		"web/journeys/studio.js: with a network everything is sent, and confirmed when it is",
	}},
	{"the contract goes on without its vendor, and everything can be taken along", []string{
		"origin/conformance TestOfficialJavaScriptClient", "origin/program TestExportImportedElsewhereIsEqual", "origin/server/collection TestExportIsReadBack",
	}},
	{"long work tells how far it is, how long it takes and what failed", []string{
		"origin/server/cli TestProgress", "origin/program TestInterruptedImportGoesOn", "web/src/views/look/look.test.ts: time that is left, from how it went",
		"web/journeys/studio.js: a model is taught, trained, judged and tried", "web/journeys/look.js: the recogniser comes, and says how far it is",
	}},
	{"nobody calls without a key, and all scopes that lack are named at once", []string{
		"origin/program TestFirstStartTellsItsKeyOnce", "core TestKeys", "core/auth ExampleNeed_Check", "core/auth TestNeeds",
		"core/api TestTenantsDoNotInterfere",
	}},
	{"addresses of pictures reach no private network, whatever a name resolves to later", []string{
		"origin/server/fetch TestSSRF", "origin/server/fetch TestFetchConnectsToTheCheckedAddress", "origin/server/fetch TestControlLooksAgain",
		"origin/program TestGuardIsOnByDefault",
	}},
	{"the same file, the same picture and a similar one are three things", []string{
		"core/search TestDuplicatesAgreeWithScan", "core/search TestPrintsOfPhotos", "core/catalog TestSamePictures",
		"web/journeys/studio.js: a picture finds its like, and its copy",
	}},
}

// TestPromises checks that every step and every complaint names its tests, and that each of these tests exists and runs.
func TestPromises(t *testing.T) {
	if len(steps) != 15 || len(complaints) != 13 {
		t.Fatalf("%d steps and %d complaints, want 15 and 13", len(steps), len(complaints))
	}
	root := testkit.Root(t)
	for _, p := range slices.Concat(steps, complaints) {
		if len(p.by) == 0 {
			t.Errorf("%s: nothing holds us to it", p.promise)
		}
		for _, name := range p.by {
			if err := there(root, name); err != nil {
				t.Errorf("%s: %v", p.promise, err)
			}
		}
	}
	if err := there(root, "web/journeys TestNothing"); err == nil {
		t.Error("a test that is not there is found")
	}
	if err := there(root, "web/journeys/look.js: it flies"); err == nil {
		t.Error("a step that is not there is found")
	}
}

// there returns an error if no test with this name exists.
func there(root, name string) error {
	if script, step, ok := strings.Cut(name, ": "); ok {
		return steppedIn(root, script, step)
	}
	folder, function, _ := strings.Cut(name, " ")
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		return err
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == function {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has no %s", folder, function)
}

var imported = regexp.MustCompile(`from '\./(\w+\.js)'`)

// steppedIn returns an error if a script does not have this step or test, or if no journey runs the script. [TestJourneys] runs a script
// of this folder directly, or through a script that imports it.
func steppedIn(root, script, step string) error {
	text, err := os.ReadFile(filepath.Join(root, script))
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "step('"+step+"'") && !strings.Contains(string(text), "test('"+step+"'") {
		return fmt.Errorf("%s has no %q", script, step)
	}
	folder, name := filepath.Split(script)
	if folder != "web/journeys/" || slices.ContainsFunc(journeys, func(j journey) bool { return j.script == name }) {
		return nil
	}
	for _, j := range journeys {
		text, err := os.ReadFile(filepath.Join(root, folder, j.script))
		if err != nil {
			return err
		}
		for _, m := range imported.FindAllStringSubmatch(string(text), -1) {
			if m[1] == name {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not run", script)
}
