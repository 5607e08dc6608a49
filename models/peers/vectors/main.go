// Command vectors measures the graph of core/index/hnsw on a set of vectors: build, memory, opening, search at rising
// ef until recall@10 is 0.99, exact scan, and filtered search.
//
//	go run ./models/peers/vectors PREFIX N DIM [M [EFCONSTRUCTION]]
//
// PREFIX.base.f32 and .query.f32 hold unit vectors, .gt.i32 the ten nearest of each of 1,000 queries
// by float32, .attr.u8 a number below 100 for each vector, .gt10.i32 and .gt1.i32 the ten nearest
// among those below 10 and below 1. The lines are those of the peers on the same files, so
// their ratios can be taken; figures are CPU time of the process.
//
// It is no part of make bench, which needs Go and Node alone: the files are made with Python's numpy,
// and hnswlib comes with a C++ compiler or as Debian's package. Run it and the peer's program in
// turn on the same files. What the graph costs by itself make bench measures by the benchmarks of core/index/hnsw.
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sys/unix"

	"github.com/sightline-dev/sightline/core/index/hnsw"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

// set is a set of vectors with its queries and their answers.
type set struct {
	prefix     string
	dim        int
	q          []int16 // (n, dim)
	scale      []float32
	queries    []int16
	queryScale []float32
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: vectors PREFIX N DIM [M [EFCONSTRUCTION]]")
	}
	var numbers [4]int
	for i, a := range args[1:min(len(args), 5)] {
		v, err := strconv.Atoi(a)
		if err != nil {
			return err
		}
		numbers[i] = v
	}
	runtime.GOMAXPROCS(1)
	s := &set{prefix: args[0], dim: numbers[1]}
	var err error
	if s.q, s.scale, err = quantised(s.prefix+".base.f32", s.dim); err != nil {
		return err
	}
	if s.queries, s.queryScale, err = quantised(s.prefix+".query.f32", s.dim); err != nil {
		return err
	}
	n := numbers[0]
	if len(s.scale) < n {
		return fmt.Errorf("%d vectors, want %d", len(s.scale), n)
	}
	o := hnsw.Options{Dim: s.dim, M: numbers[2], EfConstruction: numbers[3]}
	g, err := hnsw.New(o)
	if err != nil {
		return err
	}
	s.build(g, n)
	if err := s.reopen(g, o, n); err != nil {
		return err
	}
	if err := s.searches(g, "", nil, ".gt.i32"); err != nil {
		return err
	}
	attr, err := os.ReadFile(s.prefix + ".attr.u8")
	if err != nil {
		return err
	}
	for _, f := range []struct {
		percent byte
		answers string
	}{{10, ".gt10.i32"}, {1, ".gt1.i32"}} {
		allow := roaring.New()
		for i, a := range attr[:n] {
			if a < f.percent {
				allow.Add(uint32(i))
			}
		}
		if err := s.searches(g, fmt.Sprintf(" filter %d%%", f.percent), allow, f.answers); err != nil {
			return err
		}
	}
	var hits []hnsw.Hit
	took := cpu(func() {
		for i := range 20 {
			hits = g.Scan(hits[:0], s.query(i), s.queryScale[i], 10, nil)
		}
	})
	fmt.Printf("ours exact scan %.2f ns per %d-d distance\n", float64(took.Nanoseconds())/20/float64(n), s.dim)
	return nil
}

func (s *set) query(i int) []int16 { return s.queries[i*s.dim : (i+1)*s.dim] }

func (s *set) build(g *hnsw.Graph, n int) {
	debug.FreeOSMemory()
	before := resident()
	start := time.Now()
	took := cpu(func() {
		for i := range n {
			g.Insert(uint32(i), s.q[i*s.dim:(i+1)*s.dim], s.scale[i])
		}
	})
	wall := time.Since(start)
	debug.FreeOSMemory()
	fmt.Printf("ours n=%d d=%d build wall %.1f s cpu %.1f s (%.0f inserts/s per core) index RSS %.1f MB (%.0f B/vector), counted %.0f B/vector\n",
		n, s.dim, wall.Seconds(), took.Seconds(), float64(n)/took.Seconds(), float64(resident()-before)/1e6,
		float64(resident()-before)/float64(n), float64(g.Bytes())/float64(n))
}

// reopen writes the graph to a store in memory and opens it again.
func (s *set) reopen(g *hnsw.Graph, o hnsw.Options, n int) error {
	var b kv.Batch
	written := cpu(func() { g.Flush(&b, []byte("graph/"), uint64(n)) })
	store := memkv.New()
	if err := store.Apply(&b); err != nil {
		return err
	}
	var err error
	opened := cpu(func() {
		_, err = hnsw.Open(store, []byte("graph/"), o, func(yield func(uint32, []int16, float32) bool) error {
			for i := range n {
				if !yield(uint32(i), s.q[i*s.dim:(i+1)*s.dim], s.scale[i]) {
					break
				}
			}
			return nil
		})
	})
	fmt.Printf("ours flush cpu %.3f s, %.1f MB of pages; open cpu %.3f s\n", written.Seconds(), float64(len(b.Bytes()))/1e6, opened.Seconds())
	return err
}

func (s *set) searches(g *hnsw.Graph, name string, allow *roaring.Bitmap, answers string) error {
	raw, err := os.ReadFile(s.prefix + answers)
	if err != nil {
		return err
	}
	var hits []hnsw.Hit
	for _, ef := range []int{10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384} {
		var rates []float64
		found := 0
		for range 3 {
			found = 0
			took := cpu(func() {
				for i := range s.queryScale {
					hits = g.Search(hits[:0], s.query(i), s.queryScale[i], 10, ef, allow)
					for k := range 10 {
						want := binary.LittleEndian.Uint32(raw[4*(10*i+k):])
						if slices.ContainsFunc(hits, func(h hnsw.Hit) bool { return h.Node == want }) {
							found++
						}
					}
				}
			})
			rates = append(rates, float64(len(s.queryScale))/took.Seconds())
		}
		slices.Sort(rates)
		recall := float64(found) / 10 / float64(len(s.queryScale))
		fmt.Printf("ours%s ef=%d recall@10 %.4f QPS/core %.0f (cpu)\n", name, ef, recall, rates[1])
		if recall >= 0.995 {
			break
		}
	}
	return nil
}

// quantised reads float32 vectors as predict.NewEmbedding would keep them.
func quantised(path string, dim int) ([]int16, []float32, error) {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, nil, err
	}
	n := len(raw) / 4 / dim
	q, scale := make([]int16, n*dim), make([]float32, n)
	row := make([]float64, dim)
	for i := range n {
		m, sum := 0.0, int64(0)
		for j := range row {
			row[j] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*(i*dim+j):])))
			m = max(m, math.Abs(row[j]))
		}
		for j, x := range row {
			v := int64(math.Round(x / m * math.MaxInt16))
			q[i*dim+j] = int16(v)
			sum += v * v
		}
		scale[i] = float32(1 / math.Sqrt(float64(sum)))
	}
	return q, scale, nil
}

// cpu is the processor time that the process spends on f, the collector's included.
func cpu(f func()) time.Duration {
	start := processTime()
	f()
	return processTime() - start
}

func processTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err) // every kernel that Go runs on has this clock
	}
	return time.Duration(now.Nano())
}

// resident is the resident memory of the process, in bytes.
func resident() int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(b))[1])
	return pages * os.Getpagesize()
}
