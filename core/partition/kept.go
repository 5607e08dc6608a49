package partition

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// An origin whose disk went back in time lacks entries that its replicas show. A replica therefore keeps the frames after the stable entry, as
// they came with a seal of the log, up to a limit of bytes:
//
//	frame/SET N   Frame         N counts up in the order of the log
//
// Before a replica installs a snapshot, it fetches the frames up to it into the next set ([Replica.Keep]). The batch that ends the
// installation makes this set the present one. So a replica can give back everything that it shows:
//
//	set 1          … 50 ─ 51 … 90        of the log that the replica followed; offered to the log that lacks the place 90
//	set 2          … 50 ─ 51 … 57 … 99   of the log that took 51 to 90 back, fetched for the snapshot of entry 99
//
// The origin takes frames with [Origin.TakeBack].

// Frame is a run of entries of one epoch, as the origin sent it.
//
//field:message
type Frame struct {
	Epoch  log.Epoch `wire:"1"` // zero: not known, from a store of version 0.1.0
	From   uint64    `wire:"2"` // the entries follow it
	To     uint64    `wire:"3"`
	Chain  log.Chain `wire:"4"` // chain of the log up to To
	Rows   []byte    `wire:"5"` // operations of the entries, see [log.Rows]
	Seal   []byte    `wire:"7"` // seal of the log up to To
	Before log.Chain `wire:"8"` // chain of the log up to From
}

const (
	frameName     = "frame/"
	frameOverhead = 64 // approximate bytes of a frame in the store without its content
	maxMarks      = 16 // epochs of kept frames that a session names

	defaultKeep = 32 << 20 // default of ReplicaOptions.KeepBytes
)

// keptState describes the kept frames. It is part of replicaState.
type keptState struct {
	set   uint32     `wire:"1"`
	next  uint64     `wire:"2"`        // number of the next frame, in the present set or in the next one
	bytes uint64     `wire:"3"`        // of the present set
	marks []log.Mark `wire:"4,max=16"` // last kept entry of each epoch of the present set, the newest epoch last
	other fetched    `wire:"5,once"`   // the next set
	old   uint64     `wire:"6"`        // entry by which frames of unknown epochs are not needed
}

// fetched describes the frames of the next set.
type fetched struct {
	to    uint64     `wire:"1"` // last entry; 0: there are none
	bytes uint64     `wire:"2"`
	marks []log.Mark `wire:"3,max=16"`
}

func frameKey(app catalog.AppID, set uint32, n uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(app.LocalKey(frameName), set), n)
}

// addMark adds the last entry of a frame to marks.
func addMark(marks []log.Mark, f *Frame) []log.Mark {
	if n := len(marks) - 1; n >= 0 && marks[n].Epoch == f.Epoch {
		marks = slices.Clone(marks)
		marks[n].To = f.To
		return marks
	}
	marks = append(slices.Clip(marks), log.Mark{Epoch: f.Epoch, To: f.To})
	return marks[max(len(marks)-maxMarks, 0):]
}

// keepRun keeps a pulled run. An origin without a key of seals sends none, and takes nothing back.
func (m *pullBatch) keepRun(f *Frame) error {
	k := &m.note.kept
	if f.From == f.To || len(f.Seal) == 0 {
		return nil
	}
	k.bytes += m.putFrame(k.set, f)
	k.marks = addMark(k.marks, f)
	return m.limitKept(k.set, &k.bytes)
}

// putFrame writes a frame and returns its size.
func (m *pullBatch) putFrame(set uint32, f *Frame) uint64 {
	value := encodeFrame(nil, f)
	m.p.tx.Put(frameKey(m.p.o.App, set, m.note.kept.next), value)
	m.note.kept.next++
	return uint64(len(value)) + frameOverhead
}

// limitKept deletes the oldest frames of a set if they exceed the limit.
func (m *pullBatch) limitKept(set uint32, size *uint64) error {
	if limit := m.p.keepLimit; *size > limit {
		return m.deleteFrames(set, size, func(*Frame) bool { return *size > limit-limit/8 })
	}
	return nil
}

// deleteFrames deletes frames of a set, oldest first, while more reports true.
func (m *pullBatch) deleteFrames(set uint32, size *uint64, more func(*Frame) bool) error {
	var keys [][]byte
	var err error
	for key, value := range kv.Range(m.p.tx, frameKey(m.p.o.App, set, 0), frameKey(m.p.o.App, set+1, 0), &err) {
		f, failed := decodeFrame(value)
		if failed != nil {
			return failed
		}
		if !more(&f) {
			break
		}
		keys = append(keys, bytes.Clone(key))
		*size -= min(*size, uint64(len(value))+frameOverhead)
	}
	for _, key := range keys {
		m.p.tx.Delete(key)
	}
	return err
}

// deleteStable deletes the kept frames that are stable. Those of unknown epochs may be of another log, and stay until all is stable that the
// replica had then.
func (m *pullBatch) deleteStable() error {
	n := &m.note
	if n.cursor.Stable <= m.p.cursor.Stable {
		return nil
	}
	stable := n.cursor.Stable
	return m.deleteFrames(n.kept.set, &n.kept.bytes, func(f *Frame) bool {
		if f.Epoch == (log.Epoch{}) {
			return n.kept.old <= stable
		}
		return f.To <= stable
	})
}

