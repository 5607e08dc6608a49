package predict

import (
	"errors"
	"image/color"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/predict/raster"
)

// plainValues computes the values with package math, as the network's README defines them.
func plainValues(ev *evaluator, logits []float32, e *Embedding) (general, food []float64) {
	p := make([]float64, len(logits))
	total := 0.0
	for i, l := range logits {
		p[i] = math.Exp(float64(l))
		total += p[i]
	}
	unit := e.Unit(nil)
	part := func(classes []uint16) float64 {
		s := 0.0
		for _, c := range classes {
			s += p[c] / total
		}
		return s
	}
	term := func(r *rule, s float64) float64 {
		s = min(1-1e-6, max(1e-6, s))
		return r.classSlope * math.Log(s/(1-s))
	}
	for i := range ev.rules {
		r := &ev.rules[i]
		z := term(r, part(r.classes)) + r.intercept
		if r.head >= 0 {
			h := float64(ev.intercepts[r.head])
			for i, u := range unit {
				h += float64(u) * float64(ev.weights[r.head*Dim+i])
			}
			z += r.headSlope * h
		}
		general = append(general, 1/(1+math.Exp(-z)))
	}
	union := map[uint16]bool{}
	for _, place := range ev.food {
		for _, c := range ev.rules[place].classes {
			union[c] = true
		}
	}
	all := 0.0
	for c := range union {
		all += p[c] / total
	}
	for _, place := range ev.food {
		r := &ev.rules[place]
		food = append(food, 1/(1+math.Exp(-term(r, part(r.classes)/max(all, 0.5))-r.intercept)))
	}
	return general, food
}

func TestValuesEqualTheDefinition(t *testing.T) {
	for name, s := range map[string]*Set{"tiny": tinySet(t), "default": loadModels(t)} {
		t.Run(name, func(t *testing.T) {
			ev, bb := s.evaluator, s.backbone
			rng := rand.New(rand.NewPCG(1, 1))
			general, food := make([]float32, len(ev.rules)), make([]float32, len(ev.food))
			var tmp scratch
			for range 50 {
				logits := make([]float32, bb.classes)
				spread := math.Exp(3*rng.Float64() - 1)
				for i := range logits {
					logits[i] = float32(rng.NormFloat64() * spread)
				}
				e := mustEmbed(t, randomVector(rng, 1))
				if err := ev.values(general, food, logits, &e, &tmp); err != nil {
					t.Fatal(err)
				}
				wantGeneral, wantFood := plainValues(ev, logits, &e)
				compareValues(t, "general", general, wantGeneral)
				compareValues(t, "food", food, wantFood)
			}
		})
	}
}

func compareValues(t *testing.T, model string, got []float32, want []float64) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i])-want[i]) > 1e-6*want[i]+1e-9 {
			t.Errorf("%s value %d = %v, want %v", model, i, got[i], want[i])
		}
	}
}

func TestValuesRefuse(t *testing.T) {
	s := tinySet(t)
	ev := s.evaluator
	var tmp scratch
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		logits := []float32{0, 1, 2, bad, 4, 5}
		err := ev.values(make([]float32, 6), make([]float32, 4), logits, &Embedding{}, &tmp)
		if !errors.Is(err, ErrNetwork) {
			t.Errorf("values of a logit %v = %v, want ErrNetwork", bad, err)
		}
	}
	// The largest and smallest floats cause no overflow.
	logits := []float32{math.MaxFloat32, -math.MaxFloat32, 0, 0, 0, 0}
	general := make([]float32, 6)
	if err := ev.values(general, make([]float32, 4), logits, &Embedding{}, &tmp); err != nil {
		t.Fatal(err)
	}
	if got, want := float64(general[0]), 1-1e-6; math.Abs(got-want) > 1e-7 {
		t.Errorf("a certain class has %v, want %v", got, want)
	}
}

// placeOf returns the index of a concept in a model, −1 if the model lacks it.
func placeOf(m *Model, id string) int {
	return slices.IndexFunc(m.Concepts, func(c Concept) bool { return c.ID == id })
}

