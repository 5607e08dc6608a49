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

// find looks a thing up by its dot. Errors: catalog.ErrNotFound and those of kv.
type find func(r catalog.Reader, dot log.Dot) (thing, error)

// subject returns the thing that a body names by its dot, and the function that looks it up; the zero Dot: it names none.
func subject(body log.Body) (log.Dot, find) {
	switch b := body.(type) {
	case *log.InputFetched:
		return b.Input, findInput
	case *log.InputLabels:
		return b.Input, findInput
	case *log.InputMeta:
		return b.Input, findInput
	case *log.InputGeo:
		return b.Input, findInput
	case *log.InputDelete:
		return b.Input, findInput
	case *log.OutputsPatch:
		return b.Input, findInput
	case *log.ModelPatch:
		return b.Model, findModel
	case *log.ModelDelete:
		return b.Model, findModel
	case *log.VersionTrain:
		return b.Model, findModel
	case *log.VersionResult:
		return b.Model, findModel
	case *log.VersionDelete:
		return b.Model, findModel
	case *log.WorkflowDelete:
		return b.Workflow, findWorkflow
	}
	return log.Dot{}, nil
}

// creation returns the ID of the thing that a body makes, and the function that looks it up; nil: it makes none.
func creation(body log.Body) (id string, find find) {
	switch b := body.(type) {
	case *log.InputCreate:
		return b.ID, findInput
	case *log.ModelCreate:
		return b.ID, findModel
	case *log.WorkflowCreate:
		return b.ID, findWorkflow
	}
	return "", nil
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

// Subject returns the dot by which an operation's body names a thing; the zero Dot: it names none.
func Subject(body log.Body) log.Dot {
	dot, _ := subject(body)
	return dot
}

// NameOf returns the ID of the thing that an operation's body names by its dot. It is empty for bodies without such a dot, and if this
// store does not know the ID. If a pending operation deleted the thing, the confirmed state has the ID. If a pending operation
// made it, that operation has the ID.
func (p *Partition) NameOf(body log.Body) (id string, err error) {
	dot, find := subject(body)
	if dot == (log.Dot{}) {
		return "", nil
	}
	v := p.View()
	for _, r := range []kv.Reader{v.snapshot, catalog.Before(v.snapshot, p.o.App)} {
		t, failed := find(catalog.Read(r, p.o.App), dot)
		if id, err = t.id, failed; !errors.Is(err, catalog.ErrNotFound) {
			break
		}
		err = nil
	}
	if err = errors.Join(err, v.Close()); err == nil && id == "" {
		id, err = p.side.madeName(dot)
	}
	return id, err
}

// madeName implements [side].
func (p *Copy) madeName(dot log.Dot) (id string, err error) {
	at := p.Position(dot)
	if at == 0 {
		return "", nil
	}
	for _, op := range p.local(at-1, at, &err) {
		id, _ = creation(op.Body)
	}
	return id, err
}

// noteNames stores the IDs of things that pending operations name and that no longer exist. The state before this batch has the IDs.
func (p *Copy) noteNames(w kv.Writer, entries []log.Entry, verdicts []fold.Verdict) error {
	for i := range entries {
		if verdicts[i].Code != fold.Gone {
			continue
		}
		id, err := p.NameOf(entries[i].Op.Body)
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
func (p *Copy) takeName(op *log.Op) (string, error) {
	id, err := p.NameOf(op.Body)
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
