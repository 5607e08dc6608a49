// Command peers measures Sightline and the software that people would pick instead, in one interleaved run:
// in each round every case runs ours, then the peer, so that a machine whose speed drifts slows
// both. Figures are CPU time of one thread, the median of the rounds; the ratio is taken round by round.
// In a browser, which does not tell CPU time, they are the clock's; of a server, its process's, but where waiting is
// what is measured.
//
//	go run ./models/peers [-rounds 5] [-n 20] [-only REGEXP]
//
// The peers are onnxruntime-node, onnxruntime-web and sharp, installed by npm ci in this folder, and Go's
// image/jpeg with golang.org/x/image; bin/sightline-edge is compared with bin/sightline. The networks come from the test data next to the project.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"
)

func main() {
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	n := flag.Int("n", 20, "repetitions of each side in a round")
	shared := flag.String("shared", "../shared", "folder with the folders model and onnx")
	only := flag.String("only", "", "measure only cases with a matching name")
	flag.Parse()
	match, err := regexp.Compile(*only)
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
	name  string
	limit float64 // the ratio that performance.md allows; 0 where none is set
	ours  func(n int) (ms float64, err error)
	peer  func(n int) (ms float64, err error)
}

func run(rounds, n int, shared string, only *regexp.Regexp) error {
	node, err := startNode("peer.mjs")
	if err != nil {
		return err
	}
	defer node.stop()
	browser, err := startNode("browser.mjs")
	if err != nil {
		return err
	}
	defer browser.stop()
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if shared, err = filepath.Abs(shared); err != nil { // node runs in a folder of its own
		return err
	}
	cases, err := comparisons(node, dir, shared)
	if err != nil {
		return err
	}
	inBrowser, err := browserCases(browser, dir, shared)
	if err != nil {
		return err
	}
	atEdge, stop, err := edgeCase(dir, shared)
	if err != nil {
		return err
	}
	defer stop()
	besideTraining, end, err := trainingCase(dir, shared)
	if err != nil {
		return err
	}
	defer end()
	cases = append(append(cases, inBrowser...), atEdge, besideTraining)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "case\tours ms\tpeer ms\tours/peer\tmin\tmax\tat most\t")
	for _, c := range cases {
		if !only.MatchString(c.name) {
			continue
		}
		var ours, peer, ratios []float64
		for range rounds {
			a, err := c.ours(n)
			if err != nil {
				return fmt.Errorf("%s: ours: %w", c.name, err)
			}
			b, err := c.peer(n)
			if err != nil {
				return fmt.Errorf("%s: peer: %w", c.name, err)
			}
			ours, peer, ratios = append(ours, a), append(peer, b), append(ratios, a/b)
		}
		limit := "-"
		if c.limit > 0 {
			limit = fmt.Sprintf("%.3g", c.limit)
		}
		fmt.Fprintf(out, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t\n", c.name, median(ours), median(peer),
			median(ratios), slices.Min(ratios), slices.Max(ratios), limit)
	}
	return out.Flush()
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
