package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/train"
)

// program draws the operations of users. It uses few IDs, URLs and pictures, so that the writes of several parties affect the same things.
type program struct {
	*rand.Rand
	inputs []log.Dot // dots of all creations of inputs, also of failed ones
	models []log.Dot
	flows  []log.Dot
	trains []training
	unread log.Dot // input whose download ended as unread; zero: none
	serial int
}

// training is the request for a version that has no result yet.
type training struct {
	train, model log.Dot
	version      string
}

func (p *program) pick(of ...string) string { return logtest.Pick(p, of...) }

func (p *program) concept() string { return p.pick("x", "y", "z", "ai_1") }

// recent returns one of the last eight dots, or sometimes a dot that names nothing.
func (p *program) recent(dots []log.Dot) log.Dot {
	if len(dots) == 0 || p.IntN(40) == 0 {
		return log.Dot{Writer: 99, Seq: 9}
	}
	return dots[len(dots)-1-p.IntN(min(len(dots), 8))]
}

// noteOp records what an operation created, so that later operations name it.
func (p *program) noteOp(op *log.Op) {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		p.inputs = append(p.inputs, op.Dot)
	case *log.ModelCreate:
		p.models = append(p.models, op.Dot)
	case *log.WorkflowCreate:
		p.flows = append(p.flows, op.Dot)
	case *log.VersionTrain:
		p.trains = append(p.trains, training{op.Dot, b.Model, b.Version})
	}
}

// writers is the partition of a party, an *partition.Origin or a *partition.Replica.
type writers interface{ MadeBy(w log.Writer) bool }

// result returns the result of a training that the same party requested, and false if there is none.
func (p *program) result(of writers) (log.Body, bool) {
	for i, x := range p.trains {
		if !of.MadeBy(x.train.Writer) {
			continue
		}
		p.trains = slices.Delete(p.trains, i, i+1)
		b := &log.VersionResult{Model: x.model, Version: x.version, Train: x.train, Code: catalog.VersionTrained}
		if p.IntN(4) == 0 {
			b.Code, b.Detail = 21111, "too few"
		} else {
			b.Manifest = blob.Sum(manifest(x.version))
		}
		return b, true
	}
	return nil, false
}

// manifest returns the encoded manifest of a version. All versions have the same head.
func manifest(version string) []byte {
	return (&catalog.Manifest{Version: version, Base: base, Head: head, Metrics: metrics}).Marshal()
}

// head and metrics are those of a version that knows the concept x.
var head, metrics = func() ([]byte, []byte) {
	h := train.Head{Concepts: []string{"x"}, Weights: make([]float32, predict.Dim), Bias: make([]float32, 1)}
	head, err := h.MarshalBinary()
	if err != nil {
		panic(err)
	}
	metrics, err := train.UnevaluatedMetrics(&train.Problem{Concepts: h.Concepts}).MarshalJSON()
	if err != nil {
		panic(err)
	}
	return head, metrics
}()

func (p *program) labels() (out []log.Label) {
	for range 1 + p.IntN(2) {
		out = append(out, log.Label{Concept: p.concept(), Value: log.Value(p.IntN(3))})
	}
	return out
}

func (p *program) geo() *log.Point {
	if p.IntN(3) == 0 {
		return nil
	}
	return logtest.Point(p)
}

func (p *program) create() *log.InputCreate {
	p.serial++
	b := &log.InputCreate{
		ID: p.pick("a", "b", "c", "d", "e", "f", "", ""), MergeIfEqual: p.IntN(6) == 0, AllowDuplicate: p.IntN(4) == 0,
		Labels: p.labels(), Geo: p.geo(),
	}
	if p.IntN(3) == 0 {
		b.URL = "http://x/" + p.pick("1", "2", "3", "4")
	}
	if b.URL == "" || p.IntN(2) == 0 {
		b.Blob, b.ContentType = picture(p.IntN(len(pictures))), "image/png"
	}
	if p.IntN(3) == 0 {
		b.Meta = logtest.JSON(p)
	}
	return b
}

// pictures are all pictures of the simulation.
var pictures = func() (out [4][]byte) {
	for i := range out {
		out[i] = fmt.Appendf(nil, "picture %d", i)
	}
	return out
}()

func picture(i int) blob.Hash { return blob.Sum(pictures[i]) }

func (p *program) meta() *log.InputMeta {
	return &log.InputMeta{Input: p.recent(p.inputs), Writes: logtest.MetaWrites(p)}
}

// body draws one operation of a party. Only the origin ends downloads.
func (p *program) body(of writers) log.Body {
	_, origin := of.(*partition.Origin)
	switch n := p.IntN(100); {
	case n < 30:
		return p.create()
	case n < 52:
		return &log.InputLabels{Input: p.recent(p.inputs), Labels: p.labels()}
	case n < 58:
		return p.meta()
	case n < 62:
		return &log.InputGeo{Input: p.recent(p.inputs), Geo: p.geo()}
	case n < 65:
		return &log.OutputsPatch{Input: p.recent(p.inputs), Edits: []log.OutputEdit{
			{Concept: p.concept(), Value: float32(p.IntN(3)) / 2, Removed: p.IntN(2) == 0},
		}}
	case n < 74:
		return &log.InputDelete{Input: p.recent(p.inputs)}
	case n < 76:
		return &log.InputDeleteAll{Barrier: p.IntN(2) == 0}
	case n < 80 && origin:
		return p.fetchedBody()
	case n < 81 && origin:
		return &log.Unknown{Kind: 90, Data: []byte{1}} // operation of a later version
	case n < 77:
		return &log.Horizon{At: 1} // only the origin may write it; it refuses a replica's
	}
	return p.modelBody(of)
}

