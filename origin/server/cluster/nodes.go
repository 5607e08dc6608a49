package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// nodePrefix is the prefix of etcd's keys of the nodes. The key node/ID has the record of a node.
const nodePrefix = "node/"

// record describes a node. The node writes it each second while something changes, and otherwise each 5 s.
type record struct {
	ID        string           `json:"id"`
	Address   identity.Address `json:"address"`
	PublicURL string           `json:"public_url,omitempty"`
	Version   string           `json:"version"`
	State     state            `json:"state"`
	Problem   string           `json:"problem,omitempty"`
	Member    uint64           `json:"member,omitempty"`   // id of its etcd member; 0: none
	Position  int64            `json:"position,omitempty"` // number of the last record that it has applied
	Synced    int64            `json:"synced,omitempty"`   // revision up to which a loss of power takes nothing
	Keys      []log.PublicKey  `json:"keys,omitempty"`     // keys with which it signs access tokens
	Applied   uint64           `json:"applied,omitempty"`  // last entry of Raft that its member has applied
	Full      bool             `json:"full,omitempty"`     // its disk has no room for further data
}

// knownNode is a record with the time when this node saw it change.
type knownNode struct {
	record
	revision int64
	seen     time.Time
}

// lifetime is the time after which a node whose record has not changed counts as dead.
const lifetime = 15 * time.Second

func (k *knownNode) lives(now time.Time) bool { return now.Sub(k.seen) < lifetime }

// nodes are the nodes that this node knows.
type nodes struct {
	mu      sync.Mutex
	all     map[string]*knownNode
	records int64 // number of records in etcd
	before  int64 // revision that this node had synced before its start; see ErrStoreOld
}

// init fills the nodes with those of cluster.json.
func (n *nodes) init(peers []identity.Node) {
	n.all = map[string]*knownNode{}
	for _, p := range peers {
		n.all[p.ID] = &knownNode{record: record{ID: p.ID, Address: p.Address}}
	}
}

// take takes a record, as etcd has it.
func (n *nodes) take(r record, revision int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.all[r.ID]; k == nil || k.revision < revision {
		n.all[r.ID] = &knownNode{r, revision, system.Now()}
	}
}

// address returns the address of a node.
func (n *nodes) node(id string) (identity.Node, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.all[id]; k != nil {
		return identity.Node{ID: id, Address: k.Address}, true
	}
	return identity.Node{}, false
}

// list returns the nodes in the order of their addresses.
func (n *nodes) list() []knownNode {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]knownNode, 0, len(n.all))
	for _, k := range n.all {
		all = append(all, *k)
	}
	slices.SortFunc(all, func(a, b knownNode) int { return strings.Compare(a.Address.String(), b.Address.String()) })
	return all
}

// synced returns the revision that a node had synced, as far as others know.
func (n *nodes) synced(id string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.all[id]; k != nil {
		return max(k.Synced, n.before)
	}
	return n.before
}

// keys returns the keys of all nodes but one.
func (n *nodes) keys(but string) (keys []log.PublicKey) {
	for _, k := range n.list() {
		if k.ID != but {
			keys = append(keys, k.Keys...)
		}
	}
	return keys
}

// Times of the loop that tends a node.
const (
	tendEvery  = time.Second
	tendTime   = 2 * time.Second // of one call of etcd
	writeEvery = 5 * time.Second // at which a record is written that has not changed
)

// maintain syncs the store, writes this node's record, reads the others, and does the primary's work on etcd, each second.
func (c *Cluster) maintain(ctx context.Context) {
	t := tender{Cluster: c}
	for ctx.Err() == nil {
		if err := t.step(ctx); err != nil && ctx.Err() == nil {
			c.o.Log.Debug("cannot reach etcd", "error", err)
		}
		system.Pause(ctx, tendEvery)
	}
}

// tender is the loop that tends a node.
type tender struct {
	*Cluster
	wrote   record
	at      time.Time // when wrote was written
	current time.Time // when this node last had all records
	samples samples

	revision int64 // of etcd, at the last reading
}

