package train

import (
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train/kernel"
)

const lanes = kernel.Lanes

// blockRows is the number of examples in one step of an evaluation. Both packings of a block, 1 MB at 256 dimensions, stay in a core's
// cache.
const blockRows = 512

// up rounds n up to a multiple of the lanes.
func up(n int) int { return (n + lanes - 1) / lanes * lanes }

// matrix holds examples in float32, packed twice: a step of the solver multiplies by it and by
// its transpose, and both products run along 32 neighbouring numbers. Additional rows and dimensions
// are zeros. set allocates a block of blockRows rows, fewer in the last one, when it first writes to
// it: allocating all of them at once would take as long as some tens of steps.
type matrix struct {
	n, d   int // both rounded up to a multiple of 32
	blocks []packedBlock
}

// packedBlock is a block of n rows in both packings.
type packedBlock struct {
	n         int
	byExample []float32 // (n/32, d, 32): panels of 32 examples, a line per dimension
	byDim     []float32 // (d/32, n, 32): panels of 32 dimensions, a line per example
}

func newMatrix(n, d int) *matrix {
	m := &matrix{n: up(n), d: up(d)}
	m.blocks = make([]packedBlock, (m.n+blockRows-1)/blockRows)
	return m
}

// set writes example i.
func (m *matrix) set(i int, x []float32) {
	b := &m.blocks[i/blockRows]
	if b.n == 0 {
		b.n = min(blockRows, m.n-i/blockRows*blockRows)
		b.byExample, b.byDim = make([]float32, b.n*m.d), make([]float32, b.n*m.d)
	}
	i %= blockRows
	panel := b.byExample[i/lanes*lanes*m.d+i%lanes:]
	for k, v := range x {
		panel[k*lanes] = v
	}
	for k := 0; k < len(x); k += lanes {
		copy(b.byDim[(k/lanes*b.n+i)*lanes:], x[k:min(k+lanes, len(x))])
	}
}

// setEmbedding writes the unit vector of e as example i.
func (m *matrix) setEmbedding(i int, e *predict.Embedding) {
	var x [predict.Dim]float32
	m.set(i, e.Unit(x[:0]))
}

// examples returns the panel of examples i … i+31, (d, 32).
func (m *matrix) examples(i int) []float32 {
	at := i % blockRows * m.d
	return m.blocks[i/blockRows].byExample[at : at+lanes*m.d]
}

// dims returns the panel of dimensions k … k+31 for the examples of the block that begins at row from,
// (rows of the block, 32).
func (m *matrix) dims(k, from int) []float32 {
	b := &m.blocks[from/blockRows]
	return b.byDim[k*b.n:][:b.n*lanes]
}
