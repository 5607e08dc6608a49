package httpd

import "github.com/sightline-dev/sightline/origin/server/shares"

// smallAnswer is the number of bytes of each answer that no share counts: the bound on connections bounds them.
const smallAnswer = 64 << 10

// share is the memory of one answer, until it is sent. It is used by the goroutine of its connection.
type share struct {
	of     *shares.Shares
	caller func() string // the answer's; called once, when the share is first asked
	name   string        // what it returned
	taken  int64
}

// Reserve implements [api.Memory]: it makes the share total bytes, if it is smaller.
func (a *share) Reserve(total int64) bool {
	n := total - smallAnswer - a.taken
	if n <= 0 {
		return true
	}
	if !a.of.Try(a.owner(), n) {
		return false
	}
	a.taken += n
	return true
}

// Room implements [api.Memory].
func (a *share) Room() int64 { return smallAnswer + a.taken + a.of.Room(a.owner()) }

// owner is the caller that the share counts for.
func (a *share) owner() string {
	if a.caller != nil {
		a.name, a.caller = a.caller(), nil
	}
	return a.name
}

// settle makes the share total bytes, if it is larger.
func (a *share) settle(total int64) {
	if n := a.taken - max(total-smallAnswer, 0); n > 0 {
		a.of.Give(a.name, n)
		a.taken -= n
	}
}
