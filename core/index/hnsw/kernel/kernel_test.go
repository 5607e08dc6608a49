package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sightline-dev/sightline/core/cpu"
)

// atEveryLevel runs f as a subtest for each level that the machine has.
func atEveryLevel(t *testing.T, f func(t *testing.T)) {
	for level := range Levels.Each() {
		t.Run(level.String(), f)
	}
}

// vectorOf returns a random vector, sometimes with extreme elements, and the scale that makes it a unit vector.
func vectorOf(rng *rand.Rand, dim int) ([]int16, float32) {
	q, n := make([]int16, dim), 0.0
	kind := rng.IntN(7)
	for i := range q {
		switch kind {
		case 0:
			q[i] = [...]int16{-32768, 32767}[rng.IntN(2)]
		case 1:
			q[i] = -32768
		case 2:
			q[i] = 32767
		case 3:
			q[i] = int16(rng.IntN(3) - 1)
		default:
			q[i] = int16(rng.Uint32())
		}
		n += float64(q[i]) * float64(q[i])
	}
	if n == 0 {
		return q, 0
	}
	return q, float32(1 / math.Sqrt(n))
}

func randomVectors(t *testing.T, rng *rand.Rand, dim, rows int) (*Vectors, [][]int16, []float32) {
	t.Helper()
	v, err := NewVectors(dim)
	if err != nil {
		t.Fatal(err)
	}
	var qs [][]int16
	var scales []float32
	for i := range rows {
		q, scale := vectorOf(rng, dim)
		v.Grow(i + 1)
		v.Set(uint32(i), q, scale)
		qs, scales = append(qs, q), append(scales, scale)
	}
	return v, qs, scales
}

func rowsOf(rng *rand.Rand, n, below int) []uint32 {
	rows := make([]uint32, n)
	for i := range rows {
		rows[i] = uint32(rng.IntN(below))
	}
	return rows
}

// want returns the distance as the package documents it. It shares no code with the kernels.
func want(a, b []int16, scaleA, scaleB float32) uint32 {
	product := int64(0)
	for i := range a {
		product += int64(2*(a[i]>>8)+1) * int64(2*(b[i]>>8)+1)
	}
	s := float32(float32(product)*scaleB) * float32(scaleA*(1<<43))
	s = float32(math.Min(math.Max(float64(s), -1.5*(1<<29)), 1.5*(1<<29)))
	return uint32(1<<30 - int64(math.RoundToEven(float64(s))))
}

func TestDistancesAndDots(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for _, dim := range []int{32, 64, 96, 128, 160, 256, 512, 1024, MaxDim} {
			t.Run(fmt.Sprint(dim), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(dim), 1))
				v, qs, scales := randomVectors(t, rng, dim, 70)
				for n := range 40 {
					rows := rowsOf(rng, n, len(qs))
					q, scale := vectorOf(rng, dim)
					var z Query
					z.Set(v, q, scale)
					distances, dots := make([]uint32, n), make([]int64, n)
					v.Distances(distances, &z, rows)
					v.Dots(dots, &z, rows)
					from := uint32(rng.IntN(len(qs)))
					row, between := v.Row(from), make([]uint32, n)
					v.Distances(between, &row, rows)
					for i, r := range rows {
						if w := want(q, qs[r], scale, scales[r]); distances[i] != w {
							t.Fatalf("distance %d of %d = %d, want %d", i, n, distances[i], w)
						}
						if w := want(qs[from], qs[r], scales[from], scales[r]); between[i] != w {
							t.Fatalf("distance between rows %d of %d = %d, want %d", i, n, between[i], w)
						}
						dot := int64(0)
						for j := range q {
							dot += int64(q[j]) * int64(qs[r][j])
						}
						if dots[i] != dot {
							t.Fatalf("dot %d of %d = %d, want %d", i, n, dots[i], dot)
						}
					}
				}
			})
		}
	})
}

// TestSet compares the stored bytes and the squares of vectors with their definitions.
func TestSet(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for _, dim := range []int{32, 64, 96, 256, MaxDim} {
			rng := rand.New(rand.NewPCG(uint64(dim), 2))
			v, _, _ := randomVectors(t, rng, dim, 1)
			for range 200 {
				q, scale := vectorOf(rng, dim)
				got := v.Set(0, q, scale)
				want, sum := Squares{}, int32(0)
				for i, x := range q {
					high, low := int(math.Floor(float64(x)/256)), int(x)&255
					if int(v.highOf(0)[i]) != high || int(v.lowOf(0)[i]) != low {
						t.Fatalf("%d is stored as %d and %d, want %d and %d", x, v.highOf(0)[i], v.lowOf(0)[i], high, low)
					}
					sum += int32(high)
					want.All += int64(x) * int64(x)
					want.Rest += int64(low-128) * int64(low-128)
				}
				if got != want || v.meta[0] != (meta{-510 * sum, scale}) {
					t.Fatalf("dim %d: %+v and %+v, want %+v and %d", dim, got, v.meta[0], want, -510*sum)
				}
			}
		}
	})
}

