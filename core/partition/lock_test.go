package partition

import (
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

//go:embed *.go
var sources embed.FS

// read returns the texts of this package's files whose names are wanted, by name.
func read(t *testing.T, wanted func(name string) bool) map[string]string {
	t.Helper()
	files, err := sources.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, f := range files {
		if wanted(f.Name()) {
			text, err := sources.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			texts[f.Name()] = string(text)
		}
	}
	return texts
}

// TestLocksInOnePlace checks that only lock.go locks, that each function releases the locks that it takes, and that no function takes a
// lock while it holds that lock or a later one.
func TestLocksInOnePlace(t *testing.T) {
	for _, fault := range lockFaults(t, read(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })) {
		t.Error(fault)
	}
}

// TestLockFaults checks that lockFaults finds planted faults and accepts correct functions.
func TestLockFaults(t *testing.T) {
	const rest = `package partition
type Partition struct { locks locks; n int }
type mix struct { p *Partition; moved func() }
type folder interface { fold() }
func (p *Partition) append() { defer p.locks.take(appending).unlock() }
func (p *Partition) fold() { defer p.locks.take(folding).unlock() }
func (p *Partition) look() int { defer p.locks.take(reading).unlock(); return p.n }
func (p *Partition) rest() hold { return p.locks.take(appending | folding) }
func (p *Partition) with(do func()) { defer p.locks.take(folding).unlock(); do() }
func (m *mix) apply() { defer m.p.locks.take(showing).unlock(); m.moved() }
`
	for text, want := range map[string]string{
		`func f(p *Partition) { p.look(); p.append(); lock := p.locks.take(appending); p.look(); lock.unlock(); p.append() }`: "",
		`func f(p *Partition) { defer p.locks.take(folding | appending).unlock(); p.look() }`:                                 "",
		`func f(p *Partition) { defer p.rest().unlock(); p.look() }`:                                                          "",
		`func f(p *Partition) { defer p.locks.take(folding).unlock(); p.append() }`:                                           "append takes",
		`func f(p *Partition) { defer p.locks.take(folding).unlock(); g(&mix{p: p}) }; func g(m *mix) { m.p.append() }`:       "g takes",
		`func f(p *Partition) { defer p.locks.take(folding).unlock(); defer p.locks.take(appending).unlock() }`:               "take takes",
		`func f(p *Partition) { defer p.rest().unlock(); p.fold() }`:                                                          "fold takes",
		`func f(p *Partition) { defer p.locks.take(folding).unlock(); run := p.append; run() }`:                               "append takes",
		`func f(p *Partition) { defer p.locks.take(reading).unlock(); p.look() }`:                                             "look takes",
		`func f(p *Partition) { lock := p.locks.take(showing); p.look(); lock.unlock() }`:                                     "look takes",
		`func f(p *Partition) { m := &mix{p: p, moved: func() { p.fold() }}; m.apply() }`:                                     "moved takes",
		`func f(p *Partition) { m := &mix{p: p}; m.moved = p.append; m.apply() }`:                                             "moved takes",
		`func f(p *Partition) { p.with(func() { p.append() }) }`:                                                              "do takes",
		`func f(p *Partition, x folder) { defer p.locks.take(folding).unlock(); x.fold() }`:                                   "fold takes",
		`func f(p *Partition) { defer p.locks.take(showing | reading).unlock() }`:                                             "both sides",
		`func f(p *Partition) { defer p.locks.take(folding) }`:                                                                "not released",
		`func f(p *Partition) { p.locks.take(folding).unlock() }`:                                                             "not released",
		`func f(p *Partition) { lock := p.locks.take(folding); _ = lock }`:                                                    "not released",
		`func f(p *Partition) { lock := p.locks.take(folding); if p.n > 0 { return }; lock.unlock() }`:                        "returns",
		`func f(p *Partition, s lockSet) { defer p.locks.take(s).unlock() }`:                                                  "constant",
		`func f(p *Partition) { p.locks.folding.Lock() }`:                                                                     "Lock",
	} {
		texts := read(t, func(name string) bool { return name == "lock.go" })
		texts["planted.go"] = rest + text
		got := lockFaults(t, texts)
		if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: %q, want one with %q", text, got, want)
		}
	}
	texts := read(t, func(name string) bool { return name == "lock.go" })
	texts["planted.go"] = "package partition\nimport \"sync\"\nvar own sync.Mutex\n"
	if got := lockFaults(t, texts); len(got) != 1 {
		t.Errorf("another lock: %q", got)
	}
}

// TestLocksTake takes and releases every set of locks. A lock that was not released would stop the test.
func TestLocksTake(t *testing.T) {
	var l locks
	for set := range waiting << 1 {
		if set&(showing|reading) == showing|reading {
			continue
		}
		if n := testing.AllocsPerRun(1, func() { l.take(set).unlock() }); n > 0 {
			t.Errorf("set %b: %v allocations", set, n)
		}
	}
}

