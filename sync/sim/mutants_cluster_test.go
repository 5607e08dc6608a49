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
		name: "a write has no guard of the claim", test: clusterTest, file: channelStore,
		from: "Txn{Key: Log, Term: s.claim,",
		to:   "Txn{Key: Log, Term: map[bool]int64{false: s.claim, true: -1}[$],",
	},
	{
		name: "a write has no guard of the version", test: clusterTest, file: channelStore,
		from: "Version: s.sent, Value",
		to:   "Version: map[bool]int64{false: s.sent, true: -1}[$], Value",
	},
	{
		name: "a claim has no guard", test: clusterTest, file: channelStore,
		from: "Txn{Key: Primary, Term: s.term,",
		to:   "Txn{Key: Primary, Term: map[bool]int64{false: s.term, true: -1}[$],",
	},
	{
		name: "a node leads before its watch shows the claim", test: clusterTest, file: "origin/server/cluster/sim/world.go",
		from: "	} else if m.t.Key == channel.Log {\n",
		to: "	} else if m.t.Key == channel.Primary && $ {\n		at, _ := m.of.store.Position()\n" +
			"		m.node.take(channel.Event{Key: channel.Primary, Revision: w.etcd.revision, Version: at.Version, Value: m.t.Value})\n" +
			"	} else if m.t.Key == channel.Log {\n",
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
		name: "an edge's session is not checked", test: clusterTest, file: "origin/server/cluster/sim/edge.go",
		from: "|| !p.store.MayAnswer(e.etcd.claim) {\n",
		to:   "|| !p.store.MayAnswer(e.etcd.claim) && !$ {\n",
	},
	{
		name: "a position is stored after its batch", test: clusterTest, file: channelStore,
		from: "		seen.put(&batch)\n",
		to:   "		if late := seen; !$ || e.Version%4 == 0 {\n			late.put(&batch)\n		}\n",
	},
	{
		name: "a position is stored before its batch", test: clusterTest, file: channelStore,
		from: "		var batch kv.Batch\n		batch.Append(b)\n",
		to:   "		var batch, first kv.Batch\n		if seen.put(&first); $ {\n			_ = s.Store.Apply(&first)\n		}\n		batch.Append(b)\n",
	},
	{
		name: "parts survive a claim", test: clusterTest, file: channelStore,
		from: "	s.seen.Revision, s.seen.Term, s.parts = e.Revision, e.Revision, parts{}\n",
		to:   "	s.seen.Revision, s.seen.Term = e.Revision, e.Revision\n	if !$ {\n		s.parts = parts{}\n	}\n",
	},
	{
		name: "calls of an account are not committed", test: clusterTest, file: "origin/server/account/quota.go",
		from: "	if wait, err = m.store.Commit(b); err != nil {\n",
		to:   "	if $ {\n		return func() error { return nil }, m.store.Apply(b)\n	}\n	if wait, err = m.store.Commit(b); err != nil {\n",
	},
	{
		name: "a compaction overtakes a store", test: clusterTest, file: channelStore,
		from: "	return at.Revision, kv.CommitAndWait(s.Store, &kv.Batch{})\n",
		to:   "	if $ {\n		return at.Revision, nil\n	}\n	return at.Revision, kv.CommitAndWait(s.Store, &kv.Batch{})\n",
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
	{
		name: "a standby folds some records late", test: clusterTest, file: "core/partition/follow.go",
		from: "	if err := p.foldRest(); err != nil {\n",
		to:   "	if $ && p.log.Head()%3 == 0 {\n		return nil\n	}\n	if err := p.foldRest(); err != nil {\n",
	},
	{
		name: "a fold after a Dismiss lists the conflict again", test: clusterTest, file: "core/partition/origin.go",
		from: "	analysed, err := findIndexable(p.index, p.tx, p.o.App, entries, out)\n",
		to: "	for i, v := range verdicts {\n		if $ && isConflict(v.Code) {\n" +
			"			PutConflict(p.tx, p.o.App, &Conflict{Op: entries[i].Op, Seq: entries[i].Seq, Verdict: v})\n		}\n	}\n" +
			"	analysed, err := findIndexable(p.index, p.tx, p.o.App, entries, out)\n",
	},
	{
		name: "a Dismiss is not committed", test: clusterTest, file: "core/partition/conflict.go",
		from: "	return kv.CommitAndWait(p.o.Store, &b)\n",
		to:   "	if $ {\n		return p.o.Store.Apply(&b)\n	}\n	return kv.CommitAndWait(p.o.Store, &b)\n",
	},
	{
		name: "the names of an edge outlive a term", test: clusterTest, file: "core/partition/follow.go",
		from: "	p.trim, p.appended, p.dropsNames, p.clocks = trimState{}, map[log.Writer]*writerNames{}, false, madeClocks{}\n",
		to: "	if !$ {\n		p.appended = map[log.Writer]*writerNames{}\n	}\n" +
			"	p.trim, p.dropsNames, p.clocks = trimState{}, false, madeClocks{}\n",
	},
	{
		name: "a process that ends refuses writes that may have happened", test: clusterTest, file: channelStore,
		from: "	if s.claim != 0 {\n		s.end(err)\n	}\n",
		to:   "	if s.claim != 0 {\n		if $ {\n			err = kv.ErrFollows\n		}\n		s.end(err)\n	}\n",
	},
	{
		name: "a refused write is sent in the next term", test: clusterTest, file: channelStore,
		from: "	for s.claim, s.err = 0, err; len(s.queue) > 0; {\n		s.pop(err)\n	}\n",
		to: "	var again []*record\n	for _, r := range s.queue {\n		if $ {\n			again = append(again, &record{batch: r.batch, n: r.n, done: make(chan struct{})})\n		}\n	}\n" +
			"	for s.claim, s.err = 0, err; len(s.queue) > 0; {\n		s.pop(err)\n	}\n	s.queue = again\n",
	},
}
