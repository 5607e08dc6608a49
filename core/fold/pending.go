package fold

import (
	"github.com/sightline-dev/sightline/core/catalog"
)

// PendingOrds is the first ordinal of inputs whose creation is pending: of operations that a
// replica has made and not yet seen in the log. No ordinal of the log reaches it.
const PendingOrds = 1 << 31

// NewPending returns a fold of pending operations over the state of a log: entries that go on from its
// last one. Their inputs have ordinals of their own, which follow from the operation's dot
// alone, so that they lie behind all others and take none that the log gives to another input.
// Everything else is as in the log, and so is version, the newest rules that are known.
func NewPending(app catalog.AppID, version uint32) *Fold {
	f := NewUpTo(app, version)
	f.pending = true
	return f
}

// ord returns the ordinal of the input that the operation makes, false when there is none left.
func (f *Fold) ord() (uint32, bool) {
	if f.pending {
		return PendingOrds | uint32(f.e.Op.Dot.Seq%PendingOrds), true
	}
	if f.h.Next >= PendingOrds {
		return 0, false
	}
	f.h.Next++
	return f.h.Next - 1, true
}
