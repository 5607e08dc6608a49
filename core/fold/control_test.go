package fold_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// register is the naive model of the control partition. It stores every accepted operation and decides by searching all of them.
type register struct {
	ops  []log.Op // accepted, in the order of the log
	seqs []uint64 // their positions in the log
}

// app returns the record of an application after all operations, or nil if it does not exist.
func (r *register) app(id string) (a *catalog.App) {
	for i, op := range r.ops {
		switch b := op.Body.(type) {
		case *log.AppCreate:
			if b.ID == id {
				a = &catalog.App{
					Dot: op.Dot, Seq: r.seqs[i], ID: id, Name: b.Name, Language: b.Language, DefaultModel: b.DefaultModel, Owner: b.Owner, Created: op.At,
					LocalOnly: b.LocalOnly,
				}
			}
		case *log.AppChange:
			if b.ID == id && b.Name != nil {
				a.Name = *b.Name
			}
			if b.ID == id && b.DefaultModel != nil {
				a.DefaultModel = *b.DefaultModel
			}
			if b.ID == id && b.MaxStale != nil {
				a.MaxStale = *b.MaxStale
			}
			if b.ID == id && b.LocalOnly != nil {
				a.LocalOnly = *b.LocalOnly
			}
		case *log.AppDelete:
			if b.ID == id {
				a = nil
			}
		}
	}
	return a
}

// was reports whether the application once existed and was deleted.
func (r *register) was(id string) bool {
	return slices.ContainsFunc(r.ops, func(op log.Op) bool {
		b, ok := op.Body.(*log.AppDelete)
		return ok && b.ID == id
	})
}

func (r *register) keys() map[[32]byte]catalog.Key {
	keys := map[[32]byte]catalog.Key{}
	for _, op := range r.ops {
		switch b := op.Body.(type) {
		case *log.KeyCreate:
			delete(keys, b.Replaces)
			keys[b.Hash] = catalog.Key{Hash: b.Hash, App: b.App, Scopes: b.Scopes, Description: b.Description, By: op.By, Created: op.At}
		case *log.KeyDelete:
			delete(keys, b.Hash)
		case *log.AppDelete:
			maps.DeleteFunc(keys, func(_ [32]byte, k catalog.Key) bool { return k.App == b.ID })
		}
	}
	return keys
}

// clients returns the clients by application.
func (r *register) clients() map[string]catalog.Client {
	clients := map[string]catalog.Client{}
	for i, op := range r.ops {
		switch b := op.Body.(type) {
		case *log.ClientSet:
			clients[b.App] = catalog.Client{ID: b.ID, App: b.App, Secret: b.Secret, Generation: r.seqs[i], Created: op.At}
		case *log.TokensRevoke:
			c := clients[b.App]
			c.Generation = r.seqs[i]
			clients[b.App] = c
		case *log.AppDelete:
			delete(clients, b.ID)
		}
	}
	return clients
}

// edges returns the edges by id and the leased sites by number, as the operations create them.
func (r *register) edges() (edges map[string]catalog.Edge, sites map[log.Writer]catalog.Site) {
	edges, sites = map[string]catalog.Edge{}, map[log.Writer]catalog.Site{}
	next := log.Origin
	for _, op := range r.ops {
		switch b := op.Body.(type) {
		case *log.EdgeCreate:
			edges[b.ID] = catalog.Edge{ID: b.ID, Name: b.Name, Apps: b.Apps, Owner: b.Owner, Token: b.Token, Created: op.At}
		case *log.EdgeEnrolled:
			next++
			e := edges[b.ID]
			e.Key, e.Site, e.Enrolled = b.Key, next, op.At
			edges[b.ID] = e
			sites[next] = catalog.Site{Site: next, Edge: b.ID, Created: op.At}
		case *log.EdgeRevoke:
			e := edges[b.ID]
			e.Revoked = op.At
			edges[b.ID] = e
		case *log.SiteLease:
			if b.Site != 0 {
				s := sites[b.Site]
				s.Until = b.Until
				sites[b.Site] = s
				continue
			}
			next++
			sites[next] = catalog.Site{Site: next, App: b.App, Holder: b.Holder, Secret: b.Secret, Created: op.At, Until: b.Until}
		case *log.SitesSkip:
			next = max(next, b.To)
		case *log.AppDelete:
			maps.DeleteFunc(sites, func(_ log.Writer, s catalog.Site) bool { return s.App == b.ID })
		}
	}
	return edges, sites
}