// Keep adds a frame to those that replace the kept ones with the next snapshot. A frame that does not follow the last one begins again.
// Errors: ErrChain, kv.ErrFull, and others of kv. After an error the store is unchanged.
func (p *Replica) Keep(f *Frame) error {
	defer p.locks.take(folding).unlock()
	if err := p.whyClosed(); err != nil {
		return err
	}
	if !f.hasChain() {
		return fmt.Errorf("keep entries %d to %d: %w", f.From+1, f.To, ErrChain)
	}
	if err := p.o.Store.Room(); err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	m := p.newMix()
	k := &m.note.kept
	if f.From != k.other.to {
		p.tx.DeleteRange(frameKey(p.o.App, k.set+1, 0), frameKey(p.o.App, k.set+2, 0))
		k.other = fetched{}
	}
	k.other.bytes += m.putFrame(k.set+1, f)
	k.other.to, k.other.marks = f.To, addMark(k.other.marks, f)
	if err := m.limitKept(k.set+1, &k.other.bytes); err != nil {
		return err
	}
	p.tx.Put(noteKey(p.o.App), m.note.encode())
	defer p.locks.take(showing).unlock()
	err := p.o.Store.Apply(p.tx.Batch())
	if err == nil {
		p.replicaState = m.note
	}
	return err
}

// replaceKept makes the fetched frames the kept ones.
func (m *pullBatch) replaceKept() {
	k := &m.note.kept
	m.p.tx.DeleteRange(frameKey(m.p.o.App, k.set, 0), frameKey(m.p.o.App, k.set+1, 0))
	k.set, k.bytes, k.marks, k.other = k.set+1, k.other.bytes, k.other.marks, fetched{}
}

// Kept returns the last kept entry of each epoch, the newest epoch first.
func (p *Replica) Kept() []log.Mark {
	marks := slices.Clone(p.place().kept.marks)
	slices.Reverse(marks)
	return marks
}

// KeptFrom returns the number of the first kept frame that a log may lack. have is the last entry that it has of the log of the frames, with the
// chain up to it; 0: it has none. If the frames have another chain there, or some of an unknown epoch, it may lack all of them. Errors: those of
// kv.
func (p *Replica) KeptFrom(have uint64, chain log.Chain) (from uint64, err error) {
	common, known, first := false, true, true
	err = p.KeptAfter(0, func(n uint64, f Frame) bool {
		known = f.Epoch != (log.Epoch{})
		if at, ok := f.chainAt(have); known && ok && at == chain {
			common = true
		}
		if first = first && f.To <= have; first { // entries that were pulled again after a torn snapshot come twice
			from = n + 1
		}
		return known
	})
	if !common || !known {
		from = 0
	}
	return from, err
}

// KeptAfter yields the kept frames, starting at a number, in the order of their entries, until yield returns false. Errors: those of kv.
func (p *Replica) KeptAfter(from uint64, yield func(n uint64, f Frame) bool) error {
	return scanFrames(kv.Range, p.o.Store, p.o.App, p.place().kept.set, from, yield)
}

// NewestKept yields the kept frames, newest first, until yield returns false. Errors: those of kv.
func (p *Replica) NewestKept(yield func(n uint64, f Frame) bool) error {
	return scanFrames(kv.Backward, p.o.Store, p.o.App, p.place().kept.set, 0, yield)
}

// chainAt returns the chain of the log up to an entry of the frame, or the one before it. ok is false if the frame does not know it.
func (f *Frame) chainAt(seq uint64) (chain log.Chain, ok bool) {
	if seq < f.From || seq > f.To {
		return chain, false
	}
	rows, err := log.Rows(f.Rows)
	if err != nil || uint64(len(rows)) != f.To-f.From {
		return chain, false
	}
	chain = f.Before
	for i := range seq - f.From {
		chain = chain.Next(rows[i])
	}
	return chain, true
}

// hasChain reports whether the rows lead from Before to Chain, one for each entry.
func (f *Frame) hasChain() bool {
	chain, ok := f.chainAt(f.To)
	return ok && chain == f.Chain
}

// scanFrames yields the frames of a set, starting at number from, in the order of [kv.Range] or [kv.Backward], until yield returns false.
func scanFrames(scan func(r kv.Reader, lo, hi []byte, err *error) iter.Seq2[[]byte, []byte], r kv.Reader, app catalog.AppID, set uint32, from uint64, yield func(n uint64, f Frame) bool) (err error) {
	for key, value := range scan(r, frameKey(app, set, from), frameKey(app, set+1, 0), &err) {
		f, failed := decodeFrame(bytes.Clone(value))
		if failed != nil {
			return fmt.Errorf("kept frame: %w: %w", kv.ErrCorrupt, failed)
		}
		if !yield(binary.BigEndian.Uint64(key[len(key)-8:]), f) {
			break
		}
	}
	return err
}
