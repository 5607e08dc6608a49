//go:build wasip1

// Command analyse is a guest that only analyses pictures. Tests measure the host's kernels with it.
package main

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/models"
)

var (
	analyser *predict.Analyser
	pictures [][]byte
	last     predict.Analysis
)

// load reads the JPEG files of the folder in the environment variable PICTURES, and returns their number.
//
//go:wasmexport load
func load() int32 {
	set, err := predict.Load(models.FS)
	if err != nil {
		panic(err)
	}
	analyser = set.NewAnalyser(raster.Limits{})
	names, err := filepath.Glob(filepath.Join(os.Getenv("PICTURES"), "*.jpg"))
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		pictures = append(pictures, b)
	}
	runtime.GC()
	return int32(len(pictures))
}

// analyse computes the parts want of the analysis of picture i.
//
//go:wasmexport analyse
func analyse(i, want int32) {
	a, err := analyser.Analyse(pictures[i], raster.Crop{}, predict.Want(want))
	if err != nil {
		panic(err)
	}
	last = a
	runtime.Gosched()
}

// value returns the value of general concept i in the last analysis.
//
//go:wasmexport value
func value(i int32) float32 { return last.General[i] }

func main() {}
