package foldtest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Model is a naive implementation of the fold: it has no store and searches all its data each time. It shares no code with package fold.
type Model struct {
	app      catalog.AppID
	inputs   []*being // in the order of creation, dead ones too
	writers  map[log.Writer]*writer
	deleted  map[log.Dot]log.HLC // deletions that came before their things, with the clocks of their makers
	horizon  log.HLC
	barrier  log.HLC
	concepts map[string]bool // existing ones, among them all that live inputs have as labels
	rules    uint32          // version in force
	models   []*entity
	flows    []*entity
}

// being is an input, live or deleted.
type being struct {
	dot     log.Dot
	id      string
	url     string
	crop    raster.Crop
	code    int
	dead    bool
	picture blob.Hash
	labels  map[string]write[log.Value]
	place   write[*log.Point]
	meta    catalog.Meta
	unseen  map[register][]write[string] // contradictory values
}

// writer has the operations of a writer in the log.
type writer struct {
	ops     map[uint64]bool // sequence numbers of its operations
	clocks  []log.HLC       // of the operations that the record is needed for
	lasting bool            // no horizon forgets it
	dead    uint64          // its inputs up to this sequence number are deleted
}

type write[T any] struct {
	at log.Stamp
	v  T
}

// entity is a model or a workflow.
type entity struct {
	dot  log.Dot
	id   string
	dead bool
}

// NewModel returns the model of an application's empty log.
func NewModel(app catalog.AppID) *Model {
	return &Model{app: app, writers: map[log.Writer]*writer{}, deleted: map[log.Dot]log.HLC{}, concepts: map[string]bool{}}
}

// SiteSeq returns the number of a site's last operation.
func (m *Model) SiteSeq(s log.Writer) uint64 { return m.of(s).last() }

// of returns the record of a writer. It is empty if the log has none.
func (m *Model) of(s log.Writer) *writer {
	if w := m.writers[s]; w != nil {
		return w
	}
	return &writer{ops: map[uint64]bool{}}
}

func (w *writer) last() (last uint64) {
	for seq := range w.ops {
		last = max(last, seq)
	}
	return last
}

// Inputs returns the live inputs in the order of their creation.
func (m *Model) Inputs() (out []log.Dot) {
	for _, b := range m.living() {
		out = append(out, b.dot)
	}
	return out
}

// HasModel reports whether a recognition model is live.
func (m *Model) HasModel(dot log.Dot) bool { return find(m.models, dot) != nil }

func (m *Model) living() []*being {
	return slices.DeleteFunc(slices.Clone(m.inputs), func(b *being) bool { return b.dead })
}

func (m *Model) live(is func(b *being) bool) *being {
	for _, b := range m.inputs {
		if !b.dead && is(b) {
			return b
		}
	}
	return nil
}

func (m *Model) byDot(dot log.Dot) *being {
	return m.live(func(b *being) bool { return b.dot == dot })
}

// Fold folds the next operation. It returns the verdict's code, 0 for an operation that it does not judge.
func (m *Model) Fold(op *log.Op) fold.Code {
	w, byNames := m.of(op.Dot.Writer), m.rules >= 3
	switch last := w.last(); {
	case w.ops[op.Dot.Seq]:
		return fold.Duplicate
	case op.Dot.Seq > last+1 && !byNames:
		return fold.Refused
	}
	m.writers[op.Dot.Writer] = w
	w.ops[op.Dot.Seq] = true
	w.clocks = append(w.clocks, made(op))
	w.lasting = w.lasting || !byNames || op.Dot.Writer < log.FirstRandomWriter
	if byNames && min(op.At, made(op)) < m.horizon && !alwaysCounts(op.Body) {
		return fold.Stale
	}
	switch b := op.Body.(type) {
	case *log.InputCreate:
		return m.create(op, b)
	case *log.InputLabels:
		return m.label(op, m.byDot(b.Input), b.Labels, b.Seen)
	case *log.InputGeo:
		return m.geo(op, b)
	case *log.InputMeta:
		return m.writeMeta(op, b)
	case *log.OutputsPatch:
		return m.field(op, b.Input)
	case *log.InputFetched:
		return m.applyFetch(op, b)
	case *log.InputDelete:
		return m.delete(op, b)
	case *log.InputDeleteAll:
		m.deleteAll(op, b)
		return fold.OK
	case *log.Horizon:
		m.horizon = max(m.horizon, b.At)
		if byNames {
			m.forget()
		}
		return fold.OK
	}
	return m.rest(op)
}

