package nn_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"pgregory.net/rapid"
)

var unit = nn.Quantisation{Scale: 1}

// TestAppendRefuses makes one field of a node invalid at a time.
func TestAppendRefuses(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	floats := slide{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}.conv(1, 2, 2)
	floats.Weights, floats.Bias, floats.Hi = make([]float32, 4), make([]float32, 2), inf
	integers := floats
	integers.Weights, integers.Bias = nil, nil
	integers.Bytes, integers.Scales, integers.Offsets, integers.To = make([]int8, 4), []float32{1, 1}, make([]int32, 2), unit
	sum := nn.Node{Kind: nn.Add, Of: 1, With: 1}
	for _, tt := range []struct {
		name   string
		node   nn.Node
		levels nn.Quantisation // levels of the input; zero if it has floats
		change func(n *nn.Node)
		want   string // "": the node fits
	}{
		{"convolution", floats, nn.Quantisation{}, func(*nn.Node) {}, ""},
		{"convolution of bytes", integers, unit, func(*nn.Node) {}, ""},
		{"sum", sum, nn.Quantisation{}, func(*nn.Node) {}, ""},
		{"no operand", floats, nn.Quantisation{}, func(n *nn.Node) { n.Of = 0 }, "operand 0"},
		{"own result", floats, nn.Quantisation{}, func(n *nn.Node) { n.Of = 2 }, "operand 2"},
		{"residual to come", floats, nn.Quantisation{}, func(n *nn.Node) { n.With = 3 }, "second operand"},
		{"residual of another shape", floats, nn.Quantisation{}, func(n *nn.Node) {
			n.With, n.Shape[0], n.Weights, n.Bias = 1, 1, make([]float32, 2), make([]float32, 1)
		}, "residual"},
		{"a second operand of a mean", sum, nn.Quantisation{}, func(n *nn.Node) { n.Kind = nn.Pool }, "second operand"},
		{"unknown kind", floats, nn.Quantisation{}, func(n *nn.Node) { n.Kind = 77 }, "kind 77"},
		{"a kind that is only compiled", floats, nn.Quantisation{}, func(n *nn.Node) { n.Kind = 6 }, "kind 6"},
		{"no groups", floats, nn.Quantisation{}, func(n *nn.Node) { n.Group = 0 }, "groups"},
		{"groups of other channels", floats, nn.Quantisation{}, func(n *nn.Node) { n.Group = 2 }, "groups"},
		{"no stride", floats, nn.Quantisation{}, func(n *nn.Node) { n.Stride[0] = 0 }, "stride"},
		{"no dilation", floats, nn.Quantisation{}, func(n *nn.Node) { n.Dilation[1] = 0 }, "dilation"},
		{"negative padding", floats, nn.Quantisation{}, func(n *nn.Node) { n.Pad[3] = -1 }, "padding"},
		{"wide padding", floats, nn.Quantisation{}, func(n *nn.Node) { n.Pad[0] = 1 << 20 }, "padding"},
		{"window over the edge", floats, nn.Quantisation{}, func(n *nn.Node) { n.Shape[2], n.Weights = 4, make([]float32, 16) }, "window"},
		{"a weight less", floats, nn.Quantisation{}, func(n *nn.Node) { n.Weights = n.Weights[1:] }, "weights"},
		{"a bias less", floats, nn.Quantisation{}, func(n *nn.Node) { n.Bias = n.Bias[1:] }, "biases"},
		{"bounds turned", floats, nn.Quantisation{}, func(n *nn.Node) { n.Lo, n.Hi = 1, 0 }, "bounds"},
		{"a bound that is not a number", floats, nn.Quantisation{}, func(n *nn.Node) { n.Lo = nan }, "bounds"},
		{"no outputs", floats, nn.Quantisation{}, func(n *nn.Node) { n.Shape[0], n.Weights, n.Bias = 0, nil, nil }, "shape"},
		{"floats of bytes", floats, unit, func(*nn.Node) {}, "weights"},
		{"a scale less", integers, unit, func(n *nn.Node) { n.Scales = n.Scales[1:] }, "scales"},
		{"an offset less", integers, unit, func(n *nn.Node) { n.Offsets = n.Offsets[1:] }, "offsets"},
		{"a scale of 0", integers, unit, func(n *nn.Node) { n.Scales = []float32{1, 0} }, "scale 0 of output 1"},
		{"an infinite scale", integers, unit, func(n *nn.Node) { n.Scales = []float32{inf, 1} }, "scale"},
		{"no levels", integers, unit, func(n *nn.Node) { n.To = nn.Quantisation{} }, "levels"},
		{"a zero point over a byte", integers, unit, func(n *nn.Node) { n.To.Zero = 256 }, "levels"},
		{"scales that overflow", integers, unit, func(n *nn.Node) { n.Scales, n.To.Scale = []float32{1, 3e38}, 1e-30 }, "scales"},
		{"a residual without levels before", integers, unit, func(n *nn.Node) { n.With = 1 }, "levels"},
		{"a residual that overflows", integers, unit, func(n *nn.Node) { n.With, n.Before, n.To.Scale = 1, nn.Quantisation{Scale: 3e38}, 1e-30 }, "scales"},
		{"a sum of infinities", sum, nn.Quantisation{Scale: 2e36}, func(n *nn.Node) { n.To = unit }, "scales"},
		{"a large sum", sum, nn.Quantisation{Scale: 1e36}, func(n *nn.Node) { n.To = unit }, ""},
		{"one operand", sum, nn.Quantisation{}, func(n *nn.Node) { n.With = 0 }, "operands"},
		{"levels of floats", sum, nn.Quantisation{}, func(n *nn.Node) { n.To = unit }, "levels"},
		{"a sum of bytes without levels", sum, unit, func(*nn.Node) {}, "levels"},
		{"a product of pixels", nn.Node{Kind: nn.Gemm, Of: 1, Shape: [4]int{1, 2, 1, 1}}, nn.Quantisation{}, func(*nn.Node) {}, "operand"},
	} {
		node, typ := tt.node, nn.Float32
		if tt.levels != (nn.Quantisation{}) {
			typ = nn.Uint8
		}
		tt.change(&node)
		_, err := network(t, typ, tt.levels, 1, 2, 3, 3).Append(node)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: Append = %v", tt.name, err)
		case tt.want != "" && (!errors.Is(err, nn.ErrFormat) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: Append = %v, want ErrFormat with %q", tt.name, err, tt.want)
		}
	}
}