func TestOrder(t *testing.T) {
	m := tinySet(t).General()
	values := []float32{0.5, 0.25, 0.99, 0.5, 0.75, 0.5} // red green blue warm dull both
	var got []string
	for _, i := range m.Top(nil, values, len(values), 0) {
		got = append(got, m.Concepts[i].ID)
	}
	// blue is hidden. Concepts with equal values are ordered by ID.
	if diff := cmp.Diff([]string{"ai_dull", "ai_both", "ai_red", "ai_warm", "ai_green"}, got); diff != "" {
		t.Errorf("Top, -want +got:\n%s", diff)
	}
	all := []int{0, 1, 2, 3, 4, 5}
	m.Sort(all, values)
	if diff := cmp.Diff([]int{2, 4, 5, 0, 3, 1}, all); diff != "" {
		t.Errorf("Sort, -want +got:\n%s", diff)
	}
}

// TestTop compares the best few with the first ones of all in order, including equal values.
func TestTop(t *testing.T) {
	m := tinySet(t).General()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		values := make([]float32, len(m.Concepts))
		for i := range values {
			values[i] = float32(rng.IntN(4)) / 4
		}
		n, least := rng.IntN(len(values)+2), float32(rng.IntN(5))/4
		var want []int
		for i, c := range m.Concepts {
			if !c.Hidden && values[i] >= least {
				want = append(want, i)
			}
		}
		m.Sort(want, values)
		want = append([]int{-1}, want[:min(len(want), n)]...)
		if got := m.Top([]int{-1}, values, n, least); !slices.Equal(got, want) {
			t.Fatalf("Top(%v, %d, %v) = %v, want %v", values, n, least, got, want)
		}
	}
}

