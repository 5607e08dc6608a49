package memkv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
)

// magic begins the files of a store.
var magic = [8]byte{'S', 'L', 'S', 'T', 'O', 'R', 'E', '1'}

// compactSlack is the number of bytes by which a journal may exceed twice its live records.
const compactSlack = 4 << 20

// farBytes is the minimum size of a value that stays in the files. Folding reads smaller values, such as inputs. Larger values are for
// example the index data of a picture.
const farBytes = 512

// Files configures the storage of a store in a pair of numbered files, as in a browser's private file system. A batch is a record of a
// [journal.Journal], which each batch compacts a little. Values of MinFileValue bytes and more stay in the files, and the store reads them
// on request.
type Files struct {
	Disk         journal.Files // borrowed for as long as the store is open
	Pair         [2]int        // numbers of the two files
	MinFileValue int           // minimum bytes of a value that stays in the files; 0 means 512
	Slack        int64         // bytes by which the files may exceed twice the live records; 0 means 4 MB, below 0 means fewer
	Step         int           // see journal.Options

	// Reserve is the number of bytes that the files reserve for batches that free space; see journal.Options. Room returns kv.ErrFull once
	// other batches have used them.
	Reserve int

	Salvage *journal.Salvage // see journal.Options
}

// fileStore is the journal of a store in files, with the places of the values that stay in the files.
type fileStore struct {
	o       Files
	journal *journal.Journal
	buffers sync.Pool // of *[]byte, buffers for the reads of scans

	mu     sync.RWMutex // locked before the journal's own lock
	places places
}

// far is a value that stays in the files.
type far struct {
	place place
	n     uint32 // bytes
	crc   uint32
}

// farOp is the far value of one operation in a batch.
type farOp struct {
	far
	op int
}

// A record's head is a batch. If values of the batch stay in the record's body, the head is:
//
//	1     2, which begins no batch
//	1..5  uvarint: number of values; then for each value
//	1..5    uvarint: number of operations between that of the previous value and its own
//	1..5    uvarint: bytes of the value
//	4       CRC of the value
//	…     the batch, in which these values are empty
//
// The body has the values, one after another.
const farVersion = 2

func newFileStore(o Files) *fileStore {
	o.Slack, o.MinFileValue = cmp.Or(o.Slack, compactSlack), cmp.Or(o.MinFileValue, farBytes)
	return &fileStore{o: o}
}

// open replays the files. It calls yield with each batch, borrowed until yield returns, and with the far values of the batch.
func (f *fileStore) open(yield func(b *kv.Batch, values []farOp)) (err error) {
	o := journal.Options{Files: f.o.Disk, Pair: f.o.Pair, Magic: magic, Step: f.o.Step, Reserve: f.o.Reserve, Salvage: f.o.Salvage}
	f.journal, err = journal.Open(o, func(head []byte, body int64, n int) error {
		b, values, err := f.parse(head, body, n)
		if err != nil {
			return fmt.Errorf("%w: record of a store: %w", kv.ErrCorrupt, err)
		}
		yield(b, values)
		return nil
	})
	return err
}

// parse reads a record.
func (f *fileStore) parse(head []byte, body int64, n int) (*kv.Batch, []farOp, error) {
	var values []farOp
	at := body
	if len(head) > 0 && head[0] == farVersion {
		head = head[1:]
		number := func() (v int) {
			u, size := binary.Uvarint(head)
			if size <= 0 || u > uint64(n) {
				head = nil
				return 0
			}
			head = head[size:]
			return int(u)
		}
		count := number()
		values = make([]farOp, 0, min(count, len(head)/6))
		for op := -1; count > 0 && len(head) > 0; count-- {
			op += 1 + number()
			size := number()
			if len(head) < 4 || int64(size) > body+int64(n)-at {
				return nil, nil, fmt.Errorf("%w: value of %d bytes", kv.ErrBatch, size)
			}
			values = append(values, farOp{far{f.places.add(body, at), uint32(size), binary.LittleEndian.Uint32(head)}, op})
			head = head[4:]
			at += int64(size)
		}
	}
	if at != body+int64(n) {
		return nil, nil, fmt.Errorf("%w: %d bytes of values, of %d", kv.ErrBatch, at-body, n)
	}
	b, err := kv.BorrowBatch(head)
	if err != nil {
		return nil, nil, err
	}
	i, found := 0, 0
	for op := range b.Each {
		if found < len(values) && values[found].op == i && op.Kind == kv.KindPut && len(op.Value) == 0 {
			found++
		}
		i++
	}
	if found != len(values) {
		return nil, nil, fmt.Errorf("%w: values of %d operations, of %d", kv.ErrBatch, found, len(values))
	}
	return b, values, nil
}

