package feed

import (
	"errors"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

const (
	opsPerCall  = 128              // operations that count as one call, as many as the inputs of one call of the API
	noCallsWait = 10 * time.Minute // time after which a replica tries again if the account has no calls left
)

// callsFor returns the number of calls that operations count as. Results count as none: the calls that requested them counted.
func callsFor(ops []log.Op) int64 {
	n := int64(0)
	for i := range ops {
		if !isResult(ops[i].Body) {
			n++
		}
	}
	return (n + opsPerCall - 1) / opsPerCall
}

// counts reports whether a push counts as calls. An edge reports its calls itself.
func (c *call) counts() bool { return c.f.o.Spend != nil && c.edge == nil }

// mayCall refuses operations that count if the account has no calls left, before their pictures are analysed.
func (c *call) mayCall(ops []log.Op) error {
	if !c.counts() || callsFor(ops) == 0 {
		return nil
	}
	_, err := c.spend(0)
	return err
}

// count counts the calls of operations. If fewer calls are left, it returns only the first operations, as many as these calls are for. sent
// are the same operations before any was refused.
func (c *call) count(ops, sent []log.Op) (accepted []log.Op, counted int64, err error) {
	need := callsFor(sent[:len(ops)])
	if !c.counts() || need == 0 {
		return ops, 0, nil
	}
	if counted, err = c.spend(need); err != nil {
		return nil, 0, err
	}
	room := counted * opsPerCall
	for i := range ops {
		if !isResult(sent[i].Body) {
			if room--; room < 0 {
				return ops[:i], counted, nil
			}
		}
	}
	return ops, counted, nil
}

// giveBack returns the counted calls of a failed push. accepted are the operations that the log accepted.
func (c *call) giveBack(counted int64, accepted []log.Op) error {
	unused := counted - callsFor(accepted)
	if unused <= 0 {
		return nil
	}
	_, err := c.spend(-unused)
	return err
}

// spend calls Options.Spend. Without calls left it returns a refusal.
func (c *call) spend(n int64) (spent int64, err error) {
	spent, err = c.f.o.Spend(c.app, c.principal.By, n)
	if errors.Is(err, auth.ErrQuota) {
		err = &wire.Refusal{Code: wire.RefusedQuota, Detail: err.Error(), Limit: wire.LimitCalls, WaitMillis: uint64(noCallsWait.Milliseconds())}
	}
	return spent, err
}