// stamp returns the stamp of the fields that an operation writes.
func (m *Model) stamp(op *log.Op) log.Stamp {
	at := op.Stamp()
	if m.rules >= 4 {
		at.Made = op.Made
	}
	return at
}

// made returns the clock that the operation's maker gave it.
func made(op *log.Op) log.HLC {
	if op.Made != 0 {
		return op.Made
	}
	return op.At
}

// alwaysCounts reports whether an operation has its effect however old it is: a deletion, a refusal and the rules.
func alwaysCounts(body log.Body) bool {
	switch body.(type) {
	case *log.InputDelete, *log.InputDeleteAll, *log.ConceptDelete, *log.ModelDelete, *log.ModelDeleteAll, *log.VersionDelete, *log.WorkflowDelete,
		*log.Refused, *log.Rules:
		return true
	}
	return false
}

// missing returns the verdict on the deletion of a thing that does not live. By the rules of names it counts for a thing that comes later.
func (m *Model) missing(op *log.Op, thing log.Dot) fold.Code {
	if m.rules < 3 || thing.Seq == 0 || m.of(thing.Writer).ops[thing.Seq] {
		return fold.Gone
	}
	m.deleted[thing] = max(m.deleted[thing], made(op))
	return fold.OK
}

// comesDeleted reports whether a deletion of the thing that op makes came first, and forgets the deletion.
func (m *Model) comesDeleted(op *log.Op) bool {
	_, deleted := m.deleted[op.Dot]
	delete(m.deleted, op.Dot)
	return deleted
}

// deleteAll deletes the inputs that op names, also those that come later. If it names none, it deletes those that came before.
func (m *Model) deleteAll(op *log.Op, b *log.InputDeleteAll) {
	if m.rules < 3 || len(b.Upto) == 0 {
		for _, x := range m.inputs {
			x.dead = true
		}
		if b.Barrier {
			m.barrier = max(m.barrier, op.At)
		}
		return
	}
	for _, d := range b.Upto {
		if d.Seq == 0 {
			continue
		}
		w := m.of(d.Writer)
		m.writers[d.Writer] = w
		w.dead = max(w.dead, d.Seq)
		w.clocks = append(w.clocks, made(op))
		for _, x := range m.inputs {
			x.dead = x.dead || x.dot.Writer == d.Writer && x.dot.Seq <= d.Seq
		}
	}
}

// forget drops what only operations below the horizon need: all of a writer with a drawn number whose clocks are below it, and deletions
// of things that are stale when they come.
func (m *Model) forget() {
	maps.DeleteFunc(m.writers, func(_ log.Writer, w *writer) bool { return !w.lasting && slices.Max(w.clocks) < m.horizon })
	maps.DeleteFunc(m.deleted, func(_ log.Dot, at log.HLC) bool { return at < m.horizon })
}

// field returns the verdict on a write of a register that the model does not store.
func (m *Model) field(op *log.Op, input log.Dot) fold.Code {
	switch {
	case m.byDot(input) == nil:
		return fold.Gone
	case op.At < m.horizon:
		return fold.Stale
	}
	return 0
}