// TestAnalyse compares the analysis of a red picture with values computed by hand. The tiny network's mean is (1, −1, −1). Its embedding
// has that direction, and its logits are 8 · (1, −1, −1, −1, 1, 1).
func TestAnalyse(t *testing.T) {
	s := tinySet(t)
	a := s.NewAnalyser(raster.Limits{})
	red := picture(t, 20, 30, func(int, int) color.Color { return rgb(255, 0, 0) })
	out, err := a.Analyse(red, raster.Crop{}, WantConcepts|WantColors)
	if err != nil || out.Has != WantConcepts|WantColors {
		t.Fatalf("Analyse = %+v, %v", out, err)
	}
	if want := [4]int16{32767, -32767, -32767, 0}; [4]int16(out.Embedding.Q[:]) != want {
		t.Errorf("embedding = %v…, want %v…", out.Embedding.Q[:4], want)
	}
	unit := 1 / math.Sqrt(3)
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	third, none := math.Log(0.5), math.Log(1e-6/(1-1e-6)) // of s = 1/3 and 0
	compare := func(name string, got []float32, want ...float64) {
		t.Helper()
		for i := range want {
			if math.Abs(float64(got[i])-want[i]) > 1e-5 {
				t.Errorf("%s %d = %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	compare("general", out.General,
		sigmoid(third), sigmoid(0.5*none-0.25), sigmoid(none), sigmoid(2*third+1),
		sigmoid(3*(-2*unit+0.25)+0.5), sigmoid(none-(-2*unit-0.5)))
	// S is a third (red; both has blue's class), so that s/max(S, ½) is two thirds.
	compare("food", out.Food, sigmoid(math.Log(2)), sigmoid(0.5*none-0.25), sigmoid(2*math.Log(2)+1), sigmoid(none))
	if diff := cmp.Diff([]ColorShare{{Color{"ai_w3c001", "Red", "#ff0000"}, "#ff0000", 1}}, out.Colors); diff != "" {
		t.Errorf("colours, -want +got:\n%s", diff)
	}
	for _, m := range s.Models() {
		values := map[string][]float32{"general-v1.3concept": out.General, "food-items-v1.0concept": out.Food}[m.Name+string(m.Type)]
		if !slices.Equal(m.Values(&out), values) {
			t.Errorf("%s: Values = %v, want %v", m.Name, m.Values(&out), values)
		}
		if want := map[bool]Want{true: WantColors, false: WantConcepts}[m.Type == TypeColor]; m.Want() != want {
			t.Errorf("%s: Want = %d, want %d", m.Name, m.Want(), want)
		}
	}
	if none, err := a.Analyse(nil, raster.Crop{}, 0); err != nil || none.Has != 0 {
		t.Errorf("Analyse of nothing = %+v, %v", none, err)
	}
}

// TestAnalyseCrop checks that the crop comes before the centred square: only pixels inside the crop count.
func TestAnalyseCrop(t *testing.T) {
	a := tinySet(t).NewAnalyser(raster.Limits{})
	halves := picture(t, 64, 32, func(x, _ int) color.Color {
		if x < 32 {
			return rgb(255, 0, 0)
		}
		return rgb(0, 0, 255)
	})
	left, err := a.Analyse(halves, raster.Crop{Bottom: 1, Right: 0.5}, WantConcepts)
	if err != nil {
		t.Fatal(err)
	}
	right, err := a.Analyse(halves, raster.Crop{Left: 0.5, Bottom: 1, Right: 1}, WantConcepts)
	if err != nil {
		t.Fatal(err)
	}
	if l, r := [3]int16(left.Embedding.Q[:]), [3]int16(right.Embedding.Q[:]); l != [3]int16{32767, -32767, -32767} || r != [3]int16{-32767, -32767, 32767} {
		t.Errorf("left half is %v, right half %v, want red and blue", l, r)
	}
}

// TestAnalysesAreIndependent checks that an analysis does not depend on the analyser's earlier pictures, and that later analyses do not
// change earlier results.
func TestAnalysesAreIndependent(t *testing.T) {
	s := tinySet(t)
	rng := rand.New(rand.NewPCG(2, 1))
	var pictures [][]byte
	for range 6 {
		pictures = append(pictures, picture(t, 1+rng.IntN(60), 1+rng.IntN(60), func(int, int) color.Color {
			return rgb(byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()))
		}))
	}
	var fresh []Analysis
	for _, data := range pictures {
		out, err := s.NewAnalyser(raster.Limits{}).Analyse(data, raster.Crop{}, WantConcepts|WantColors)
		if err != nil {
			t.Fatal(err)
		}
		fresh = append(fresh, out)
	}
	a := s.NewAnalyser(raster.Limits{})
	used := make([]Analysis, len(pictures))
	for range 3 {
		for _, i := range rng.Perm(len(pictures)) {
			var err error
			if used[i], err = a.Analyse(pictures[i], raster.Crop{}, WantConcepts|WantColors); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Analyse([]byte("no picture"), raster.Crop{}, WantConcepts); !errors.Is(err, raster.ErrUnsupported) {
				t.Errorf("Analyse of no picture = %v, want raster.ErrUnsupported", err)
			}
		}
	}
	if diff := cmp.Diff(fresh, used); diff != "" {
		t.Errorf("fresh analysers and a used one, -fresh +used:\n%s", diff)
	}
}

func TestAnalyseErrors(t *testing.T) {
	s := tinySet(t)
	good := picture(t, 300, 300, func(x, y int) color.Color { return rgb(byte(x*y), byte(x), byte(y)) })
	tests := []struct {
		name   string
		data   []byte
		limits raster.Limits
		want   error
	}{
		{"no bytes", nil, raster.Limits{}, raster.ErrCorrupt},
		{"a Photoshop document", []byte("8BPS" + strings.Repeat("\x00", 64)), raster.Limits{}, raster.ErrUnsupported},
		{"too wide", good, raster.Limits{Side: 299}, raster.ErrTooLarge},
		{"too long", good, raster.Limits{Bytes: 100}, raster.ErrTooLarge},
		{"cut", good[:len(good)/2], raster.Limits{}, raster.ErrCorrupt},
		{"out of time", good, raster.Limits{Expired: func() bool { return true }}, raster.ErrExpired},
	}
	for _, tt := range tests {
		for _, w := range []Want{WantConcepts, WantColors} {
			out, err := s.NewAnalyser(tt.limits).Analyse(tt.data, raster.Crop{}, w)
			if !errors.Is(err, tt.want) || out.Has != 0 {
				t.Errorf("%s, want %d: Analyse = %v, want %v", tt.name, w, err, tt.want)
			}
		}
	}
}

// TestAllocations checks that an analysis allocates the same for a small and a large picture once the analyser is warm.
func TestAllocations(t *testing.T) {
	a := tinySet(t).NewAnalyser(raster.Limits{})
	img := raster.Image{Width: tinySize, Height: tinySize, Pix: make([]byte, 3*tinySize*tinySize)}
	got := testing.AllocsPerRun(100, func() {
		var out Analysis
		if err := a.concepts(img, &out); err != nil {
			t.Fatal(err)
		}
	})
	if got > 1 {
		t.Errorf("%v allocations after decoding, want 1: the values", got)
	}
}
