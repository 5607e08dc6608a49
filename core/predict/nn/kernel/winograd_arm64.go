//go:build !purego

package kernel

// winogradMuls is the number of products that the largest kernel writes for a place: 4 tiles by a panel.
const winogradMuls = 4 * panel

// transform writes the transformed windows of src to v.
func (w *winogradArgs) transform() { winogradInNEON(w.ptr()) }

// bound sets the fields that control how the assembly converts sums to bytes.
func (w *winogradArgs) bound(q *Requant, _ int) { w.hi, w.form = uint64(q.Hi), q.clamps() }

// run multiplies the transformed tiles by the weights of a panel and stores the outputs.
func (w *winogradArgs) run(int) {
	p := w.ptr()
	switch w.tiles {
	case 4:
		winogradMul4x16NEON(p)
	case 3:
		winogradMul3x16NEON(p)
	case 2:
		winogradMul2x16NEON(p)
	default:
		winogradMul1x16NEON(p)
	}
	winogradOutx16NEON(p)
}
