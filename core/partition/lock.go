package partition

import "sync"

// lockSet is a set of the locks of a partition.
type lockSet uint8

// The locks of a partition in their order: a goroutine that holds one may take only later ones. TestLocksInOnePlace checks that.
const (
	// trimming is the lock of a Step that trims the log, and guards its marks. The holder may submit.
	trimming lockSet = 1 << iota

	// appending is held while operations get their numbers and are appended. Submit and Accept release it before they wait for the
	// sync, so that concurrent calls share one. The also functions of callers run under it: they may read views but not write.
	appending

	// folding is held while entries are folded, and for every other write of the state. The functions that callers give to
	// Analysed, State and Tidy run under it: they may read views but not write.
	folding

	// showing is held while a batch becomes visible. Options.Watch and Quota.Settle run under it: they must not call the partition.
	showing

	// reading is the read side of showing: the holder copies visible values. A goroutine never holds it twice, since a
	// goroutine that waits for showing would block the second take.
	reading

	// waiting guards tickets.
	waiting
)

// locks are the locks of a partition. The zero value is ready for use.
type locks struct {
	trimming, appending, folding, waiting sync.Mutex
	showing                               sync.RWMutex
}

func (l *locks) one(of lockSet) sync.Locker {
	switch of {
	case trimming:
		return &l.trimming
	case appending:
		return &l.appending
	case folding:
		return &l.folding
	case showing:
		return &l.showing
	case reading:
		return l.showing.RLocker()
	default:
		return &l.waiting
	}
}

// hold is the set of locks that a goroutine holds.
type hold struct {
	in  *locks
	set lockSet
}

// take takes locks, in their order.
func (l *locks) take(set lockSet) hold {
	for of := trimming; of <= waiting; of <<= 1 {
		if set&of != 0 {
			l.one(of).Lock()
		}
	}
	return hold{l, set}
}

// unlock releases the locks, the last one first.
func (h hold) unlock() {
	for of := waiting; of > 0; of >>= 1 {
		if h.set&of != 0 {
			h.in.one(of).Unlock()
		}
	}
}