func (m *Model) applyFetch(op *log.Op, b *log.InputFetched) fold.Code {
	x := m.byDot(b.Input)
	switch {
	case x == nil:
		return fold.Gone
	case x.code == 30101 || x.code == 30105 || x.code == 30300:
		if ofOrigin := op.Dot.Writer == 1 || op.Dot.Writer >= 1<<31; m.rules < 2 || m.rules < 3 && !ofOrigin || b.Code != catalog.InputReady {
			return fold.Superseded
		}
	case x.code != catalog.InputPending:
		return fold.Superseded
	}
	x.code, x.picture = b.Code, b.Blob
	return fold.OK
}

func (m *Model) geo(op *log.Op, b *log.InputGeo) fold.Code {
	if code := m.field(op, b.Input); code != 0 {
		return code
	}
	x := m.byDot(b.Input)
	m.dropRemovals(x)
	m.meet(op, x, register{kind: catalog.PlaceRegister}, x.servingPlace(), placeText(b.Geo), b.Seen)
	if m.stamp(op).Less(x.place.at) {
		return fold.Superseded
	}
	x.place = write[*log.Point]{m.stamp(op), b.Geo}
	return fold.OK
}

func (m *Model) create(op *log.Op, b *log.InputCreate) fold.Code {
	switch {
	case m.comesDeleted(op):
		return fold.Superseded
	case op.At < m.barrier, op.Dot.Seq <= m.of(op.Dot.Writer).dead:
		return fold.Gone
	}
	broken := func(x *being) bool { return x.code != catalog.InputPending && x.code != catalog.InputReady }
	id := cmp.Or(b.ID, m.defaultID("input", op.Dot))
	same := m.live(func(x *being) bool { return x.id == id })
	if same != nil && !broken(same) {
		if b.MergeIfEqual && same.url == b.URL && same.crop == b.Crop && same.picture == b.Blob {
			return m.label(op, same, b.Labels, b.Seen)
		}
		return fold.Duplicate
	}
	sharing := func(x *being) bool { return b.URL != "" && !b.AllowDuplicate && x.url == b.URL }
	if m.live(func(x *being) bool { return sharing(x) && !broken(x) }) != nil {
		return fold.Duplicate
	}
	for _, x := range m.inputs {
		x.dead = x.dead || x == same || sharing(x)
	}
	x := &being{
		dot: op.Dot, id: id, url: b.URL, crop: b.Crop, code: catalog.InputPending, picture: b.Blob, labels: map[string]write[log.Value]{},
		unseen: map[register][]write[string]{},
	}
	if !b.Blob.IsZero() {
		x.code = catalog.InputReady
	}
	for _, l := range b.Labels {
		if l.Value != log.Removed {
			x.labels[l.Concept] = write[log.Value]{m.stamp(op), l.Value}
		}
	}
	if b.Geo != nil {
		x.place = write[*log.Point]{m.stamp(op), b.Geo}
	}
	if b.Meta != nil {
		if _, err := x.meta.Write(log.MetaWrite{JSON: b.Meta}, m.stamp(op)); err != nil {
			panic(err) // programs have no such metadata
		}
	}
	m.inputs = append(m.inputs, x)
	m.use(b.Labels)
	return fold.OK
}

// defaultID returns the id that a create without one gets: the start of a digest of the application and the operation, in hex.
func (m *Model) defaultID(kind string, dot log.Dot) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s%s", kind, m.app[:])
	_ = binary.Write(sum, binary.BigEndian, [...]uint32{uint32(dot.Writer), uint32(dot.Writer >> 32), uint32(dot.Seq)})
	return hex.EncodeToString(sum.Sum(nil))[:32]
}

func (m *Model) use(labels []log.Label) {
	for _, l := range labels {
		if l.Value != log.Removed && l.Concept != "ai_1" {
			m.concepts[l.Concept] = true
		}
	}
}

func (m *Model) label(op *log.Op, x *being, labels []log.Label, seen log.SeenEach) fold.Code {
	if x == nil {
		return fold.Gone
	}
	if op.At < m.horizon {
		return fold.Stale
	}
	code := fold.Superseded
	m.dropRemovals(x)
	for i, l := range labels {
		last, ok := x.labels[l.Concept]
		m.meet(op, x, register{catalog.LabelRegister, l.Concept}, x.servingLabel(l.Concept), fmt.Sprint(l.Value), seen.Of(i))
		if !ok || !m.stamp(op).Less(last.at) {
			x.labels[l.Concept] = write[log.Value]{m.stamp(op), l.Value}
			code = fold.OK
		}
	}
	if code == fold.OK {
		m.use(labels)
	}
	return code
}

