// Package journal stores records in order in a pair of files, so that they survive a crash at any byte. It is the log of a log-structured
// store. Its user defines the meaning of records.
//
//	Append ──▶ buffer ──▶ file 0   header │ frame │ frame │ fra…
//	SyncTo ───────────────▶ │ sync            └ checked when it is opened: a torn tail is dropped
//	                        ▼
//	Compact ─▶ live records, then those written since ──▶ file 1, which takes over
//
// README.md describes the bytes, the possible results of a crash, and why no synced record is lost without an error. The ideas are those
// of LevelDB's log (frames whose checksums end a replay) and of two files in turn as in Bitcask's merge. Marks of the synced length
// distinguish damage from a torn tail.
//
// The package has no names and no index, and starts no goroutine: each Append continues a compaction.
package journal

import (
	"errors"
	"fmt"
	"sync"

	"github.com/sightline-dev/sightline/core/kv"
)

// Files gives access to a host's numbered files. The journal makes one call at a time.
type Files interface {
	// Size returns the size of a file in bytes, 0 if the file was never written.
	Size(file int) (int64, error)
	// Read fills p with the bytes at off, or returns an error.
	Read(file int, off int64, p []byte) error
	// Write writes p at off, which is at most the file's size. After an error any part of p may be written. It returns kv.ErrFull if there
	// is no space.
	Write(file int, off int64, p []byte) error
	Truncate(file int, size int64) error
	// Sync makes a file durable. A crash may keep any part of the changes since the last Sync.
	Sync(file int) error
}

// Source provides the live records of a compaction. Append calls its methods, under the journal's lock. They may use the journal only
// through their arguments.
type Source interface {
	// Next writes records of about n bytes that were live when the compaction began, and reports whether those were the last.
	Next(to *Copier, n int) (done bool, err error)

	// NoteMove reports that the new file also stores the body at from, which was appended since the compaction began, at to.
	NoteMove(from, to int64)

	// Switch is called when the new file is complete: it has the records that Next wrote and those appended since. Their bodies are at the
	// offsets that the Copier returned and NoteMove reported. Until Switch returns, read reads bodies at their old offsets. If Switch
	// returns an error, the journal keeps the old file.
	Switch(read func(off int64, p []byte) error) error

	// Close is called once the compaction has ended, successful or not.
	Close()
}

// Options are the files and settings of a journal.
type Options struct {
	Files Files   // borrowed for as long as the journal is used
	Pair  [2]int  // numbers of the journal's two files
	Magic [8]byte // identifies the owner of the records
	Step  int     // bytes of a compaction that go with each record, besides twice the record's own; 0 means 64 kB

	// Reserve is the number of bytes that the journal occupies in the file that is not current. The journal gives them up for a record that
	// finds no space. Room then returns an error until the journal has them again. So if a user calls Room before records that can wait,
	// the other records have space.
	Reserve int

	Salvage *Salvage // nil: damage is an error
}

// Salvage makes Open cut the journal where it is damaged. Open sets the other fields, and cuts nothing if it returns an error.
type Salvage struct {
	// Any cuts at any damage, also of a header. If it is false, damage of a record that a compaction wrote is an error, since the records
	// before it were never the journal's content. It is also an error if no record is left.
	Any bool

	Records int   // number of records before the damage
	Lost    int64 // number of synced bytes that were cut
}

// Journal is a pair of files. It is safe for concurrent use.
type Journal struct {
	mu        sync.Mutex
	files     Files
	pair      [2]int
	magic     [8]byte
	pace      int
	now       *tape
	appended  uint64 // number of records since Open
	flushed   uint64 // number of the last record in the file
	synced    uint64 // number of the last record that survives a crash
	rewrite   *rewrite
	reserve   int   // bytes, see Options
	reserved  bool  // the reserve is in the other file
	retrySize int64 // size at which a failed compaction is tried again
	err       error // error of every further write
}

// Yield receives each record from [Open]: its head, borrowed until Yield returns, and the offset of its body of n bytes.
type Yield func(head []byte, body int64, n int) error

// Open opens the journal in a pair of files and replays it. Empty files become a new journal. Errors: kv.ErrCorrupt for damage,
// kv.ErrForeign for files of another owner, and the errors of the files and of yield.
func Open(o Options, yield Yield) (*Journal, error) {
	if o.Step == 0 {
		o.Step = 64 << 10
	}
	j := &Journal{files: o.Files, pair: o.Pair, magic: o.Magic, pace: o.Step, reserve: o.Reserve}
	if err := j.choose(o.Salvage); err != nil {
		return nil, err
	}
	if err := j.now.replay(yield, o.Salvage); err != nil {
		return nil, err
	}
	j.occupy()
	return j, nil
}

// occupy writes the reserve, if there is space and nothing else uses the other file.
func (j *Journal) occupy() {
	if j.reserve == 0 || j.reserved || j.rewrite != nil {
		return
	}
	if j.reserved = j.files.Write(j.other(), 0, make([]byte, j.reserve)) == nil; !j.reserved {
		_ = j.files.Truncate(j.other(), 0) // the rest has no header; a later compaction empties the file
	}
}

// release gives up the reserve. It reports whether there was one.
func (j *Journal) release() bool {
	if !j.reserved {
		return false
	}
	j.reserved = false
	_ = j.files.Truncate(j.other(), 0) // as in occupy
	return true
}

