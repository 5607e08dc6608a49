//go:build !wasip1 || !lent

package predict

// lentTables is what a guest lends its host; here there is none.
type lentTables struct{}

func lend(*Evaluation) (none lentTables) { return none }

// valuesElsewhere reports that nobody else computes values.
func (*evaluator) valuesElsewhere(_, _, _ []float32, _ *Embedding) bool { return false }