func (p *program) fetchedBody() *log.InputFetched {
	switch p.IntN(4) {
	case 0:
		return &log.InputFetched{Input: p.recent(p.inputs), Code: 30002, Detail: "gone"}
	case 1:
		p.unread = p.recent(p.inputs)
		return &log.InputFetched{Input: p.unread, Code: catalog.InputUnsupported, Detail: "unknown file type"}
	}
	input := p.recent(p.inputs)
	if p.unread != (log.Dot{}) { // a later version of the program can read it
		input, p.unread = p.unread, log.Dot{}
	}
	return &log.InputFetched{Input: input, Code: catalog.InputReady, Blob: picture(p.IntN(len(pictures))), ContentType: "image/gif"}
}

func (p *program) modelBody(of writers) log.Body {
	if b, ok := p.result(of); ok && p.IntN(2) == 0 {
		return b
	}
	p.serial++
	version := fmt.Sprintf("v%d", p.serial)
	switch p.IntN(11) {
	case 0, 1:
		return &log.ModelCreate{ID: p.pick("m", "n", ""), Version: version, Concepts: []string{p.concept(), p.concept()}}
	case 2, 3:
		name := p.pick("N", "O")
		return &log.ModelPatch{
			Model: p.recent(p.models), Name: &name, Add: []string{p.concept()}, Remove: []string{p.concept()},
			Config: []log.Setting{{Name: p.pick("sample_ms", "max_concepts"), JSON: []byte(p.pick("1", "2"))}}, Version: version,
		}
	case 4:
		return &log.VersionTrain{Model: p.recent(p.models), Version: version}
	case 5:
		if p.IntN(3) == 0 {
			return &log.ConceptDelete{ID: p.concept()}
		}
		return &log.ConceptName{ID: p.concept(), Name: p.pick("X", "Y")}
	case 6:
		return &log.WorkflowCreate{ID: p.pick("w", ""), Nodes: []log.WorkflowNode{{ID: "1", Model: "general"}}}
	case 7:
		return &log.WorkflowDelete{Workflow: p.recent(p.flows)}
	case 8:
		return &log.Feedback{Model: "m", JSON: fmt.Appendf(nil, `{"id":%s}`, logtest.JSON(p))}
	case 9:
		return &log.ConceptCreate{ID: p.pick("x", "w"), Name: "W"}
	}
	return &log.ModelDelete{Model: p.recent(p.models)}
}

// keep stores the picture of a created input, or of a download that has ended, in the writer's blobs.
func keep(blobs *blob.Memory, body log.Body) {
	var h blob.Hash
	switch b := body.(type) {
	case *log.InputCreate:
		h = b.Blob
	case *log.InputFetched:
		h = b.Blob
	}
	for i := range pictures {
		if picture(i) == h {
			if _, err := blobs.Put(context.Background(), bytes.NewReader(pictures[i]), h); err != nil {
				panic(err) // storing in memory does not fail
			}
		}
	}
}

// base is the base model that pictures are analysed with.
var base = [32]byte{7}

// derive writes what an operation needs: the derived record of a created input or a download that has ended, or the manifest of a version.
func derive(w kv.Writer, app catalog.AppID, body log.Body) {
	switch b := body.(type) {
	case *log.InputCreate:
		if !b.Blob.IsZero() {
			catalog.PutDerived(w, app, base, b.Blob, b.Crop, derivedOf[b.Blob])
		}
	case *log.InputFetched:
		if b.Code == catalog.InputReady {
			catalog.PutDerived(w, app, base, b.Blob, raster.Crop{}, derivedOf[b.Blob])
		}
	case *log.VersionResult:
		if !b.Manifest.IsZero() {
			catalog.PutObject(w, app, manifest(b.Version))
		}
	}
}

// derivedOf has the derived record of each picture. The record depends on the picture alone.
var derivedOf = func() map[blob.Hash]catalog.DerivedData {
	out := map[blob.Hash]catalog.DerivedData{}
	for i := range pictures {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		vector := make([]float32, predict.Dim)
		for i := range vector {
			vector[i] = float32(rng.NormFloat64())
		}
		e, err := predict.NewEmbedding(vector)
		if err != nil {
			panic(err)
		}
		data, err := e.MarshalBinary()
		if err != nil {
			panic(err)
		}
		out[picture(i)] = catalog.DerivedData{Embedding: data, Values: []float32{rng.Float32(), rng.Float32(), rng.Float32()}, Read: exif.Version}
	}
	return out
}()
