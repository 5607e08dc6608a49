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

// promise is a sentence about the product and the tests that check it. A test is a folder and a Go function, or a script and one of its
// steps.
type promise struct {
	text  string
	tests []string
}

// steps are the steps of a newcomer's first minutes, numbered from 0.
var steps = []promise{
	{"The demonstration is ready in five seconds with pictures and a key, and downloads nothing.", []string{
		"web/journeys/studio.js: The demonstration starts within its time and connects to no other host",
		"origin/program TestSamples",
		"core TestOnlySystemUsesTheOS",
	}},
	{"Forty pictures are shown on a map, with three concepts each in the language of the browser.", []string{
		"web/journeys/studio.js: The pages show the pictures with their concepts and, on a map, their locations",
		"web/journeys/studio.js: A browser that asks for Arabic gets the pages in Arabic",
	}},
	{"The page changes its language at once, shows the same concepts, and is mirrored for Arabic.", []string{
		"web/journeys/studio.js: The page changes to Arabic and to Japanese without loading again",
	}},
	{"The page starts again without a network.", []string{
		"web/journeys/studio.js: Without a network, the page starts and accepts a picture",
		"web/journeys/look.js: Without a network, the page starts with all its pictures and concepts",
	}},
	{"The browser analyses a picture in a second and shows where it sees a concept.", []string{
		"web/journeys/look.js: The browser analyses a dropped picture itself",
		"web/journeys/look.js: Without a network, the page starts with all its pictures and concepts",
	}},
	{"Browser, origin and edge compute equal hashes.", []string{
		"web/journeys/look.js: Browser, origin and edge compute the same hashes",
	}},
	{"Five pictures of each of two concepts train a model in two seconds, which is then evaluated.", []string{
		"web/journeys/studio.js: The page trains a model, shows its evaluation and predicts with it",
		"web/journeys/look.js: The browser trains two concepts and recognises them",
	}},
	{"The model recognises a new picture, and analyses the camera five times a second.", []string{
		"web/journeys/studio.js: The page trains a model, shows its evaluation and predicts with it",
		"web/journeys/studio.js: The trained model predicts for the pictures of the running camera",
		"web/journeys/look.js: The browser analyses the pictures of the running camera",
	}},
	{"One key press corrects a label, and the previous version stays.", []string{
		"web/journeys/studio.js: A person corrects a wrong label, and the page trains a second version",
	}},
	{"A search finds similar pictures in the order of a scan, with a cut-off, and marks the same file.", []string{
		"web/journeys/studio.js: A search by a picture finds its copy, and similar pictures in the order of a scan",
		"core/index TestNearestRecall",
	}},
	{"A search by concept, location and similarity is one request of the API, shown as a program.", []string{
		"web/journeys/studio.js: A search by concept, location and similarity is one request, shown as three programs",
		"web/openapi TestGeneratedRequests",
	}},
	{"Changes without a network wait, are counted, and are stored after the tab was closed.", []string{
		"web/journeys/studio.js: Labels and a deletion wait in the replica, also after the tab was closed",
		"web/journeys/copies.js: After a start without a network, the page shows the changes that wait",
	}},
	{"With a network, the changes are sent and shown as sent, conflicts are shown, and all replicas are equal.", []string{
		"web/journeys/studio.js: With a network again, the page sends all changes and then shows them as confirmed",
		"web/journeys/copies.js: The page lists a change that lost to a deletion, until the person accepts that",
		"web/journeys/second.js: The restarted origin sends the label to the other edge and to the page",
	}},
	{"Origin and edge give the same answer to a pasted command.", []string{
		"web/journeys/studio.js: Origin and edge give the same answer to a copied command",
	}},
	{"The vendor's last client works.", []string{
		"origin/conformance TestOfficialJavaScriptClient",
		"origin/conformance TestOfficialJavaScriptClientAtAnEdge",
		"origin/conformance TestOfficialJavaScriptClientInAPage",
	}},
}