// owner is a function, a variable or field that has functions, or a function literal. Each mention of an owner counts as a call.
type owner struct {
	name    string
	uses    []use
	regions []region
}

type use struct {
	at  token.Pos
	of  any     // key of an owner; nil if locks are taken directly
	set lockSet // locks taken here
}

// region is a part of a function that holds locks.
type region struct {
	from, to token.Pos
	set      lockSet
	by       any // key of the function that took them; nil if set has them
}

type lockCheck struct {
	fset   *token.FileSet
	info   *types.Info
	pkg    *types.Package
	owners map[any]*owner
	faults []string
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not imported") }

// lockFaults returns the breaches of the rules of [TestLocksInOnePlace]. It knows the types of the package, but not of other packages.
func lockFaults(t *testing.T, texts map[string]string) []string {
	t.Helper()
	c := &lockCheck{
		fset: token.NewFileSet(), owners: map[any]*owner{},
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
	}
	var files []*ast.File
	for name, text := range texts {
		file, err := parser.ParseFile(c.fset, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	c.pkg, _ = conf.Check("partition", c.fset, files, c.info)
	for _, file := range files {
		if c.fset.Position(file.Pos()).Filename == "lock.go" {
			continue
		}
		c.locksItself(file)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				c.read(c.info.Defs[f.Name], f.Name.Name, f.Body)
			}
		}
	}
	c.dispatch()
	c.order()
	slices.Sort(c.faults)
	return c.faults
}

func (c *lockCheck) fault(at token.Pos, format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("%s: %s", c.fset.Position(at), fmt.Sprintf(format, args...)))
}

// locksItself reports locks outside lock.go.
func (c *lockCheck) locksItself(file *ast.File) {
	for _, im := range file.Imports {
		if im.Path.Value == `"sync"` {
			c.fault(im.Pos(), "only lock.go imports sync")
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		switch {
		case ok && slices.Contains([]string{"Lock", "RLock", "Unlock", "RUnlock"}, s.Sel.Name):
			c.fault(n.Pos(), "only lock.go calls %s", s.Sel.Name)
		case ok && !ast.IsExported(s.Sel.Name) && c.info.Uses[s.Sel] == nil:
			c.fault(n.Pos(), "the check does not find %s, since a type of another package leads to it", s.Sel.Name)
		}
		return true
	})
}

func (c *lockCheck) owner(key any, name string) *owner {
	if c.owners[key] == nil {
		c.owners[key] = &owner{name: name}
	}
	return c.owners[key]
}

// callable returns the object of an expression that names a function, or a variable for functions, and nil otherwise.
func (c *lockCheck) callable(x ast.Expr) types.Object {
	if s, ok := x.(*ast.SelectorExpr); ok {
		x = s.Sel
	}
	id, ok := x.(*ast.Ident)
	if !ok {
		return nil
	}
	o := c.info.ObjectOf(id)
	if o == nil || o.Pkg() != c.pkg || o.Type() == nil {
		return nil
	}
	if _, ok := o.Type().Underlying().(*types.Signature); !ok {
		return nil
	}
	return o
}

// read records the calls and locks in the body of an owner.
func (c *lockCheck) read(key any, name string, body *ast.BlockStmt) {
	me := c.owner(key, name)
	var parents []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		parents = append(parents, n)
		switch x := n.(type) {
		case *ast.FuncLit:
			me.uses = append(me.uses, use{at: x.Pos(), of: x})
			c.read(x, "function literal", x.Body)
			parents = parents[:len(parents)-1]
			return false
		case *ast.Ident:
			if o := c.callable(x); o != nil {
				me.uses = append(me.uses, use{at: x.Pos(), of: o})
			}
		case *ast.AssignStmt:
			for i := range min(len(x.Lhs), len(x.Rhs)) {
				c.assign(c.callable(x.Lhs[i]), x.Rhs[i])
			}
		case *ast.KeyValueExpr:
			c.assign(c.callable(x.Key), x.Value)
		case *ast.CallExpr:
			if f := c.callable(x.Fun); f != nil {
				params := f.Type().Underlying().(*types.Signature).Params()
				for i := range min(params.Len(), len(x.Args)) {
					c.assign(params.At(i), x.Args[i])
				}
			}
			if named, ok := c.info.TypeOf(x).(*types.Named); ok && named.Obj().Name() == "hold" {
				c.takes(me, x, parents, body)
			}
		}
		return true
	})
}

// assign records the functions that an expression assigns to a variable.
func (c *lockCheck) assign(to types.Object, x ast.Expr) {
	if to == nil {
		return
	}
	ast.Inspect(x, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			c.owner(to, to.Name()).uses = append(c.owner(to, to.Name()).uses, use{of: x})
			return false
		case *ast.Ident:
			if o := c.callable(x); o != nil {
				c.owner(to, to.Name()).uses = append(c.owner(to, to.Name()).uses, use{of: o})
			}
		}
		return true
	})
}

