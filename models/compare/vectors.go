package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/index/hnsw"
	"github.com/sightline-dev/sightline/core/predict"
)

// The set on which graphs are compared: vectors around some centres, and queries of the same kind.
const (
	setVectors = 100_000
	setQueries = 1_000
	setCentres = 2_000
	setSpread  = 0.8 // distance of a vector from its centre
	nearest    = 10
	wanted     = 0.99 // minimum recall
)

// vectors has the set and our graph of it.
type vectors struct {
	base, queries   []float32 // unit vectors one after the other
	answers         [][]int32 // nearest vectors of each query
	ours            []predict.Embedding
	queryEmbeddings []predict.Embedding
	graph           *hnsw.Graph
	ef              int // smallest ef with which our graph has the wanted recall
	peer            *program
	peerEf          int
	inserts, others float64 // milliseconds of an insert, ours and the peer's, once both have built
}

// graph compares core/index/hnsw with hnswlib. It measures a build, which takes minutes, only in the first round. It measures
// searches with the smallest ef of a list that gives the wanted recall.
func (b *bench) graph() []comparison {
	v := &vectors{peer: b.program(b.dir, "libhnswlib-dev", filepath.Join(b.dir, "hnswlib"), filepath.Join(b.dir, "set"))}
	prepare := sync.OnceValue(func() error { return v.make(b.dir) })
	after := func(f func() (float64, error)) measure {
		return func(int) (float64, error) {
			if err := prepare(); err != nil {
				return 0, err
			}
			return f()
		}
	}
	const rival = "hnswlib"
	work := fmt.Sprintf("%d,000 × %d vectors", setVectors/1000, predict.Dim)
	return []comparison{
		{work: work + ", an insert", rival: rival, bar: both(1 / 2.0), ours: after(v.build), peer: after(v.buildPeer)},
		{work: work + ", a query at recall 0.99", rival: rival, bar: both(1 / 2.3), ours: after(v.search), peer: after(v.searchPeer)},
	}
}