// complaints are common complaints about similar products, numbered from 1. Each is written as the promise of this project instead.
var complaints = []promise{
	{"The programs connect to no other host.", []string{
		"web/journeys/demo.js: The journey reports a request to another host, a script and a picture without a description",
		"web/journeys/studio.js: The demonstration starts within its time and connects to no other host",
		"origin/conformance TestOnlyLoopback",
		"core TestOnlySystemUsesTheOS",
	}},
	{"A search shows scores, learns its cut-off, and has the pages of a sorted list.", []string{
		"core/search TestCutOffs",
		"core/search TestEvaluatedCutOffs",
		"core/search TestPageAgreesWithSort",
		"core/search TestRunAgreesWithScan",
		"web/journeys/studio.js: A search by a picture finds its copy, and similar pictures in the order of a scan",
	}},
	{"A wrong label is corrected and learned in seconds, on every host.", []string{
		"web/journeys/studio.js: A person corrects a wrong label, and the page trains a second version",
		"models TestTenPhotosSuffice",
		"models TestLabelNextTrainsBetter",
		"core/train TestWrongLabelIsTheWeakest",
	}},
	{"Browser, edge and server compute the same bits.", []string{
		"core/predict/elementary TestBitsAreTheSameEverywhere",
		"core/train TestBitsAreTheSameEverywhere",
		"wasm/host TestTranscripts",
		"wasm/host TestTranscriptsInPage",
		"web/runtime/test TestSame",
		"web/journeys/look.js: Browser, origin and edge compute the same hashes",
	}},
	{"One static program runs on any amd64 or arm64 machine, without containers.", []string{
		"web/journeys TestJourneys",
		"core/predict TestShippedModels",
	}},
	{"A page holds ten thousand pictures for training, and stores each label before it shows it.", []string{
		"web/runtime/test/pages/many.js: The page needs at most 500 MB of memory",
		"web/runtime/test TestPages",
		"wasm/guest/instance TestKilledTab",
		"web/src/views/next/queue.test.ts: 200 keys label 200 pictures, and each label is stored before the next picture is shown",
	}},
	{"660 concepts have names in 23 languages, also offline.", []string{
		"core/lang TestRealNames",
		"models TestBundlesLoad",
		"web/src/i18n/messages.test.ts: every language has a file in every folder, and no message is in two files",
		"web/journeys/look.js: The page shows the names of concepts in another language at once",
	}},
	{"The page shows a change as sent only after it was sent, and deleted things stay deleted.", []string{
		"web/src/host/syncMarks.test.ts: a change has no tick before the log confirms it",
		"core/fold TestAgainstOracle",
		"core/partition TestReplicaEqualsFold",
		"sync/sim TestConverge",
		"web/journeys/studio.js: With a network again, the page sends all changes and then shows them as confirmed",
	}},
	{"The API works without its vendor, and all data can be exported.", []string{
		"origin/conformance TestOfficialJavaScriptClient",
		"origin/program TestImportedExportIsEqual",
		"origin/server/collection TestExportIsReadBack",
	}},
	{"Long work reports its progress, its remaining time and its failures.", []string{
		"origin/server/cli TestProgress",
		"origin/program TestInterruptedImportContinues",
		"web/src/views/look/look.test.ts: the remaining time follows from the progress",
		"web/journeys/studio.js: The page trains a model, shows its evaluation and predicts with it",
		"web/journeys/look.js: The page shows the progress of loading the recogniser",
	}},
	{"Every call needs a key, and a refusal names all missing scopes at once.", []string{
		"origin/program TestFirstStartPrintsKeyOnce",
		"core TestKeys",
		"core/auth ExampleNeed_Check",
		"core/auth TestNeeds",
		"core/api TestTenantsDoNotInterfere",
	}},
	{"URLs of pictures reach no private network, even if a name resolves to another address later.", []string{
		"origin/server/fetch TestSSRF",
		"origin/server/fetch TestFetchConnectsToTheCheckedAddress",
		"origin/server/fetch TestControlChecksDialledAddress",
		"origin/program TestPrivateAddressIsRefusedByDefault",
	}},
	{"The same file, the same picture and a similar picture are told apart.", []string{
		"core/search TestDuplicatesAgreeWithScan",
		"core/search TestFingerprintsOfPhotos",
		"core/catalog TestSamePictures",
		"web/journeys/studio.js: A search by a picture finds its copy, and similar pictures in the order of a scan",
	}},
}

// TestPromises checks that every step and every complaint names its tests, and that each of these tests exists and runs.
func TestPromises(t *testing.T) {
	if len(steps) != 15 || len(complaints) != 13 {
		t.Fatalf("%d steps and %d complaints, want 15 and 13", len(steps), len(complaints))
	}
	root := testkit.Root(t)
	for _, p := range slices.Concat(steps, complaints) {
		if len(p.tests) == 0 {
			t.Errorf("%s: no test checks it", p.text)
		}
		for _, name := range p.tests {
			if err := findTest(root, name); err != nil {
				t.Errorf("%s: %v", p.text, err)
			}
		}
	}
	if err := findTest(root, "web/journeys TestNothing"); err == nil {
		t.Error("found a test that does not exist")
	}
	if err := findTest(root, "web/journeys/look.js: The page flies"); err == nil {
		t.Error("found a step that does not exist")
	}
}

// findTest returns an error if no test with this name exists.
func findTest(root, name string) error {
	if script, step, ok := strings.Cut(name, ": "); ok {
		return findStep(root, script, step)
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

// findStep returns an error if a script does not have this step or test, or if no journey runs the script. [TestJourneys] runs a script
// of this folder directly, or through a script that imports it.
func findStep(root, script, step string) error {
	text, err := os.ReadFile(filepath.Join(root, script))
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?:step|test)\(\s*'` + regexp.QuoteMeta(step) + `'`).Match(text) {
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
	return fmt.Errorf("no journey runs %s", script)
}
