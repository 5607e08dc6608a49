package main

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/image/colornames"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/models/compile"
	"github.com/sightline-dev/sightline/models/onnx"
)

const smallDim = predict.Dim

// smallNetwork returns a network with every kind of layer that the bake quantises. Its input is 224 × 224 pixels.
func smallNetwork() *onnx.Graph {
	rng := rand.New(rand.NewPCG(1, 2))
	init := map[string]*onnx.Tensor{}
	weights := func(name string, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.Float64() - 0.4)
		}
		init[name] = &onnx.Tensor{Shape: shape, Floats: v}
	}
	ints := func(v ...int64) []int64 { return v }
	weights("w1", 8, 3, 8, 8)
	weights("b1", 8)
	weights("w2", 8, 1, 3, 3)
	weights("b2", 8)
	weights("w3", 8, 8, 1, 1)
	weights("b3", 8)
	weights("we", 8, smallDim) // (in, out): transposed by the bake
	weights("be", smallDim)
	weights("wl", 5, 8)
	weights("bl", 5)
	weights("wh", smallDim, 4)
	weights("bh", 4)
	init["zero"] = &onnx.Tensor{Floats: []float32{0}}
	init["six"] = &onnx.Tensor{Floats: []float32{6}}
	one := map[string]any{"axis": int64(1)}
	return &onnx.Graph{
		Input: "image", Shape: []int{1, 3, 224, 224}, Init: init,
		Outputs: []string{"embedding", "logits", "heads"},
		Nodes: []*onnx.Node{
			{Op: "Conv", In: []string{"image", "w1", "b1"}, Out: "v1c", Attr: map[string]any{"strides": ints(16, 16)}},
			{Op: "Clip", In: []string{"v1c", "zero", "six"}, Out: "v1"},
			{Op: "Conv", In: []string{"v1", "w2", "b2"}, Out: "v2c", Attr: map[string]any{"kernel_shape": ints(3, 3), "group": int64(8), "pads": ints(1, 1, 1, 1)}},
			{Op: "Clip", In: []string{"v2c", "zero", "six"}, Out: "v2"},
			{Op: "Conv", In: []string{"v2", "w3", "b3"}, Out: "v3", Attr: map[string]any{"kernel_shape": ints(1, 1)}},
			{Op: "Add", In: []string{"v1", "v3"}, Out: "v4"},
			{Op: "GlobalAveragePool", In: []string{"v4"}, Out: "v5"},
			{Op: "Flatten", In: []string{"v5"}, Out: "v6"},
			{Op: "Gemm", In: []string{"v6", "we", "be"}, Out: "embedding"},
			{Op: "Gemm", In: []string{"v6", "wl", "bl"}, Out: "logits", Attr: map[string]any{"transB": int64(1)}},
			{Op: "LpNormalization", In: []string{"embedding"}, Out: "unit", Attr: one},
			{Op: "Gemm", In: []string{"unit", "wh", "bh"}, Out: "heads"},
		},
	}
}

// pictures writes n smooth pictures with noise and returns their paths.
func pictures(t *testing.T, n int) []string {
	t.Helper()
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		img := image.NewRGBA(image.Rect(0, 0, 240, 240))
		r, g, b := rng.IntN(200), rng.IntN(200), rng.IntN(200)
		for y := range 240 {
			for x := range 240 {
				img.Set(x, y, color.RGBA{uint8(r + x/6), uint8(g + y/6), uint8(b + rng.IntN(50)), 255})
			}
		}
		var out bytes.Buffer
		if err := jpeg.Encode(&out, img, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+i))+".jpg"), out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := folder(dir)
	if err != nil || len(paths) != n {
		t.Fatalf("%d pictures, %v", len(paths), err)
	}
	return paths
}

