//go:build !wasip1

package sim

func init() { mutants = append(mutants, memoryMutants...) }

// memoryMutants are seeded bugs about machines that are set back with their memory.
var memoryMutants = []mutant{
	{
		name: "an entry confirms an operation by its name", test: "TestConvergeMemory", file: "core/partition/pull.go",
		from: "		if entries[i].Op.MadeAt() == op.At {\n",
		to:   "		if entries[i].Op.MadeAt() == op.At || $ {\n",
	},
	{
		name: "a snapshot confirms an operation by its name", test: "TestConvergeMemory", file: "core/partition/rebase.go",
		from: "		case made != 0 && made != op.At && foreign != of:\n",
		to:   "		case made != 0 && made != op.At && foreign != of && !$:\n",
	},
	{
		name: "a snapshot confirms operations before one whose name was used", test: "TestConvergeMemory", file: "core/partition/rebase.go",
		from: "			err = errors.Join(err, m.listUsed(unclear))\n",
		to:   "			if !$ {\n				err = errors.Join(err, m.listUsed(unclear))\n			}\n",
	},
	{
		name: "the operation before a push is not compared", test: "TestConvergeMemory", file: "core/partition/accept.go",
		from: "made != had.Newest {",
		to:   "made != had.Newest && !$ {",
	},
	{
		name: "a push that is older than its writer is not compared", test: "core/partition TestOfferNames", file: "core/partition/accept.go",
		from: "	if ops[len(ops)-1].Dot.Seq >= had.Last() {",
		to:   "	if ops[len(ops)-1].Dot.Seq >= had.Last() || $ {",
	},
	{
		name: "the thing of a pending operation is not compared", test: "core/partition TestPendingOperationOnReusedThing", file: "core/partition/rebase.go",
		from: "		case targets[at] != 0:\n",
		to:   "		case targets[at] != 0 && !$:\n",
	},
	{
		name: "a writer goes on that another process continued", test: "TestConvergeMemory", file: "core/partition/writer.go",
		from: "o.writer == 0 || p.spoiled.Load() == uint64(o.writer) ||",
		to:   "o.writer == 0 || p.spoiled.Load() == uint64(o.writer) && !$ ||",
	},
	{
		name: "returned names are not compared", test: "TestConvergeMemory", file: "core/partition/takeback.go",
		from: "	used := t.p.clocks.differs(op)\n",
		to:   "	used := t.p.clocks.differs(op) && !$\n",
	},
	{
		name: "an operation whose name is used stays pending", test: "sync/replica TestReusedNamesAfterPush", file: "sync/replica/push.go",
		from: "		return true, m.p.Disown(",
		to:   "		if $ {\n			return true, nil\n		}\n		return true, m.p.Disown(",
	},
}
