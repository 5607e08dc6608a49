//go:build !wasip1

package sim

func init() { mutants = append(mutants, followMutants...) }

// followMutants are seeded bugs about a store whose commits become visible late, and about machines that follow.
var followMutants = []mutant{
	{
		name: "a redaction does not wait for the entries before it", test: "core/log TestRoleChanges", file: "core/log/redact.go",
		from: "	for {\n		if err := l.WaitDurable()",
		to:   "	for {\n		if $ {\n			l.mu.Lock()\n			return nil\n		}\n		if err := l.WaitDurable()",
	},
	{
		name: "a change of an account is read before it is visible", test: "origin/server/account TestLinkWorksOnce", file: "origin/server/account/account.go",
		from: "	if err := kv.CommitAndWait(r.o.Store, &c.Batch); err != nil {\n",
		to: "	if $ {\n		wait, err := r.o.Store.Commit(&c.Batch)\n		if err == nil {\n			r.mu.Unlock()\n			err = wait()\n			r.mu.Lock()\n		}\n" +
			"		r.audit = c.audit\n		return err\n	}\n	if err := kv.CommitAndWait(r.o.Store, &c.Batch); err != nil {\n",
	},
	{
		name: "a meter is read before its calls are visible", test: "origin/server/account TestMeterReadsItsOwnCounts", file: "origin/server/account/quota.go",
		from: "	if m.wait != nil {\n		_ = m.wait()",
		to:   "	if m.wait != nil && !$ {\n		_ = m.wait()",
	},
	{
		name: "meters outlive a term", test: "origin/server/account TestAccountsChangeMachines", file: "origin/server/account/follow.go",
		from: "	r.meters.drop()\n",
		to:   "	if !$ {\n		r.meters.drop()\n	}\n",
	},
	{
		name: "a call writes by a meter of an earlier term", test: "origin/server/account TestAccountsChangeMachines", file: "origin/server/account/quota.go",
		from: "		m.closed, m.block = true, 0\n",
		to:   "		if !$ {\n			m.closed, m.block = true, 0\n		}\n",
	},
	{
		name: "the end of the audit log is not read again", test: "origin/server/account TestAccountsChangeMachines", file: "origin/server/account/follow.go",
		from: "	if r.audit, err = readHead(r.o.Store); err != nil {\n",
		to:   "	if $ && r.audit.count > 0 {\n	} else if r.audit, err = readHead(r.o.Store); err != nil {\n",
	},
	{
		name: "accounts that follow write if their store takes it", test: "origin/server/account TestAccountsChangeMachines", file: "origin/server/account/quota.go",
		from: "	if m.reads {\n		m.quota = before\n",
		to:   "	if m.reads && !$ {\n		m.quota = before\n",
	},
	{
		name: "a trim is not committed", test: "core/log TestRoleChanges", file: "core/log/store.go",
		from: "	if wait, err = l.commit(b); err != nil {\n		l.floor",
		to:   "	if $ {\n		return nil, l.store.Apply(b)\n	}\n	if wait, err = l.commit(b); err != nil {\n		l.floor",
	},
	{
		name: "derived records are not committed", test: "core/partition TestRoleChanges", file: "core/partition/step.go",
		from: "	if wait, err = p.o.Store.Commit(p.tx.Batch()); err == nil {\n",
		to:   "	if $ {\n		p.deriving++\n		return func() error { return nil }, p.o.Store.Apply(p.tx.Batch())\n	}\n	if wait, err = p.o.Store.Commit(p.tx.Batch()); err == nil {\n",
	},
	{
		name: "a purge is not committed", test: "core TestRoleChanges", file: "core/partition/step.go",
		from: "	return kv.CommitAndWait(p.o.Store, p.tx.Batch())\n",
		to:   "	if $ {\n		return p.o.Store.Apply(p.tx.Batch())\n	}\n	return kv.CommitAndWait(p.o.Store, p.tx.Batch())\n",
	},
	{
		name: "a machine that follows puts rules in force", test: "core/partition TestRoleChanges", file: "core/partition/origin.go",
		from: "	if err != nil || p.o.Follow {\n",
		to:   "	if err != nil || p.o.Follow && !$ {\n",
	},
}
