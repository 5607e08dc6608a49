package partition

import (
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

// subject returns the thing that a body names by its dot, and the function that looks its ID up; the zero Dot: it names none.
func subject(body log.Body) (log.Dot, func(catalog.Reader, log.Dot) (string, error)) {
	switch b := body.(type) {
	case *log.InputFetched:
		return b.Input, inputName
	case *log.InputLabels:
		return b.Input, inputName
	case *log.InputMeta:
		return b.Input, inputName
	case *log.InputGeo:
		return b.Input, inputName
	case *log.InputDelete:
		return b.Input, inputName
	case *log.OutputsPatch:
		return b.Input, inputName
	case *log.ModelPatch:
		return b.Model, modelName
	case *log.ModelDelete:
		return b.Model, modelName
	case *log.VersionTrain:
		return b.Model, modelName
	case *log.VersionResult:
		return b.Model, modelName
	case *log.VersionDelete:
		return b.Model, modelName
	case *log.WorkflowDelete:
		return b.Workflow, workflowName
	}
	return log.Dot{}, nil
}

func inputName(r catalog.Reader, dot log.Dot) (string, error) {
	in, err := r.InputByDot(dot)
	return in.ID, err
}

func modelName(r catalog.Reader, dot log.Dot) (string, error) {
	m, err := r.ModelByDot(dot)
	return m.ID, err
}

func workflowName(r catalog.Reader, dot log.Dot) (string, error) {
	w, err := r.WorkflowByDot(dot)
	return w.ID, err
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
	dot, name := subject(body)
	if dot == (log.Dot{}) {
		return "", nil
	}
	v := p.View()
	for _, r := range []kv.Reader{v.snapshot, catalog.Before(v.snapshot, p.o.App)} {
		if id, err = name(catalog.Read(r, p.o.App), dot); !errors.Is(err, catalog.ErrNotFound) {
			break
		}
		id, err = "", nil
	}
	if err = errors.Join(err, v.Close()); err == nil && id == "" {
		id, err = p.madeName(dot)
	}
	return id, err
}

// madeName returns the ID in the operation of the outbox that made the thing dot.
func (p *Partition) madeName(dot log.Dot) (id string, err error) {
	at := p.Position(dot)
	if at == 0 {
		return "", nil
	}
	err = p.scanOwn(at-1, at, func(_ uint64, op log.Op) bool {
		switch b := op.Body.(type) {
		case *log.InputCreate:
			id = b.ID
		case *log.ModelCreate:
			id = b.ID
		case *log.WorkflowCreate:
			id = b.ID
		}
		return false
	})
	return id, err
}

// noteNames stores the IDs of things that pending operations name and that no longer exist. The state before this batch has the IDs.
func (p *Partition) noteNames(w kv.Writer, entries []log.Entry, verdicts []fold.Verdict) error {
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
func (p *Partition) takeName(op *log.Op) (string, error) {
	id, err := p.NameOf(op.Body)
	if err != nil {
		return "", err
	}
	key := nameKey(p.o.App, op.Dot)
	noted, err := p.tx.Get(key)
	switch {
	case isMissing(err):
		return id, nil
	case err != nil:
		return "", err
	}
	if id == "" {
		id = string(noted)
	}
	p.tx.Delete(key)
	return id, nil
}
