package fold_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/log/logtest"
)

// chooser makes random choices: a *rand.Rand, or a rapidChooser whose choices rapid can shrink.
type chooser interface{ IntN(n int) int }

type rapidChooser struct{ t *rapid.T }

func (d rapidChooser) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }

// programmer returns random operations of a few sites on few objects, so that they conflict.
type programmer struct {
	chooser
	sites  map[log.Writer]uint64
	clocks map[log.Writer]log.HLC
	dots   []log.Dot // of all create operations
	trains []train
	rules  uint32  // version in force
	newest log.Dot // newest create without a picture
	unread log.Dot // input whose download ended as unread; zero: none
	ops    []log.Op
}

type train struct {
	model   log.Dot
	version string
	lease   uint64
}

func newProgrammer(c chooser) *programmer {
	return &programmer{chooser: c, sites: map[log.Writer]uint64{}, clocks: map[log.Writer]log.HLC{}}
}

// program returns n operations in the order of a log, by the first rules.
func program(c chooser, n int) []log.Op { return programOf(c, n, fold.FirstVersion) }

// programOf is program with rules of a version, which its first operation puts in force.
func programOf(c chooser, n int, rules uint32) []log.Op {
	p := newProgrammer(c)
	p.rules = rules
	ops := make([]log.Op, 0, n)
	if rules > fold.FirstVersion {
		ops = append(ops, p.opOf(1, &log.Rules{Version: rules}))
	}
	for len(ops) < n {
		ops = append(ops, p.next(p.op(p.body(uint64(len(ops)+1)))))
	}
	return ops
}

// next returns the next operation of the log. By the rules of names it may come later, or again, or never.
func (p *programmer) next(op log.Op) log.Op {
	if p.rules < fold.RulesOfNames {
		return op
	}
	p.ops = append(p.ops, op)
	i := len(p.ops) - 1
	if p.IntN(4) == 0 {
		i -= p.IntN(min(len(p.ops), 10))
	}
	return p.ops[i]
}

// op returns an operation with the body, by one of three sites whose clocks differ, or by a writer that draws its number.
func (p *programmer) op(body log.Body) log.Op {
	site := log.Writer(1 + p.IntN(3))
	if p.rules >= fold.RulesOfNames && p.IntN(2) == 0 {
		site = log.FirstRandomWriter + log.Writer(len(p.ops)/16+p.IntN(2))
		p.clocks[site] = max(p.clocks[site], p.clocks[1])
	}
	return p.opOf(site, body)
}

func (p *programmer) opOf(site log.Writer, body log.Body) log.Op {
	p.sites[site]++
	p.clocks[site] += log.HLC(1 + p.IntN(6))
	dot := log.Dot{Writer: site, Seq: p.sites[site]}
	switch b := body.(type) {
	case *log.InputCreate:
		p.dots = append(p.dots, dot)
		if b.Blob.IsZero() {
			p.newest = dot
		}
	case *log.ModelCreate, *log.WorkflowCreate:
		p.dots = append(p.dots, dot)
	}
	op := log.Op{Dot: dot, At: p.clocks[site], By: "key", Body: body}
	if p.rules >= fold.RulesOfNames && p.IntN(8) == 0 {
		op.At, op.Made = op.At+log.HLC(p.IntN(9)), op.At
	}
	if p.rules >= fold.RulesOfContradictions && p.IntN(8) > 0 {
		op.Rules = p.rules
		p.see(op.MadeAt(), body)
	}
	return op
}