// rest folds operations that do not concern inputs.
func (m *Model) rest(op *log.Op) fold.Code {
	switch b := op.Body.(type) {
	case *log.ModelCreate:
		if m.comesDeleted(op) {
			return fold.Superseded
		}
		return create(&m.models, op.Dot, cmp.Or(b.ID, m.defaultID("model", op.Dot)))
	case *log.ModelDelete:
		if kill(m.models, b.Model) {
			return fold.OK
		}
		return m.missing(op, b.Model)
	case *log.ModelPatch:
		if find(m.models, b.Model) == nil {
			return fold.Gone
		}
	case *log.VersionTrain:
		if find(m.models, b.Model) == nil {
			return fold.Gone
		}
	case *log.VersionDelete:
		if find(m.models, b.Model) == nil {
			return fold.Gone
		}
	case *log.ModelDeleteAll:
		for _, x := range m.models {
			x.dead = true
		}
		return fold.OK
	case *log.Unknown:
		return fold.Refused
	case *log.WorkflowCreate:
		if m.comesDeleted(op) {
			return fold.Superseded
		}
		return create(&m.flows, op.Dot, cmp.Or(b.ID, m.defaultID("workflow", op.Dot)))
	case *log.WorkflowDelete:
		if kill(m.flows, b.Workflow) {
			return fold.OK
		}
		return m.missing(op, b.Workflow)
	case *log.Feedback:
		return fold.OK
	case *log.Refused:
		return fold.Refused
	case *log.Rules:
		m.Activate(b.Version)
		return fold.OK
	case *log.ConceptDelete:
		return m.deleteConcept(b.ID)
	}
	return 0
}

// Activate puts a version of the rules in force. Pending operations are folded by the newest version that their replica knows.
func (m *Model) Activate(version uint32) { m.rules = max(m.rules, version) }

// deleteConcept deletes a concept unless an input uses it. Models and edits may use it too, which the model does not store.
func (m *Model) deleteConcept(id string) fold.Code {
	if m.rules < 2 {
		return fold.Refused
	}
	used := m.live(func(b *being) bool { w, ok := b.labels[id]; return ok && w.v != log.Removed })
	switch {
	case used == nil:
		delete(m.concepts, id)
	case id != "ai_1":
		return fold.Superseded
	}
	return 0
}

func find(list []*entity, dot log.Dot) *entity {
	for _, x := range list {
		if !x.dead && x.dot == dot {
			return x
		}
	}
	return nil
}

func create(list *[]*entity, dot log.Dot, id string) fold.Code {
	for _, x := range *list {
		if !x.dead && x.id == id {
			return fold.Duplicate
		}
	}
	*list = append(*list, &entity{dot: dot, id: id})
	return fold.OK
}

func kill(list []*entity, dot log.Dot) bool {
	x := find(list, dot)
	if x != nil {
		x.dead = true
	}
	return x != nil
}

func living(list []*entity) (out []entity) {
	for _, x := range list {
		if !x.dead {
			out = append(out, *x)
		}
	}
	return out
}

// visibleLabels returns the labels that users see, by concept.
func (b *being) visibleLabels() (out []log.Label) {
	for _, concept := range slices.Sorted(maps.Keys(b.labels)) {
		if v := b.labels[concept].v; v != log.Removed {
			out = append(out, log.Label{Concept: concept, Value: v})
		}
	}
	return out
}