// TestQuantise checks that the results of a baked network differ from the float32 results by a few hundredths of their range.
func TestQuantise(t *testing.T) {
	g, paths := smallNetwork(), pictures(t, 4)
	m, err := measureRanges(g, paths, embedding, logits)
	if err != nil {
		t.Fatal(err)
	}
	if got := activations(g); !slices.Equal(got, []string{"v1", "v2", "v3", "v4"}) {
		t.Errorf("activations %v, want v1 to v4", got)
	}
	q, err := quantise(m.network, m.ranges, embedding, logits)
	if err != nil {
		t.Fatal(err)
	}
	again, err := quantise(m.network, m.ranges, embedding, logits)
	if err != nil || !bytes.Equal(q.Marshal(), again.Marshal()) {
		t.Errorf("quantising twice gives other bytes (%v)", err)
	}
	// The sum is fused into the third convolution.
	nodes := q.Nodes()
	for i, want := range []nn.Kind{nn.Conv, nn.Conv, nn.Conv, nn.Pool, nn.Flatten, nn.Gemm, nn.Gemm} {
		if len(nodes) != 7 || nodes[i].Kind != want {
			t.Fatalf("node %d of %d is %v, want %v of 7", i, len(nodes), nodes[i].Kind, want)
		}
	}
	if zero := nodes[0].To.Zero; zero != 0 {
		t.Errorf("zero point %d after a clip, want 0", zero)
	}
	if n := nodes[2]; n.With != 2 || n.Before == n.To || n.Before.Zero == 0 {
		t.Errorf("the sum adds value %d to %+v and gives %+v, want value 2", n.With, n.Before, n.To)
	}
	if sums, _ := q.Value(5); sums.Type != nn.Uint16 || sums.Scale != float32(float64(nodes[2].To.Scale)/196) {
		t.Errorf("pooled %v with scale %v, want uint16 with %v", sums.Type, sums.Scale, nodes[2].To.Scale/196)
	}
	network, err := compile.Network(g, embedding, logits)
	if err != nil {
		t.Fatal(err)
	}
	float, err := newEngine(network)
	if err != nil {
		t.Fatal(err)
	}
	baked, err := newEngine(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		want, err := float.run(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := baked.run(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{embedding, logits} {
			near(t, name, got[baked.outputs[name]], want[float.outputs[name]])
		}
	}
}

func near(t *testing.T, name string, got, want nn.Tensor) {
	t.Helper()
	if len(got.F32) != len(want.F32) {
		t.Fatalf("%s has %d elements, want %d", name, len(got.F32), len(want.F32))
	}
	top := float32(0)
	for _, x := range want.F32 {
		top = max(top, x, -x)
	}
	for i, x := range got.F32 {
		if d := math.Abs(float64(x - want.F32[i])); d > 0.03*float64(top) {
			t.Errorf("%s[%d] = %v, float32 gives %v", name, i, x, want.F32[i])
		}
	}
}

// TestHalfStep checks that a convolution of (p-128)/127.5 with the changed bias equals the convolution of p/127.5 - 1 for every byte p.
func TestHalfStep(t *testing.T) {
	bias, w := []float64{0.25, -1}, []float32{0.5, -2, 3, 4}
	addHalfStep(bias, w)
	for j, b := range []float64{0.25, -1} {
		for p := range 256 {
			x := float64(p)/127.5 - 1
			stored := float64(p-128) / 127.5
			want := b + float64(w[2*j])*x + float64(w[2*j+1])*x
			got := bias[j] + float64(w[2*j])*stored + float64(w[2*j+1])*stored
			if math.Abs(got-want) > 1e-12 {
				t.Fatalf("byte %d: %v, want %v", p, got, want)
			}
		}
	}
}

func TestQuantiseRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(g *onnx.Graph, r map[string]span)
		want   string
	}{
		{"no range", func(_ *onnx.Graph, r map[string]span) { delete(r, "v3") }, "no range"},
		{"range past the clip", func(_ *onnx.Graph, r map[string]span) { r["v1"] = span{0, 7} }, "clipped"},
		{"pool too large", func(g *onnx.Graph, _ map[string]span) { g.Nodes[0].Attr["strides"] = []int64{8, 8} }, "16 bits"},
		{"clipped product", func(g *onnx.Graph, _ map[string]span) {
			g.Nodes[9].Out = "unclipped"
			g.Nodes = append(g.Nodes, &onnx.Node{Op: "Relu", In: []string{"unclipped"}, Out: logits})
		}, "clipped products"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := smallNetwork()
			spans := map[string]span{"v1": {0, 5}, "v2": {0, 5}, "v3": {-3, 3}, "v4": {-3, 6}}
			tt.change(g, spans)
			n, err := compile.Network(g, append(activations(g), embedding, logits)...)
			if err != nil {
				t.Fatal(err)
			}
			ranges := map[int]span{}
			for _, o := range n.Outputs() {
				if r, ok := spans[o.Name]; ok {
					ranges[o.Of] = r
				}
			}
			if _, err := quantise(n, ranges, embedding, logits); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("quantise = %v, want %q", err, tt.want)
			}
		})
	}
	n, err := compile.Network(smallNetwork(), embedding)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quantise(n, nil, embedding); err == nil || !strings.Contains(err.Error(), "range") {
		t.Errorf("quantise of a network whose sums are fused = %v", err)
	}
	if _, err := quantise(n, map[int]span{2: {0, 5}, 3: {0, 5}, 4: {-3, 3}}, logits); err == nil {
		t.Error("quantise gives an output that the network lacks")
	}
}