// judgeEdge is judge for operations on edges and sites.
func (r *register) judgeEdge(body log.Body) fold.Code {
	edges, sites := r.edges()
	switch b := body.(type) {
	case *log.EdgeCreate:
		for _, app := range b.Apps {
			if r.app(app) == nil {
				return fold.Gone
			}
		}
		for _, e := range edges {
			if e.ID == b.ID || e.Token == b.Token && e.Revoked == 0 {
				return fold.Duplicate
			}
		}
		return fold.OK
	case *log.EdgeEnrolled:
		e, ok := edges[b.ID]
		switch {
		case !ok || e.Revoked != 0:
			return fold.Gone
		case e.Key == b.Key:
			return fold.Superseded
		case e.Site != 0:
			return fold.Refused
		}
		return fold.OK
	case *log.EdgeRevoke:
		e, ok := edges[b.ID]
		switch {
		case !ok:
			return fold.Gone
		case e.Revoked != 0:
			return fold.Superseded
		}
		return fold.OK
	case *log.SitesSkip, *log.TokenKeys:
		return fold.OK
	case *log.SiteLease:
		s, ok := sites[b.Site]
		switch {
		case b.Site == 0 && r.app(b.App) == nil, b.Site != 0 && !ok:
			return fold.Gone
		case b.Site != 0 && (s.Edge != "" || b.Until <= s.Until):
			return fold.Superseded
		}
		return fold.OK
	}
	panic(fmt.Sprintf("no opinion on %T", body))
}

// compareEdges compares the state's edges and sites with the model's.
func (r *register) compareEdges(w *world) {
	w.Helper()
	read := w.reader()
	edges, sites := r.edges()
	var gotEdges []catalog.Edge
	wantEdges := slices.SortedFunc(maps.Values(edges), func(a, b catalog.Edge) int { return strings.Compare(a.ID, b.ID) })
	if err := read.Edges(collect(&gotEdges)); err != nil || !cmp.Equal(gotEdges, wantEdges) {
		w.Fatalf("%v; edges, -want +got:\n%s", err, cmp.Diff(wantEdges, gotEdges))
	}
	for _, e := range wantEdges {
		got, err := read.EdgeByToken(e.Token)
		if e.Revoked == 0 && (err != nil || got.ID != e.ID) || e.Revoked != 0 && err == nil && got.ID == e.ID {
			w.Fatalf("the token of edge %+v leads to %+v, %v", e, got, err)
		}
	}
	var gotSites []catalog.Site
	wantSites := slices.SortedFunc(maps.Values(sites), func(a, b catalog.Site) int { return int(a.Site) - int(b.Site) })
	if err := read.Sites(collect(&gotSites)); err != nil || !cmp.Equal(gotSites, wantSites) {
		w.Fatalf("%v; sites, -want +got:\n%s", err, cmp.Diff(wantSites, gotSites))
	}
}

// compareTrust compares the state's token keys with the last list of the model.
func (r *register) compareTrust(w *world) {
	w.Helper()
	var want catalog.Trust
	for _, op := range r.ops {
		if b, ok := op.Body.(*log.TokenKeys); ok {
			want = catalog.Trust{Issuer: b.Issuer, Keys: b.Keys}
		}
	}
	if got, err := w.reader().Trust(); err != nil || !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
		w.Fatalf("%v; keys of tokens, -want +got:\n%s", err, cmp.Diff(want, got))
	}
}

// fold returns the code of the verdict, and stores the operation if it is accepted.
func (r *register) fold(op log.Op, seq uint64) fold.Code {
	code := r.judge(op.Body)
	if code == fold.OK {
		r.ops, r.seqs = append(r.ops, op), append(r.seqs, seq)
	}
	return code
}

func (r *register) judge(body log.Body) fold.Code {
	checkApp := func(id string) fold.Code {
		if r.app(id) == nil {
			return fold.Gone
		}
		return fold.OK
	}
	switch b := body.(type) {
	case *log.AppCreate:
		switch {
		case r.was(b.ID):
			return fold.Gone
		case r.app(b.ID) != nil:
			return fold.Duplicate
		}
		return fold.OK
	case *log.AppChange:
		return checkApp(b.ID)
	case *log.AppDelete:
		return checkApp(b.ID)
	case *log.KeyCreate:
		keys := r.keys()
		old, replaced := keys[b.Replaces]
		switch _, taken := keys[b.Hash]; {
		case r.app(b.App) == nil:
			return fold.Gone
		case taken:
			return fold.Duplicate
		case b.Replaces != [32]byte{} && (!replaced || old.App != b.App):
			return fold.Gone
		}
		return fold.OK
	case *log.KeyDelete:
		if _, ok := r.keys()[b.Hash]; !ok {
			return fold.Gone
		}
		return fold.OK
	case *log.ClientSet:
		if r.app(b.App) == nil {
			return fold.Gone
		}
		for app, c := range r.clients() {
			if c.ID == b.ID && app != b.App {
				return fold.Duplicate
			}
		}
		return fold.OK
	case *log.TokensRevoke:
		if _, ok := r.clients()[b.App]; !ok {
			return fold.Gone
		}
		return fold.OK
	}
	return r.judgeEdge(body)
}