// TestGrowing appends more rows than fit in the first chunks.
func TestGrowing(t *testing.T) {
	const rows = 2*chunkRows + 5
	rng := rand.New(rand.NewPCG(3, 3))
	v, err := NewVectors(32)
	if err != nil {
		t.Fatal(err)
	}
	l := NewLists(4)
	q, scale := vectorOf(rng, 32)
	for row := range uint32(rows) {
		v.Grow(int(row) + 1)
		l.Grow(int(row) + 1)
		q[0], l.At(row)[0] = int16(row), row
		v.Set(row, q, scale)
	}
	for row := range uint32(rows) {
		got, s := v.At(nil, row)
		if got[0] != int16(row) || got[31] != q[31] || s != scale || l.At(row)[0] != row || l.At(row)[1] != NoRow {
			t.Fatalf("row %d = %v, %v", row, got, s)
		}
	}
	if v.Dim() != 32 || v.high.rows < rows || l.rows < rows || l.room != 4 {
		t.Errorf("%d rows of %d, %d lists of %d", v.high.rows, v.Dim(), l.rows, l.room)
	}
	v.Clear(7)
	var z Query
	z.Set(v, q, scale)
	dst := make([]uint32, 1)
	if v.Distances(dst, &z, []uint32{7}); dst[0] != OrthogonalDistance || z.scale != scale {
		t.Errorf("distance of a cleared row = %d, want %d", dst[0], OrthogonalDistance)
	}
	if c := v.Cosine(1<<62, &z, 8); c != 1 {
		t.Errorf("Cosine = %v, want 1", c)
	}
}

func TestMisuse(t *testing.T) {
	for _, dim := range []int{0, -32, 31, 48, MaxDim + 32} {
		if _, err := NewVectors(dim); err == nil {
			t.Errorf("NewVectors(%d) made an array", dim)
		}
	}
	v, err := NewVectors(32)
	if err != nil {
		t.Fatal(err)
	}
	v.Grow(1)
	l := NewLists(8)
	l.Grow(1)
	var z Query
	z.Set(v, make([]int16, 32), float32(math.NaN()))
	if z.scale != 0 {
		t.Errorf("scale %v, want 0", z.scale)
	}
	atEveryLevel(t, func(t *testing.T) {
		for name, f := range map[string]func(){
			"distances of another length": func() { v.Distances(make([]uint32, 2), &z, []uint32{0}) },
			"dots of another length":      func() { v.Dots(make([]int64, 2), &z, []uint32{0}) },
			"distance of no row":          func() { v.Distances(make([]uint32, 1), &z, []uint32{1 << 20}) },
			"dot of no row":               func() { v.Dots(make([]int64, 1), &z, []uint32{1 << 20}) },
			"no row":                      func() { v.Clear(1 << 20) },
			"no list":                     func() { l.At(1 << 20) },
			"fetch of no list":            func() { l.Fetch(1 << 20) },
			"find in no list":             func() { l.Find([]uint32{1 << 20}, 3) },
			"no level":                    func() { Levels.Force(cpu.Lent + 1) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s is no panic", name)
					}
				}()
				f()
			}()
		}
	})
	if l.Find(nil, 3) != -1 {
		t.Error("Find in no lists found something")
	}
}

func BenchmarkDistances(b *testing.B) {
	for level := range Levels.Each() {
		for _, dim := range []int{128, 256} {
			for _, n := range []int{1000, 100_000} {
				b.Run(fmt.Sprintf("%s/dim=%d/n=%d", level, dim, n), func(b *testing.B) {
					rng := rand.New(rand.NewPCG(1, 1))
					v, _ := NewVectors(dim)
					v.Grow(n)
					q, scale := vectorOf(rng, dim)
					for i := range n {
						v.Set(uint32(i), q, scale)
					}
					rows, dst := rowsOf(rng, 32*4096, n), make([]uint32, 32)
					var z Query
					z.Set(v, q, scale)
					at := 0
					for b.Loop() {
						v.Distances(dst, &z, rows[at:at+32])
						at = (at + 32) % len(rows)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/distance")
				})
			}
		}
	}
}

func TestFind(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for _, room := range []int{8, 10, 32, 40, 64} {
			rng := rand.New(rand.NewPCG(uint64(room), 2))
			l := NewLists(room)
			const lists = 300
			l.Grow(lists)
			for row := range uint32(lists) {
				for i := range l.At(row)[:rng.IntN(room+1)] {
					l.At(row)[i] = uint32(rng.IntN(2000))
				}
			}
			for range 500 {
				rows, x := rowsOf(rng, rng.IntN(40), lists), uint32(rng.IntN(2000))
				want := -1
				for i := len(rows) - 1; i >= 0; i-- {
					for _, v := range l.At(rows[i]) {
						if v == x {
							want = i
						}
					}
				}
				if got := l.Find(rows, x); got != want {
					t.Fatalf("Find of room %d = %d, want %d", room, got, want)
				}
			}
		}
	})
}
