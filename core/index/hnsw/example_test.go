package hnsw_test

import (
	"fmt"
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/index/hnsw"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// pointing returns the unit vector at an angle in degrees, in the plane of the first two of 32 dimensions.
func pointing(degrees float64) (q []int16, scale float32) {
	q = make([]int16, 32)
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	q[0], q[1] = int16(math.Round(32767*cos)), int16(math.Round(32767*sin))
	return q, float32(1 / math.Hypot(float64(q[0]), float64(q[1])))
}

func ExampleGraph_Search() {
	g, err := hnsw.New(hnsw.Options{Dim: 32})
	if err != nil {
		panic(err)
	}
	for node := range uint32(36) {
		q, scale := pointing(10 * float64(node))
		g.Insert(node, q, scale)
	}
	g.Delete(5)
	q, scale := pointing(48)
	for _, hit := range g.Search(nil, q, scale, 3, 0, nil) {
		fmt.Printf("%d %.4f\n", hit.Node, hit.Cosine)
	}
	fmt.Println("among two:")
	for _, hit := range g.Search(nil, q, scale, 3, 0, roaring.BitmapOf(4, 20)) {
		fmt.Printf("%d %.4f\n", hit.Node, hit.Cosine)
	}
	// Output:
	// 4 0.9903
	// 6 0.9782
	// 3 0.9510
	// among two:
	// 4 0.9903
	// 20 -0.8829
}

func ExampleOpen() {
	store, prefix := memkv.New(), []byte("app/graph/")
	vectors := func(yield func(node uint32, q []int16, scale float32) bool) error {
		for node := range uint32(36) {
			if q, scale := pointing(10 * float64(node)); !yield(node, q, scale) {
				break
			}
		}
		return nil
	}
	g, err := hnsw.Open(store, prefix, hnsw.Options{Dim: 32}, vectors)
	if err != nil {
		panic(err) // ErrCorrupt: create a graph with New and insert all vectors
	}
	_ = vectors(func(node uint32, q []int16, scale float32) bool {
		g.Insert(node, q, scale)
		return true
	})
	var b kv.Batch
	g.Flush(&b, prefix, 36)
	if err := store.Apply(&b); err != nil {
		panic(err)
	}

	reopened, err := hnsw.Open(store, prefix, hnsw.Options{Dim: 32}, vectors)
	fmt.Println(reopened.Len(), reopened.Seq(), err)
	// Output: 36 36 <nil>
}
