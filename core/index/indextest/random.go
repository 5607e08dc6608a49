package indextest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
)

// fresh returns a random embedding. If near is not nil, the embedding is close to near.
func (w *World) fresh(near *predict.Embedding) predict.Embedding {
	v := make([]float32, predict.Dim)
	for i := range v {
		v[i] = float32(w.Rand.NormFloat64())
		if near != nil {
			v[i] = v[i]/16 + float32(near.Q[i])*near.Scale*8
		}
	}
	e, err := predict.NewEmbedding(v)
	if err != nil {
		panic(err)
	}
	return e
}

// Embedding returns one of few embeddings, or one that is close to them.
func (w *World) Embedding() predict.Embedding {
	e := w.pool[w.Rand.IntN(len(w.pool))]
	if w.Rand.IntN(4) > 0 {
		e = w.fresh(&e)
	}
	return e
}

// RandomDerived returns the derived record of a picture. It has few values, so that ties and the threshold itself occur.
func (w *World) RandomDerived() *catalog.DerivedData {
	e := w.Embedding()
	d := &catalog.DerivedData{}
	d.Embedding, _ = e.MarshalBinary()
	for range Concepts {
		value := float32(w.Rand.IntN(11)) / 10
		if w.Rand.IntN(3) == 0 {
			value = w.Rand.Float32()
		}
		d.Values = append(d.Values, value)
	}
	return d
}

// urls is the number of different URLs of random inputs.
const urls = 6

// Input returns a random input that is not in the world yet.
func (w *World) Input() *catalog.Input {
	in := &catalog.Input{Code: catalog.InputReady}
	switch w.Rand.IntN(8) {
	case 0:
		in.Code = catalog.InputPending
	case 1:
		in.Code = 30002
	}
	if w.Rand.IntN(2) == 0 {
		in.URL = w.URL()
	} else {
		in.Hosted = [16]byte{1, byte(w.Rand.UintN(256)), byte(w.Rand.UintN(256))}
	}
	w.Relabel(in)
	if w.Rand.IntN(2) == 0 {
		in.Meta = w.Meta()
	}
	if w.Rand.IntN(2) == 0 {
		p := w.Point()
		in.Geo = &p
	}
	if w.Rand.IntN(6) == 0 {
		w.Edit(in)
	}
	return in
}

// URL returns one of few URLs.
func (w *World) URL() string { return fmt.Sprintf("https://example.com/%d.jpg", w.Rand.IntN(urls)) }

// Concept returns the id of a public, a custom or an unknown concept.
func (w *World) Concept() string {
	all := slices.Concat(Concepts, CustomConcepts, []string{"nobody"})
	return all[w.Rand.IntN(len(all))]
}

// Relabel replaces the labels of an input by random ones.
func (w *World) Relabel(in *catalog.Input) {
	in.Labels = nil
	for range w.Rand.IntN(4) {
		l := log.Label{Concept: w.Concept(), Value: log.Value(w.Rand.IntN(3))}
		if !slices.ContainsFunc(in.Labels, func(x catalog.Label) bool { return x.Concept == l.Concept }) {
			in.Labels = append(in.Labels, catalog.Label{Label: l})
		}
	}
}

// Edit changes the prediction of one concept of an input.
func (w *World) Edit(in *catalog.Input) {
	e := catalog.Edit{OutputEdit: log.OutputEdit{Concept: w.Concept(), Value: float32(w.Rand.IntN(11)) / 10, Removed: w.Rand.IntN(4) == 0}}
	in.Edits = slices.DeleteFunc(in.Edits, func(x catalog.Edit) bool { return x.Concept == e.Concept })
	in.Edits = append(in.Edits, e)
}

// Point returns a place, often a special one.
func (w *World) Point() log.Point {
	special := []log.Point{
		{Longitude: 180},
		{Longitude: -180},
		{Longitude: 179.9, Latitude: 1},
		{Longitude: -179.9, Latitude: -1},
		{Latitude: 90},
		{Latitude: -90, Longitude: 120},
		{Latitude: 89.5, Longitude: -60},
		{},
		{Longitude: 13.4, Latitude: 52.5},
	}
	switch w.Rand.IntN(3) {
	case 0:
		return special[w.Rand.IntN(len(special))]
	case 1:
		return log.Point{Longitude: float64(w.Rand.IntN(37)*10 - 180), Latitude: float64(w.Rand.IntN(19)*10 - 90)}
	}
	return log.Point{
		Longitude: 360*w.Rand.Float64() - 180,
		Latitude:  math.Asin(2*w.Rand.Float64()-1) * 180 / math.Pi,
	}
}

// Meta returns a random document of metadata.
func (w *World) Meta() catalog.Meta {
	return catalog.Meta{{JSON: []byte(w.JSON(4))}}
}

// JSON returns a random value of few names and scalars, in many shapes, nested up to depth.
func (w *World) JSON(depth int) string {
	scalars := []string{`1`, `1.0`, `10e-1`, `2`, `-0`, `0`, `true`, `false`, `null`, `"x"`, `"y"`, `"\u0078"`, `""`, `"1"`}
	kind := w.Rand.IntN(6)
	switch {
	case depth == 0 || kind < 2:
		return scalars[w.Rand.IntN(len(scalars))]
	case kind == 2:
		var parts []string
		for range w.Rand.IntN(4) {
			parts = append(parts, w.JSON(depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case kind == 3 && w.Rand.IntN(8) == 0:
		return strings.Repeat(`{"a":`, 9) + w.JSON(0) + strings.Repeat("}", 9)
	}
	var parts []string
	for _, name := range []string{"a", "b", "c", "d e"} {
		if w.Rand.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf("%q:%s", name, w.JSON(depth-1)))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Some returns a live input, nil when there is none.
func (w *World) Some() *catalog.Input {
	ords := w.Ords()
	if len(ords) == 0 {
		return nil
	}
	return w.Live[ords[w.Rand.IntN(len(ords))]]
}

// Churn does n random changes in one batch.
func (w *World) Churn(t testing.TB, n int) {
	t.Helper()
	w.Commit(t, func(tx *Tx) {
		touched := map[uint32]bool{}
		for range n {
			in := w.Some()
			if in == nil || touched[in.Ord] || w.Rand.IntN(5) < 2 {
				tx.Insert(w.Input(), w.RandomDerived())
				continue
			}
			touched[in.Ord] = true
			w.change(tx, in)
		}
	})
}

func (w *World) change(tx *Tx, in *catalog.Input) {
	switch w.Rand.IntN(6) {
	case 0:
		tx.Delete(in)
	case 1:
		tx.Update(in, nil, w.Relabel)
	case 2:
		tx.Update(in, nil, func(in *catalog.Input) { in.Meta = w.Meta() })
	case 3:
		tx.Update(in, nil, func(in *catalog.Input) {
			p := w.Point()
			in.Geo = &p
		})
	case 4:
		tx.Update(in, nil, w.Edit)
	default:
		if in.Code == catalog.InputPending {
			tx.Update(in, w.RandomDerived(), func(in *catalog.Input) { in.Code = catalog.InputReady })
		}
	}
}
