package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
)

// rewrite is a compaction under way.
type rewrite struct {
	tape   *tape
	source Source
	whole  bool  // all that was live is written
	at     int64 // in the current file: records from here on are still to be copied
	chain  uint32
}

// Copier is how a [Source] writes its records.
type Copier struct{ j *Journal }

// Put writes a record and returns the offset that its body has after Switch.
func (c *Copier) Put(head, body []byte) (int64, error) { return c.j.rewrite.tape.append(head, body) }

// Read is [Journal.Read] of the journal before Switch.
func (c *Copier) Read(off int64, p []byte) error { return c.j.read(off, p) }

// Copy is Put with the n bytes of a body that lies at off.
func (c *Copier) Copy(head []byte, off int64, n int) (int64, error) {
	body := make([]byte, n)
	if err := c.j.read(off, body); err != nil {
		return 0, err
	}
	return c.Put(head, body)
}

// Due reports whether the journal has grown to more than twice what is live in it, and slack,
// so that it should be compacted. live and slack are in bytes.
func (j *Journal) Due(live, slack int64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	size := j.now.end()
	return j.rewrite == nil && j.err == nil && size > 2*live+slack && size > j.again
}

// Compact begins to write live records to the other file, unless a compaction runs; each Append continues it. The source must be of this
// moment: it returns the content of all records up to now, and nothing of later ones.
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
		case !r.whole:
			r.whole, err = r.source.Next(&Copier{j}, n)
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

// copySince copies records that came after the compaction began, of about n bytes.
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

// finish has the other file take over.
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

// abandon gives a compaction up. It is tried again when the journal has grown by a quarter.
func (j *Journal) abandon() {
	r := j.rewrite
	j.rewrite = nil
	j.again = j.now.end() + j.now.end()/4
	r.source.Close()
	// The rest of the file has no header and is emptied later otherwise; this frees its space now.
	if err := j.files.Truncate(r.tape.file, 0); err != nil {
		j.again = max(j.again, 2*j.now.end())
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
