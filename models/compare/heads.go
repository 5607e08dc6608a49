package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
)

// The examples that a head is trained on, around one centre per concept.
const (
	headExamples = 1_000
	headConcepts = 20
)

// head compares a training and its evaluation by five folds with the same by scikit-learn's LogisticRegression, on the same examples and
// with the same penalty.
func (b *bench) head() comparison {
	const python = "/usr/bin/python3" // Debian's Python: Debian's packages exist only for it
	sklearn := b.program("models/compare", "python3-sklearn", python, "peer.py", filepath.Join(b.dir, "examples"))
	installed := sync.OnceValue(func() error {
		if text, err := exec.Command(python, "-c", "import sklearn").CombinedOutput(); err != nil {
			return missing(fmt.Sprintf("python3-sklearn is needed: %v %.200s", err, text))
		}
		return nil
	})
	problem := sync.OnceValues(func() (*train.Problem, error) { return headProblem(filepath.Join(b.dir, "examples")) })
	return comparison{
		work: fmt.Sprintf("training of a head and five folds, %d,000 × %d × %d", headExamples/1000, predict.Dim, headConcepts), rival: "scikit-learn", bar: both(0.25),
		ours: func(n int) (float64, error) {
			if err := installed(); err != nil {
				return 0, err
			}
			p, err := problem()
			if err != nil {
				return 0, err
			}
			return repeat(n, func() error {
				f := train.NewFitter(p)
				for !f.Step() {
				}
				return f.Err()
			})
		},
		peer: sklearn.time(map[string]any{}),
	}
}

// headProblem draws the examples and writes them to a file for the peer, each after its concept.
func headProblem(path string) (*train.Problem, error) {
	rng := rand.New(rand.NewPCG(5, 1))
	p := &train.Problem{Exclusive: true, Closed: true}
	centres := make([][]float32, headConcepts)
	for c := range centres {
		p.Concepts = append(p.Concepts, fmt.Sprint(c))
		centres[c] = make([]float32, predict.Dim)
		drawUnit(rng, centres[c], nil, 0)
	}
	var raw []byte
	u := make([]float32, predict.Dim)
	for i := range headExamples {
		c := i % headConcepts
		drawUnit(rng, u, centres[c], 1.1)
		e, err := predict.NewEmbedding(u)
		if err != nil {
			return nil, err
		}
		labels := make([]int8, headConcepts)
		labels[c] = train.True
		p.Examples = append(p.Examples, train.Example{Embedding: &e, Labels: labels})
		if raw, err = binary.Append(raw, binary.LittleEndian, append([]float32{float32(c)}, u...)); err != nil {
			return nil, err
		}
	}
	return p, os.WriteFile(path, raw, 0o600)
}
