//go:build !wasip1

package simd_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/wasm/simd"
)

// TestNode does what the other tests do once more in Node, whose V8 is that of browsers, and
// compares every result and all of memory.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	record = new(recorder)
	defer func() { record = nil }()
	for _, test := range []func(*testing.T){
		TestConv, TestConvRows, TestConv3x3, TestGemv, TestDepthwise, TestAddU8, TestSumRowsU8, TestProduct,
		TestTrainingSteps, TestRows, TestVectors, TestAddRows, TestAcross, TestColours, TestInverse, TestQuote, TestBase64,
	} {
		test(t)
	}
	record.end()
	b, err := json.Marshal(record.operations)
	if err != nil {
		t.Fatal(err)
	}
	replay, err := os.ReadFile("testdata/replay.mjs")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, b := range map[string][]byte{"kernels.wasm": simd.Module(), "operations.json": b, "replay.mjs": replay} {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), node, filepath.Join(folder, "replay.mjs"), folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
