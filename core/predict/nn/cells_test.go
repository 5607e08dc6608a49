package nn_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/onnx"
)

// pointwise is a network whose convolutions see one pixel each, of (1, 3, 7, 7), pooled into two products.
func pointwise(batch int) *onnx.Graph {
	b := newBuilder()
	weights := func(shape ...int) string {
		w := counting(func(i int) float64 { return float64(i*7%13)/8 - 0.7 }, shape...)
		return b.floats(w.v, w.shape...)
	}
	x := b.input(onnx.Float32, batch, 3, 7, 7)
	for _, shape := range [][]int{{20, 3, 1, 1}, {24, 20, 1, 1}} {
		x = b.add("Conv", nil, x, weights(shape...), weights(shape[0]))
		x = b.add("Clip", nil, x, b.floats([]float64{0}), b.floats([]float64{6}))
	}
	x = b.add("Flatten", nil, b.add("GlobalAveragePool", nil, x))
	for _, outs := range []int{9, 4} {
		y := b.add("Gemm", map[string]onnx.Attr{"transB": intAttr(1)}, x, weights(outs, 24), weights(outs))
		b.output(y, onnx.Float32, []int{batch, outs})
	}
	return b.g
}

// TestCells holds what each cell gives to a picture all of whose pixels are like it, to the byte in
// integers, and the mean over the cells to what the whole gives.
func TestCells(t *testing.T) {
	const height, width, pixels = 7, 7, 49
	for _, integers := range []bool{false, true} {
		g := pointwise(1)
		in := nn.Tensor{Type: onnx.Float32, Shape: []int{1, 3, height, width}, F32: make([]float32, 3*pixels)}
		if integers {
			g = toQDQ(g)
			in = nn.Tensor{Type: onnx.Uint8, Shape: in.Shape, U8: make([]uint8, 3*pixels)}
		}
		set := func(i int, v int) {
			if integers {
				in.U8[i] = uint8(v)
			} else {
				in.F32[i] = float32(v)/127.5 - 1
			}
		}
		value := func(c, pixel int) int { return (c*101 + pixel*pixel*37) % 256 }
		for i := range 3 * pixels {
			set(i, value(i/pixels, i%pixels))
		}
		p, err := nn.Compile(g, nn.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if h, w := p.Cells(); h != height || w != width {
			t.Fatalf("integers %v: %d×%d cells, want %d×%d", integers, h, w, height, width)
		}
		s := p.NewSession()
		copied := func(out []nn.Tensor) (all []array) {
			for _, o := range out {
				a := newArray(o.Shape...)
				for i, x := range o.F32 {
					a.v[i] = float64(x)
				}
				all = append(all, a)
			}
			return all
		}
		run := func() []array {
			out, err := s.Run([]nn.Tensor{in})
			if err != nil {
				t.Fatal(err)
			}
			return copied(out)
		}
		whole := run()
		var cells [][]array
		if err := s.Cells([]nn.Tensor{in}, func(y, x int, out []nn.Tensor) {
			if len(cells) != y*width+x {
				t.Errorf("cell %d, %d comes as number %d", y, x, len(cells))
			}
			cells = append(cells, copied(out))
		}); err != nil || len(cells) != pixels {
			t.Fatalf("integers %v: %d cells, %v", integers, len(cells), err)
		}
		mean := make([]array, len(whole))
		for k := range whole {
			mean[k] = newArray(whole[k].shape...)
			for _, c := range cells {
				for j, v := range c[k].v {
					mean[k].v[j] += v / pixels
				}
			}
			if d := differs(nn.Tensor{Shape: whole[k].shape, F32: whole[k].float32s()}, mean[k]); d != "" {
				t.Errorf("integers %v: output %d against the mean of its cells: %s", integers, k, d)
			}
		}
		if again := run(); !slices.EqualFunc(again, whole, func(a, b array) bool { return slices.Equal(a.v, b.v) }) {
			t.Errorf("integers %v: Run gives something else after Cells", integers)
		}
		for pixel := range pixels {
			for i := range 3 * pixels {
				set(i, value(i/pixels, pixel))
			}
			for k, want := range run() {
				got := cells[pixel][k]
				if d := differs(nn.Tensor{Shape: got.shape, F32: got.float32s()}, want); d != "" || integers && !slices.Equal(got.v, want.v) {
					t.Errorf("integers %v: cell %d against a picture of it: %s", integers, pixel, d)
				}
			}
		}
	}
}

// TestCellsRefused holds that plans whose end cannot be run again say so.
func TestCellsRefused(t *testing.T) {
	excited := newBuilder() // what is pooled is needed once more
	x := excited.input(onnx.Float32, 1, 3, 4, 4)
	excited.output(excited.add("Mul", nil, x, excited.add("GlobalAveragePool", nil, x)), onnx.Float32, []int{1, 3, 4, 4})
	twice := newBuilder() // something of before is
	x = twice.input(onnx.Float32, 1, 3, 4, 4)
	y := twice.add("Sigmoid", nil, x)
	pooled := twice.add("GlobalAveragePool", nil, twice.add("Exp", nil, x))
	twice.output(twice.add("Add", nil, y, pooled), onnx.Float32, []int{1, 3, 4, 4})
	large := newBuilder()
	x = large.input(onnx.Float32, 1, 1, 40, 40)
	large.output(large.add("GlobalAveragePool", nil, x), onnx.Float32, []int{1, 1, 1, 1})
	for name, g := range map[string]*onnx.Graph{"no pool": small().g, "excited": excited.g, "twice": twice.g, "large": large.g, "two pictures": pointwise(2)} {
		p, err := nn.Compile(g, nn.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v := p.Inputs()[0]
		in := nn.Tensor{Type: v.Type, Shape: v.Shape}
		in.F32 = make([]float32, in.Len())
		err = p.NewSession().Cells([]nn.Tensor{in}, func(int, int, []nn.Tensor) {})
		if h, w := p.Cells(); h != 0 || w != 0 || !errors.Is(err, nn.ErrUnsupported) {
			t.Errorf("%s: %d×%d cells and %v, want none and ErrUnsupported", name, h, w, err)
		}
	}
}

func TestCellsErrors(t *testing.T) {
	p, err := nn.Compile(pointwise(1), nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.NewSession().Cells(nil, nil); !errors.Is(err, nn.ErrInput) {
		t.Errorf("Cells of nothing = %v, want ErrInput", err)
	}
}
