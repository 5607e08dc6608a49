//go:build !wasip1

package sim

// mutants are the seeded bugs.
var mutants = []mutant{
	{
		name: "acknowledged before the sync", file: "core/log/store.go",
		from: "return l.settled(last, durable())",
		to:   "if $ {\n\t\t\treturn l.settled(last, nil)\n\t\t}\n\t\treturn l.settled(last, durable())",
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
		from: "if f.stamp.At < f.h.Barrier {",
		to:   "if f.stamp.At < f.h.Barrier && !$ {",
	},
	{
		name: "a later write of an older clock wins", file: "core/fold/inputs.go",
		from: "	if at.Less(in.Labels[i].At) {",
		to:   "	if at.Less(in.Labels[i].At) && !$ {",
	},
	{
		name: "the cursor before the data", file: "core/partition/pull.go",
		from: "	stable := m.note.settled()\n",
		to:   "	stable := m.note.settled()\n	if $ {\n		var b kv.Batch\n		b.Put(noteKey(p.o.App), m.note.encode())\n		if err := p.o.Store.Apply(&b); err != nil {\n			return err\n		}\n	}\n",
	},
	{
		name: "pending operations are not folded again", file: "core/partition/pull.go",
		from: "	if err != nil || len(entries) == 0 {\n		return out, err\n	}\n	over :=",
		to:   "	if err != nil || len(entries) == 0 || $ {\n		return out, err\n	}\n	over :=",
	},
	{
		name: "undo records of deleted ranges are missing", file: "core/partition/pending.go",
		from: "			n.note(key, value)\n			return n.failed == nil\n",
		to:   "			if !$ {\n				n.note(key, value)\n			}\n			return n.failed == nil\n",
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
}
