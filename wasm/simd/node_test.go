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

// integers are the tests of the int8 network's kernels.
var integers = []func(*testing.T){TestConv, TestConvRows, TestConv3x3, TestConv3x3Extremes, TestGemv, TestDepthwise}

// recordTests runs tests with a module, and returns their operations as JSON.
func recordTests(t *testing.T, module func() []byte, tests []func(*testing.T)) []byte {
	t.Helper()
	record, tested = new(recorder), module
	defer func() { record, tested = nil, simd.Module }()
	for _, test := range tests {
		test(t)
	}
	record.end()
	b, err := json.Marshal(record.operations)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNode repeats the operations of the other tests in Node, which has the V8 engine of browsers. It
// compares every result and the whole memory.
func TestNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node here")
	}
	b := recordTests(t, simd.Module, []func(*testing.T){
		TestConv, TestConvRows, TestConv3x3, TestGemv, TestDepthwise, TestAddU8, TestSumRowsU8, TestProduct,
		TestTrainingSteps, TestRows, TestVectors, TestAddRows, TestAcross, TestColours, TestInverse, TestQuote, TestBase64,
	})
	folder := t.TempDir()
	for name, b := range map[string][]byte{"kernels.wasm": simd.Module(), "operations.json": b} {
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "node.mjs"), folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