func TestFits32(t *testing.T) {
	w := slices.Repeat([]int8{127}, 1280)
	if err := fits32(w, 1<<26, 0, 12495); err != nil {
		t.Errorf("1,280 pooled features: %v", err)
	}
	if err := fits32(w, 1<<28, 0, 12495); err == nil {
		t.Error("a bias of 2^28 on top fits")
	}
	if err := fits32(slices.Repeat([]int8{-127}, 1<<17), 0, 3, 255); err == nil {
		t.Error("2^17 products of bytes fit")
	}
}

func TestWeightScale(t *testing.T) {
	if got := weightScale([]float32{-2.54, 1}, 0, 1); math.Abs(float64(got)-0.02) > 1e-9 {
		t.Errorf("scale %v, want 0.02", got)
	}
	if got := weightScale([]float32{1e-20}, 1, 0.5); float64(got) < 1/0.5/(1<<30)*0.999 {
		t.Errorf("scale %v leaves the bias over 30 bits", got)
	}
	if got := weightScale([]float32{0}, 0, 1); got != 1 {
		t.Errorf("scale %v of nothing, want 1", got)
	}
}

func TestHeads(t *testing.T) {
	h, err := headsOf(smallNetwork())
	if err != nil {
		t.Fatal(err)
	}
	if h.count != 4 || h.dim != smallDim {
		t.Fatalf("%d heads of %d, want 4 of %d", h.count, h.dim, smallDim)
	}
	wh := smallNetwork().Init["wh"].Floats // (smallDim, 4)
	unit := make([]float64, smallDim)
	unit[3] = 1
	for j, got := range h.apply(unit) {
		if want := float64(wh[3*4+j]) + float64(h.intercepts[j]); math.Abs(got-want) > 1e-6 {
			t.Errorf("head %d gives %v, want %v", j, got, want)
		}
	}
	b := h.marshal()
	if row := b[4*smallDim:]; len(b) != 4*4*(smallDim+1) || math.Float32frombits(binary.LittleEndian.Uint32(row)) != wh[1] {
		t.Errorf("heads.f32 of %d bytes, the second row starts with %x", len(b), row[:4])
	}
	g := smallNetwork()
	g.Nodes = g.Nodes[:10]
	if _, err := headsOf(g); err == nil {
		t.Error("a graph without heads gives some")
	}
}

// TestColorTable compares the names with the standard's table: each of its colours occurs once, and grey has one spelling.
func TestColorTable(t *testing.T) {
	rows, err := table("colors.tsv", colorTable(), "concept_id", "name", "hex")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 140 {
		t.Fatalf("%d colours, want 140", len(rows))
	}
	ids, left := map[string]bool{}, map[string]bool{}
	for _, name := range colornames.Names {
		if !strings.Contains(name, "grey") {
			left[name] = true
		}
	}
	last := ""
	for _, row := range rows {
		lower := strings.ToLower(row[1])
		if !left[lower] || ids[row[0]] || lower <= last {
			t.Errorf("%v is no name of the standard, or doubled, or out of order", row)
		}
		delete(left, lower)
		ids[row[0]], last = true, lower
	}
	if len(left) != 0 {
		t.Errorf("missing: %v", left)
	}
	if at := slices.IndexFunc(rows, func(r []string) bool { return r[1] == "WhiteSmoke" }); at < 0 || rows[at][2] != "#f5f5f5" {
		t.Error("WhiteSmoke is not #f5f5f5")
	}
}

func TestAveragePrecision(t *testing.T) {
	values := []float64{0.9, 0.8, 0.7, 0.6}
	if got := averagePrecision(values, []bool{true, false, true, false}); math.Abs(got-(1+2.0/3)/2) > 1e-12 {
		t.Errorf("%v, want 0.8333", got)
	}
	if got := averagePrecision(values, []bool{false, false, false, true}); got != 0.25 {
		t.Errorf("%v, want 0.25", got)
	}
}

func TestTable(t *testing.T) {
	if _, err := table("t", []byte("a\tb\n1\n"), "a", "b"); err == nil {
		t.Error("a short row is accepted")
	}
	if _, err := table("t", []byte("a\tc\n"), "a", "b"); err == nil {
		t.Error("another header is accepted")
	}
	rows, err := table("t", []byte("a\tb\n1\t\n"), "a", "b")
	if err != nil || len(rows) != 1 || rows[0][1] != "" {
		t.Errorf("%v, %v", rows, err)
	}
}
