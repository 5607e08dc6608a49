//go:build wasip1 && lent

package predict

import (
	"structs"
	"unsafe"
)

// The import is that of wasm/README.md.
//
//go:wasmimport kernel values
//go:noescape
func valuesLent(tables *lentTables, general, food, logits *float32, classes int32, embedding *int16) int32

// lentTables is an Evaluation in memory.
type lentTables struct {
	_                                                structs.HostLayout
	terms, starts, heads, slopes                     uint32 // addresses
	weights, intercepts, food, foodTerms             uint32
	concepts, numHeads, numFood, numTerms, numShared int32
}

// lend describes t, which keeps what the addresses are of.
func lend(t *Evaluation) lentTables {
	return lentTables{
		terms: address(t.Terms), starts: address(t.Starts), heads: address(t.Heads), slopes: address(t.Slopes),
		weights: address(t.Weights), intercepts: address(t.Intercepts), food: address(t.Food), foodTerms: address(t.FoodTerms),
		concepts: int32(len(t.Heads)), numHeads: int32(len(t.Intercepts)), numFood: int32(len(t.Food)),
		numTerms: int32(len(t.Terms)), numShared: int32(len(t.FoodTerms)),
	}
}

// address is that of a slice's elements, which are on the heap and stay where they are.
func address[T any](v []T) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(v)))) }

// valuesElsewhere has the host compute the values, and reports whether it did: it does not where it
// has no code for them, or where there is an error to be told.
func (ev *evaluator) valuesElsewhere(general, food, logits []float32, e *Embedding) bool {
	if len(general) != len(ev.Heads) || len(food) != len(ev.Food) || len(general) == 0 || len(logits) == 0 {
		return false
	}
	return valuesLent(&ev.lent, &general[0], unsafe.SliceData(food), &logits[0], int32(len(logits)), &e.Q[0]) != 0
}
