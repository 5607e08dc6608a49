package nn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/nn/kernel"
)

// single returns a network of one convolution over a picture.
func single(t testing.TB, w slide, outs int, shape ...int) *nn.Network {
	t.Helper()
	n := network(t, nn.Float32, nn.Quantisation{}, shape...)
	node := w.conv(1, outs, shape[1])
	node.Weights = counting(func(i int) float64 { return float64(i%7) - 3 }, node.Shape[:]...).float32s()
	node.Bias, node.Hi = make([]float32, outs), float32(math.Inf(1))
	give(t, n, add(t, n, node))
	return n
}

var three = slide{3, 3, 1, 1, 1, 1, 0, 0, 0, 0, 1}

func TestRunRefusesWrongInputs(t *testing.T) {
	s := plan(t, single(t, three, 4, 1, 3, 8, 8), nn.Options{}).NewSession()
	good := nn.Tensor{Type: nn.Float32, Shape: []int{1, 8, 8, 3}, F32: make([]float32, 192)}
	short, turned, bytes := good, good, good
	short.F32 = short.F32[1:]
	turned.Shape = []int{1, 3, 8, 8}
	bytes.Type = nn.Uint8
	for name, in := range map[string]nn.Tensor{"none": {}, "short": short, "turned": turned, "bytes": bytes} {
		if _, err := s.Run(in); !errors.Is(err, nn.ErrInput) {
			t.Errorf("%s: Run = %v, want ErrInput", name, err)
		}
	}
	if _, err := s.Run(good); err != nil {
		t.Errorf("Run after refusals = %v", err)
	}
}

func TestCompileLimitsMemory(t *testing.T) {
	n := single(t, three, 4, 1, 3, 8, 8)
	p := plan(t, n, nn.Options{})
	need := p.SessionBytes() + p.WeightBytes()
	if _, err := nn.Compile(n, nn.Options{Memory: need}); err != nil {
		t.Errorf("Compile with exactly the memory needed = %v", err)
	}
	if _, err := nn.Compile(n, nn.Options{Memory: need - 1}); !errors.Is(err, nn.ErrMemory) {
		t.Errorf("Compile with a byte less = %v, want ErrMemory", err)
	}
	// Each of 64 groups has one output, which takes a panel of 16.
	grouped := three
	grouped.group = 64
	p = plan(t, single(t, grouped, 64, 1, 128, 3, 3), nn.Options{})
	if least := int64(16 * 4 * 64 * 2 * 9); p.WeightBytes() < least {
		t.Errorf("%d bytes are counted for weights that take %d", p.WeightBytes(), least)
	}
	if _, err := nn.Compile(single(t, grouped, 64, 1, 128, 3, 3), nn.Options{Memory: p.WeightBytes() - 1}); !errors.Is(err, nn.ErrMemory) || !strings.Contains(err.Error(), "weights") {
		t.Errorf("Compile without memory for weights = %v, want ErrMemory", err)
	}
	// Each of 64 rows of one byte takes a group of four.
	tall := network(t, nn.Uint8, unit, 1, 1, 64, 1)
	node := slide{64, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1}.conv(1, 16, 1)
	node.Bytes, node.Scales, node.Offsets, node.To = make([]int8, 16*64), slices.Repeat([]float32{1}, 16), make([]int32, 16), unit
	give(t, tall, add(t, tall, node))
	if got, least := plan(t, tall, nn.Options{}).WeightBytes(), int64(16*64*4); got < least {
		t.Errorf("%d bytes are counted for weights that take %d", got, least)
	}
	huge := single(t, three, 4, 1, 3, 1<<13, 1<<13)
	if _, err := nn.Compile(huge, nn.Options{}); !errors.Is(err, nn.ErrMemory) {
		t.Errorf("Compile for a huge picture = %v, want ErrMemory", err)
	}
	// Small shapes, whose halos alone are enormous.
	far := slide{1, 1, 4000, 4000, 1, 1, 4000, 4000, 4000, 4000, 1}
	if _, err := nn.Compile(single(t, far, 1, 1, 64, 8, 8), nn.Options{}); !errors.Is(err, nn.ErrMemory) {
		t.Errorf("Compile with wide halos = %v, want ErrMemory", err)
	}
}