// see adds clocks that the maker of a body may have seen.
func (p *programmer) see(made log.HLC, body log.Body) {
	seen := func() (s log.Seen) {
		for range p.IntN(4) {
			s = append(s, log.Stamp{At: made - min(made, log.HLC(p.IntN(12))), Writer: log.Writer(1 + p.IntN(3))}.Name())
		}
		return s
	}
	each := func(n int) (each log.SeenEach) {
		for i := range n {
			each.Add(i, seen())
		}
		return each
	}
	switch b := body.(type) {
	case *log.InputCreate:
		b.Seen = each(len(b.Labels))
	case *log.InputLabels:
		b.Seen = each(len(b.Labels))
	case *log.InputMeta:
		b.Seen = each(len(b.Writes))
	case *log.InputGeo:
		b.Seen = seen()
	case *log.InputDelete:
		b.Seen = made - min(made, log.HLC(p.IntN(12)))
	case *log.ConceptName:
		b.Seen = seen()
	case *log.ModelPatch:
		b.Seen = seen()
	}
}

func (p *programmer) dot() log.Dot {
	if len(p.dots) == 0 || p.IntN(20) == 0 {
		return log.Dot{Writer: 9, Seq: 9}
	}
	// Prefer young objects, which are rarely deleted.
	return p.dots[len(p.dots)-1-p.IntN(min(len(p.dots), 8))]
}

func (p *programmer) pick(of ...string) string { return logtest.Pick(p, of...) }

func (p *programmer) concept() string { return p.pick("x", "y", "z", "ai_1") }

func (p *programmer) labels() (out []log.Label) {
	for range p.IntN(3) {
		out = append(out, log.Label{Concept: p.concept(), Value: log.Value(p.IntN(3))})
	}
	return out
}

func (p *programmer) geo() *log.Point {
	if p.IntN(3) == 0 {
		return nil
	}
	return logtest.Point(p)
}

func (p *programmer) create() *log.InputCreate {
	b := &log.InputCreate{
		ID: p.pick("a", "b", "c", "d", "e", ""), AllowDuplicate: p.IntN(4) == 0, MergeIfEqual: p.IntN(6) == 0,
		Labels: p.labels(), Geo: p.geo(),
	}
	if p.IntN(2) == 0 {
		b.URL = "http://x/" + p.pick("1", "2", "3", "4")
	}
	if b.URL == "" || p.IntN(2) == 0 {
		b.Blob, b.ContentType = blob.Sum([]byte(p.pick("p", "q", "r"))), "image/png"
	}
	if p.IntN(2) == 0 {
		b.Meta = logtest.JSON(p)
	}
	if p.IntN(2) == 0 {
		b.Hosted = [16]byte{1 + byte(p.IntN(200)), byte(len(p.dots)), byte(len(p.dots) >> 8)}
	}
	return b
}

func (p *programmer) fetchResult() *log.InputFetched {
	if p.IntN(2) == 0 {
		return &log.InputFetched{Input: p.dot(), Code: 30002, Detail: "gone"}
	}
	return &log.InputFetched{Input: p.dot(), Code: catalog.InputReady, Blob: blob.Sum([]byte(p.pick("p", "q"))), ContentType: "image/gif"}
}

// unreadResult returns the end of a download as unread, or a later result of that download.
func (p *programmer) unreadResult() *log.InputFetched {
	if p.unread == (log.Dot{}) || p.IntN(3) == 0 {
		p.unread = p.newest
		return &log.InputFetched{Input: p.unread, Code: []int{30101, 30105, 30300}[p.IntN(3)], Detail: "unknown file type"}
	}
	b := p.fetchResult()
	b.Input = p.unread
	return b
}

func (p *programmer) meta() *log.InputMeta {
	return &log.InputMeta{Input: p.dot(), Writes: logtest.MetaWrites(p)}
}

// body returns a random body for entry seq of the log.
func (p *programmer) body(seq uint64) log.Body {
	if p.rules > fold.FirstVersion {
		switch p.IntN(20) {
		case 0, 1:
			return &log.ConceptDelete{ID: p.concept()}
		case 2, 3:
			return p.unreadResult()
		case 4:
			return p.rareBody()
		}
	}
	switch n := p.IntN(100); {
	case n < 30:
		return p.create()
	case n < 45:
		return &log.InputLabels{Input: p.dot(), Labels: p.labels()}
	case n < 52:
		return p.fetchResult()
	case n < 62:
		return p.meta()
	case n < 66:
		return &log.InputGeo{Input: p.dot(), Geo: p.geo()}
	case n < 70:
		return &log.OutputsPatch{Input: p.dot(), Edits: []log.OutputEdit{{Concept: p.concept(), Value: float32(p.IntN(3)) / 2, Removed: p.IntN(2) == 0}}}
	case n < 77:
		return &log.InputDelete{Input: p.dot()}
	case n < 79:
		return p.deleteAll()
	case n < 81:
		return &log.Horizon{At: log.HLC(p.IntN(int(p.clocks[1]) + 1))}
	}
	return p.modelBody(seq)
}

