package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// maxBacklog is the maximum number of inputs in the queue of a backlog, and backlogReads the maximum number of inputs that a step reads.
const (
	maxBacklog   = 64
	backlogReads = 256
)

// backlog is the walk over the inputs that an earlier version of the program left for this one:
//
//	inputs below end ──StepBacklog──▶ queue ──Take──▶ tasks ──Done──▶ the result, if there is one; else nothing
//	         ▲                           │
//	         └────── next: the lowest ordinal that is not done, in a local note
//
// After a restart the walk continues at next. So it may hand out inputs of the queue again, which changes nothing.
type backlog struct {
	backlogNote
	name    string // of the note
	current uint32 // version that this program has
	isDue   func(v *partition.View, in *catalog.Input) (bool, error)
	noted   backlogNote // as stored
	at      uint32      // lowest ordinal that the walk has not read
	queue   []backlogInput
}

// backlogInput is an input of a queue with the record of its tries.
type backlogInput struct {
	ord uint32
	dot log.Dot
	retryState
}

// undatedName is the name of the note of inputs without a date.
const undatedName = "undated"

// backlogNote is the note of an application.
type backlogNote struct {
	version uint32 // version of the program's part that the walk is for
	next    uint32 // no input below it is due
	end     uint32 // inputs from here on were created by a program of this version
}

// backlogs makes the backlog of inputs that ended because an earlier version could not read their files, and that of inputs whose files an
// earlier version did not read for a date.
func (w *Worker) backlogs() {
	w.unread = backlog{name: "unread", current: raster.FormatsVersion, isDue: func(_ *partition.View, in *catalog.Input) (bool, error) {
		return in.IsUnreadable(), nil
	}}
	w.undated = backlog{name: undatedName, current: exif.Version, isDue: func(v *partition.View, in *catalog.Input) (bool, error) {
		if in.Code != catalog.InputReady {
			return false, nil
		}
		_, isDue, err := v.Taken(w.base, in)
		return isDue, err
	}}
}

func (b *backlog) key(app catalog.AppID) []byte { return app.LocalKey(b.name) }

func (n *backlogNote) encode() (b []byte) {
	for _, v := range []uint32{n.version, n.next, n.end} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func decodeBacklogNote(b []byte) (n backlogNote, err error) {
	if len(b) != 12 {
		return n, fmt.Errorf("note of a backlog of %d bytes: %w", len(b), kv.ErrCorrupt)
	}
	return backlogNote{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])}, nil
}

// load reads the note. Without a note of this program's version the walk begins, over all inputs that exist now.
func (b *backlog) load(v *partition.View) error {
	b.noted, b.queue = backlogNote{}, nil // of the time before Follow
	data, err := kv.Find(v.KV(), b.key(v.AppID()))
	if err == nil && data != nil {
		b.noted, err = decodeBacklogNote(data)
	}
	if err != nil {
		return err
	}
	b.backlogNote = b.noted
	if b.version < b.current {
		h, err := v.Header()
		if err != nil {
			return err
		}
		b.backlogNote = backlogNote{version: b.current, end: h.Next}
	}
	b.at = b.next
	return nil
}

// StepBacklog continues the walks over the inputs that an earlier version left, so that Take hands out each of them once: those that ended
// as unread before raster.FormatsVersion had its value, and those whose dates were read before exif.Version had its. It reports whether
// more is due. Only a partition with a log may call it; its replicas get the results from the log, and the dates with the derived records.
func (w *Worker) StepBacklog() (more bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	unread, err := w.step(&w.unread)
	if err != nil {
		return false, err
	}
	undated, err := w.step(&w.undated)
	return unread || undated, err
}

// step is StepBacklog for one walk.
func (w *Worker) step(b *backlog) (more bool, err error) {
	before := len(b.queue)
	if b.at < b.end && before < maxBacklog {
		v := w.partition.View()
		h, err := v.Header()
		if err == nil && h.Fold < fold.Version { // a full store delays the rules that let a result count
			return false, v.Close()
		}
		if err == nil {
			err = b.walk(v)
		}
		if err = errors.Join(err, v.Close()); err != nil {
			return false, err
		}
	}
	if b.next = b.at; len(b.queue) > 0 {
		b.next = b.queue[0].ord
	}
	if b.noted != b.backlogNote {
		note := b.backlogNote
		if err := w.partition.Tidy(func(tx *kv.Overlay) error {
			tx.Put(b.key(w.app), note.encode())
			return nil
		}); err != nil {
			return false, err
		}
		b.noted = note
	}
	return len(b.queue) > before || b.at < b.end && len(b.queue) < maxBacklog, nil
}

// walk reads further inputs and appends the due ones to the queue.
func (b *backlog) walk(v *partition.View) error {
	reads, pauses := 0, false
	var failed error
	err := v.Inputs(b.at, func(in catalog.Input) bool {
		if in.Ord >= b.end {
			return false
		}
		var isDue bool
		if isDue, failed = b.isDue(v, &in); failed != nil {
			return false
		}
		b.at, reads = in.Ord+1, reads+1
		if isDue {
			b.queue = append(b.queue, backlogInput{ord: in.Ord, dot: in.Dot})
		}
		pauses = reads == backlogReads || len(b.queue) == maxBacklog
		return !pauses
	})
	if err = errors.Join(err, failed); err == nil && !pauses {
		b.at = b.end
	}
	return err
}

// takeBacklog hands out due inputs of a backlog, if n tasks could be handed out. It leaves as many for new inputs, which must not wait for
// these tasks.
func (w *Worker) takeBacklog(b *backlog, now time.Time, n int) (tasks []Task, err error) {
	for i := range b.queue {
		if b.queue[i].handedOut {
			n--
		}
	}
	if n = (n + 1) / 2; n <= 0 || len(b.queue) == 0 {
		return nil, nil
	}
	v := w.partition.View()
	var failed error
	kept := b.queue[:0]
	for _, x := range b.queue {
		if len(tasks) < n && !x.handedOut && !now.Before(x.due) && failed == nil {
			in, err := v.InputByDot(x.dot)
			isDue := false
			if err == nil {
				isDue, err = b.isDue(v, &in)
			}
			if errors.Is(err, catalog.ErrNotFound) || err == nil && !isDue {
				continue // deleted, replaced or done meanwhile
			}
			if failed = err; err == nil {
				x.handedOut = true
				tasks = append(tasks, Task{Base: w.base, Dot: x.dot, URL: in.URL, Crop: in.Crop, Blob: in.Blob, from: b, readEXIF: readsEXIF(&in)})
			}
		}
		kept = append(kept, x)
	}
	b.queue = kept
	return tasks, errors.Join(failed, v.Close())
}

// find returns the place of an input in the queue, or −1.
func (b *backlog) find(dot log.Dot) int {
	return slices.IndexFunc(b.queue, func(x backlogInput) bool { return x.dot == dot })
}

// stateOf returns the tries of an input in the queue, or nil.
func (b *backlog) stateOf(dot log.Dot) *retryState {
	if i := b.find(dot); i >= 0 {
		return &b.queue[i].retryState
	}
	return nil
}

// remove removes an input from the queue.
func (b *backlog) remove(dot log.Dot) {
	b.queue = slices.DeleteFunc(b.queue, func(x backlogInput) bool { return x.dot == dot })
}
