//go:build !wasip1

package sim

func init() { mutants = append(mutants, localMutants...) }

// localMutants are seeded bugs about local-only applications.
var localMutants = []mutant{
	{
		name: "a local-only application is sent", test: "TestLocalOnly", file: "sync/feed/feed.go",
		from: "		c.does = rt.access",
		to:   "		c.does = rt.access\n\t\tif $ {\n\t\t\tc.does = receives\n\t\t}",
	},
	{
		name: "a replica is emptied before its writes are sent", test: "TestLocalOnly", file: "sync/replica/session.go",
		from: "g.Do == wire.DoRefused && !g.Drain {",
		to:   "g.Do == wire.DoRefused && (!g.Drain || $) {",
	},
	{
		name: "a local-only log is given nothing", test: "sync/feed TestDrainFinds", file: "sync/feed/session.go",
		from: "	return g, c.find(p, at, &g)\n",
		to:   "	err = c.find(p, at, &g)\n	g.Lacks = g.Lacks && !$\n	return g, err\n",
	},
}