// TestNetworkLimits checks the limits of the counts, and shapes whose products overflow.
func TestNetworkLimits(t *testing.T) {
	for _, in := range []nn.Value{
		{Type: nn.Uint16, Shape: []int{1, 1, 1, 1}},
		{Type: nn.Float32, Shape: []int{1, 1, 1}},
		{Type: nn.Float32, Shape: []int{1, 1, 1, 0}},
		{Type: nn.Float32, Shape: []int{1 << 30, 1 << 30, 1 << 30, 1 << 30}},
		{Type: nn.Float32, Shape: []int{1, 1, 1, 1}, Quantisation: unit},
		{Type: nn.Uint8, Shape: []int{1, 1, 1, 1}},
		{Type: nn.Float32, Shape: []int{1, 1, 1, 1}, Name: strings.Repeat("x", 1000)},
	} {
		if _, err := nn.NewNetwork(in); !errors.Is(err, nn.ErrFormat) {
			t.Errorf("NewNetwork(%v %v) = %v, want ErrFormat", in.Type, in.Shape, err)
		}
	}
	n := network(t, nn.Float32, nn.Quantisation{}, 1, 1, 1, 1)
	var err error
	for range 1 << 13 {
		if _, err = n.Append(nn.Node{Kind: nn.Add, Of: 1, With: 1}); err != nil {
			break
		}
	}
	if !errors.Is(err, nn.ErrFormat) {
		t.Errorf("Append without end = %v, want ErrFormat", err)
	}
	for _, err := range []error{n.AddOutput(strings.Repeat("x", 1000), 1), n.AddOutput("none", 0), n.AddOutput("none", 1<<20)} {
		if !errors.Is(err, nn.ErrFormat) {
			t.Errorf("Give = %v, want ErrFormat", err)
		}
	}
	for err = nil; err == nil; {
		err = n.AddOutput("again", 1)
	}
	if !errors.Is(err, nn.ErrFormat) || len(n.Outputs()) > 1000 {
		t.Errorf("Give without end = %v after %d outputs, want ErrFormat", err, len(n.Outputs()))
	}
	rows := network(t, nn.Float32, nn.Quantisation{}, 1, 2, 1, 1)
	row := add(t, rows, nn.Node{Kind: nn.Flatten, Of: 1})
	for _, shape := range [][4]int{{1, 3, 1, 1}, {1, 2, 2, 1}, {1, 2, 1, 2}} {
		product := nn.Node{Kind: nn.Gemm, Of: row, Shape: shape, Weights: make([]float32, size(shape[:])), Bias: make([]float32, 1)}
		if _, err := rows.Append(product); !errors.Is(err, nn.ErrFormat) {
			t.Errorf("Append of a product %v of rows of 2 = %v, want ErrFormat", shape, err)
		}
	}
	big := network(t, nn.Uint8, unit, 1, 1, 17, 16)
	if _, err := big.Append(nn.Node{Kind: nn.Pool, Of: 1}); !errors.Is(err, nn.ErrFormat) || !strings.Contains(err.Error(), "16 bits") {
		t.Errorf("Append of a sum of 272 bytes = %v, want ErrFormat", err)
	}
}

