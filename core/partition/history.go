package partition

import (
	"github.com/sightline-dev/sightline/core/log"
)

// History yields the operations that made or concern an input, by the operation that made it, newest first, until
// yield returns false: those of the log, and of a replica, which keeps no other's operations, its own as long as
// they are here. An entry's Seq is its place in the log; 0: a replica does not know it. whole says that these are
// all that there are. It costs a look at every entry after the first of them, at some hundred bytes each.
func (p *Partition) History(input log.Dot, yield func(log.Entry) bool) (whole bool, err error) {
	// All that the state shows is appended by now; what is appended and not yet folded is shown, too.
	whole, err = p.log.About(input, func(e log.Entry) bool {
		if e.Op.Dot != input && Subject(e.Op.Body) != input {
			return true
		}
		if p.replica != nil {
			e.Seq = 0
		}
		return yield(e)
	})
	if p.replica != nil {
		// What was confirmed others may have written of, too.
		_, confirmed := p.Outbox()
		whole = whole && input.Seq > confirmed
	}
	return whole, err
}
