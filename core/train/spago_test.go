package train

import (
	"math"
	"testing"

	"github.com/nlpodyssey/spago/ag"
	"github.com/nlpodyssey/spago/mat"
	"github.com/nlpodyssey/spago/nn"
	"github.com/nlpodyssey/spago/nn/activation"
	"github.com/nlpodyssey/spago/nn/linear"
	"github.com/nlpodyssey/spago/optimizers/adam"

	"github.com/sightline-dev/sightline/core/predict"
)

// spagoModel is a head as another Go program trains it, which uses no package of ours.
type spagoModel struct {
	nn.Module
	Linear     *linear.Model
	Activation *activation.Model
}

func (m *spagoModel) Forward(xs ...mat.Tensor) []mat.Tensor {
	return m.Activation.Forward(m.Linear.Forward(xs...)...)
}

// TestSpagoTrainsTheSameHead trains with spago's own gradients and its Adam. The predictions agree within a hundredth, since the convex
// problem has one minimum. spago takes some hundred times as long, so versions are not trained with it.
func TestSpagoTrainsTheSameHead(t *testing.T) {
	if testing.Short() {
		t.Skip("spago takes one example at a time")
	}
	for _, exclusive := range []bool{false, true} {
		w := newWorld(22, 2, 1)
		p := w.problem(6, "a", "b")
		p.Exclusive, p.Background = exclusive, w.background(24)
		p.Examples = append(p.Examples, Example{Embedding: w.picture(0), Labels: []int8{False, Unknown}}, Example{Embedding: w.picture(-1), Other: true})
		ours := fitHead(t, withStrength(p, 3))
		theirs := trainWithSpago(t, withStrength(p, 3))
		worst := 0.0
		for i := range 60 {
			e := w.picture(i%3 - 1)
			a, b := ours.Values(nil, e), theirs.Values(nil, e)
			for c := range a {
				worst = max(worst, math.Abs(float64(a[c]-b[c])))
			}
		}
		t.Logf("exclusive %v: values differ by at most %.4f", exclusive, worst)
		if worst > 0.01 {
			t.Errorf("exclusive %v: values differ by %.4f, want at most 0.01", exclusive, worst)
		}
	}
}

// trainWithSpago minimises the objective of f's problem with spago alone.
func trainWithSpago(t *testing.T, f *Fitter) *Head {
	t.Helper()
	p := f.p
	for f.solving == nil {
		f.Step()
	}
	outputs := 0
	for _, task := range f.tasks {
		outputs += len(task.columns)
	}
	m := &spagoModel{Linear: linear.New[float64](predict.Dim, outputs), Activation: activation.New(activation.Sigmoid)}
	if p.Exclusive {
		m.Activation = activation.New(activation.Softmax)
	}
	xs := make([]mat.Tensor, len(f.rows))
	for i, r := range f.rows {
		x := make([]float64, predict.Dim)
		for k, v := range r.embedding.Unit(nil) {
			x[k] = float64(v)
		}
		xs[i] = mat.NewDense[float64](mat.WithShape(predict.Dim), mat.WithBacking(x))
	}
	config := adam.NewDefaultConfig()
	config.StepSize = 0.05
	strategy := adam.New(config)
	for epoch := range 240 {
		if epoch%60 == 59 {
			strategy.StepSize /= 4
		}
		ag.Backward(spagoLoss(f, m, xs))
		nn.ForEachParam(m, func(param *nn.Param) { // an Optimizer does not wait for the goroutines that it has started
			if !param.HasGrad() {
				return
			}
			if err := strategy.OptimizeParams(param); err != nil {
				t.Fatal(err)
			}
		})
		strategy.IncExample()
	}
	return &Head{Concepts: p.Concepts, Exclusive: p.Exclusive, Weights: m.Linear.W.Data().F32(), Bias: m.Linear.B.Data().F32()}
}

// spagoLoss returns the objective of all tasks together, as a graph of spago.
func spagoLoss(f *Fitter, m *spagoModel, xs []mat.Tensor) mat.Tensor {
	var columns []column
	for _, t := range f.tasks {
		columns = append(columns, t.columns...)
	}
	weighted := func(y mat.Tensor, weight func(c column) float32) mat.Tensor {
		w := make([]float64, len(columns))
		for o, c := range columns {
			w[o] = -float64(weight(c))
		}
		return ag.Dot(ag.Log(y), mat.NewDense[float64](mat.WithShape(y.Shape()...), mat.WithBacking(w)))
	}
	var terms []mat.Tensor
	for i, y := range m.Forward(xs...) {
		terms = append(terms, weighted(y, func(c column) float32 { return c.w[i] * c.y[i] }))
		if !f.p.Exclusive {
			terms = append(terms, weighted(ag.ReverseSubOne(y), func(c column) float32 { return c.w[i] * (1 - c.y[i]) }))
		}
	}
	ridge := f.tasks[0].ridge // equal for all tasks, since all have the same number of positives
	penalty := func(p *nn.Param, share float64) mat.Tensor {
		return ag.ProdScalar(ag.Dot(p, p), mat.Scalar(share/2*float64(ridge)))
	}
	return ag.Sum(append(terms, penalty(m.Linear.W, 1), penalty(m.Linear.B, biasRidge))...)
}