// TestDamagedPlan checks that a plan file cut anywhere, with another version, or with bytes behind it is refused, and that one with
// any byte changed is refused or is a plan that writes the same bytes.
func TestDamagedPlan(t *testing.T) {
	var files [][]byte
	for seed := range 4 {
		files = append(files, rapid.Custom(func(t *rapid.T) []byte { return growFloatNet(t).Marshal() }).Example(seed),
			rapid.Custom(func(t *rapid.T) []byte {
				n, _ := growIntNet(t)
				return n.Marshal()
			}).Example(seed))
	}
	for i, file := range files {
		refuse := func(damage string, data []byte) {
			t.Helper()
			if _, err := nn.Read(data); !errors.Is(err, nn.ErrFormat) {
				t.Errorf("file %d, %s: Read = %v, want ErrFormat", i, damage, err)
			}
		}
		if n, err := nn.Read(file); err != nil || !bytes.Equal(n.Marshal(), file) {
			t.Fatalf("file %d: Read = %v, or it writes another file", i, err)
		}
		step := max(1, len(file)/500)
		for at := 0; at < len(file); at += step {
			refuse("cut", file[:at:at])
			changed := slices.Clone(file)
			changed[at] ^= 0x81
			if n, err := nn.Read(changed); err == nil && !bytes.Equal(n.Marshal(), changed) {
				t.Errorf("file %d: with byte %d changed it is read and written differently", i, at)
			} else if err != nil && !errors.Is(err, nn.ErrFormat) {
				t.Errorf("file %d, byte %d changed: Read = %v, want ErrFormat", i, at, err)
			}
		}
		refuse("a byte more", append(slices.Clip(file), 0))
		newer := slices.Clone(file)
		newer[4]++
		refuse("another version", newer)
	}
}

// TestReadTakesLittleMemory reads small files that declare gigabytes, at any place.
func TestReadTakesLittleMemory(t *testing.T) {
	file := single(t, three, 4, 1, 3, 8, 8).Marshal()
	for at := range len(file) - 4 {
		huge := slices.Clone(file)
		copy(huge[at:], "\xff\xff\xff\x0f")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = nn.Read(huge)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%d bytes taken for a file of %d bytes with a large number at %d", took, len(file), at)
		}
	}
}
