package partition

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Version 0.1.0 wrote records that nothing reads any more. Opening deletes them. A restored origin noted deletions that came before their things:
//
//	early/DOT   the deletion
//
// They become entries of the log, where they count for things that come later.
const earlyName = "early/"

var oldNames = []string{earlyName, "left/", "life/", "moved/", "opened", "renamed/"}

// dropOld deletes the records of version 0.1.0. The rules by which early deletions count must be in force. If the store is full, the next opening
// does it.
func (p *Partition) dropOld() error {
	var drop kv.Batch
	for _, name := range oldNames {
		lo := p.o.App.LocalKey(name)
		some, err := kv.AnyWithPrefix(p.o.Store, lo)
		if err != nil {
			return err
		}
		if some {
			kv.DeletePrefix(&drop, lo)
		}
	}
	if drop.Len() == 0 {
		return nil
	}
	var bodies []log.Body
	var err error
	for _, value := range kv.WithPrefix(p.o.Store, p.o.App.LocalKey(earlyName), &err) {
		if body := earlyDeletion(bytes.Clone(value)); body != nil {
			bodies = append(bodies, body)
		}
	}
	switch {
	case err != nil:
	case len(bodies) == 0:
		err = kv.CommitAndWait(p.o.Store, &drop)
	default:
		_, err = p.Submit(context.Background(), "", bodies, func(b *kv.Batch) { b.Append(&drop) })
	}
	if errors.Is(err, kv.ErrFull) {
		return nil
	}
	return err
}

// earlyDeletion returns the deletion in an early record; nil: it is the clock of an operation that deleted all.
func earlyDeletion(value []byte) log.Body {
	op, err := log.Decode(value)
	if err != nil || !log.OnlyDeletes(op.Body) {
		return nil
	}
	return op.Body
}

// keptName begins the keys of the entries that a replica of version 0.1.0 kept: kept/RUN SEQ.
const keptName = "kept/"

// keptEntry is such an entry.
//
//field:message
//field:reserved 2
type keptEntry struct {
	before log.Chain `wire:"1"` // chain of the log before the entry
	seal   []byte    `wire:"3"` // seal of the log up to the entry
	op     []byte    `wire:"4"`
}

// oldKept describes them. It is part of replicaState.
type oldKept struct {
	run   uint32    `wire:"1"`
	since uint64    `wire:"2"`
	bytes uint64    `wire:"3"`
	epoch log.Epoch `wire:"4"` // epoch of the newest run; those of earlier ones were not stored
	to    uint64    `wire:"6"`
}

// keepOld makes frames of the entries that version 0.1.0 kept, each up to a seal. It leaves out entries without a seal after them. If the store is
// full, the next opening does it.
func (p *Replica) keepOld() error {
	m := p.newMix()
	k, old := &m.note.kept, m.note.oldKept
	var f Frame
	rows, found := 0, false
	var run uint32
	var err error
	for key, value := range kv.WithPrefix(p.o.Store, p.o.App.LocalKey(keptName), &err) {
		x, failed := decodeKeptEntry(bytes.Clone(value))
		if failed != nil {
			return failed
		}
		of, seq := binary.BigEndian.Uint32(key[len(key)-12:]), binary.BigEndian.Uint64(key[len(key)-8:])
		if rows == 0 || rows == log.MaxRows || of != run || seq != f.To+1 || x.before != f.Chain {
			f, rows, run = Frame{From: seq - 1, To: seq - 1, Before: x.before, Chain: x.before}, 0, of
			if of == old.run {
				f.Epoch = old.epoch
			}
		}
		f.Rows, f.Chain, f.To = log.AppendRow(f.Rows, x.op), f.Chain.Next(x.op), seq
		rows++
		if len(x.seal) > 0 {
			f.Seal = x.seal
			if k.bytes += m.putFrame(k.set, &f); f.Epoch != (log.Epoch{}) {
				k.marks = addMark(k.marks, &f)
			}
			rows = 0
		}
		p.tx.Delete(bytes.Clone(key))
		found = true
	}
	if err != nil || !found {
		return err
	}
	k.old, m.note.oldKept = m.note.cursor.Seq, oldKept{}
	p.tx.Put(noteKey(p.o.App), m.note.encode())
	if err = p.o.Store.Apply(p.tx.Batch()); err == nil {
		p.replicaState = m.note
	}
	if errors.Is(err, kv.ErrFull) {
		return nil
	}
	return err
}
