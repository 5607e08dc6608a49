package nn_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
)

// pointwise returns a network of floats or of bytes for pictures of (batch, 3, 7, 7). Its convolutions see one pixel each. Their result is
// pooled and goes into two products.
func pointwise(t testing.TB, batch int, integers bool) *nn.Network {
	t.Helper()
	typ, levels := nn.Float32, nn.Quantisation{}
	if integers {
		typ, levels = nn.Uint8, nn.Quantisation{Scale: 1 / 127.5, Zero: 128}
	}
	n := network(t, typ, levels, batch, 3, 7, 7)
	weighted := func(node nn.Node, levels nn.Quantisation, hi float32) int {
		t.Helper()
		node.Hi = hi
		value := func(i int) int { return i*7%13 - 6 }
		for i := range size(node.Shape[:]) {
			node.Weights, node.Bytes = append(node.Weights, float32(value(i))/8), append(node.Bytes, int8(16*value(i)))
		}
		for j := range node.Shape[0] {
			node.Bias, node.Offsets = append(node.Bias, float32(value(j))/8), append(node.Offsets, int32(value(j)))
			node.Scales = append(node.Scales, 1./128)
		}
		if integers {
			node.To = levels
		}
		return add(t, n, node)
	}
	x := 1
	for _, shape := range [][2]int{{20, 3}, {24, 20}} {
		x = weighted(point.conv(x, shape[0], shape[1]), nn.Quantisation{Scale: 6. / 255}, 6)
	}
	x = add(t, n, nn.Node{Kind: nn.Flatten, Of: add(t, n, nn.Node{Kind: nn.Pool, Of: x})})
	for _, outs := range []int{9, 4} {
		give(t, n, weighted(nn.Node{Kind: nn.Gemm, Of: x, Shape: [4]int{outs, 24, 1, 1}, Lo: -1000}, nn.Quantisation{}, 1000))
	}
	return n
}

// TestCells compares each cell's outputs with those of a picture whose pixels are all like this cell; integers must be equal to the byte.
// It also compares the mean over the cells with the outputs of the whole picture.
func TestCells(t *testing.T) {
	const height, width, pixels = 7, 7, 49
	for _, integers := range []bool{false, true} {
		in := nn.Tensor{Type: nn.Float32, Shape: []int{1, height, width, 3}, F32: make([]float32, 3*pixels)}
		if integers {
			in = nn.Tensor{Type: nn.Uint8, Shape: in.Shape, U8: make([]uint8, 3*pixels)}
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
			set(i, value(i%3, i/3))
		}
		p := plan(t, pointwise(t, 1, integers), nn.Options{})
		if h, w := p.CellsShape(); h != height || w != width {
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
			out, err := s.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			return copied(out)
		}
		outputs := run()
		var cells [][]array
		if err := s.Cells(in, func(y, x int, out []nn.Tensor) {
			if len(cells) != y*width+x {
				t.Errorf("cell %d, %d comes as number %d", y, x, len(cells))
			}
			cells = append(cells, copied(out))
		}); err != nil || len(cells) != pixels {
			t.Fatalf("integers %v: %d cells, %v", integers, len(cells), err)
		}
		mean := make([]array, len(outputs))
		for k := range outputs {
			mean[k] = newArray(outputs[k].shape...)
			for _, c := range cells {
				for j, v := range c[k].v {
					mean[k].v[j] += v / pixels
				}
			}
			if d := differs(nn.Tensor{Shape: outputs[k].shape, F32: outputs[k].float32s()}, mean[k]); d != "" {
				t.Errorf("integers %v: output %d against the mean of its cells: %s", integers, k, d)
			}
		}
		if again := run(); !slices.EqualFunc(again, outputs, func(a, b array) bool { return slices.Equal(a.v, b.v) }) {
			t.Errorf("integers %v: Run gives something else after Cells", integers)
		}
		for pixel := range pixels {
			for i := range 3 * pixels {
				set(i, value(i%3, pixel))
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

// TestCellsRefused checks that Cells refuses a plan if it cannot run the steps after the pool for each cell.
func TestCellsRefused(t *testing.T) {
	twice := network(t, nn.Float32, nn.Quantisation{}, 1, 3, 4, 4) // later steps need more than the pooled value
	conv := slide{4, 4, 1, 1, 1, 1, 0, 0, 0, 0, 3}.conv(1, 3, 3)
	conv.Weights, conv.Bias = make([]float32, 48), make([]float32, 3)
	first := add(t, twice, conv)
	give(t, twice, add(t, twice, nn.Node{Kind: nn.Add, Of: add(t, twice, nn.Node{Kind: nn.Pool, Of: 1}), With: first}))
	large := network(t, nn.Float32, nn.Quantisation{}, 1, 1, 40, 40)
	give(t, large, add(t, large, nn.Node{Kind: nn.Pool, Of: 1}))
	for name, n := range map[string]*nn.Network{
		"no pool": single(t, three, 4, 1, 3, 8, 8), "twice": twice, "large": large, "two pictures": pointwise(t, 2, false),
	} {
		p := plan(t, n, nn.Options{})
		in := nn.Tensor{Type: p.Input().Type, Shape: p.Input().Shape}
		in.F32 = make([]float32, in.Len())
		err := p.NewSession().Cells(in, func(int, int, []nn.Tensor) {})
		if h, w := p.CellsShape(); h != 0 || w != 0 || !errors.Is(err, nn.ErrUnsupported) {
			t.Errorf("%s: %d×%d cells and %v, want none and ErrUnsupported", name, h, w, err)
		}
	}
}

func TestCellsErrors(t *testing.T) {
	if err := plan(t, pointwise(t, 1, false), nn.Options{}).NewSession().Cells(nn.Tensor{}, nil); !errors.Is(err, nn.ErrInput) {
		t.Errorf("Cells of nothing = %v, want ErrInput", err)
	}
}
