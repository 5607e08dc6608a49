package fold

import (
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// PendingOrds is the first ordinal of inputs whose creation is pending: a replica has made the operation and not seen it in the log yet.
// Ordinals of the log are below it.
const PendingOrds = 1 << 31

// NewPending returns a fold of pending operations over the state of a log, as entries after its last one. Their inputs have separate
// ordinals, which follow from the operation's position in the outbox. They come after all others, and the log gives them to no other input. Everything
// else is as in the log. version is the newest known version of the rules.
func NewPending(app catalog.AppID, version uint32) *Fold {
	f := NewUpTo(app, version)
	f.pending = true
	return f
}

// ord returns the ordinal of the input that the operation creates, false if there is none left.
func (f *Fold) ord() (uint32, bool) {
	if f.pending {
		return PendingOrds | uint32(f.position%PendingOrds), true
	}
	if f.h.Next >= PendingOrds {
		return 0, false
	}
	f.h.Next++
	return f.h.Next - 1, true
}

// ApplyPending folds the operation at a position of the outbox as the next entry, as [Fold.Apply] does.
func (f *Fold) ApplyPending(e *log.Entry, position uint64) (Verdict, error) {
	f.position = position
	return f.Apply(e)
}