func TestCompileLimitsWork(t *testing.T) {
	n := single(t, three, 4, 1, 3, 8, 8)
	p := plan(t, n, nn.Options{})
	if want := int64(4 * 6 * 6 * 27); p.Work() != want {
		t.Errorf("Work() = %d, want %d", p.Work(), want)
	}
	give(t, n, add(t, n, nn.Node{Kind: nn.Pool, Of: 2}))
	unread := three.conv(2, 4, 4)
	unread.Weights, unread.Bias = make([]float32, 144), make([]float32, 4)
	add(t, n, unread)
	if got, want := plan(t, n, nn.Options{}).Work(), p.Work()+4*6*6; got != want {
		t.Errorf("Work() = %d with a mean, and a node that no output needs, want %d", got, want)
	}
	// A small picture with very many sums.
	sums := network(t, nn.Float32, nn.Quantisation{}, 1, 16, 64, 64)
	last := 1
	for range 4000 {
		last = add(t, sums, nn.Node{Kind: nn.Add, Of: last, With: last})
	}
	give(t, sums, last)
	if _, err := nn.Compile(sums, nn.Options{Work: 4000*16*64*64 - 1}); !errors.Is(err, nn.ErrWork) {
		t.Errorf("Compile of many sums = %v, want ErrWork", err)
	}
	if _, err := nn.Compile(n, nn.Options{Work: p.Work() - 1}); !errors.Is(err, nn.ErrWork) {
		t.Errorf("Compile with less work = %v, want ErrWork", err)
	}
}

// TestCompileRefuses checks that Compile refuses valid networks that this package does not support, with an error that names the node.
func TestCompileRefuses(t *testing.T) {
	padded := network(t, nn.Float32, nn.Quantisation{}, 1, 2, 4, 4)
	mean := add(t, padded, nn.Node{Kind: nn.Pool, Of: 1})
	around := slide{3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}.conv(mean, 1, 2)
	around.Weights, around.Bias = make([]float32, 18), make([]float32, 1)
	give(t, padded, add(t, padded, around))

	long := network(t, nn.Uint8, nn.Quantisation{Scale: 1}, 1, 1<<16+1, 1, 1)
	row := add(t, long, nn.Node{Kind: nn.Flatten, Of: add(t, long, nn.Node{Kind: nn.Pool, Of: 1})})
	product := nn.Node{Kind: nn.Gemm, Of: row, Shape: [4]int{1, 1<<16 + 1, 1, 1}, Bytes: make([]int8, 1<<16+1), Scales: []float32{1}, Offsets: []int32{0}}
	give(t, long, add(t, long, product))

	wide := network(t, nn.Uint8, nn.Quantisation{Scale: 1, Zero: 255}, 1, 1<<9, 16, 16)
	row = add(t, wide, nn.Node{Kind: nn.Flatten, Of: add(t, wide, nn.Node{Kind: nn.Pool, Of: 1})})
	product = nn.Node{Kind: nn.Gemm, Of: row, Shape: [4]int{1, 1 << 9, 1, 1}, Bytes: slices.Repeat([]int8{127}, 1<<9), Scales: []float32{1}, Offsets: []int32{0}}
	give(t, wide, add(t, wide, product))

	for name, tt := range map[string]struct {
		n    *nn.Network
		want string
	}{
		"no outputs":       {network(t, nn.Float32, nn.Quantisation{}, 1, 1, 1, 1), "outputs"},
		"a padded mean":    {padded, "Pool"},
		"a long row":       {long, "Gemm"},
		"a far zero point": {wide, "Gemm"},
	} {
		if _, err := nn.Compile(tt.n, nn.Options{}); !errors.Is(err, nn.ErrUnsupported) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Compile = %v, want ErrUnsupported with %q", name, err, tt.want)
		}
	}
}

