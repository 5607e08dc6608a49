package httpd

import "github.com/sightline-dev/sightline/core/shares"

// smallAnswer is the number of bytes of each answer that shares do not count. The limit on connections bounds their sum.
const smallAnswer = 64 << 10

// share is the memory of one answer until it is sent. Only the goroutine of its connection uses it.
type share struct {
	of       *shares.Shares
	caller   func() string // returns the answer's caller; called once, at the first use of the share; then nil
	name     string        // result of caller
	reserved int64
}

// Reserve implements [api.Memory]. It grows the share to total bytes, if it is smaller.
func (a *share) Reserve(total int64) bool {
	n := total - smallAnswer - a.reserved
	if n <= 0 {
		return true
	}
	if !a.of.TryAcquire(a.owner(), n) {
		return false
	}
	a.reserved += n
	return true
}

// Room implements [api.Memory].
func (a *share) Room() int64 { return smallAnswer + a.reserved + a.of.Room(a.owner()) }

// owner returns the caller that the share counts for.
func (a *share) owner() string {
	if a.caller != nil {
		a.name, a.caller = a.caller(), nil
	}
	return a.name
}

// Settle implements [api.Memory]. It shrinks the share to total bytes, if it is larger.
func (a *share) Settle(total int64) {
	if n := a.reserved - max(total-smallAnswer, 0); n > 0 {
		a.of.Release(a.name, n)
		a.reserved -= n
	}
}
