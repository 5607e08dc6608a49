package partition

import (
	"encoding/binary"
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Most operations name a thing by its dot, and a state says its id for as long as it is live. People know
// it by its id alone, so when something is taken from under a pending operation its id is noted: whoever is
// shown the conflict later is told what it was about.

// nameName begins the names of the notes that keep ids; the operation's site and sequence follow, as
// numbers of 4 and 8 bytes.
const nameName = "named/"

func nameKey(app catalog.AppID, dot log.Dot) []byte {
	k := binary.BigEndian.AppendUint32(app.LocalKey(nameName), uint32(dot.Site))
	return binary.BigEndian.AppendUint64(k, dot.Seq)
}

// NameOf is the id of the thing that an operation's body names by its dot, as r has it; empty for one that
// is not there, and for bodies that name none so.
func NameOf(r catalog.Reader, body log.Body) (id string, err error) {
	switch b := body.(type) {
	case *log.InputFetched:
		id, err = inputName(r, b.Input)
	case *log.InputLabels:
		id, err = inputName(r, b.Input)
	case *log.InputMeta:
		id, err = inputName(r, b.Input)
	case *log.InputGeo:
		id, err = inputName(r, b.Input)
	case *log.InputDelete:
		id, err = inputName(r, b.Input)
	case *log.OutputsPatch:
		id, err = inputName(r, b.Input)
	case *log.ModelPatch:
		id, err = modelName(r, b.Model)
	case *log.ModelDelete:
		id, err = modelName(r, b.Model)
	case *log.VersionTrain:
		id, err = modelName(r, b.Model)
	case *log.VersionResult:
		id, err = modelName(r, b.Model)
	case *log.VersionDelete:
		id, err = modelName(r, b.Model)
	case *log.WorkflowDelete:
		var w catalog.Workflow
		w, err = r.WorkflowByDot(b.Workflow)
		id = w.ID
	}
	if errors.Is(err, catalog.ErrNotFound) {
		return "", nil
	}
	return id, err
}

func inputName(r catalog.Reader, dot log.Dot) (string, error) {
	in, err := r.InputByDot(dot)
	return in.ID, err
}

func modelName(r catalog.Reader, dot log.Dot) (string, error) {
	m, err := r.ModelByDot(dot)
	return m.ID, err
}

// noteNames notes the ids of what is gone from under pending operations, as the state that is visible until
// then has them.
func (p *Partition) noteNames(w kv.Writer, entries []log.Entry, verdicts []fold.Verdict) error {
	for i := range entries {
		if verdicts[i].Code != fold.Gone {
			continue
		}
		id, err := p.nameOf(entries[i].Op.Body)
		if err != nil {
			return err
		}
		if id != "" {
			w.Put(nameKey(p.o.App, entries[i].Op.Dot), []byte(id))
		}
	}
	return nil
}

// nameOf is [NameOf] in the state that is visible, or else in the confirmed one: a pending operation of our own
// may have deleted the thing.
func (p *Partition) nameOf(body log.Body) (string, error) {
	v := p.View()
	id, err := NameOf(v.Reader, body)
	if err == nil && id == "" {
		id, err = NameOf(catalog.Read(catalog.Before(v.snapshot, p.o.App), p.o.App), body)
	}
	return id, errors.Join(err, v.Close())
}

// named is the id of what an operation is about whose verdict has come, and the note of it goes.
func (p *Partition) named(op *log.Op) (string, error) {
	id, err := p.nameOf(op.Body)
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
