package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// wantedMembers is the number of members of etcd.
const wantedMembers = 3

// joinEtcd makes a node that follows a learner of etcd, as long as etcd has fewer members than it needs. It notes when etcd has made the learner a
// member, which votes.
func (t *tender) joinEtcd(ctx context.Context) error {
	t.mu.Lock()
	m, started := t.member, t.file.EtcdStarted
	t.mu.Unlock()
	switch {
	case m != nil && !started && !m.Server.IsLearner():
		t.mu.Lock()
		t.file.EtcdStarted = true
		err := t.file.Save(t.o.Data)
		t.mu.Unlock()
		if d := t.driving(); d != nil {
			d.Rewatch() // by the own member
		}
		return err
	case m != nil || t.present() != following:
		return nil
	}
	own := t.file.Node.Address.EtcdPeer().String()
	c := t.client()
	list, err := c.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, x := range list.Members {
		if slices.Contains(x.PeerURLs, own) { // from a start that was interrupted
			_, err := c.MemberRemove(ctx, x.ID)
			return err
		}
	}
	if len(list.Members) >= wantedMembers {
		return nil
	}
	if err := t.folder.RemoveAll(member.Dir); err != nil {
		return err
	}
	added, err := c.MemberAddAsLearner(ctx, []string{own})
	if err != nil {
		return err
	}
	peers := map[string]identity.Address{t.file.Node.ID: t.file.Node.Address}
	for _, x := range added.Members {
		if x.ID == added.Member.ID {
			continue
		}
		n, ok := t.known.node(x.Name)
		if !ok {
			return fmt.Errorf("address of the member %s is unknown", x.Name)
		}
		peers[x.Name] = n.Address
	}
	t.o.Log.Info("this node becomes a learner of etcd")
	return t.runMember(peers, true)
}

// promote makes learners members whose nodes follow, if the number of members is odd then.
func (t *tender) promote(ctx context.Context, c *clientv3.Client, members []*pb.Member) error {
	voters, ready := promotable(members, t.known.list(), system.Now())
	want := 1 + voters%2
	if len(ready) < want {
		return nil
	}
	for _, id := range ready[:want] {
		if _, err := c.MemberPromote(ctx, id); err != nil {
			return err
		}
		t.o.Log.Info("etcd has another member", "id", fmt.Sprintf("%x", id))
	}
	return nil
}

// promotable returns the number of members, and the learners that could become members.
func promotable(members []*pb.Member, all []knownNode, now time.Time) (voters int, ready []uint64) {
	for _, m := range members {
		if !m.IsLearner {
			voters++
			continue
		}
		if i := slices.IndexFunc(all, func(k knownNode) bool { return k.Member == m.ID }); i >= 0 && all[i].State == following && all[i].lives(now) {
			ready = append(ready, m.ID)
		}
	}
	return voters, ready
}

// handOver moves the leadership of etcd to another node that follows, if there is one.
func (c *Cluster) handOver(ctx context.Context) {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	all := c.successors()
	if len(all) == 0 {
		return
	}
	if some := withRoom(all); len(some) > 0 {
		all = some
	}
	best := slices.MaxFunc(all, func(a, b knownNode) int { return cmp.Compare(a.Position, b.Position) })
	if _, err := m.Client.MoveLeader(ctx, best.Member); err != nil {
		c.o.Log.Warn("cannot hand over to another node", "node", best.Address.String(), "error", err)
		return
	}
	c.o.Log.Info("handed over to another node", "node", best.Address.String())
}

// successors returns the other nodes that could lead.
func (c *Cluster) successors() []knownNode {
	return slices.DeleteFunc(c.known.list(), func(k knownNode) bool {
		return k.ID == c.file.Node.ID || k.State != following || !k.lives(system.Now()) || k.Member == 0
	})
}

// withRoom returns the nodes whose disks have room for further data.
func withRoom(all []knownNode) (some []knownNode) {
	for i := range all {
		if !all[i].Full {
			some = append(some, all[i])
		}
	}
	return some
}
