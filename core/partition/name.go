package partition

import (
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Most operations name a thing by its dot, and a state says its id for as long as it is live. People know
// it by its id alone, so when a pending operation loses its thing, the id of the thing is noted. A conflict
// can then name it.

// nameName begins the names of the notes that keep ids; the operation's site and sequence follow, as
// numbers of 4 and 8 bytes.
const nameName = "named/"

func nameKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, nameName, dot) }

// subject is the thing that a body names by its dot, and how its id is looked up; the zero Dot: it names none so.
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

// Subject is the thing that an operation's body names by its dot; the zero Dot: it names none so.
func Subject(body log.Body) log.Dot {
	dot, _ := subject(body)
	return dot
}

// NameOf returns the id of the thing that an operation's body names by its dot. It is empty for bodies without such a name, and if this
// store does not know it. If a pending operation of this site deleted the thing, the confirmed state has the id; if one made it, that
// operation has it.
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

// madeName returns the id that an operation of this site has given to its thing.
func (p *Partition) madeName(dot log.Dot) (id string, err error) {
	if p.replica == nil || dot.Site != p.Site() || dot.Seq < p.log.Floor() {
		return "", nil
	}
	err = p.LocalOps(dot.Seq-1, func(op log.Op) bool {
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

// noteNames notes the ids of things that entries delete and pending operations name, as the state before them has these ids.
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

// takeName returns the id of the thing of an operation whose verdict has arrived, and deletes the note of it.
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
