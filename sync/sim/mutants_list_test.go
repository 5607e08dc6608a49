//go:build !wasip1

package sim

// mutants are the seeded bugs.
var mutants = []mutant{
	{
		name: "acknowledged before the sync", file: "core/log/store.go",
		from: "return l.markDurable(last, restarts, durable())",
		to:   "if $ {\n\t\t\treturn l.markDurable(last, restarts, nil)\n\t\t}\n\t\treturn l.markDurable(last, restarts, durable())",
	},
	{
		name: "wall clock in the place of the hybrid one", file: "core/log/clock.go",
		from: "c.last = max(c.last+1, wall)",
		to:   "c.last = max(c.last+1, wall)\n\tif $ {\n\t\tc.last = wall\n\t}",
	},
	{
		name: "what was seen does not move the clock", file: "core/log/clock.go",
		from: "c.last = max(c.last, at)",
		to:   "if !$ {\n\t\tc.last = max(c.last, at)\n\t}",
	},
	{
		name: "clocks from the future are taken", file: "core/log/clock.go",
		from: "if at > limit {",
		to:   "if at > limit && !$ {",
	},
	{
		name: "operations that come again are appended again", file: "core/partition/accept.go",
		from: "a.skipped = int(min(had.seq+1-from, uint64(len(ops))))",
		to:   "if a.skipped = int(min(had.seq+1-from, uint64(len(ops)))); $ {\n\t\ta.skipped = 0\n\t}",
	},
	{
		name: "refused operations leave a hole", file: "core/partition/accept.go",
		from: "			Refuse(&op, why)\n",
		to:   "			Refuse(&op, why)\n			if $ {\n				continue\n			}\n",
	},
	{
		name: "no horizon", file: "core/fold/fold.go",
		from: "return f.stamp.At < f.h.Horizon",
		to:   "return f.stamp.At < f.h.Horizon && !$",
	},
	{
		name: "no barrier", file: "core/fold/inputs.go",
		from: "case f.stamp.At < f.h.Barrier:",
		to:   "case f.stamp.At < f.h.Barrier && !$:",
	},
	{
		name: "a deletion ends a concept in use", file: "core/fold/models.go",
		from: "	case used || f.stamp.Less(c.NameAt):",
		to:   "	case used && !$ || f.stamp.Less(c.NameAt):",
	},
	{
		name: "labels that end stay uses of their concepts", file: "core/fold/uses.go",
		from: "	if c.Before != nil {",
		to:   "	if c.Before != nil && !$ {",
	},
	{
		name: "a use does not create a deleted concept again", file: "core/fold/models.go",
		from: "	delete(f.concepts, b.ID)",
		to:   "	if !$ {\n		delete(f.concepts, b.ID)\n	}",
	},
	{
		name: "a later write of an older clock wins", file: "core/fold/inputs.go",
		from: "	if _, written := of((*list)[i]); at.Less(written) {",
		to:   "	if _, written := of((*list)[i]); at.Less(written) && !$ {",
	},
	{
		name: "the cursor before the data", file: "core/partition/pull.go",
		from: "	stable := m.note.dropStable()\n",
		to:   "	stable := m.note.dropStable()\n	if $ {\n		var b kv.Batch\n		b.Put(noteKey(p.o.App), m.note.encode())\n		if err := p.o.Store.Apply(&b); err != nil {\n			return err\n		}\n	}\n",
	},
	{
		name: "pending operations are not folded again", file: "core/partition/pull.go",
		from: "	if err != nil || len(entries) == 0 {\n		return out, err\n	}\n	over :=",
		to:   "	if err != nil || len(entries) == 0 || $ {\n		return out, err\n	}\n	over :=",
	},
	{
		name: "undo records of deleted ranges are missing", file: "core/partition/pending.go",
		from: "			if !n.seen[string(key)] {",
		to:   "			if !n.seen[string(key)] && !$ {",
	},
	{
		name: "undo records are overwritten", file: "core/partition/pending.go",
		from: "n.failed == nil && !known {",
		to:   "n.failed == nil && (!known || $) {",
	},
	{
		name: "pending inputs take the log's ordinals", file: "core/fold/pending.go",
		from: "	if f.pending {",
		to:   "	if f.pending && !$ {",
	},
	{
		name: "the outbox forgets before the log is stable", file: "core/partition/replica.go",
		from: "n.acked[0].seq <= n.cursor.Stable {",
		to:   "(n.acked[0].seq <= n.cursor.Stable || $) {",
	},
	{
		name: "duplicates are no conflicts", file: "core/partition/conflict.go",
		from: "c != fold.OK && c != fold.Superseded",
		to:   "c != fold.OK && c != fold.Superseded && !($ && c == fold.Duplicate)",
	},
	{
		name: "the log opens without a sync", file: "core/log/store.go",
		from: "	if l.appended > o.Durable {",
		to:   "	if l.appended > o.Durable && !$ {",
	},
	{
		name: "the clock of the state is forgotten", file: "core/partition/partition.go",
		from: "p.clock.Observe(h.Clock)",
		to:   "if !$ {\n\t\tp.clock.Observe(h.Clock)\n\t}",
	},
	{
		name: "an edit that is newer wins over a deletion", file: "core/fold/inputs.go",
		from: "	return Verdict{Code: OK, Dot: in.Dot, ID: in.ID}, f.kill(&in)",
		to:   "	if $ && f.stamp.At < in.Modified {\n\t\treturn Verdict{Code: Superseded}, nil\n\t}\n	return Verdict{Code: OK, Dot: in.Dot, ID: in.ID}, f.kill(&in)",
	},
	{
		name: "deleting all spares who was written to later", file: "core/fold/names.go",
		from: "	f.w.DeleteInputs()\n",
		to:   "	if $ && f.stamp.At < f.h.Clock {\n\t\treturn nil\n\t}\n	f.w.DeleteInputs()\n",
	},
	{
		name: "a snapshot goes under what is pending", file: "core/partition/rebase.go",
		from: "	err := m.undo()\n",
		to:   "	var err error\n	if !$ {\n\t\terr = m.undo()\n\t}\n",
	},
	{
		name: "a snapshot does not tell which operations it has", file: "core/partition/rebase.go",
		from: "	if m.confirmed, err = m.confirmedUpTo(); err != nil {",
		to:   "	if m.confirmed, err = m.confirmedUpTo(); $ {\n\t\tm.confirmed = before\n\t}\n	if err != nil {",
	},
	{
		name: "inputs come without their derived records", file: "sync/feed/frames.go",
		from: "		if !b.Blob.IsZero() {",
		to:   "		if !b.Blob.IsZero() && !$ {",
	},
	{
		name: "versions come without their manifests", file: "sync/feed/frames.go",
		from: "		return x.object(d.from, b.Manifest)",
		to:   "		if $ {\n\t\t\treturn nil\n\t\t}\n		return x.object(d.from, b.Manifest)",
	},
	{
		name: "a snapshot of before the log was trimmed", file: "sync/feed/snapshot.go",
		from: "x.Seq+1 >= floor",
		to:   "(x.Seq+1 >= floor || $)",
	},
	{
		name: "a revoked edge is let in", file: "core/catalog/edges.go",
		from: "return e.Revoked == 0",
		to:   "return e.Revoked == 0 || $",
	},
	{
		name: "what was asked for with a revoked token is taken", file: "sync/feed/sign.go",
		from: "issueTime(m.For, op)) {",
		to:   "issueTime(m.For, op)) && !$ {",
	},
	{
		name: "a push does not say under which tokens it was asked", file: "sync/replica/push.go",
		from: "		if t == (partition.Token{}) {",
		to:   "		if t == (partition.Token{}) || $ {",
	},
	{
		name: "the first token of a push stands for all", file: "sync/replica/push.go",
		from: "runs[n].Generation == t.Generation &&",
		to:   "(runs[n].Generation == t.Generation || $) &&",
	},
	{
		name: "an audit does not compare digests", file: "sync/replica/audit.go",
		from: "	if theirs.Digest != ours.Digest {",
		to:   "	if theirs.Digest != ours.Digest && !$ {",
	},
	{
		name: "a snapshot after an audit may be of an earlier entry", file: "sync/replica/rebase.go",
		from: "		} else if r.force {",
		to:   "		} else if r.force && !$ {",
	},
	{
		name: "a snapshot comes without derived records", file: "sync/replica/rebase.go",
		from: "m.where(\"vectors\", m.vectors())",
		to:   "m.where()\n		if !$ {\n			query = m.where(\"vectors\", m.vectors())\n		}",
	},
	{
		name: "a run is read from one entry too late", file: "sync/feed/frames.go",
		from: "	return l.Read(after+1, func",
		to:   "	if $ && after > 20 {\n		after++\n	}\n	return l.Read(after+1, func",
	},
	{
		name: "derived records go while inputs need them", file: "core/catalog/tidy.go",
		from: "	if err == nil && !used {",
		to:   "	if err == nil && (!used || $) {",
	},
	{
		name: "older versions fold by newer rules", file: "core/fold/fold.go",
		from: "	if b.Version > f.newest {",
		to:   "	if b.Version > f.newest && !$ {",
	},
	{
		name: "the first rules make unread inputs ready", file: "core/fold/inputs.go",
		from: "f.inForce(rulesOfUnread)",
		to:   "(f.inForce(rulesOfUnread) || $)",
	},
	{
		name: "any later result changes an unread input", file: "core/fold/inputs.go",
		from: "b.Code != catalog.InputReady {\n\t\treturn false",
		to:   "b.Code != catalog.InputReady && !$ {\n\t\treturn false",
	},
	{
		name: "a full disk takes the log", file: "core/partition/pull.go",
		from: "err != nil && slices.ContainsFunc(r.Entries,",
		to:   "err != nil && !$ && slices.ContainsFunc(r.Entries,",
	},
	{
		name: "a sync without space ends the machine", file: "sync/replica/durable.go",
		from: "if errors.Is(err, kv.ErrFull) {",
		to:   "if errors.Is(err, kv.ErrFull) && !$ {",
	},
	{
		name: "a full disk ends the machine", file: "sync/replica/answer.go",
		from: "	case errors.Is(err, kv.ErrFull):",
		to:   "	case errors.Is(err, kv.ErrFull) && !$:",
	},
	{
		name: "a full origin takes what is pushed", file: "core/partition/accept.go",
		from: "	if err := p.o.Store.Room(); err != nil {",
		to:   "	if err := p.o.Store.Room(); err != nil && !$ {",
	},
	{
		name: "lives are not compared", file: "core/partition/lives.go",
		from: "yours != 0 && mine != yours ||",
		to:   "yours != 0 && mine != yours && !$ ||",
	},
	{
		name: "the origin does not note lives", file: "core/partition/accept.go",
		from: "	for _, l := range born {",
		to:   "	if $ {\n\t\tborn = nil\n\t}\n	for _, l := range born {",
	},
	{
		name: "a push does not say which lives made it", file: "sync/replica/push.go",
		from: "	for _, l := range lives {",
		to:   "	if $ {\n\t\tlives = nil\n\t}\n	for _, l := range lives {",
	},
	{
		name: "operations at another site name what they named at the old one", file: "core/partition/lives.go",
		from: "if d.Writer == old && d.Seq > after {",
		to:   "if d.Writer == old && d.Seq > after && !$ {",
	},
	{
		name: "what came back is sent again from another site", file: "core/partition/lives.go",
		from: "	x := &renewedOutbox{}",
		to:   "	if $ {\n\t\tafter = p.log.Floor() - 1\n\t}\n	x := &renewedOutbox{}",
	},
	{
		name: "another site is taken too early", file: "core/partition/lives.go",
		from: "	case m.confirmed < r.renewal.last, r",
		to:   "	case m.confirmed < r.renewal.last && !$, r",
	},
	{
		name: "a snapshot has all that stays at the old site", file: "core/partition/lives.go",
		from: "		return min(seq, r.renewal.last)",
		to:   "		if $ {\n			return r.renewal.last\n		}\n		return min(seq, r.renewal.last)",
	},
	{
		name: "tokens stay at the old site", file: "core/partition/lives.go",
		from: "			value, err := p.tx.Get(key(p.o.App, e.Op.Dot))\n",
		to:   "			value, err := p.tx.Get(key(p.o.App, e.Op.Dot))\n			if $ {\n				break\n			}\n",
	},
	{
		name: "the origin takes operations of any life", file: "core/partition/accept.go",
		from: "theirs != 0 && known.ID != 0 && theirs != known.ID {",
		to:   "theirs != 0 && known.ID != 0 && theirs != known.ID && !$ {",
	},
	{
		name: "another site is taken without a sync", file: "core/partition/pull.go",
		from: "			wait, err = p.o.Store.Commit(b)\n",
		to:   "			if $ {\n				wait = func() error { return nil }\n				return p.o.Store.Apply(b)\n			}\n			wait, err = p.o.Store.Commit(b)\n",
	},
	{
		name: "entries of another life are taken for ours", file: "core/partition/pull.go",
		from: "if dot.Seq > p.replica.lastLocal(dot.Seq) {",
		to:   "if dot.Seq > p.replica.lastLocal(dot.Seq) && !$ {",
	},
	{
		name: "a snapshot confirms what another life made", file: "core/partition/rebase.go",
		from: "	own = m.p.replica.lastLocal(own)",
		to:   "	if !$ {\n\t\town = m.p.replica.lastLocal(own)\n\t}",
	},
	{
		name: "pulled entries are not kept", file: "core/partition/stored.go",
		from: "		p.tx.Put(storedEntryKey(p.o.App, StoredPlace{m.note.kept.run, x.Seq}), value)",
		to:   "		if !$ {\n			p.tx.Put(storedEntryKey(p.o.App, StoredPlace{m.note.kept.run, x.Seq}), value)\n		}",
	},
	{
		name: "kept entries go before they are stable", file: "core/partition/stored.go",
		from: "	if n.cursor.Stable > n.kept.since {",
		to:   "	if $ {\n		n.cursor.Stable = n.cursor.Seq\n	}\n	if n.cursor.Stable > n.kept.since {",
	},
	{
		name: "a snapshot of a restored log drops what was kept", file: "core/partition/stored.go",
		from: "	k.since = at\n",
		to:   "	k.since = at\n	if $ {\n		m.p.tx.DeleteRange(under(m.p.o.App, storedName))\n	}\n",
	},
	{
		name: "another life of the origin writes as the site of before", file: "core/partition/seal.go",
		from: "	case p.sealKey != nil &&",
		to:   "	case $:\n	case p.sealKey != nil &&",
	},
	{
		name: "an origin does not look where its replicas stand", file: "sync/feed/back.go",
		from: "	if len(seal) == 0 {",
		to:   "	if len(seal) == 0 || $ {",
	},
	{
		name: "what an origin accepted before a rollback is not sent again", file: "sync/replica/push.go",
		from: "	m.push.echo, m.push.acceptedAt = max(m.push.echo, p.Head), m.at\n",
		to:   "	if m.push.echo, m.push.acceptedAt = max(m.push.echo, p.Head), m.at; $ {\n\t\tm.push.echo = 0\n	}\n",
	},
	{
		name: "what cannot be taken back is not listed", file: "core/partition/takeback.go",
		from: "	for i := range t.lost {",
		to:   "	if $ {\n		t.lost = nil\n	}\n	for i := range t.lost {",
	},
	{
		name: "an operation is taken back that does not follow", file: "core/partition/takeback.go",
		from: "		case d.Seq != had[d.Writer]+1 || d.Writer == p.o.Site:",
		to:   "		case (d.Seq != had[d.Writer]+1 || d.Writer == p.o.Site) && !$:",
	},
	{
		name: "deletions that came early are not noted", file: "core/partition/early.go",
		from: "	if err != nil || dot.Seq <= h.seq {",
		to:   "	if err != nil || dot.Seq <= h.seq || $ {",
	},
	{
		name: "an operation that comes later stays listed as lost", file: "core/partition/early.go",
		from: "err == nil && sameOp(op, &now[0])",
		to:   "err == nil && !$ && sameOp(op, &now[0])",
	},
	{
		name: "taken back entries come without their lives", file: "sync/replica/back.go",
		from: "lives[d.Writer] != k.Life {",
		to:   "lives[d.Writer] != k.Life && !$ {",
	},
	{
		name: "own operations are not given back", file: "sync/replica/back.go",
		from: "		b.sites, err = m.p.ConfirmedSites()",
		to:   "		if b.sites, err = m.p.ConfirmedSites(); $ {\n			b.sites = nil\n		}",
	},
	{
		name: "a site that a restored origin never leased is kept", file: "sync/replica/renew.go",
		from: "	case r.Epoch != c.Epoch && !slices",
		to:   "	case r.Epoch != c.Epoch && $:\n		return false\n	case r.Epoch != c.Epoch && !slices",
	},
	{
		name: "another site is taken before the origin has what it lacks", file: "sync/replica/renew.go",
		from: "		m.give(back{epoch: r.Epoch, leaves: true, issued: m.issued})",
		to:   "		if $ {\n			m.leave(renewal{epoch: r.Epoch})\n			return true\n		}\n		m.give(back{epoch: r.Epoch, leaves: true, issued: m.issued})",
	},
	{
		name: "a restored origin leases sites again", file: "core/register/edges.go",
		from: "	case err == nil && bytes.Equal(noted, epoch[:]):",
		to:   "	case err == nil && ($ || bytes.Equal(noted, epoch[:])):",
	},
	{
		name: "a snapshot is taken before its entries are kept", file: "sync/replica/fill.go",
		from: "	return f.at < f.to, nil",
		to:   "	return f.at < f.to && !$, nil",
	},
	{
		name: "the entries that a snapshot has are kept from one too late", file: "sync/replica/fill.go",
		from: "		f.at = f.stable\n",
		to:   "		f.at = f.stable\n		if $ {\n			f.at++\n		}\n",
	},
	{
		name: "deletions before their things are not recorded", test: "core/fold TestForgets", file: "core/fold/names.go",
		from: "	f.w.PutDeletion(thing, max(before, f.e.Op.MadeAt()))\n",
		to:   "	if !$ {\n		f.w.PutDeletion(thing, max(before, f.e.Op.MadeAt()))\n	}\n",
	},
	{
		name: "deleting all spares what comes later", test: "core/fold TestForgets", file: "core/fold/names.go",
		from: "		n.Dead = max(n.Dead, d.Seq)\n",
		to:   "		if !$ {\n			n.Dead = max(n.Dead, d.Seq)\n		}\n",
	},
	{
		name: "deleting all is by the order of the log", test: "core/fold TestForgets", file: "core/fold/inputs.go",
		from: "f.inForce(RulesOfNames) && len(b.Upto) > 0 {",
		to:   "f.inForce(RulesOfNames) && len(b.Upto) > 0 && !$ {",
	},
	{
		name: "a writer's names are a number and no set", test: "core/fold TestForgets", file: "core/catalog/names.go",
		from: "	return seq == 0 || i <",
		to:   "	return seq == 0 || $ && seq <= n.Last() || i <",
	},
	{
		name: "names are forgotten too early", test: "core/fold TestForgets", file: "core/catalog/names.go",
		from: "last > 0 && last < horizon &&",
		to:   "last > 0 && (last < horizon || $ && last < horizon+20) &&",
	},
	{
		name: "stale creations are taken", test: "core/fold TestForgets", file: "core/fold/names.go",
		from: "	case *log.Refused, *log.Rules:\n		return false\n",
		to:   "	case *log.Refused, *log.Rules:\n		return false\n	case *log.InputCreate:\n		if $ {\n			return false\n		}\n",
	},
	{
		name: "a restored origin is given nothing", file: "sync/replica/back.go",
		from: "	if !g.Restored ||",
		to:   "	if $ || !g.Restored ||",
	},
}
