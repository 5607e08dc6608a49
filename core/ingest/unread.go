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
)

// maxUnread is the maximum number of unread inputs in the queue, and unreadReads the maximum number of inputs that StepUnread reads.
const (
	maxUnread   = 64
	unreadReads = 256
)

// unread is the walk over the inputs that ended as unread in an earlier version of the program:
//
//	inputs below end ──StepUnread──▶ queue ──Take──▶ tasks ──Done──▶ InputFetched, if the picture could be read; else nothing
//	         ▲                         │
//	         └──── next: the lowest ordinal that is not done, in a local note
//
// After a restart the walk continues at next. So it may download inputs of the queue again, which changes nothing.
type unread struct {
	unreadNote
	noted unreadNote // as stored
	at    uint32     // lowest ordinal that the walk has not read
	queue []unreadInput
}

// unreadInput is an unread input with the record of its tries.
type unreadInput struct {
	ord uint32
	dot log.Dot
	retryState
}

// unreadNote is the note of an application.
type unreadNote struct {
	formats uint32 // value of raster.Formats
	next    uint32 // no input below it is due
	end     uint32 // inputs from here on were created by a program with these formats
}

func unreadKey(app catalog.AppID) []byte { return app.LocalKey("unread") }

func (n *unreadNote) encode() (b []byte) {
	for _, v := range []uint32{n.formats, n.next, n.end} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func decodeUnreadNote(b []byte) (n unreadNote, err error) {
	if len(b) != 12 {
		return n, fmt.Errorf("note of unread inputs of %d bytes: %w", len(b), kv.ErrCorrupt)
	}
	return unreadNote{binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])}, nil
}

// load reads the note. Without a note of this program's formats the walk begins, over all inputs that exist now.
func (u *unread) load(v *partition.View) error {
	data, err := kv.Find(v.KV(), unreadKey(v.AppID()))
	if err == nil && data != nil {
		u.noted, err = decodeUnreadNote(data)
	}
	if err != nil {
		return err
	}
	u.unreadNote = u.noted
	if u.formats < raster.Formats {
		h, err := v.Header()
		if err != nil {
			return err
		}
		u.unreadNote = unreadNote{formats: raster.Formats, end: h.Next}
	}
	u.at = u.next
	return nil
}

// StepUnread continues the walk over the inputs that ended as unread before raster.Formats had its value, so that Take hands out each of
// them once more. It reports whether more is due. Only a partition with a log may call it; its replicas get the results from the log.
func (w *Worker) StepUnread() (more bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := &w.unread
	before := len(u.queue)
	if u.at < u.end && before < maxUnread {
		v := w.partition.View()
		h, err := v.Header()
		if err == nil && h.Fold < fold.Version { // a full store delays the rules that let a result count
			return false, v.Close()
		}
		if err == nil {
			err = u.walk(v)
		}
		if err = errors.Join(err, v.Close()); err != nil {
			return false, err
		}
	}
	if u.next = u.at; len(u.queue) > 0 {
		u.next = u.queue[0].ord
	}
	if u.noted != u.unreadNote {
		note := u.unreadNote
		if err := w.partition.Tidy(func(tx *kv.Overlay) error {
			tx.Put(unreadKey(w.app), note.encode())
			return nil
		}); err != nil {
			return false, err
		}
		u.noted = note
	}
	return len(u.queue) > before || u.at < u.end && len(u.queue) < maxUnread, nil
}

// walk reads further inputs and appends the unread ones to the queue.
func (u *unread) walk(v *partition.View) error {
	reads, pauses := 0, false
	err := v.Inputs(u.at, func(in catalog.Input) bool {
		if in.Ord >= u.end {
			return false
		}
		u.at, reads = in.Ord+1, reads+1
		if in.IsUnread() {
			u.queue = append(u.queue, unreadInput{ord: in.Ord, dot: in.Dot})
		}
		pauses = reads == unreadReads || len(u.queue) == maxUnread
		return !pauses
	})
	if err == nil && !pauses {
		u.at = u.end
	}
	return err
}

// takeUnread hands out due unread inputs, if n tasks could be handed out. It leaves as many for new inputs, which must not wait for these
// downloads.
func (w *Worker) takeUnread(now time.Time, n int) (tasks []Task, err error) {
	u := &w.unread
	for i := range u.queue {
		if u.queue[i].handedOut {
			n--
		}
	}
	if n = (n + 1) / 2; n <= 0 || len(u.queue) == 0 {
		return nil, nil
	}
	v := w.partition.View()
	var failed error
	kept := u.queue[:0]
	for _, x := range u.queue {
		if len(tasks) < n && !x.handedOut && !now.Before(x.due) && failed == nil {
			in, err := v.InputByDot(x.dot)
			if errors.Is(err, catalog.ErrNotFound) || err == nil && !in.IsUnread() {
				continue // deleted or replaced meanwhile
			}
			if failed = err; err == nil {
				x.handedOut = true
				tasks = append(tasks, Task{Base: w.base, Dot: x.dot, URL: in.URL, Crop: in.Crop, again: true})
			}
		}
		kept = append(kept, x)
	}
	u.queue = kept
	return tasks, errors.Join(failed, v.Close())
}

// find returns the place of an input in the queue, or −1.
func (u *unread) find(dot log.Dot) int {
	return slices.IndexFunc(u.queue, func(x unreadInput) bool { return x.dot == dot })
}

// stateOf returns the tries of an input in the queue, or nil.
func (u *unread) stateOf(dot log.Dot) *retryState {
	if i := u.find(dot); i >= 0 {
		return &u.queue[i].retryState
	}
	return nil
}

// remove removes an input from the queue.
func (u *unread) remove(dot log.Dot) {
	u.queue = slices.DeleteFunc(u.queue, func(x unreadInput) bool { return x.dot == dot })
}
