package partition

import (
	"cmp"
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Most operations name a thing by its dot, and the state has the ID only while the thing exists. Users know only the ID. So when a pending
// operation loses its thing, the replica stores the ID, and a conflict can show it.

// nameName is the prefix of the names of stored IDs; the operation's dot follows.
const nameName = "named/"

func nameKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, nameName, dot) }

// thing is an input, a model or a workflow.
type thing struct {
	id   string
	made log.HLC // clock by which its maker made it
}

// reference is a thing by the dot of the operation that made it; find is nil in the zero reference.
type reference struct {
	dot  log.Dot
	find func(r catalog.Reader, dot log.Dot) (thing, error) // errors: catalog.ErrNotFound and those of kv
	id   string                                             // ID of the thing in that operation, if the reference comes from it
}

// madeAt returns the clock by which the thing was made; 0: it is not in the state, or the reference is zero.
func (x reference) madeAt(state catalog.Reader) (log.HLC, error) {
	if x.find == nil {
		return 0, nil
	}
	t, err := x.find(state, x.dot)
	if errors.Is(err, catalog.ErrNotFound) {
		return 0, nil
	}
	return t.made, err
}

// subject returns the thing that a body names by its dot; zero: it names none.
func subject(body log.Body) reference {
	kind, dot := log.SubjectOf(body)
	if dot == (log.Dot{}) {
		return reference{}
	}
	return reference{dot: dot, find: finders[kind]}
}

// finders has for each kind of thing that has a dot the function that finds it.
var finders = map[log.Subject]func(catalog.Reader, log.Dot) (thing, error){
	log.InputSubject: findInput, log.ModelSubject: findModel, log.WorkflowSubject: findWorkflow,
}

// creation returns the thing that an operation makes; zero: it makes none.
func creation(op *log.Op) reference {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		return reference{op.Dot, findInput, b.ID}
	case *log.ModelCreate:
		return reference{op.Dot, findModel, b.ID}
	case *log.WorkflowCreate:
		return reference{op.Dot, findWorkflow, b.ID}
	}
	return reference{}
}

func findInput(r catalog.Reader, dot log.Dot) (thing, error) {
	in, err := r.InputByDot(dot)
	return thing{in.ID, cmp.Or(in.Made, in.Created)}, err
}

func findModel(r catalog.Reader, dot log.Dot) (thing, error) {
	m, err := r.ModelByDot(dot)
	return thing{m.ID, cmp.Or(m.Made, m.Created)}, err
}

func findWorkflow(r catalog.Reader, dot log.Dot) (thing, error) {
	w, err := r.WorkflowByDot(dot)
	return thing{w.ID, cmp.Or(w.Made, w.Created)}, err
}

// SubjectID returns the ID of the thing that an operation's body names by its dot. It is empty for bodies without such a dot, and if this
// store does not know the ID. If a pending operation deleted the thing, the confirmed state has the ID. If a pending operation
// made it, that operation has the ID.
func (p *Partition) SubjectID(body log.Body) (id string, err error) {
	x := subject(body)
	if x.dot == (log.Dot{}) {
		return "", nil
	}
	v := p.View()
	for _, r := range []kv.Reader{v.snapshot, catalog.WithoutPending(v.snapshot, p.o.App)} {
		t, failed := x.find(catalog.Read(r, p.o.App), x.dot)
		if id, err = t.id, failed; !errors.Is(err, catalog.ErrNotFound) {
			break
		}
		err = nil
	}
	if err = errors.Join(err, v.Close()); err == nil && id == "" {
		id, err = p.side.madeName(x.dot)
	}
	return id, err
}

// madeName implements [side].
func (p *Replica) madeName(dot log.Dot) (id string, err error) {
	at := p.Position(dot)
	if at == 0 {
		return "", nil
	}
	for _, op := range p.local(at-1, at, &err) {
		id = creation(&op).id
	}
	return id, err
}

// noteNames stores the IDs of things that pending operations name and that no longer exist. The state before this batch has the IDs.
func (p *Replica) noteNames(w kv.Writer, entries []log.Entry, verdicts []fold.Verdict) error {
	for i := range entries {
		if verdicts[i].Code != fold.Gone {
			continue
		}
		id, err := p.SubjectID(entries[i].Op.Body)
		if err != nil {
			return err
		}
		if id != "" {
			w.Put(nameKey(p.o.App, entries[i].Op.Dot), []byte(id))
		}
	}
	return nil
}

// takeName returns the ID of the thing of an operation whose verdict has arrived, and deletes the stored ID.
func (p *Replica) takeName(op *log.Op) (string, error) {
	id, err := p.SubjectID(op.Body)
	if err != nil {
		return "", err
	}
	key := nameKey(p.o.App, op.Dot)
	noted, err := kv.Find(p.tx, key)
	if err != nil || noted == nil {
		return id, err
	}
	if id == "" {
		id = string(noted)
	}
	p.tx.Delete(key)
	return id, nil
}