// TestSessionsShareAPlan runs sessions of one plan concurrently, and checks that Run allocates nothing.
func TestSessionsShareAPlan(t *testing.T) {
	n := single(t, slide{3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, 1, 3, 16, 16)
	give(t, n, 1, add(t, n, nn.Node{Kind: nn.Flatten, Of: 2}))
	p := plan(t, n, nn.Options{})
	in := counting(func(i int) float64 { return float64(i%13) / 13 }, 1, 3, 16, 16).picture()
	want, err := p.NewSession().Run(in)
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan []nn.Tensor)
	for range 4 {
		go func() {
			s := p.NewSession()
			var out []nn.Tensor
			for range 20 {
				out, _ = s.Run(in)
			}
			results <- out
		}()
	}
	for range 4 {
		for i, got := range <-results {
			if !slices.Equal(got.F32, want[i].F32) {
				t.Errorf("a session with others gives another output %d", i)
			}
		}
	}
	s := p.NewSession()
	if n := testing.AllocsPerRun(10, func() { _, _ = s.Run(in) }); n != 0 {
		t.Errorf("Run allocates %v times", n)
	}
}

// TestFullConvolutionBlocks checks that a full convolution and its projection give the same bytes in a block and separately, and that a
// block takes less memory than its wide value.
func TestFullConvolutionBlocks(t *testing.T) {
	const ins, wide, row = 8, 96, 12 * 96
	same := slide{3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	for name, tt := range map[string]struct {
		first         slide
		height, width int
		residual      bool
		tile          int // bytes
	}{
		"four rows":        {same, 13, 12, false, 1},
		"four, odd height": {same, 15, 12, true, 1},
		"all rows":         {same, 13, 12, true, 13 * row},
		"stride two":       {slide{3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1}, 26, 24, false, 4 * row},
		"stride two, odd":  {slide{5, 5, 2, 2, 1, 1, 2, 2, 2, 2, 1}, 27, 23, false, 4 * row},
		"dilated rows":     {slide{3, 1, 1, 1, 2, 1, 2, 0, 2, 0, 1}, 13, 12, true, 5 * row},
	} {
		t.Run(name, func(t *testing.T) {
			n := network(t, nn.Uint8, nn.Quantisation{Scale: 1, Zero: 3}, 1, ins, tt.height, tt.width)
			first, last := tt.first.conv(1, wide, ins), point.conv(2, ins, wide)
			if tt.residual {
				last.With, last.Before = 1, nn.Quantisation{Scale: 7, Zero: 90}
			}
			for _, node := range []*nn.Node{&first, &last} {
				for i := range size(node.Shape[:]) {
					node.Bytes = append(node.Bytes, int8(i*31%255-127))
				}
				outs := node.Shape[0]
				node.Scales, node.Offsets, node.To = slices.Repeat([]float32{0.02}, outs), make([]int32, outs), nn.Quantisation{Scale: 3, Zero: 100}
				add(t, n, *node)
			}
			give(t, n, 3)
			apart, block := plan(t, n, nn.WithTiling(nn.Options{}, 1<<30, 1)), plan(t, n, nn.WithTiling(nn.Options{}, 1, tt.tile))
			in := nn.Tensor{Type: nn.Uint8, Shape: apart.Input().Shape, U8: make([]uint8, ins*tt.height*tt.width)}
			for i := range in.U8 {
				in.U8[i] = uint8(i * 7919 >> 3)
			}
			for level := range kernel.Levels.Each() {
				want, err := apart.NewSession().Run(in)
				if err != nil {
					t.Fatal(err)
				}
				got, err := block.NewSession().Run(in)
				if err != nil || !slices.Equal(got[0].U8, want[0].U8) {
					t.Errorf("%s: %v, bytes %v, want %v", level, err, got[0].U8, want[0].U8)
				}
			}
			if got, separate := block.SessionBytes(), apart.SessionBytes(); tt.tile < 13*row && got > separate-4*row {
				t.Errorf("a block takes %d bytes, its convolutions apart %d", got, separate)
			}
		})
	}
}
