package partition

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
)

// conflictName is the prefix of the names of stored conflicts; the operation's dot follows.
const conflictName = "conflict/"

func conflictKey(app catalog.AppID, dot log.Dot) []byte { return dotKey(app, conflictName, dot) }

// dotKey returns the key of a record about an operation.
func dotKey(app catalog.AppID, name string, dot log.Dot) []byte {
	return dot.AppendKey(app.LocalKey(name))
}

// isConflict reports whether an operation with this verdict is listed as a conflict. A superseded operation is not: a later write
// replaced it.
func isConflict(c fold.Code) bool { return c != fold.OK && c != fold.Superseded }

func putOp(e *field.Encoder, number int, op *log.Op) { e.Raw(number, log.Encode(nil, op)) }

// readConflict reads a conflict. Errors: field.ErrFormat.
func readConflict(data []byte) (Conflict, error) {
	c, err := decodeConflict(data)
	if err == nil && c.Op.Body == nil {
		err = fmt.Errorf("conflict: %w: operation", field.ErrFormat)
	}
	return c, err
}

// getOp reads an operation.
func getOp(d *field.Decoder) log.Op {
	op, err := log.Decode(d.Raw())
	if err != nil {
		d.Malformed("operation")
	}
	return op
}

// PutConflict adds c to w: an operation that an origin refuses, with its content.
func PutConflict(w kv.Writer, app catalog.AppID, c *Conflict) {
	w.Put(conflictKey(app, c.Op.Dot), encodeConflict(nil, c))
}

// Conflicts yields the conflicts of this partition that were not dismissed, oldest first, until yield returns false.
func (p *Partition) Conflicts(yield func(Conflict) bool) error {
	v := p.View()
	return errors.Join(conflictsIn(v.snapshot, p.o.App, yield), v.Close())
}

// CountConflicts returns the number of [Partition.Conflicts]. It reads only their keys.
func (p *Partition) CountConflicts() (n int, err error) {
	v := p.View()
	for range kv.WithPrefix(v.snapshot, p.o.App.LocalKey(conflictName), &err) {
		n++
	}
	return n, errors.Join(err, v.Close())
}

// Conflict returns the conflict of one operation. The error is catalog.ErrNotFound if the operation has none.
func (p *Partition) Conflict(dot log.Dot) (c Conflict, err error) {
	v := p.View()
	value, err := v.snapshot.Get(conflictKey(p.o.App, dot))
	if isMissing(err) {
		err = fmt.Errorf("conflict of operation %d of writer %v: %w", dot.Seq, dot.Writer, catalog.ErrNotFound)
	}
	if err == nil {
		c, err = readConflict(bytes.Clone(value))
	}
	return c, errors.Join(err, v.Close())
}

// Dismiss deletes a conflict. It returns nil if the conflict does not exist.
func (p *Partition) Dismiss(dot log.Dot) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	var b kv.Batch
	b.Delete(conflictKey(p.o.App, dot))
	return kv.CommitAndWait(p.o.Store, &b)
}