// record is a batch in the form that the journal stores.
type record struct {
	head, body []byte
	batch      kv.Batch // without its far values
	values     []farOp  // without places
	n          int      // operations of the batch
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// far adds a far value for the next operation.
func (r *record) far(n, crc uint32) {
	r.values = append(r.values, farOp{far{n: n, crc: crc}, r.n})
	r.n++
}

// encode sets the head.
func (r *record) encode() {
	if len(r.values) == 0 {
		r.head = r.batch.Bytes()
		return
	}
	r.head = binary.AppendUvarint([]byte{farVersion}, uint64(len(r.values)))
	last := -1
	for _, v := range r.values {
		r.head = binary.AppendUvarint(r.head, uint64(v.op-last-1))
		r.head = binary.AppendUvarint(r.head, uint64(v.n))
		r.head = binary.LittleEndian.AppendUint32(r.head, v.crc)
		last = v.op
	}
	r.head = append(r.head, r.batch.Bytes()...)
}

// split returns a batch as a record, with its far values in the body.
func (f *fileStore) split(b *kv.Batch) *record {
	size := 0
	for op := range b.Each {
		if f.isFar(op) {
			size += len(op.Value)
		}
	}
	if size == 0 {
		return &record{head: b.Bytes()}
	}
	r := &record{body: make([]byte, 0, size)}
	for op := range b.Each {
		switch {
		case f.isFar(op):
			r.batch.Put(op.Key, nil)
			r.far(uint32(len(op.Value)), crc(op.Value))
			r.body = append(r.body, op.Value...)
			continue
		case op.Kind == kv.KindPut:
			r.batch.Put(op.Key, op.Value)
		case op.Kind == kv.KindDelete:
			r.batch.Delete(op.Key)
		case op.Kind == kv.KindDeleteRange:
			r.batch.DeleteRange(op.Key, op.Value)
		}
		r.n++
	}
	r.encode()
	return r
}

func (f *fileStore) isFar(op kv.Op) bool {
	return op.Kind == kv.KindPut && len(op.Value) >= f.o.MinFileValue
}

// append writes a batch with write, a method of the journal. It returns the far values with their places, and a function that waits until
// the batch is durable.
func (f *fileStore) append(b *kv.Batch, write func(head, body []byte) (int64, uint64, error)) (values []farOp, wait func() error, err error) {
	r := f.split(b)
	f.mu.Lock()
	defer f.mu.Unlock()
	at, seq, err := write(r.head, r.body)
	if err != nil {
		return nil, nil, err
	}
	body := at
	for i := range r.values {
		r.values[i].place = f.places.add(body, at)
		at += int64(r.values[i].n)
	}
	return r.values, func() error { return f.journal.SyncTo(seq) }, nil
}

// drop releases the place of a value that is no longer in the tree.
func (f *fileStore) drop(v far) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places.drop(v.place, int(v.n))
}

// enter and leave bracket the reading of a tree while other goroutines change the store.
func (f *fileStore) enter() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places.enter()
}

func (f *fileStore) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places.leave()
}

// errValue reports that the checksum of a value in the files is wrong.
var errValue = fmt.Errorf("%w: checksum of a value", kv.ErrCorrupt)

// read returns a far value.
func (f *fileStore) read(v far) ([]byte, error) {
	value := make([]byte, v.n)
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.places.read(f.journal, v.place, value); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	if crc(value) != v.crc {
		return nil, errValue
	}
	return value, nil
}

// due reports whether the files should be compacted. live is the size of the live records in bytes.
func (f *fileStore) due(live int64) bool { return f.journal.CompactionDue(live, f.o.Slack) }

// compact starts to write the tree live to the other file.
func (f *fileStore) compact(live *tree) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.places.begin()
	f.journal.Compact(&source{store: f, live: live})
}

// source provides a tree as batches that rebuild it. The journal calls it during an Append, under the lock of fileStore.
type source struct {
	store *fileStore
	live  *tree
	next  []byte // first key that is not written yet
}

var _ journal.Source = (*source)(nil)

// batchBytes is the approximate number of bytes of a tree in one batch.
const batchBytes = 32 << 10

// Next implements [journal.Source].
func (s *source) Next(to *journal.Copier, n int) (done bool, err error) {
	for n > 0 && !done {
		var r record
		var moved []far
		done = true
		s.live.ascend(s.next, func(key []byte, value value) bool {
			if len(r.batch.Bytes())+len(r.body) >= min(n, batchBytes) {
				s.next, done = bytes.Clone(key), false
				return false
			}
			if !value.away {
				r.batch.Put(key, value.near)
				r.n++
				return true
			}
			v := value.far
			moved = append(moved, v)
			r.batch.Put(key, nil)
			r.far(v.n, v.crc)
			at, _ := s.store.places.where(v.place)
			r.body = slices.Grow(r.body, int(v.n))
			data := r.body[len(r.body):][:v.n]
			if err = to.Read(at, data); err == nil && crc(data) != v.crc {
				err = errValue
			}
			r.body = r.body[:len(r.body)+int(v.n)]
			return err == nil
		})
		if err != nil {
			return false, err
		}
		if r.n > 0 {
			r.encode()
			at, err := to.Put(r.head, r.body)
			if err != nil {
				return false, err
			}
			for _, v := range moved {
				s.store.places.noteCopy(v.place, at)
				at += int64(v.n)
			}
		}
		n -= len(r.head) + len(r.body)
	}
	return done, nil
}

// NoteMove implements [journal.Source].
func (s *source) NoteMove(from, to int64) { s.store.places.noteMove(from, to) }

// Switch implements [journal.Source].
func (s *source) Switch(read func(int64, []byte) error) error { return s.store.places.switchFile(read) }

// Close implements [journal.Source].
func (s *source) Close() { s.store.places.end() }
