// Command bake creates the bundles of package models from a release of the network.
//
//	general.onnx ─┬─ ranges: our raster and float32 engine on the calibration pictures
//	              └─▶ quantise ─▶ network.plan (int8) ──────┐
//	concepts, calibration, names, background, heads ────────┼─▶ general-v1.3, food-items-v1.0, color, general-embed
//	labelled pictures ─▶ measure float32 against int8 ──────┘   with manifests, cards, notices
//
// `make models` runs it; it is not part of the product. models/README.md specifies the formats. The same
// input gives the same bytes, because float sums that decide a byte use the kernels' generic path.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	var from, eval, photos, to string
	var only bool
	flag.StringVar(&from, "from", "../shared/model-next", "`folder` with general.onnx, tables, names and calibration pictures")
	flag.StringVar(&eval, "eval", "../shared/eval", "`folder` of labelled pictures to evaluate on")
	flag.StringVar(&photos, "photos", "../shared/photos", "`folder` of photos with their visible labels")
	flag.StringVar(&to, "to", "models", "`folder` for the bundles")
	flag.BoolVar(&only, "similarity", false, "measure only the similarity of pictures, with the bundles in --to, and update their manifest")
	flag.Parse()
	var err error
	if !only {
		err = bake(from, eval, photos, to)
	}
	if err == nil {
		err = measurePairs(eval, photos, to)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bake:", err)
		os.Exit(1)
	}
}

// measurePairs measures the similarity of pictures with bundles and adds it to their manifest.
func measurePairs(eval, photos, bundles string) error {
	set, err := readLabelled(eval, "pictures")
	if err != nil {
		return err
	}
	shots, err := readLabelled(photos, "")
	if err != nil {
		return err
	}
	logf("similarity of %d pictures", len(set)+len(shots))
	s, err := measureSimilarity(bundles, append(set, shots...))
	if err != nil {
		return err
	}
	logf("%+v", s)
	return storeSimilarity(bundles, s)
}

// bake reads a release, quantises, measures and writes the four bundles.
func bake(from, eval, photos, to string) error {
	r, err := readRelease(from)
	if err != nil {
		return err
	}
	pictures, err := folder(from + "/calibration")
	if err != nil {
		return err
	}
	logf("activation ranges from %d pictures", len(pictures))
	m, err := measureRanges(r.graph, pictures, embedding, logits)
	if err != nil {
		return err
	}
	quantised, err := quantise(m.network, m.ranges, embedding, logits)
	if err != nil {
		return err
	}
	logf("measuring on %s and %s", eval, photos)
	figures, err := measure(r, quantised, eval, photos)
	if err != nil {
		return err
	}
	figures.Calibrated = len(pictures)
	logf("%+v", figures)
	return writeBundles(to, r, quantised, figures)
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, "bake: "+format+"\n", args...) }
