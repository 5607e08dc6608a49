// Command compare measures Sightline and the software that people would pick instead, in one interleaved run.
// In each round every case runs our code, then the peer, so that a machine whose speed drifts slows
// both. Figures are CPU time of one thread, the median of the rounds. The ratio is the median of the rounds' ratios.
// A browser does not report CPU time, so its figures are wall time. The figures of a server are the CPU time of its process, or
// wall time if the case measures waiting.
//
//	[SIGHTLINE_CPU=avx2] go run ./models/compare [-rounds 5] [-n 20] [-only REGEXP]
//
// It prints the processor, then README.md's table, ready to paste. SIGHTLINE_CPU forces a family of our kernels: avx512,
// avx2 or plain. No peer has a setting that restricts it. With avx2, where the processor can trap CPUID and gcc is installed, the
// library of the folder mask hides the instructions after AVX2 from the peers, except for the browser. Otherwise the peers use all
// instructions of the processor.
//
// The peers are onnxruntime-node, onnxruntime-web and sharp, installed by npm ci in this folder; Go's
// image/jpeg with golang.org/x/image; hnswlib and scikit-learn, which are skipped unless Debian's packages libhnswlib-dev, g++
// and python3-sklearn are installed. bin/sightline-edge is compared with bin/sightline. The networks come from the test data
// next to the project.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/sightline-dev/sightline/core/cpu"
)

func main() {
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	n := flag.Int("n", 20, "repetitions of each side in a round")
	shared := flag.String("shared", "../shared", "folder with the folders model-next, onnx and photos")
	only := flag.String("only", "", "measure only cases with a matching name")
	flag.Parse()
	match, err := regexp.Compile(*only)
	if err == nil {
		err = force(os.Getenv("SIGHTLINE_CPU"))
	}
	if err == nil {
		err = run(*rounds, *n, *shared, match)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// comparison is one line of the table.
type comparison struct {
	work, rival string
	kernels     string  // family of kernels; "": those that this process may use
	bar         bars    // maximum ratio
	ours        measure // milliseconds of one repetition of n
	peer        measure
}

type measure func(n int) (ms float64, err error)

func (c *comparison) name() string { return c.work + ", " + c.rival }

// bars are the promised maximum ratios, by the kernels that this process may use; 0 means no promise.
type bars struct{ avx512, avx2 float64 }

func both(ratio float64) bars { return bars{ratio, ratio} }

func (b bars) now() float64 {
	switch level() {
	case cpu.AVX512VNNI:
		return b.avx512
	case cpu.AVX2:
		return b.avx2
	}
	return 0
}

// missing is the error of a peer that is not installed.
type missing string

func (m missing) Error() string { return string(m) }

func run(rounds, n int, shared string, only *regexp.Regexp) error {
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if shared, err = filepath.Abs(shared); err != nil { // the peers run in another folder
		return err
	}
	if err := mask(dir); err != nil {
		return err
	}
	b := &bench{dir: dir, shared: shared}
	defer b.stop()
	machine, short, err := processor()
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n| work | kernels | Sightline | peer | ratio | processor |\n|---|---|---|---|---|---|\n", machine)
	for _, c := range b.cases() {
		if !only.MatchString(c.name()) {
			continue
		}
		var m missing
		r, err := c.run(rounds, n)
		switch {
		case errors.As(err, &m):
			fmt.Fprintf(os.Stderr, "%s: skipped: %s\n", c.name(), m)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", c.name(), err)
		}
		if c.kernels == "" {
			c.kernels = kernels()
		}
		fmt.Printf("| %s | %s | %s | %s %s | %.2f (%.2f–%.2f) | %s |\n", c.work, c.kernels, duration(median(r.ours)), c.rival,
			duration(median(r.peer)), median(r.ratios), slices.Min(r.ratios), slices.Max(r.ratios), short)
		if bar := c.bar.now(); bar > 0 && median(r.ratios) > bar {
			fmt.Fprintf(os.Stderr, "%s: the ratio is more than %.3g\n", c.name(), bar)
		}
	}
	return nil
}

// result has the figures of a comparison, by round.
type result struct{ ours, peer, ratios []float64 }

func (c *comparison) run(rounds, n int) (r result, err error) {
	for range rounds {
		ours, err := c.ours(n)
		if err != nil {
			return r, fmt.Errorf("ours: %w", err)
		}
		peer, err := c.peer(n)
		if err != nil {
			return r, fmt.Errorf("peer: %w", err)
		}
		r.ours, r.peer, r.ratios = append(r.ours, ours), append(r.peer, peer), append(r.ratios, ours/peer)
	}
	return r, nil
}

func duration(ms float64) string {
	if ms < 1 {
		return fmt.Sprintf("%.3g µs", ms*1000)
	}
	return fmt.Sprintf("%.3g ms", ms)
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