// compare compares the state with the model.
func (r *register) compare(w *world, ids []string) {
	w.Helper()
	read := w.reader()
	byApp := map[string][]catalog.Key{}
	all := slices.SortedFunc(maps.Values(r.keys()), func(a, b catalog.Key) int { return slices.Compare(a.Hash[:], b.Hash[:]) })
	for _, k := range all {
		byApp[k.App] = append(byApp[k.App], k)
	}
	var got []catalog.Key
	if err := read.Keys(collect(&got)); err != nil || !cmp.Equal(got, all) {
		w.Fatalf("%v; keys, -want +got:\n%s", err, cmp.Diff(all, got))
	}
	apps := 0
	for _, id := range ids {
		want := r.app(id)
		a, err := read.App(id)
		if (want == nil) != errors.Is(err, catalog.ErrNotFound) || want != nil && !cmp.Equal(*want, a) {
			w.Fatalf("application %s is %+v, %v, want %+v", id, a, err, want)
		}
		if want != nil {
			apps++
		}
		if deleted, err := read.AppDeleted(id); deleted != r.was(id) || err != nil {
			w.Fatalf("application %s is gone: %v, %v", id, deleted, err)
		}
		var keys []catalog.Key
		if err := read.KeysOf(id, collect(&keys)); err != nil || !cmp.Equal(keys, byApp[id]) {
			w.Fatalf("%v; keys of %s, -want +got:\n%s", err, id, cmp.Diff(byApp[id], keys))
		}
		c, known := r.clients()[id]
		client, err := read.ClientOf(id)
		if known != (err == nil) || !cmp.Equal(c, client) {
			w.Fatalf("client of %s is %+v, %v, want %+v", id, client, err, c)
		}
		if again, err := read.Client(c.ID); known && (err != nil || !cmp.Equal(again, c)) {
			w.Fatalf("client %s is %+v, %v", c.ID, again, err)
		}
	}
	var listed []catalog.App
	if err := read.Apps(collect(&listed)); err != nil || len(listed) != apps {
		w.Fatalf("%d applications are listed, %v, want %d", len(listed), err, apps)
	}
	purges, err := read.Purges()
	r.compareEdges(w)
	r.compareTrust(w)
	if err != nil || len(purges) != len(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !r.was(id) })) {
		w.Fatalf("owed are %v, %v", purges, err)
	}
}

func collect[T any](to *[]T) func(T) bool {
	return func(x T) bool {
		*to = append(*to, x)
		return true
	}
}