// Room returns kv.ErrFull while the journal has given up its reserve and finds no space to occupy it again.
func (j *Journal) Room() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if j.occupy(); j.reserve > 0 && !j.reserved && j.rewrite == nil {
		return fmt.Errorf("journal: %w: no space for a reserve of %d bytes", kv.ErrFull, j.reserve)
	}
	return nil
}

// choose finds the current file, creates it if there is none, and empties the other file.
func (j *Journal) choose(s *Salvage) error {
	var tapes [2]*tape
	frames := false   // a file has more than a header
	total := int64(0) // bytes of both files
	for i, file := range j.pair {
		size, err := j.files.Size(file)
		if err != nil {
			return err
		}
		frames = frames || size > headerBytes
		total += size
		if tapes[i], err = readHeader(j.files, file, size, j.magic); err != nil {
			return err
		}
	}
	a, b := tapes[0], tapes[1]
	switch {
	case a == nil && b == nil && frames && s != nil && s.Any:
		s.Lost = total
		return j.create()
	case a == nil && b == nil && frames:
		return fmt.Errorf("%w: journal without a header", kv.ErrCorrupt)
	case a == nil && b == nil:
		return j.create()
	case a != nil && (b == nil || a.generation > b.generation):
		j.now = a
	default:
		j.now = b
	}
	return empty(j.files, j.other())
}

// create writes the first file. Without a header no record was ever acknowledged, so nothing is lost.
func (j *Journal) create() error {
	t := newTape(j.files, j.pair[0], 1)
	if err := errors.Join(empty(j.files, j.pair[0]), empty(j.files, j.pair[1])); err != nil {
		return err
	}
	if err := t.seal(j.magic); err != nil {
		return err
	}
	j.now = t
	return nil
}

// empty empties a file and makes that durable.
func empty(files Files, file int) error {
	size, err := files.Size(file)
	if err != nil || size == 0 {
		return err
	}
	if err := files.Truncate(file, 0); err != nil {
		return err
	}
	return files.Sync(file)
}

func (j *Journal) other() int { return j.pair[0] + j.pair[1] - j.now.file }

// Append adds a record. It borrows head and body until it returns; one of them may be empty. It returns the offset of the body and the
// record's number, for SyncTo. If the files return kv.ErrFull, nothing of the record remains, and a later record may find space. After any
// other error, which wraps kv.ErrFailed, the journal accepts no more records.
func (j *Journal) Append(head, body []byte) (at int64, seq uint64, err error) {
	return j.add(head, body, false)
}

// Write is Append, but the record and all before it are in the file when Write returns. SyncTo then needs no space.
func (j *Journal) Write(head, body []byte) (at int64, seq uint64, err error) {
	return j.add(head, body, true)
}

func (j *Journal) add(head, body []byte, through bool) (at int64, seq uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return 0, 0, j.err
	}
	// Before the record is written, so that NoteMove does not report its offset before Append returns it.
	if err := j.step(2*(len(head)+len(body)) + j.pace); err != nil {
		return 0, 0, err
	}
	for {
		end, chain := j.now.end(), j.now.chain
		if at, err = j.now.append(head, body); err == nil && through {
			err = j.now.flush()
		}
		if err == nil {
			break
		}
		if !errors.Is(err, kv.ErrFull) {
			return 0, 0, j.fail(err)
		}
		if err := j.now.rewind(end, chain); err != nil {
			return 0, 0, j.fail(err)
		}
		if j.rewrite != nil {
			j.abandon() // the record may fit into the freed space
			continue
		}
		if !j.release() {
			return 0, 0, fmt.Errorf("journal: %w", err)
		}
	}
	if j.appended++; len(j.now.buffer) == 0 {
		j.flushed = j.appended
	}
	return at, j.appended, nil
}

// SyncTo returns once the record with number seq, and all before it, survive a crash. It also syncs records that were appended meanwhile.
// After kv.ErrFull a later call may succeed.
func (j *Journal) SyncTo(seq uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.synced >= seq {
		return nil
	}
	if j.err != nil {
		return j.err
	}
	err := j.now.flush()
	if errors.Is(err, kv.ErrFull) && j.release() {
		err = j.now.flush()
	}
	switch {
	case err == nil:
		j.flushed = j.appended
	case !errors.Is(err, kv.ErrFull):
		return j.fail(err)
	case j.flushed < seq:
		return fmt.Errorf("journal: %w", err)
	}
	if err := j.now.sync(); err != nil {
		return j.fail(err)
	}
	j.synced = j.flushed
	return nil
}

// Sync is SyncTo for all records.
func (j *Journal) Sync() error {
	j.mu.Lock()
	seq := j.appended
	j.mu.Unlock()
	return j.SyncTo(seq)
}

// Read fills p with bytes of a body, starting at offset off of the journal.
func (j *Journal) Read(off int64, p []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.read(off, p)
}

func (j *Journal) read(off int64, p []byte) error {
	if off < headerBytes || off+int64(len(p)) > j.now.end() {
		return fmt.Errorf("%w: journal read of %d bytes at %d of %d", kv.ErrCorrupt, len(p), off, j.now.end())
	}
	if over := off + int64(len(p)) - j.now.written; over > 0 { // not written yet
		within := max(0, int64(len(p))-over)
		copy(p[within:], j.now.buffer[max(0, off-j.now.written):])
		p = p[:within]
	}
	if len(p) == 0 {
		return nil
	}
	return j.files.Read(j.now.file, off, p)
}

// fail stops the journal for good.
func (j *Journal) fail(err error) error {
	j.err = fmt.Errorf("%w: journal: %w", kv.ErrFailed, err)
	return j.err
}
