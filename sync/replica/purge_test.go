package replica_test

import (
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestPurgedReplicaMakesNoRequests: after DoErase or DoRefused, the machine asks the host to purge the replica, and makes no more requests.
func TestPurgedReplicaMakesNoRequests(t *testing.T) {
	for do, keepOutbox := range map[wire.Do]bool{wire.DoErase: false, wire.DoRefused: true} {
		r := newRig(t, replica.Options{})
		r.settle()
		r.write(create("a"))
		r.settle()
		r.origin.do = do
		r.step(replica.Stop{})
		r.step(replica.Begin{})
		r.run(func() bool { return r.status().Phase == replica.Purged }, 20)
		var purge replica.Purge
		for _, e := range r.effects {
			if p, ok := e.(replica.Purge); ok {
				purge = p
			}
		}
		if purge.Reason == "" || purge.KeepOutbox != keepOutbox {
			t.Errorf("do %d: %+v", do, purge)
		}
		r.clock = r.clock.Add(24 * time.Hour)
		for _, e := range []replica.Event{replica.Wake{}, replica.LocalWrite{}, replica.Online{}, replica.Begin{}} {
			r.step(e)
		}
		if len(r.requests) > 0 {
			t.Errorf("do %d: it goes on asking", do)
		}
	}
}

// TestPurgeNeedsTheOrigin: a status 410 without a message of the protocol, as from a proxy, purges nothing.
func TestPurgeNeedsTheOrigin(t *testing.T) {
	r := newRig(t, replica.Options{})
	r.settle()
	r.wire = func(_ *replica.Ask, x *replica.Answer) bool {
		x.Status, x.Header, x.Body = 410, []api.Field{{Name: "Content-Type", Value: "text/html"}}, []byte("gone")
		return true
	}
	r.turns(20)
	if r.status().Phase == replica.Purged {
		t.Error("an answer that is not the origin's emptied the replica")
	}
}

// TestPurgeByRefusal: a refusal with RefusedGone, or a stream that ends with WhyGone, purges the replica.
func TestPurgeByRefusal(t *testing.T) {
	refusal := wire.Refusal{Code: wire.RefusedGone, Detail: "deleted"}
	end := wire.End{Why: wire.WhyGone, Detail: "deleted"}
	for _, x := range []replica.Answer{
		{Status: 410, Header: []api.Field{{Name: "content-type", Value: wire.ContentType + "; v=1"}}, Body: refusal.Encode()},
		{Status: 200, Body: wire.AppendFrame(nil, wire.TypeEnd, end.Encode())},
	} {
		r := newRig(t, replica.Options{})
		r.settle()
		r.wire = func(a *replica.Ask, answer *replica.Answer) bool {
			if a.Path == "/v2/sync/changes" {
				x.ID = answer.ID
				*answer = x
			}
			return true
		}
		r.run(func() bool { return r.status().Phase == replica.Purged }, 20)
	}
}
