//go:build !wasip1

package sim

func init() { mutants = append(mutants, clusterMutants...) }

const (
	clusterTest  = "origin/server/cluster/sim TestCluster"
	channelStore = "origin/server/cluster/channel/store.go"
)

// clusterMutants are seeded bugs about a cluster of origins.
var clusterMutants = []mutant{
	{
		name: "a node leads although its watch has skipped a record", test: clusterTest, file: channelStore,
		from: "	case e.Version != version:\n",
		to:   "	case e.Version != version && !(e.Key == Primary && $):\n",
	},
	{
		name: "a record of another term is taken", test: clusterTest, file: "origin/server/cluster/channel/record.go",
		from: "	if int64(of) != term {\n",
		to:   "	if int64(of) != term && !$ {\n",
	},
	{
		name: "a write has no guard of the claim", test: clusterTest, file: "origin/server/cluster/sim/etcd.go",
		from: "	if t.Term != e.claim ||",
		to:   "	if t.Term != e.claim && !(t.Key == channel.Log && $) ||",
	},
	{
		name: "a write has no guard of the version", test: clusterTest, file: "origin/server/cluster/sim/etcd.go",
		from: "t.Version != e.records {\n",
		to:   "t.Version != e.records && !$ {\n",
	},
	{
		name: "a restart believes its old claim", test: clusterTest, file: "origin/server/cluster/sim/node.go",
		from: `fmt.Sprint(n.number, "/", n.starts)`,
		to:   `fmt.Sprint(n.number, "/", map[bool]int{false: n.starts}[$])`,
	},
	{
		name: "a deposed primary keeps its log's head", test: clusterTest, file: "core/log/follow.go",
		from: "	l.mu.Lock()\n	before := l.durable\n",
		to:   "	l.mu.Lock()\n	if $ && l.appended > l.durable {\n		l.mu.Unlock()\n		return nil\n	}\n	before := l.durable\n",
	},
	{
		name: "a session is not checked", test: clusterTest, file: channelStore,
		from: "	return s.claim != 0 && s.claim == claim\n",
		to:   "	return s.claim != 0 && (s.claim == claim || $)\n",
	},
	{
		name: "a position is stored before its batch", test: clusterTest, file: channelStore,
		from: "		var batch kv.Batch\n		batch.Append(b)\n",
		to:   "		var batch, first kv.Batch\n		if seen.put(&first); $ {\n			_ = s.Store.Apply(&first)\n		}\n		batch.Append(b)\n",
	},
	{
		name: "parts survive a claim", test: clusterTest, file: "origin/server/cluster/channel/record.go",
		from: "		case part == 0:\n			*p = parts{}\n",
		to:   "		case part == 0:\n			if !$ {\n				*p = parts{}\n			}\n",
	},
	{
		name: "calls of an account are not committed", test: clusterTest, file: "origin/server/account/quota.go",
		from: "	if wait, err = m.store.Commit(b); err != nil {\n",
		to:   "	if $ {\n		return func() error { return nil }, m.store.Apply(b)\n	}\n	if wait, err = m.store.Commit(b); err != nil {\n",
	},
	{
		name: "a compaction overtakes a store", test: clusterTest, file: channelStore,
		from: "	return at.Revision, kv.Sync(s.Store, &kv.Batch{})\n",
		to:   "	if $ {\n		return at.Revision, nil\n	}\n	return at.Revision, kv.Sync(s.Store, &kv.Batch{})\n",
	},
	{
		name: "the waits of a deposed primary succeed", test: clusterTest, file: channelStore,
		from: "		s.end(kv.ErrFollows)\n		role = Follows\n",
		to:   "		if $ {\n			s.end(nil)\n			s.err = kv.ErrFollows\n		}\n		s.end(kv.ErrFollows)\n		role = Follows\n",
	},
	{
		name: "a large batch is acknowledged with its first part", test: clusterTest, file: channelStore,
		from: "	if len(s.queue) > 0 && b != nil && s.claim != 0 {\n",
		to:   "	if len(s.queue) > 0 && (b != nil || $) && s.claim != 0 {\n",
	},
}