// make compiles the peer, draws the set and writes it to a file for the peer.
func (v *vectors) make(dir string) error {
	target := "native"
	if masked != nil {
		target = "haswell"
	}
	compiled := exec.Command("g++", "-O3", "-march="+target, "models/compare/hnswlib/main.cpp", "-o", v.peer.command[0])
	if text, err := compiled.CombinedOutput(); err != nil {
		return missing(fmt.Sprintf("libhnswlib-dev and g++ are needed: %v %.200s", err, text))
	}
	rng := rand.New(rand.NewPCG(42, 0))
	centres := make([]float32, setCentres*predict.Dim)
	for c := range setCentres {
		drawUnit(rng, centres[c*predict.Dim:][:predict.Dim], nil, 0)
	}
	draw := func(n int) (all []float32, quantised []predict.Embedding, err error) {
		all, quantised = make([]float32, n*predict.Dim), make([]predict.Embedding, n)
		for i := range n {
			u := all[i*predict.Dim:][:predict.Dim]
			drawUnit(rng, u, centres[rng.IntN(setCentres)*predict.Dim:][:predict.Dim], setSpread)
			if quantised[i], err = predict.NewEmbedding(u); err != nil {
				return nil, nil, err
			}
		}
		return all, quantised, nil
	}
	var err error
	if v.base, v.ours, err = draw(setVectors); err != nil {
		return err
	}
	if v.queries, v.queryEmbeddings, err = draw(setQueries); err != nil {
		return err
	}
	v.answers = make([][]int32, setQueries)
	var answers []int32
	for i := range v.answers {
		v.answers[i] = exact(v.base, v.queries[i*predict.Dim:][:predict.Dim])
		answers = append(answers, v.answers[i]...)
	}
	for name, data := range map[string]any{"set.base": v.base, "set.queries": v.queries, "set.answers": answers} {
		raw, err := binary.Append(nil, binary.LittleEndian, data)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// drawUnit sets u to a random unit vector. With a centre the vector is about spread away from it.
func drawUnit(rng *rand.Rand, u, centre []float32, spread float64) {
	sum := 0.0
	for i := range u {
		x := rng.NormFloat64()
		if centre != nil {
			x = float64(centre[i]) + x*spread/math.Sqrt(float64(len(u)))
		}
		u[i] = float32(x)
		sum += x * x
	}
	for i := range u {
		u[i] /= float32(math.Sqrt(sum))
	}
}

// exact returns the vectors of base that are nearest to q, by their products in float32.
func exact(base, q []float32) []int32 {
	type hit struct {
		product float32
		of      int32
	}
	var best []hit
	for i := range len(base) / len(q) {
		u := base[i*len(q):][:len(q)]
		var sums [4]float32
		for j := 0; j < len(u); j += 4 {
			sums[0] += u[j] * q[j]
			sums[1] += u[j+1] * q[j+1]
			sums[2] += u[j+2] * q[j+2]
			sums[3] += u[j+3] * q[j+3]
		}
		h := hit{sums[0] + sums[1] + sums[2] + sums[3], int32(i)}
		if len(best) == nearest && h.product <= best[nearest-1].product {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, h, func(a, b hit) int {
			if a.product > b.product {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, h)[:min(len(best)+1, nearest)]
	}
	var of []int32
	for _, h := range best {
		of = append(of, h.of)
	}
	return of
}

func (v *vectors) build() (float64, error) {
	if v.graph != nil {
		return v.inserts, nil
	}
	var err error
	if v.graph, err = hnsw.New(hnsw.Options{Dim: predict.Dim}); err != nil {
		return 0, err
	}
	next := 0
	v.inserts, err = meanCPUTime(setVectors, func() error {
		e := &v.ours[next]
		v.graph.Insert(uint32(next), e.Q[:], e.Scale)
		next++
		return nil
	})
	return v.inserts, err
}

func (v *vectors) buildPeer() (float64, error) {
	if v.others == 0 {
		a, err := v.peer.ask(map[string]any{"ef": 0})
		if err != nil {
			return 0, err
		}
		v.others = a.CPU
	}
	return v.others, nil
}

// efs are the sizes of the candidate list that leastEf tries, in order.
var efs = []int{10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 384, 512}

// leastEf returns the first of efs that gives the wanted recall.
func leastEf(recall func(ef int) (float64, error)) (int, error) {
	for _, ef := range efs {
		r, err := recall(ef)
		if err != nil || r >= wanted {
			return ef, err
		}
	}
	return 0, fmt.Errorf("recall is below %v at ef %d", wanted, efs[len(efs)-1])
}

func (v *vectors) search() (float64, error) {
	if _, err := v.build(); err != nil {
		return 0, err
	}
	var hits []hnsw.Hit
	once := func(ef int) (ms, recall float64, err error) {
		found, i := 0, 0
		ms, err = meanCPUTime(setQueries, func() error {
			hits = v.graph.Search(hits[:0], v.queryEmbeddings[i].Q[:], v.queryEmbeddings[i].Scale, nearest, ef, nil)
			for _, h := range hits {
				if slices.Contains(v.answers[i], int32(h.Node)) {
					found++
				}
			}
			i++
			return nil
		})
		return ms, float64(found) / nearest / setQueries, err
	}
	if v.ef == 0 {
		ef, err := leastEf(func(ef int) (float64, error) {
			_, recall, err := once(ef)
			return recall, err
		})
		if err != nil {
			return 0, err
		}
		v.ef = ef
	}
	ms, _, err := once(v.ef)
	return ms, err
}

func (v *vectors) searchPeer() (float64, error) {
	if _, err := v.buildPeer(); err != nil {
		return 0, err
	}
	ask := func(ef int) (answer, error) { return v.peer.ask(map[string]any{"ef": ef}) }
	if v.peerEf == 0 {
		ef, err := leastEf(func(ef int) (float64, error) {
			a, err := ask(ef)
			return a.Recall, err
		})
		if err != nil {
			return 0, err
		}
		v.peerEf = ef
	}
	a, err := ask(v.peerEf)
	return a.CPU, err
}