// Compare compares a state with the model. It returns an error for the first difference.
func (m *Model) Compare(r catalog.Reader) error {
	rest := m.living()
	var wrong error
	err := r.Inputs(0, func(in catalog.Input) bool {
		if len(rest) == 0 {
			wrong = fmt.Errorf("input %q of %v should be dead", in.ID, in.Dot)
			return false
		}
		wrong = rest[0].compare(&in)
		rest = rest[1:]
		return wrong == nil
	})
	if wrong != nil || err != nil {
		return cmp.Or(wrong, err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("input %q of %v is missing", rest[0].id, rest[0].dot)
	}
	for _, c := range slices.Sorted(maps.Keys(m.concepts)) {
		if _, err := r.Concept(c); err != nil {
			return err
		}
	}
	return cmp.Or(m.compareNamed(r), m.compareNames(r), m.compareUnseen(r))
}

// compareNames compares the names in the state, and the deletions that came before their things.
func (m *Model) compareNames(r catalog.Reader) error {
	left := len(m.writers)
	var wrong error
	err := r.Writers(func(s log.Writer, n catalog.Names) bool {
		w, last := m.of(s), m.of(s).last()
		if left--; m.writers[s] == nil || n.Last() != last || n.DeletedUpTo != w.dead {
			wrong = fmt.Errorf("writer %d is %+v, want %+v", s, n, w)
		}
		for seq := uint64(1); seq <= last; seq++ {
			if n.Has(seq) != w.ops[seq] {
				wrong = fmt.Errorf("writer %d has %+v, want %v", s, n.Ranges, w.ops)
			}
		}
		return wrong == nil
	})
	if err = cmp.Or(wrong, err); err != nil || left != 0 {
		return cmp.Or(err, fmt.Errorf("%d of the writers %v are missing", left, m.writers))
	}
	for thing, want := range m.deleted {
		if at, err := r.Deletion(thing); at != want {
			return fmt.Errorf("deletion of %v at %d, %w, want %d", thing, at, err, want)
		}
	}
	if some, err := r.HasDeletions(); some != (len(m.deleted) > 0) {
		return fmt.Errorf("deletions %v, %w, want %v", some, err, m.deleted)
	}
	return nil
}

func (m *Model) compareNamed(r catalog.Reader) error {
	var models, flows []entity
	err := r.Models(func(x catalog.Model) bool {
		models = append(models, entity{dot: x.Dot, id: x.ID})
		return true
	})
	if err != nil {
		return err
	}
	err = r.Workflows(func(x catalog.Workflow) bool {
		flows = append(flows, entity{dot: x.Dot, id: x.ID})
		return true
	})
	if err != nil {
		return err
	}
	if want := living(m.models); !slices.Equal(models, want) {
		return fmt.Errorf("models %v, want %v", models, want)
	}
	if want := living(m.flows); !slices.Equal(flows, want) {
		return fmt.Errorf("workflows %v, want %v", flows, want)
	}
	return nil
}

func (b *being) compare(in *catalog.Input) error {
	var labels []log.Label
	for _, l := range in.Labels {
		if l.Value != log.Removed {
			labels = append(labels, l.Label)
		}
	}
	if in.Dot != b.dot || in.ID != b.id || in.Code != b.code || !slices.Equal(labels, b.visibleLabels()) {
		return fmt.Errorf("input %q of %v at %d with %v, want %q of %v at %d with %v",
			in.ID, in.Dot, in.Code, labels, b.id, b.dot, b.code, b.visibleLabels())
	}
	if in.Blob != b.picture {
		return fmt.Errorf("input %q of %v has picture %x, want %x", in.ID, in.Dot, in.Blob, b.picture)
	}
	if a, b := in.Meta.JSON(), b.meta.JSON(); !bytes.Equal(a, b) {
		return fmt.Errorf("input %q of %v has metadata %s, want %s", in.ID, in.Dot, a, b)
	}
	if a, p := in.Geo, b.place.v; (a == nil) != (p == nil) || a != nil && *a != *p {
		return fmt.Errorf("input %q of %v is at %v, want %v", in.ID, in.Dot, a, p)
	}
	return nil
}
