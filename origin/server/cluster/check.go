package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
)

// checks asks etcd for the newest claim. Calls that wait share a question: one that comes while a question is on its way waits for the next one,
// because etcd may have answered the first one before.
type checks struct {
	get func(ctx context.Context) (claim int64, err error)

	mu    sync.Mutex
	next  *check
	works bool
}

// check is one question.
type check struct {
	done  chan struct{}
	claim int64
	err   error
}

// newest returns the revision of a claim that was the newest one at some time during this call.
func (c *checks) newest(ctx context.Context) (int64, error) {
	c.mu.Lock()
	if c.next == nil {
		c.next = &check{done: make(chan struct{})}
		if !c.works {
			c.works = true
			go c.work()
		}
	}
	k := c.next
	c.mu.Unlock()
	select {
	case <-k.done:
		return k.claim, k.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// work asks questions as long as calls wait.
func (c *checks) work() {
	for {
		c.mu.Lock()
		k := c.next
		c.next = nil
		c.works = k != nil
		c.mu.Unlock()
		if k == nil {
			return
		}
		k.claim, k.err = c.get(context.Background())
		close(k.done)
	}
}

// checkTime is the time limit of a question.
const checkTime = 2 * time.Second

// claimed asks etcd for the newest claim. A majority of the members confirms the answer.
func (c *Cluster) claimed(ctx context.Context) (int64, error) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	e := c.client()
	if e == nil {
		return 0, errors.New("this node knows no member of etcd")
	}
	res, err := e.Get(ctx, string(channel.Primary), clientv3.WithKeysOnly())
	if err != nil || len(res.Kvs) == 0 {
		return 0, err
	}
	return res.Kvs[0].ModRevision, nil
}

// errNotPrimary is returned by confirm at a node that does not lead.
var errNotPrimary = errors.New("this node is not the primary")

// confirm returns nil if this node led at some time during the call, and showed all that other nodes had acknowledged before.
func (c *Cluster) confirm(ctx context.Context) error {
	d := c.driving()
	if d == nil {
		return errNotPrimary
	}
	if term, _, _ := d.Serving(); term == 0 {
		return errNotPrimary
	}
	claim, err := c.check.newest(ctx)
	if err == nil && !d.Store.MayAnswer(claim) {
		err = errNotPrimary
	}
	return err
}
