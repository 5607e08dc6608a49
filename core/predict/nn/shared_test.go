package nn_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
	"github.com/sightline-dev/sightline/core/proof"
)

// network reads a model of the shared reading.
func network(t testing.TB, parts ...string) *onnx.Graph {
	t.Helper()
	b, err := os.ReadFile(proof.Shared(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	g, err := onnx.Read(b, onnx.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// floatsFile reads raw little-endian float32.
func floatsFile(t testing.TB, parts ...string) []float32 {
	t.Helper()
	b, err := os.ReadFile(proof.Shared(t, parts...))
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, len(b)/4)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(b)), b)
	return v
}

type expectedCase struct {
	Model   string
	Input   string
	Shape   []int
	Outputs map[string]struct {
		Dims   []int
		First8 []float64
		Sum    float64
		SumAbs float64 `json:"sum_abs"`
	}
	Top5 [][]any
}

func near(got, want, scale float64) bool {
	return math.Abs(got-want) <= 1e-3*max(math.Abs(want), scale)
}

// TestSharedNetworks holds the four shared networks to ONNX Runtime's outputs.
func TestSharedNetworks(t *testing.T) {
	b, err := os.ReadFile(proof.Shared(t, "onnx", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []expectedCase }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, tt := range file.Cases {
		t.Run(tt.Model+"/"+tt.Input, func(t *testing.T) {
			p, err := nn.Compile(network(t, "onnx", tt.Model), nn.Options{})
			if err != nil {
				t.Fatal(err)
			}
			in := nn.Tensor{Type: onnx.Float32, Shape: tt.Shape, F32: floatsFile(t, "onnx", tt.Input)}
			out, err := p.NewSession().Run([]nn.Tensor{in})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range p.Outputs() {
				want, ok := tt.Outputs[v.Name]
				if !ok {
					t.Errorf("output %q is not expected", v.Name)
					continue
				}
				compareOutput(t, v.Name, out[i], want.Dims, want.First8, want.Sum, want.SumAbs)
				if v.Name == "logits" {
					compareTop5(t, out[i].F32, tt.Top5)
				}
			}
		})
	}
}

func compareOutput(t *testing.T, name string, got nn.Tensor, dims []int, first8 []float64, sum, sumAbs float64) {
	t.Helper()
	if !slices.Equal(got.Shape, dims) {
		t.Fatalf("%s: shape %v, want %v", name, got.Shape, dims)
	}
	var s, a float64
	for _, x := range got.F32 {
		s += float64(x)
		a += math.Abs(float64(x))
	}
	mean := sumAbs / float64(len(got.F32))
	for i, want := range first8 {
		if !near(float64(got.F32[i]), want, mean) {
			t.Errorf("%s[%d] = %v, want %v", name, i, got.F32[i], want)
		}
	}
	if !near(s, sum, sumAbs) || !near(a, sumAbs, 0) {
		t.Errorf("%s: sum %v, of absolute values %v, want %v, %v", name, s, a, sum, sumAbs)
	}
}

func compareTop5(t *testing.T, logits []float32, want [][]any) {
	t.Helper()
	var total float64
	order := make([]int, len(logits))
	for i, x := range logits {
		order[i] = i
		total += math.Exp(float64(x))
	}
	slices.SortFunc(order, func(a, b int) int {
		if logits[a] > logits[b] {
			return -1
		}
		return 1
	})
	for i, w := range want {
		p := math.Exp(float64(logits[order[i]])) / total
		if order[i] != int(w[0].(float64)) || math.Abs(p-w[1].(float64)) > 1e-3 {
			t.Errorf("class %d of the first five is %d (%.5f), want %v (%v)", i, order[i], p, w[0], w[1])
		}
	}
}
