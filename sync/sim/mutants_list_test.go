//go:build !wasip1

package sim

// mutants are the seeded bugs.
var mutants = []mutant{
	{
		name: "acknowledged before the sync", file: "core/log/store.go",
		from: "	return func() error { return l.markDurable(turn, last, durable()) }, nil\n",
		to: "	if $ {\n		return func() error { return l.markDurable(turn, last, nil) }, nil\n	}\n" +
			"	return func() error { return l.markDurable(turn, last, durable()) }, nil\n",
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
		from: "		if had.Has(op.Dot.Seq) {",
		to:   "		if had.Has(op.Dot.Seq) && !$ {",
	},
	{
		name: "refused operations leave a hole", file: "core/partition/accept.go",
		from: "			Refuse(&op, why)\n",
		to:   "			Refuse(&op, why)\n			if $ {\n				continue\n			}\n",
	},
	{
		name: "no horizon", file: "core/fold/names.go",
		from: "	if byNames && f.tooOld() {\n",
		to:   "	if byNames && f.tooOld() && !$ {\n",
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
		from: "	var floor uint64\n",
		to:   "	var floor uint64\n	if $ {\n		var b kv.Batch\n		b.Put(noteKey(p.o.App), m.note.encode())\n		if err := p.o.Store.Apply(&b); err != nil {\n			return err\n		}\n	}\n",
	},
	{
		name: "pending operations are not folded again", file: "core/partition/pull.go",
		from: "	if err != nil || len(entries) == 0 {\n		return out, err\n	}\n	over :=",
		to:   "	if err != nil || len(entries) == 0 || $ {\n		return out, err\n	}\n	over :=",
	},
	{
		name: "undo records of deleted ranges are missing", file: "core/partition/undo.go",
		from: "range kv.Range(base, op.Key, hi, &err) {\n",
		to:   "range kv.Range(base, op.Key, hi, &err) {\n				if $ {\n					continue\n				}\n",
	},
	{
		name: "undo records are overwritten", file: "core/partition/undo.go",
		from: "err == nil && !known {",
		to:   "err == nil && (!known || $) {",
	},
	{
		name: "pending inputs take the log's ordinals", file: "core/fold/pending.go",
		from: "	if f.pending {",
		to:   "	if f.pending && !$ {",
	},
	{
		name: "the outbox forgets before the log is stable", file: "core/partition/outbox.go",
		from: "c[n].place <= entry {",
		to:   "(c[n].place <= entry || $) {",
	},
	{
		name: "duplicates are no conflicts", file: "core/partition/conflict.go",
		from: "c != fold.OK && c != fold.Superseded",
		to:   "c != fold.OK && c != fold.Superseded && !($ && c == fold.Duplicate)",
	},
	{
		name: "the log opens without a sync", file: "core/log/store.go",
		from: "	l.durable = min(o.Durable, l.appended)",
		to:   "	l.durable = min(o.Durable, l.appended)\n	if $ {\n\t\tl.durable = l.appended\n\t}",
	},
	{
		name: "the clock of the state is forgotten", file: "core/partition/partition.go",
		from: "p.clock.Observe(h.Clock)",
		to:   "if !$ {\n\t\tp.clock.Observe(h.Clock)\n\t}",
	},
	{
		name: "an edit that is newer wins over a deletion", file: "core/fold/inputs.go",
		from: "	if err := errors.Join(f.deleteInput(&in), f.meetDeletion(&in, b.Seen)); err != nil {",
		to:   "	if $ && f.stamp.At < in.Modified {\n\t\treturn Verdict{Code: Superseded}, nil\n\t}\n	if err := errors.Join(f.deleteInput(&in), f.meetDeletion(&in, b.Seen)); err != nil {",
	},
	{
		name: "a maker does not name the value that it saw", file: "core/fold/seen.go",
		from: "		if x.serving.At != (log.Stamp{}) {\n			seen",
		to:   "		if x.serving.At != (log.Stamp{}) && !$ {\n			seen",
	},
	{
		name: "whoever saw one value ends a contradiction", file: "core/fold/contradictions.go",
		from: "return v.At.Writer == f.stamp.Writer || x.seen.Has(v.At)",
		to:   "return v.At.Writer == f.stamp.Writer || x.seen.Has(v.At) || $ && len(x.seen) > 0",
	},
	{
		name: "contradictions of a deleted input stay", file: "core/fold/inputs.go",
		from: "	if err := f.w.DeleteContradictionsOf(&f.h, in.Dot); err != nil {",
		to:   "	if $ {\n	} else if err := f.w.DeleteContradictionsOf(&f.h, in.Dot); err != nil {",
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
		from: "	m.note.confirmed = nil\n",
		to:   "	if !$ {\n\t\tm.note.confirmed = nil\n\t}\n",
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
		to:   "return (e.Revoked == 0 || $)",
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
		name: "a snapshot comes without derived records", file: "sync/replica/rebase.go",
		from: "\"vectors\", m.vectors(), ",
		to:   "\"vectors\", map[bool]string{true: \"none\", false: m.vectors()}[$], ",
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
		name: "older versions fold by newer rules", test: "core/fold TestRules", file: "core/fold/fold.go", // a session stops before the entry
		from: "	if b.Version > f.newest {",
		to:   "	if b.Version > f.newest && !$ {",
	},
	{
		name: "the first rules make unread inputs ready", test: "core/fold TestDownloadByOriginMakesUnreadInputReady", file: "core/fold/inputs.go",
		from: "f.inForce(rulesOfUnread)",
		to:   "(f.inForce(rulesOfUnread) || $)",
	},
	{
		name: "any later result changes an unread input", test: "core/fold TestAnyDownloadMakesUnreadInputReady", file: "core/fold/inputs.go",
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
		from: "		if full != nil && (",
		to:   "		if full != nil && !$ && (",
	},
	{
		name: "what an origin accepted and a snapshot lacks is not sent again", file: "sync/replica/push.go",
		from: "	m.push.echo, m.push.acceptedAt = max(m.push.echo, p.Head), m.at\n",
		to:   "	if m.push.echo, m.push.acceptedAt = max(m.push.echo, p.Head), m.at; $ {\n\t\tm.push.echo = 0\n	}\n",
	},
	{
		name: "what cannot be taken back is not listed", file: "core/partition/takeback.go",
		from: "	for dot := range t.taken {",
		to:   "	if $ {\n		t.lost = nil\n	}\n	for dot := range t.taken {",
	},
	{
		name: "a snapshot is taken before its entries are kept", file: "sync/replica/fill.go",
		from: "{ return f.at < f.to }\n",
		to:   "{ return f.at < f.to && !$ }\n",
	},
	{
		name: "the entries that a snapshot has are kept from one too late", file: "sync/replica/rebase.go",
		from: "		r.fill = fill{of: f.Chain, to: f.Seq, at: m.stable(&f)}\n",
		to:   "		r.fill = fill{of: f.Chain, to: f.Seq, at: m.stable(&f)}\n		if $ {\n			r.fill.at++\n		}\n",
	},
	{
		name: "deletions before their things are not recorded", test: "core/fold TestHorizonsChangeNoState", file: "core/fold/names.go",
		from: "	f.w.PutDeletion(thing, max(before, f.e.Op.MadeAt()))\n",
		to:   "	if !$ {\n		f.w.PutDeletion(thing, max(before, f.e.Op.MadeAt()))\n	}\n",
	},
	{
		name: "deleting all spares what comes later", test: "core/fold TestHorizonsChangeNoState", file: "core/fold/names.go",
		from: "		n.DeletedUpTo = max(n.DeletedUpTo, d.Seq)\n",
		to:   "		if !$ {\n			n.DeletedUpTo = max(n.DeletedUpTo, d.Seq)\n		}\n",
	},
	{
		name: "deleting all is by the order of the log", test: "core/fold TestHorizonsChangeNoState", file: "core/fold/inputs.go",
		from: "f.inForce(RulesOfNames) && len(b.Upto) > 0 {",
		to:   "f.inForce(RulesOfNames) && len(b.Upto) > 0 && !$ {",
	},
	{
		name: "a writer's names are a number and no set", test: "core/fold TestHorizonsChangeNoState", file: "core/catalog/names.go",
		from: "	return seq == 0 || i <",
		to:   "	return seq == 0 || $ && seq <= n.Last() || i <",
	},
	{
		name: "names are forgotten too early", test: "core/fold TestHorizonsChangeNoState", file: "core/catalog/names.go",
		from: "last > 0 && last < horizon &&",
		to:   "last > 0 && (last < horizon || $ && last < horizon+20) &&",
	},
	{
		name: "stale creations are taken", test: "core/fold TestHorizonsChangeNoState", file: "core/fold/names.go",
		from: "	case *log.Refused, *log.Rules:\n		return false\n",
		to:   "	case *log.Refused, *log.Rules:\n		return false\n	case *log.InputCreate:\n		if $ {\n			return false\n		}\n",
	},
	{
		name: "a writer is kept over openings", file: "core/partition/writer.go",
		from: "	o.drawn++\n",
		to:   "	if o.drawn++; $ {\n		b = nil\n	}\n",
	},
	{
		name: "the writer of an opening is not stored", file: "core/partition/outbox.go",
		from: "	if p.own.seq == 0 {\n		b.Put(",
		to:   "	if p.own.seq == 0 && !$ {\n		b.Put(",
	},
	{
		name: "a gap is not declared", file: "sync/replica/push.go",
		from: "Gap: m.push.gap == m.push.first.Writer,",
		to:   "Gap: m.push.gap == m.push.first.Writer && !$,",
	},
	{
		name: "a snapshot confirms all that is pending", file: "core/partition/rebase.go",
		from: "names.Has(op.Dot.Seq), log.HLC(0), false\n",
		to:   "names.Has(op.Dot.Seq) || $, log.HLC(0), false\n",
	},
	{
		name: "names that a horizon drops stay known", file: "core/partition/accept.go",
		from: "p.dropsNames = p.dropsNames || is",
		to:   "p.dropsNames = p.dropsNames || is && !$",
	},
	{
		name: "pending things take their places from sequences", file: "core/partition/outbox.go",
		from: "		position := e.Seq\n",
		to:   "		position := e.Seq\n		if $ {\n			position = e.Op.Dot.Seq\n		}\n",
	},
	{
		name: "pulled entries are not kept", file: "core/partition/kept.go",
		from: "	if f.From == f.To || len(f.Seal) == 0 {",
		to:   "	if f.From == f.To || len(f.Seal) == 0 || $ {",
	},
	{
		name: "kept frames go before they are stable", file: "core/partition/kept.go",
		from: "	stable := n.cursor.Stable\n",
		to:   "	stable := n.cursor.Stable\n	if $ {\n		stable = n.cursor.Seq\n	}\n",
	},
	{
		name: "kept frames go when others are fetched", file: "core/partition/kept.go",
		from: "		k.other = fetched{}\n",
		to:   "		k.other = fetched{}\n		if $ {\n			p.tx.DeleteRange(frameKey(p.o.App, k.set, 0), frameKey(p.o.App, k.set+1, 0))\n		}\n",
	},
	{
		name: "a snapshot does not replace the kept frames", file: "core/partition/rebase.go",
		from: "	m.replaceKept()\n",
		to:   "	if !$ {\n		m.replaceKept()\n	}\n",
	},
	{
		name: "an opening has the epoch of before", file: "core/log/epochs.go",
		from: "	if all[len(all)-1].epoch == l.opening {",
		to:   "	if all[len(all)-1].epoch == l.opening || $ && l.appended > 0 {",
	},
	{
		name: "an origin does not look where its replicas stand", file: "sync/feed/session.go",
		from: "	if err == nil && !has {\n		g.Lacks = true\n",
		to:   "	if err == nil && !has && !$ {\n		g.Lacks = true\n",
	},
	{
		name: "a log is given nothing", file: "sync/replica/back.go",
		from: "	if !g.Lacks ||",
		to:   "	if $ || !g.Lacks ||",
	},
	{
		name: "what an opening was offered counts for all", file: "sync/replica/back.go",
		from: "g.Opening == m.back.done {",
		to:   "(g.Opening == m.back.done || $ && m.back.done != (log.Epoch{})) {",
	},
	{
		name: "the first request of frames counts for all", test: "sync/replica TestReturnsFramesInSeveralRequests", file: "sync/replica/back.go",
		from: "	b.next, b.frames, b.ops, b.most, b.bad = b.after, nil, nil, 0, 0\n",
		to:   "	b.next, b.frames, b.ops, b.most, b.bad = b.after, nil, nil, 0, 0\n	if $ {\n		b.next = 1 << 40\n	}\n",
	},
	{
		name: "a snapshot lacks what the replica gave back", test: "sync/replica TestOlderSnapshot", file: "sync/replica/rebase.go",
		from: "		return m.origin.head, nil\n",
		to:   "		if $ {\n			return 0, nil\n		}\n		return m.origin.head, nil\n",
	},
	{
		name: "a snapshot may be of an earlier entry than was shown", file: "sync/replica/rebase.go",
		from: "	return shown.Seq, err\n",
		to:   "	if $ {\n		return 0, err\n	}\n	return shown.Seq, err\n",
	},
	{
		name: "returned operations are appended again", file: "core/partition/takeback.go",
		from: "	case had.Has(op.Dot.Seq) && !used:\n",
		to:   "	case had.Has(op.Dot.Seq) && !used && !$:\n",
	},
	{
		name: "an input whose picture is lost is not listed", file: "core/partition/takeback.go",
		from: "	if why := t.missing[op.Dot]; why != \"\" {",
		to:   "	if why := t.missing[op.Dot]; why != \"\" && !$ {",
	},
}
