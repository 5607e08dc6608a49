//go:build !purego

package kernel

// winogradMuls is the number of products of a place that the largest kernel leaves.
const winogradMuls = 4 * panel

// transform transforms the windows.
func (w *winogradArgs) transform() { winogradInNEON(w.ptr()) }

// bound sets how the assembly makes bytes of the sums.
func (w *winogradArgs) bound(q *Requant, _ int) { w.hi, w.form = uint64(q.Hi), q.clamps() }

// run multiplies tiles by the columns of a panel.
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
