package httpd

import "github.com/sightline-dev/sightline/origin/shares"

// smallAnswer is the number of bytes of each answer that no share counts: the bound on connections bounds them.
const smallAnswer = 64 << 10

// share is the memory of one answer, until it is sent. It is used by the goroutine of its connection.
type share struct {
	of     *shares.Shares
	caller func() string // the answer's; called for the first large one
	name   string        // what it returned
	taken  int64
}

// reserve makes the share total bytes, if it is smaller.
func (a *share) reserve(total int64) bool {
	n := total - smallAnswer - a.taken
	if n <= 0 {
		return true
	}
	if a.caller != nil {
		a.name, a.caller = a.caller(), nil
	}
	if !a.of.Try(a.name, n) {
		return false
	}
	a.taken += n
	return true
}

// settle makes the share total bytes, if it is larger.
func (a *share) settle(total int64) {
	if n := a.taken - max(total-smallAnswer, 0); n > 0 {
		a.of.Give(a.name, n)
		a.taken -= n
	}
}
