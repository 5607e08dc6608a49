package cluster

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
)

// TestMayCompact: all living nodes must have synced a revision, and a majority of the members. A node for which too much waits counts no longer.
func TestMayCompact(t *testing.T) {
	now := time.Now()
	three := map[uint64]bool{1: true, 2: true, 3: true}
	at := func(member uint64, synced int64, age time.Duration, s state) knownNode {
		return knownNode{record: record{ID: fmt.Sprint("n", member), Member: member, Synced: synced, State: s}, seen: now.Add(-age)}
	}
	for _, tt := range []struct {
		name    string
		all     []knownNode
		voters  map[uint64]bool
		waiting int64
		want    bool
	}{
		{"all have synced", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 7, 0, following)}, three, 0, true},
		{"a living node lacks the revision", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, 0, following)}, three, 0, false},
		{"a dead node lacks it", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, lifetime, following)}, three, 0, true},
		{"a node still lives", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, lifetime-1, following)}, three, 0, false},
		{"two dead members lack it", []knownNode{at(1, 9, 0, leading), at(2, 6, lifetime, following), at(3, 6, lifetime, following)}, three, 0, false},
		{"a member without a record", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following)}, three, 0, true},
		{"only one of three members is known", []knownNode{at(1, 9, 0, leading)}, three, 0, false},
		{"one member", []knownNode{at(1, 9, 0, leading)}, map[uint64]bool{1: true}, 0, true},
		{"a learner is no majority", []knownNode{at(1, 9, 0, leading), at(2, 9, 0, following)}, map[uint64]bool{1: true, 2: false, 3: true}, 0, false},
		{"a client that lives lacks it", []knownNode{at(1, 9, 0, leading), at(0, 3, 0, following)}, map[uint64]bool{1: true}, 0, false},
		{"1 GB waits for a living node", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, 0, behind)}, three, keepBytes, true},
		{"almost 1 GB waits", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, 0, behind)}, three, keepBytes - 1, false},
		{"1 GB waits, no majority", []knownNode{at(1, 9, 0, leading), at(2, 6, 0, behind), at(3, 6, 0, behind)}, three, keepBytes, false},
		{"1 GB waits for a node that copies", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, 0, copying)}, three, keepBytes, false},
		{"4 GB wait for a node that copies", []knownNode{at(1, 9, 0, leading), at(2, 8, 0, following), at(3, 6, 0, copying)}, three, keepCopyBytes, true},
	} {
		if got := mayCompact(7, tt.waiting, tt.all, tt.voters, now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestCompactionKeepsRecentRecords: at any rate of writes etcd keeps 10,000 records, or 200,000 revisions if few of them are records, and
// not many more.
func TestCompactionKeepsRecentRecords(t *testing.T) {
	yes := func(sample) bool { return true }
	for _, tt := range []struct {
		records, others int // each second
		every           int // seconds between such seconds
	}{{1000, 1, 1}, {50, 1, 1}, {2, 1, 1}, {1, 1, 1}, {1, 60, 60}, {1, 1000, 3600}} {
		var (
			s    samples
			p    channel.Progress
			kept = struct{ records, revisions int64 }{}
			last sample // what was compacted last
			by   = map[int64]int64{}
		)
		for i := 0; i < 2_000_000 && p.Position.Version < 40_000 && p.Position.Revision < 1_000_000; i += tt.every {
			p.Position.Version += int64(tt.records)
			p.Position.Revision += int64(tt.records + tt.others)
			by[p.Position.Revision] = p.Position.Version
			s.note(p)
			if r := s.take(p, yes); r > 0 {
				last = sample{revision: r, records: by[r]}
			}
			kept.records = max(kept.records, p.Position.Version-last.records)
			kept.revisions = max(kept.revisions, p.Position.Revision-last.revision)
			if last.revision > 0 && p.Position.Version-last.records < keepRecords && p.Position.Revision-last.revision < keepRevisions {
				t.Fatalf("%+v: etcd keeps %d records", tt, p.Position.Version-last.records)
			}
		}
		if last.revision == 0 || kept.records > keepRecords+2000 && kept.revisions > keepRevisions+2000 {
			t.Errorf("%+v: etcd kept %d records and %d revisions", tt, kept.records, kept.revisions)
		}
	}
	var s samples
	for i := range 2 * maxSamples {
		s.note(channel.Progress{Position: channel.Position{Revision: int64(i * sampleEvery), Version: int64(i)}})
	}
	if len(s) != maxSamples {
		t.Errorf("%d positions", len(s))
	}
}

// TestIdlePositionFollowsRevision: the position of an idle cluster follows etcd's revision, so that its nodes' records are compacted and a
// start does not read them.
func TestIdlePositionFollowsRevision(t *testing.T) {
	t.Parallel()
	a := found(t).start()
	a.await(leading)
	a.mustPut("x")
	before := a.cluster.driving().Progress().Position
	var puts sync.WaitGroup
	for range 50 {
		puts.Go(func() {
			for i := range markEvery / 50 {
				if _, err := a.cluster.client().Put(t.Context(), nodePrefix+"x", strconv.Itoa(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	puts.Wait()
	clustertest.Until(t, "an empty record", func() bool {
		p := a.cluster.driving().Progress().Position
		return p.Revision >= before.Revision+markEvery && p.Version == before.Version+1
	})
}

// TestPromotable: a learner can become a member if its node follows and lives.
func TestPromotable(t *testing.T) {
	now := time.Now()
	members := []*pb.Member{{ID: 1}, {ID: 2, IsLearner: true}, {ID: 3, IsLearner: true}, {ID: 4, IsLearner: true}, {ID: 5, IsLearner: true}, {ID: 6}}
	all := []knownNode{
		{record: record{Member: 1, State: leading}, seen: now},
		{record: record{Member: 2, State: following}, seen: now},
		{record: record{Member: 3, State: following}, seen: now.Add(-lifetime)},
		{record: record{Member: 4, State: behind}, seen: now},
		{record: record{State: following}, seen: now}, // a client
	}
	voters, ready := promotable(members, all, now)
	if voters != 2 || len(ready) != 1 || ready[0] != 2 {
		t.Errorf("promotable = %d, %v", voters, ready)
	}
}
