package main_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"reflect"

	"github.com/nlpodyssey/spago/ag"
	"github.com/nlpodyssey/spago/mat"
	"github.com/nlpodyssey/spago/nn"
	"github.com/nlpodyssey/spago/nn/activation"
	"github.com/nlpodyssey/spago/nn/linear"
	"github.com/nlpodyssey/spago/optimizers/adam"
)

// elsewhere is a head in another program, which uses no package of ours.
type elsewhere struct {
	nn.Module
	Linear     *linear.Model
	Activation *activation.Model
	Concepts   []string
	Embedding  string
}

// checkOtherHead trains the origin's version further with spago, on embeddings from the API. All replicas get the version that the origin
// makes of it. Its predictions are equal everywhere, and close to those of spago.
func (j *joining) checkOtherHead() {
	t := j.t
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before.spago"), filepath.Join(dir, "after.spago")
	command(t, j.origin, "head", "export", "--model", "way", "--format", "spago", before, "--data", j.data)
	m, err := nn.LoadFromFile[*elsewhere](before)
	if err != nil {
		t.Fatal(err)
	}
	name := j.names[1] // emptied requires that nothing is left of names[0], and replicas keep predictions for a day
	x, north := j.embedding(name), 0
	if m.Concepts[0] != "north" {
		north = 1
	}
	forward := func() mat.Tensor { return m.Activation.Forward(m.Linear.Forward(x)...)[0] }
	optimiser := adam.New(adam.NewDefaultConfig())
	for range 5 {
		ag.Backward(ag.Neg(ag.Log(ag.At(forward(), north))))
		nn.ForEachParam(m, func(p *nn.Param) { // an Optimizer does not wait for the goroutines that it has started
			if err := optimiser.OptimizeParams(p); err != nil {
				t.Fatal(err)
			}
			p.ZeroGrad()
		})
		optimiser.IncExample()
	}
	if err := nn.DumpToFile(m, after); err != nil {
		t.Fatal(err)
	}
	var imported struct {
		Version string `json:"version_id"`
	}
	was := j.modelVersion(j.originScreen)
	out := command(t, j.origin, "head", "import", "--model", "way", after, "--data", j.data, "--json")
	if err := json.Unmarshal([]byte(out), &imported); err != nil {
		t.Fatal(err)
	}
	picture := object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, name)}}}}}
	values := func(x *screen, version string) any {
		return at(t, x.must(t, "POST", "/v2/models/way/versions/"+version+"/outputs", picture), "outputs", 0, "data", "concepts")
	}
	want := values(j.originScreen, imported.Version)
	if reflect.DeepEqual(want, values(j.originScreen, was)) {
		t.Error("the version that was trained further says what it said before")
	}
	for i := range m.Concepts {
		for _, c := range want.([]any) {
			v, theirs := at(t, c, "value").(float64), forward().Value().Data().F64()[i]
			if at(t, c, "id") == m.Concepts[i] && math.Abs(v-theirs) > 1e-4 {
				t.Errorf("%s is %v, spago says %v", m.Concepts[i], v, theirs)
			}
		}
	}
	for _, x := range j.all[1:] {
		j.until("the version that was trained elsewhere is everywhere", func() bool { return j.modelVersion(x) == imported.Version })
		if got := values(x, imported.Version); !reflect.DeepEqual(got, want) {
			t.Errorf("%s says %v of a picture, the origin %v", x.name, got, want)
		}
	}
}

// embedding returns the embedding of a picture from the origin.
func (j *joining) embedding(name string) mat.Tensor {
	out := j.originScreen.must(j.t, "POST", "/v2/models/bbb5f41425b8468d9b7a554ff10f8581/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(j.t, name)}}}}})
	numbers := at(j.t, out, "outputs", 0, "data", "embeddings", 0, "vector").([]any)
	v := make([]float32, len(numbers))
	for i := range v {
		v[i] = float32(numbers[i].(float64))
	}
	return mat.NewDense[float32](mat.WithShape(len(v)), mat.WithBacking(v))
}
