package channel

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// attemptTime is the time after which a transaction without an answer is sent again. The guards make a second success impossible.
const attemptTime = 2 * time.Second

// send sends the transactions of the store, one at a time.
func (d *Driver) send(ctx context.Context) {
	for ctx.Err() == nil {
		t, ok := d.Store.Next()
		if !ok {
			d.wait(ctx)
			continue
		}
		d.mu.Lock()
		term := d.term
		d.mu.Unlock()
		switch done, claim, records, err := d.try(term, t); {
		case done, err == nil && claim == t.Term && records > t.Version: // an earlier attempt succeeded
			d.Store.Sent(t)
		case err == nil: // another node has claimed, and the watch will show it
			d.wait(ctx)
		case term.Err() == nil:
			d.Log.Debug("cannot send a record to etcd", "error", err)
			system.Pause(ctx, pauseAfter)
		}
	}
}

// wait waits until there may be a transaction to send.
func (d *Driver) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-d.wake:
	}
}

// try runs a transaction. If its guards do not hold, try returns the revision of the newest claim and the number of records.
func (d *Driver) try(ctx context.Context, t Txn) (done bool, claim, records int64, err error) {
	ctx, stop := context.WithTimeout(ctx, attemptTime)
	defer stop()
	guards := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(string(Primary)), "=", t.Term)}
	if t.Key == Log {
		guards = append(guards, clientv3.Compare(clientv3.Version(string(Log)), "=", t.Version))
	}
	get := func(k Key) clientv3.Op { return clientv3.OpGet(string(k), clientv3.WithKeysOnly()) }
	res, err := d.Client().Txn(ctx).If(guards...).Then(clientv3.OpPut(string(t.Key), string(t.Value))).Else(get(Primary), get(Log)).Commit()
	if err != nil || res.Succeeded {
		return err == nil, 0, 0, err
	}
	for i, to := range []*int64{&claim, &records} {
		for _, x := range res.Responses[i].GetResponseRange().Kvs {
			if *to = x.ModRevision; i == 1 {
				*to = x.Version
			}
		}
	}
	return false, claim, records, nil
}

// claim claims for this node while its member leads etcd and another node, or none, is the primary.
func (d *Driver) claim(ctx context.Context) {
	if d.Leads == nil {
		return
	}
	for ctx.Err() == nil {
		leads, changed := d.Leads()
		_, _, turned := d.Serving()
		if t, ok := d.Store.Claim(); ok && leads {
			if _, _, _, err := d.try(ctx, t); err != nil {
				d.Log.Debug("cannot claim", "error", err)
			}
		}
		again, stop := context.WithTimeout(ctx, claimEvery)
		select {
		case <-again.Done():
		case <-changed:
		case <-turned:
		}
		stop()
	}
}

// claimEvery is the time between two claims, and the longest time until a node notices that it must claim.
const claimEvery = 100 * time.Millisecond
