package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
)

// rewrite is a running compaction.
type rewrite struct {
	tape     *tape
	source   Source
	complete bool  // all records that were live at the beginning are written
	at       int64 // offset in the current file: records from here on are still to be copied
	chain    uint32
}

// Copier writes the records of a [Source] to the new file.
type Copier struct{ j *Journal }

// Put writes a record and returns the offset that its body has after Switch.
func (c *Copier) Put(head, body []byte) (int64, error) { return c.j.rewrite.tape.append(head, body) }

// Read is [Journal.Read] at offsets from before Switch.
func (c *Copier) Read(off int64, p []byte) error { return c.j.read(off, p) }

// Copy is Put with the body of n bytes at offset off.
func (c *Copier) Copy(head []byte, off int64, n int) (int64, error) {
	body := make([]byte, n)
	if err := c.j.read(off, body); err != nil {
		return 0, err
	}
	return c.Put(head, body)
}

// CompactionDue reports whether the journal should be compacted: it is larger than twice its live records plus slack. live and slack are in
// bytes.
func (j *Journal) CompactionDue(live, slack int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	size := j.now.end()
	return j.rewrite == nil && j.err == nil && size > 2*live+slack && size > j.retrySize
}

// Compact begins to write live records to the other file, unless a compaction runs; each Append continues it. The source must show the
// moment of the call: it returns the content of all records up to now, and nothing of later ones.
func (j *Journal) Compact(source Source) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rewrite != nil || j.err != nil {
		source.Close()
		return
	}
	j.release()
	j.rewrite = &rewrite{
		tape:   newTape(j.files, j.other(), j.now.generation+1),
		source: source,
		at:     j.now.end(),
		chain:  j.now.chain,
	}
}

// step continues the compaction for about n bytes. It returns only errors that end the journal.
func (j *Journal) step(n int) error {
	for r := j.rewrite; r != nil && n > 0; r = j.rewrite {
		before := r.tape.end()
		var err error
		switch {
		case !r.complete:
			r.complete, err = r.source.Next(&Copier{j}, n)
		case r.at < j.now.end():
			err = j.copySince(n)
		default:
			return j.finish()
		}
		if err != nil {
			j.abandon()
			return j.err
		}
		n -= max(1, int(r.tape.end()-before))
	}
	return nil
}

// copySince copies about n bytes of the records that were appended since the compaction began.
func (j *Journal) copySince(n int) error {
	r := j.rewrite
	for end := r.at + int64(n); r.at < min(end, j.now.end()); {
		var f [frameBytes]byte
		if err := j.read(r.at, f[:]); err != nil {
			return err
		}
		head := int64(binary.LittleEndian.Uint32(f[:]))
		data := make([]byte, head+int64(binary.LittleEndian.Uint32(f[4:])))
		if err := j.read(r.at+frameBytes, data); err != nil {
			return err
		}
		body := data[head:]
		r.chain = chain(r.chain, f[:12], data[:head])
		if crc(body) != binary.LittleEndian.Uint32(f[8:]) || r.chain != binary.LittleEndian.Uint32(f[12:]) {
			return fmt.Errorf("%w: journal at byte %d", kv.ErrCorrupt, r.at)
		}
		to, err := r.tape.append(data[:head], body)
		if err != nil {
			return err
		}
		if len(body) > 0 {
			r.source.NoteMove(r.at+frameBytes+head, to)
		}
		r.at += frameBytes + int64(len(data))
	}
	return nil
}

// finish makes the other file the current one.
func (j *Journal) finish() error {
	r := j.rewrite
	if err := r.tape.flush(); err != nil {
		j.abandon()
		return nil
	}
	if err := r.source.Switch(j.read); err != nil {
		j.abandon()
		return j.err
	}
	old := j.now.file
	j.now, j.rewrite = r.tape, nil
	defer r.source.Close()
	if err := r.tape.seal(j.magic); err != nil {
		return j.fail(err)
	}
	j.flushed, j.synced = j.appended, j.appended
	if err := empty(j.files, old); err != nil {
		return j.fail(err)
	}
	j.occupy()
	return nil
}

// abandon gives up a compaction. The journal is due again when it has grown by a quarter.
func (j *Journal) abandon() {
	r := j.rewrite
	j.rewrite = nil
	j.retrySize = j.now.end() + j.now.end()/4
	r.source.Close()
	// A file without a header is emptied before its next use. This frees its space now.
	if err := j.files.Truncate(r.tape.file, 0); err != nil {
		j.retrySize = max(j.retrySize, 2*j.now.end())
	}
}

// Close makes all records durable and gives up a compaction. The files stay open.
func (j *Journal) Close() error {
	err := j.Sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.rewrite != nil {
		j.abandon()
	}
	if j.err == nil {
		j.err = kv.ErrClosed
	}
	return err
}