func (t *tender) step(ctx context.Context) error {
	c := t.client()
	if c == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, tendTime)
	defer stop()
	err := t.read(ctx, c)
	t.judge()
	if err == nil {
		err = t.write(ctx, c)
	}
	if err == nil {
		err = t.joinEtcd(ctx)
	}
	switch leads, _ := t.leads(); {
	case leads && !t.canLead():
		t.handOver(ctx)
	case leads && t.wrote.Full && len(withRoom(t.successors())) > 0:
		t.handOver(ctx)
	}
	if d := t.driving(); err == nil && d != nil {
		if term, _, _ := d.Serving(); term != 0 {
			var list *clientv3.MemberListResponse
			if list, err = c.MemberList(ctx); err == nil {
				err = cmp.Or(t.compact(ctx, c, d, list.Members), t.promote(ctx, c, list.Members))
			}
		}
	}
	return err
}

// read reads the records of all nodes.
func (t *tender) read(ctx context.Context, c *clientv3.Client) error {
	res, err := c.Txn(ctx).Then(clientv3.OpGet(nodePrefix, clientv3.WithPrefix()), clientv3.OpGet(string(channel.Log), clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return err
	}
	t.revision = res.Header.Revision
	for _, x := range res.Responses[0].GetResponseRange().Kvs {
		var r record
		if json.Unmarshal(x.Value, &r) == nil {
			t.known.take(r, x.ModRevision)
		}
	}
	for _, x := range res.Responses[1].GetResponseRange().Kvs {
		t.known.mu.Lock()
		t.known.records = x.Version
		t.known.mu.Unlock()
	}
	return t.savePeers()
}

// savePeers stores the addresses of the other nodes, with which this node finds the cluster again.
func (t *tender) savePeers() error {
	var peers []identity.Node
	for _, k := range t.known.list() {
		if k.ID != t.file.Node.ID {
			peers = append(peers, identity.Node{ID: k.ID, Address: k.Address})
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Equal(peers, t.file.Peers) || len(peers) == 0 {
		return nil
	}
	t.file.Peers = peers
	if err := t.file.Save(t.o.Data); err != nil || t.remote != nil {
		return err
	}
	return t.dialMembers()
}

// judge sets the state of an open node.
func (t *tender) judge() {
	d := t.driving()
	if d == nil {
		return
	}
	now := system.Now()
	lag := t.lag(d)
	if lag == 0 {
		t.current = now
	}
	term, newest, _ := d.Serving()
	switch {
	case t.present() == stopped:
	case term != 0 && term == newest.Revision:
		t.become(leading)
	case newest.Revision == 0 || lag > mayLag && now.Sub(t.current) > writeEvery:
		t.become(behind)
	default:
		t.become(following)
	}
}

// canLead reports whether this node may claim: it is open, and not far behind.
func (c *Cluster) canLead() bool {
	d := c.driving()
	return d != nil && c.lag(d) <= maxLag && c.present() != stopped
}

// maxLag is the number of records that a node which claims may be behind.
const maxLag = 10_000

// mayLag is the number of records that a node may be behind and still follow.
const mayLag = 1000

// lag returns the number of records that etcd has and this node has not applied.
func (c *Cluster) lag(d *channel.Driver) int64 {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	return max(0, c.known.records-d.Progress().Position.Version)
}

// write syncs the store and writes this node's record.
func (t *tender) write(ctx context.Context, c *clientv3.Client) error {
	t.mu.Lock()
	r := record{
		ID: t.file.Node.ID, Address: t.file.Node.Address, PublicURL: t.file.PublicURL, Version: t.o.Version, State: t.state, Problem: t.problem, Keys: t.keys,
		Position: t.wrote.Position, Synced: t.wrote.Synced,
	}
	if t.member != nil {
		r.Member, r.Applied = uint64(t.member.Server.MemberID()), t.wrote.Applied
	}
	d := t.driver
	r.Full = t.store != nil && errors.Is(t.store.Room(), kv.ErrFull)
	copied := t.copied
	t.mu.Unlock()
	if copied > 0 {
		r.Synced = copied
	}
	if d != nil {
		synced, err := d.Store.Sync()
		if err != nil {
			return err
		}
		r.Synced, r.Position = synced, d.Progress().Position.Version
	}
	now := system.Now()
	if reflect.DeepEqual(r, t.wrote) && now.Sub(t.at) < writeEvery {
		return nil
	}
	t.mu.Lock()
	if t.member != nil {
		r.Applied = t.member.Server.AppliedIndex()
	}
	t.mu.Unlock()
	value, err := json.Marshal(r)
	if err == nil {
		_, err = c.Put(ctx, nodePrefix+r.ID, string(value))
	}
	if err == nil {
		t.wrote, t.at = r, now
	}
	return err
}

// Amounts of records that etcd keeps.
const (
	keepRecords   = 10_000
	keepRevisions = 200_000 // if few of them are records: the nodes' own records are revisions, too
	keepBytes     = 1 << 30 // for nodes that are behind
	keepCopyBytes = 4 << 30 // for nodes that copy a checkpoint
)

// compact removes the records from etcd that all living nodes, and at least a majority of the members, have synced.
func (t *tender) compact(ctx context.Context, c *clientv3.Client, d *channel.Driver, members []*pb.Member) error {
	p := d.Progress()
	if t.revision-p.Position.Revision >= markEvery {
		if _, err := d.Store.Commit(&kv.Batch{}); err != nil {
			return err
		}
	}
	t.samples.note(p)
	voters := map[uint64]bool{}
	for _, m := range members {
		voters[m.ID] = !m.IsLearner
	}
	all := t.known.list()
	revision := t.samples.take(p, func(s sample) bool { return mayCompact(s.revision, p.Bytes-s.bytes, all, voters, system.Now()) })
	if revision == 0 {
		return nil
	}
	_, err := c.Compact(ctx, revision)
	return err
}

// markEvery is the number of revisions without a record after which the primary writes an empty one. A node's position is that of a record: without
// it, an idle cluster would never compact the nodes' own records, and a node that starts would read all of them.
const markEvery = 1000

// sample is a position in etcd at a moment.
type sample struct{ revision, records, bytes int64 }

// samples are positions up to which etcd may lose its records later, the oldest first.
type samples []sample

// sampleEvery is the least number of revisions between two positions, so that few of them reach back to keepRecords at any rate of writes.
const sampleEvery = 100

// maxSamples is the maximum number of positions that the primary remembers.
const maxSamples = 3600

// note adds a position.
func (s *samples) note(p channel.Progress) {
	if n := len(*s); n > 0 && p.Position.Revision-(*s)[n-1].revision < sampleEvery {
		return
	}
	if *s = append(*s, sample{p.Position.Revision, p.Position.Version, p.Bytes}); len(*s) > maxSamples {
		*s = slices.Delete(*s, 0, 1)
	}
}

// take removes the positions that are old enough and that may be compacted, and returns the revision of the last one; 0: none.
func (s *samples) take(p channel.Progress, may func(sample) bool) (revision int64) {
	n := 0
	for _, x := range *s {
		if p.Position.Version-x.records < keepRecords && p.Position.Revision-x.revision < keepRevisions || !may(x) {
			break
		}
		n, revision = n+1, x.revision
	}
	*s = slices.Delete(*s, 0, n)
	return revision
}

// mayCompact reports whether etcd may lose what is before a revision, after which there are waiting bytes of records.
func mayCompact(revision, waiting int64, all []knownNode, voters map[uint64]bool, now time.Time) bool {
	synced, members := 0, 0
	for _, is := range voters {
		if is {
			members++
		}
	}
	for i := range all {
		k := &all[i]
		has := k.Synced >= revision
		if has && voters[k.Member] {
			synced++
		}
		limit := int64(keepBytes)
		if k.State == copying {
			limit = keepCopyBytes
		}
		if !has && k.lives(now) && waiting < limit {
			return false
		}
	}
	return synced > members/2
}