// rareBody returns an operation of a kind that deletes versions or models, or that an origin writes instead of a refused one.
func (p *programmer) rareBody() log.Body {
	switch n := p.IntN(10); {
	case n == 0:
		return &log.ModelDeleteAll{}
	case n < 3 || len(p.trains) == 0:
		return &log.Refused{Reason: "schema"}
	}
	x := p.trains[p.IntN(len(p.trains))]
	return &log.VersionDelete{Model: x.model, Version: x.version}
}

func (p *programmer) deleteAll() *log.InputDeleteAll {
	b := &log.InputDeleteAll{Barrier: p.IntN(2) == 0}
	if p.rules >= fold.RulesOfNames && p.IntN(4) > 0 {
		for range 1 + p.IntN(5) {
			b.Upto = append(b.Upto, p.dot())
		}
	}
	return b
}

func (p *programmer) modelBody(seq uint64) log.Body {
	version := fmt.Sprintf("v%d", seq)
	switch p.IntN(12) {
	case 0, 1:
		return &log.ModelCreate{ID: p.pick("m", "n", ""), Version: version, Concepts: []string{p.concept(), p.concept()}}
	case 2, 3:
		name := p.pick("N", "O")
		return &log.ModelPatch{
			Model: p.dot(), Name: &name, Add: []string{p.concept()}, Remove: []string{p.concept()},
			Config: []log.Setting{{Name: p.pick("s", "t"), JSON: []byte(p.pick("1", "true"))}}, Version: version,
		}
	case 4, 5:
		b := &log.VersionTrain{Model: p.dot(), Version: version}
		p.trains = append(p.trains, train{b.Model, version, seq})
		return b
	case 6:
		if len(p.trains) == 0 {
			return &log.ConceptCreate{ID: p.pick("x", "w"), Name: "W"}
		}
		x := p.trains[p.IntN(len(p.trains))]
		return &log.VersionResult{Model: x.model, Version: x.version, Lease: x.lease, Code: catalog.VersionTrained, Manifest: blob.Sum([]byte(version))}
	case 7:
		return &log.ConceptName{ID: p.concept(), Name: p.pick("X", "Y")}
	case 8:
		return &log.WorkflowCreate{ID: p.pick("w", ""), Nodes: []log.WorkflowNode{{ID: "1", Model: "general"}}}
	case 9:
		return &log.WorkflowDelete{Workflow: p.dot()}
	case 10:
		return &log.Feedback{Model: "m", JSON: logtest.JSON(p)}
	}
	if p.IntN(3) == 0 {
		return &log.ModelDelete{Model: p.dot()}
	}
	return &log.Unknown{Kind: 90, Data: []byte{1}}
}

// TestProgramsHaveEachKind checks that random programs have operations of each kind that a replica may write. Otherwise no law covers the
// kind.
func TestProgramsHaveEachKind(t *testing.T) {
	drawn := map[log.Kind]bool{}
	for seed := range uint64(20) {
		for _, op := range programOf(rand.New(rand.NewPCG(seed, 1)), 1000, fold.Version) {
			drawn[log.KindOf(op.Body)] = true
		}
	}
	for _, body := range logtest.Bodies() {
		if kind := log.KindOf(body); form.IsReplicaWritable(body) && !drawn[kind] {
			t.Errorf("no program has an operation of kind %s", kind)
		}
	}
}