// dispatch records that a method of an interface calls that of each type of the package which has all methods of the interface.
func (c *lockCheck) dispatch() {
	scope := c.pkg.Scope()
	for _, name := range scope.Names() {
		it, ok := scope.Lookup(name).Type().Underlying().(*types.Interface)
		if _, named := scope.Lookup(name).(*types.TypeName); !ok || !named {
			continue
		}
		for _, other := range scope.Names() {
			var has []*types.Func
			for m := range it.Methods() {
				if t, ok := scope.Lookup(other).(*types.TypeName); ok && !types.IsInterface(t.Type()) {
					f, _, _ := types.LookupFieldOrMethod(t.Type(), true, c.pkg, m.Name())
					if f, ok := f.(*types.Func); ok {
						has = append(has, f)
					}
				}
			}
			for i := 0; i < len(has) && len(has) == it.NumMethods(); i++ {
				o := c.owner(it.Method(i), has[i].Name())
				o.uses = append(o.uses, use{of: has[i]})
			}
		}
	}
}

// takes records the region in which the caller holds the locks that a call returns.
func (c *lockCheck) takes(me *owner, call *ast.CallExpr, parents []ast.Node, body *ast.BlockStmt) {
	r := region{from: call.End()}
	if f := c.callable(call.Fun); f.Name() != "take" {
		r.by = f
	} else if v := c.info.Types[call.Args[0]].Value; v == nil {
		c.fault(call.Pos(), "the set of locks is not a constant")
		return
	} else {
		n, _ := constant.Uint64Val(v)
		if r.set = lockSet(n); r.set&(showing|reading) == showing|reading {
			c.fault(call.Pos(), "both sides of a lock")
		}
		me.uses = append(me.uses, use{at: call.Pos(), set: r.set})
	}
	above := func(n int) ast.Node { return parents[max(0, len(parents)-1-n)] }
	switch x := above(1).(type) {
	case *ast.ReturnStmt:
		return
	case *ast.SelectorExpr:
		if _, deferred := above(3).(*ast.DeferStmt); deferred && x.Sel.Name == "unlock" {
			r.to = body.End()
		}
	case *ast.AssignStmt:
		r.to = c.regionEnd(c.info.ObjectOf(x.Lhs[0].(*ast.Ident)), body, call.End())
	}
	if r.to == token.NoPos {
		c.fault(call.Pos(), "the locks are not released: write defer take(…).unlock(), or lock := take(…) and lock.unlock()")
		return
	}
	me.regions = append(me.regions, r)
}

// regionEnd returns the end of the region in which a variable has locks, or token.NoPos if nothing releases them.
func (c *lockCheck) regionEnd(lock types.Object, body *ast.BlockStmt, from token.Pos) (to token.Pos) {
	is := func(x ast.Expr) bool {
		id, ok := x.(*ast.Ident)
		return ok && c.info.ObjectOf(id) == lock
	}
	var returns []*ast.ReturnStmt
	ast.Inspect(body, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(x.Results) != 1 || !is(x.Results[0]) {
				returns = append(returns, x)
			}
		case *ast.CallExpr:
			if s, ok := x.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "unlock" && is(s.X) {
				to = x.Pos()
			}
		}
		return true
	})
	for _, x := range returns {
		if from < x.Pos() && x.Pos() < to {
			c.fault(x.Pos(), "returns without unlock")
		}
	}
	return to
}

// order reports each take that breaks the order of locks.
func (c *lockCheck) order() {
	reach := map[any]lockSet{}
	for changed := true; changed; {
		changed = false
		for key, o := range c.owners {
			had := reach[key]
			for _, u := range o.uses {
				reach[key] |= u.set | reach[u.of]
			}
			changed = changed || reach[key] != had
		}
	}
	sides := func(set lockSet) lockSet { // both sides of a lock have the same place in the order
		if set&(showing|reading) != 0 {
			set |= showing | reading
		}
		return set
	}
	for _, o := range c.owners {
		for _, r := range o.regions {
			have := sides(r.set)
			if r.by != nil {
				for _, u := range c.owners[r.by].uses {
					have |= sides(u.set)
				}
			}
			for _, u := range o.uses {
				acquired := sides(u.set | reach[u.of])
				if u.at <= r.from || u.at >= r.to || acquired == 0 || bits.TrailingZeros8(uint8(acquired)) >= bits.Len8(uint8(have)) {
					continue
				}
				name := "take"
				if u.of != nil {
					name = c.owners[u.of].name
				}
				c.fault(u.at, "%s takes %s, but %s holds %s", name, names(acquired), o.name, names(have))
			}
		}
	}
}

func names(set lockSet) string {
	var of []string
	for i, name := range []string{"trimming", "appending", "folding", "showing", "reading", "waiting"} {
		if set&(1<<i) != 0 {
			of = append(of, name)
		}
	}
	return strings.Join(of, "|")
}