// drawControlBody returns a random operation on few applications, keys and clients.
func drawControlBody(p *programmer, ids []string) log.Body {
	app := ids[p.IntN(len(ids))]
	hash := func() [32]byte { return [32]byte{1 + byte(p.IntN(5))} }
	text := func() *string {
		if p.IntN(2) == 0 {
			return nil
		}
		s := p.pick("", "x", "y")
		return &s
	}
	switch p.IntN(26) {
	case 25:
		return &log.TokenKeys{Issuer: p.pick("a", "b"), Keys: []log.PublicKey{{ID: p.pick("1", "2"), Key: hash()}}[:p.IntN(2)]}
	case 24:
		return &log.SitesSkip{To: log.Writer(p.IntN(12))}
	case 16, 17:
		return &log.EdgeCreate{ID: p.pick("e1", "e2", "e3"), Name: p.pick("", "n"), Token: hash(), Apps: ids[:1+p.IntN(2)], Owner: p.pick("", "account")}
	case 18, 19:
		return &log.EdgeEnrolled{ID: p.pick("e1", "e2", "e3"), Key: hash()}
	case 20:
		return &log.EdgeRevoke{ID: p.pick("e1", "e2", "e3")}
	case 21, 22:
		return &log.SiteLease{App: app, Holder: p.pick("", "key"), Secret: hash(), Until: log.HLC(p.IntN(3))}
	case 23:
		return &log.SiteLease{Site: log.Writer(2 + p.IntN(12)), Until: log.HLC(p.IntN(5))}
	case 0, 1, 2:
		return &log.AppCreate{ID: app, Name: p.pick("m", "n"), Language: "en", Owner: p.pick("", "account"), LocalOnly: p.IntN(4) == 0}
	case 3, 4:
		change := &log.AppChange{ID: app, Name: text(), DefaultModel: text()}
		if p.IntN(3) == 0 {
			seconds := uint64(p.IntN(3))
			change.MaxStale = &seconds
		}
		if p.IntN(3) == 0 {
			local := p.IntN(2) == 0
			change.LocalOnly = &local
		}
		return change
	case 5:
		return &log.AppDelete{ID: app}
	case 6, 7, 8:
		return &log.KeyCreate{Hash: hash(), App: app, Scopes: []string{"All"}, Description: p.pick("", "d")}
	case 9, 10:
		return &log.KeyCreate{Hash: hash(), App: app, Scopes: []string{"All"}, Replaces: hash()}
	case 11, 12:
		return &log.KeyDelete{Hash: hash()}
	case 13, 14:
		return &log.ClientSet{App: app, ID: p.pick("c1", "c2", "c3"), Secret: hash()}
	}
	return &log.TokensRevoke{App: app}
}

// TestControlAgainstOracle folds random operations on applications, keys and clients, and compares the state with a naive model. It then
// folds the same operations in other runs.
func TestControlAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		controlAgainstOracle(t, rapidChooser{t}, rapid.IntRange(1, 60).Draw(t, "operations"))
	})
	for seed := range testkit.Seeds(t, 30, 3000) {
		controlAgainstOracle(t, rand.New(rand.NewPCG(seed, 2)), 120)
	}
}

func controlAgainstOracle(t tb, c chooser, n int) {
	p := newProgrammer(c)
	w, r := newWorld(t), &register{}
	w.app = catalog.Control
	ids := make([]string, 4)
	for i := range ids {
		ids[i] = catalog.AppID{1, 15: byte(i)}.String()
	}
	for seq := uint64(1); seq <= uint64(n); seq++ {
		op := p.op(drawControlBody(p, ids))
		w.raw(op)
		if got, want := w.fold(1)[0].Code, r.fold(op, seq); got != want {
			t.Fatalf("verdict on %T %+v: %v, want %v", op.Body, op.Body, got, want)
		}
		r.compare(w, ids)
	}
	digest := w.digest()
	other := newWorld(t)
	other.app, other.entries = catalog.Control, w.entries
	other.fold(1 + c.IntN(n))
	if other.digest() != digest {
		t.Fatalf("folded in other runs the state is another")
	}
}

// TestControlRefuses: invalid operations are refused.
func TestControlRefuses(t *testing.T) {
	w := newWorld(t)
	w.app = catalog.Control
	id := app.String()
	w.expect(fold.OK, 1, 1, &log.AppCreate{ID: id, Name: "n", Language: "en"})
	for _, b := range []log.Body{
		&log.AppCreate{ID: "x"}, &log.AppCreate{ID: catalog.Control.String()}, &log.ClientSet{App: id}, create("a"),
		&log.EdgeCreate{Apps: []string{id}, Token: [32]byte{1}}, &log.EdgeCreate{ID: "e", Token: [32]byte{1}}, &log.EdgeCreate{ID: "e", Apps: []string{id}},
		&log.EdgeEnrolled{ID: "e"}, &log.SiteLease{App: id}, &log.Refused{Reason: "scope: test"},
		&log.Unknown{Kind: 127, Data: []byte{1}},
	} {
		w.expect(fold.Refused, 1, 2, b)
	}
	for _, b := range []log.Body{
		&log.AppChange{ID: "x"}, &log.AppDelete{}, &log.ClientSet{App: "x", ID: "c"}, &log.TokensRevoke{App: id},
		&log.EdgeCreate{ID: "e", Apps: []string{id, "x"}, Token: [32]byte{1}}, &log.EdgeEnrolled{ID: "e", Key: [32]byte{1}}, &log.EdgeRevoke{ID: "e"},
		&log.SiteLease{App: "x", Secret: [32]byte{1}}, &log.SiteLease{Site: log.Origin, Until: 1},
	} {
		w.expect(fold.Gone, 1, 3, b)
	}
}
