package pack

import (
	"io"
	"io/fs"

	"github.com/sightline-dev/sightline/core/blob"
)

// file is a file that is being written. It collects bytes until they fill an extent, or until Sync or
// Close. Readers do not see collected bytes.
type file struct {
	fsys   *FS
	node   *node
	buffer []byte
	closed bool
}

var _ blob.File = (*file)(nil)

// Write implements [io.Writer].
func (w *file) Write(p []byte) (int, error) {
	w.fsys.mu.Lock()
	defer w.fsys.mu.Unlock()
	if w.closed {
		return 0, &fs.PathError{Op: "write", Path: w.node.name, Err: fs.ErrClosed}
	}
	done := 0
	for done < len(p) {
		n := min(len(p)-done, w.fsys.o.Extent-len(w.buffer))
		w.buffer = append(w.buffer, p[done:done+n]...)
		done += n
		if len(w.buffer) == w.fsys.o.Extent {
			if err := w.flush(); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// flush writes the collected bytes; mu is held. For a removed file it discards them.
func (w *file) flush() error {
	if len(w.buffer) == 0 {
		return nil
	}
	if !w.node.deleted {
		if err := w.fsys.do("write", record{kind: kindData, id: w.node.id}, w.buffer); err != nil {
			return err
		}
	}
	w.buffer = w.buffer[:0]
	return nil
}

// StartSync implements [blob.File].
func (w *file) StartSync() {}

// Sync implements [blob.File].
func (w *file) Sync() error {
	w.fsys.mu.Lock()
	err := w.flush()
	seq := w.fsys.seq
	w.fsys.mu.Unlock()
	if err != nil {
		return err
	}
	return w.fsys.journal.SyncTo(seq)
}

// Close implements [io.Closer].
func (w *file) Close() error {
	w.fsys.mu.Lock()
	defer w.fsys.mu.Unlock()
	if w.closed {
		return &fs.PathError{Op: "close", Path: w.node.name, Err: fs.ErrClosed}
	}
	err := w.flush()
	w.closed, w.buffer = true, nil
	return err
}

// reader reads the content that a file had when it was opened.
type reader struct {
	fsys *FS
	name string
	rest []*extent
	at   int // offset in rest[0]
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	r.fsys.mu.Lock()
	defer r.fsys.mu.Unlock()
	if !r.fsys.readers[r] {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: fs.ErrClosed}
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	e := r.rest[0]
	p = p[:min(len(p), e.n-r.at)]
	if e.data != nil {
		copy(p, e.data[r.at:])
	} else if err := r.fsys.journal.Read(e.at+int64(r.at), p); err != nil {
		return 0, &fs.PathError{Op: "read", Path: r.name, Err: err}
	}
	if r.at += len(p); r.at == e.n {
		r.rest, r.at = r.rest[1:], 0
	}
	return len(p), nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.fsys.mu.Lock()
	defer r.fsys.mu.Unlock()
	delete(r.fsys.readers, r)
	return nil
}
