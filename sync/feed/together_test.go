//go:build !wasip1

package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestConcurrentPushAndPull: replicas push and readers read at the same time. Each reader gets the log without a gap. Each operation is in
// it once, even if its replica sent it twice.
func TestConcurrentPushAndPull(t *testing.T) {
	const writers, rounds = 4, 40
	w := newWorld(t, nil)
	var replicas []*replica
	for range writers {
		replicas = append(replicas, w.join(w.App, w.Key))
	}
	l := w.partition(w.App).Log()
	total := l.Head() + writers*rounds
	var all sync.WaitGroup
	for i, r := range replicas {
		all.Go(func() {
			for n := range rounds {
				m := r.push(r.next(&log.ConceptCreate{ID: fmt.Sprint("c", i, "-", n), Name: "n", Language: "en"}))
				for range 2 {
					if res := r.ask("POST", "/v2/sync/push", m.Encode()); res.Status != 200 {
						t.Errorf("push = %d %s", res.Status, res.Body)
						return
					}
				}
			}
		})
	}
	for range 3 {
		all.Go(func() {
			seen := map[log.Dot]bool{}
			chain, err := l.Chain(0)
			if err != nil {
				t.Error(err)
				return
			}
			for at := uint64(0); at < total; {
				query := "app=" + w.App + "&register=1&" + replicas[0].at(at)
				res := w.feed.Serve(context.Background(), &api.Request{Method: "GET", Path: "/v2/sync/changes", Query: query, Authorization: "Key " + w.Key, Header: header})
				var b bytes.Buffer
				if res.Stream == nil || res.Stream(&b) != nil {
					t.Errorf("changes = %d %s", res.Status, res.Body)
					return
				}
				for _, f := range frames(t, b.Bytes()) {
					if f.Type != wire.TypeEntries {
						continue
					}
					run, err := wire.DecodeEntriesFrame(f.Body)
					if err != nil || run.From != at {
						t.Errorf("after %d a run from %d, %v", at, run.From, err)
						return
					}
					entries, err := log.DecodeRows(run.Rows, run.From)
					if err != nil {
						t.Error(err)
						return
					}
					for i := range entries {
						if seen[entries[i].Op.Dot] {
							t.Errorf("%+v is there twice", entries[i].Op.Dot)
						}
						seen[entries[i].Op.Dot] = true
						chain = chain.Next(log.Encode(nil, &entries[i].Op))
					}
					if at = run.To; chain != run.Chain {
						t.Errorf("the chain at %d is another", at)
					}
				}
			}
		})
	}
	all.Wait()
	if l.Head() != total {
		t.Errorf("the log has %d entries, want %d", l.Head(), total)
	}
}
