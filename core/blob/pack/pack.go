// Package pack is a [blob.FS] in a pair of numbered files. It is for a host such as a browser, whose files can be written at any offset
// but which has no folders.
//
//	create 7 blobs.new/0 │ data 7 ……… │ rename → blobs/3f/3f9a… │ remove … │ …   one journal
//	                            ▲
//	folders ── name ── node ── extents          in memory, read from the journal when it is opened
//
// Every change is a record of a [journal.Journal], in the order of the changes. So a crash keeps a prefix of all changes, which is
// more than a file system promises. Contents are the bodies of records. The pack reads them from the file on request, so opening it does
// not read them. A compaction of the journal drops removed and replaced files. The idea is the log-structured file system of
// Rosenblum and Ousterhout (1992).
//
// The package does not check contents, since its callers know the hashes of their pictures.
package pack

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
)

// magic is the start of each file of a pack.
var magic = [8]byte{'S', 'L', 'B', 'L', 'O', 'B', 'S', '1'}

// Options are the settings of a pack.
type Options struct {
	Files journal.Files // borrowed while the pack is open
	Pair  [2]int        // numbers of the pack's two files

	Extent int   // maximum bytes of a file's contents in one record; 0 means 1 MB
	Slack  int64 // bytes by which the files may exceed twice the live data; 0 means 16 MB, below 0 means fewer
	Step   int   // see journal.Options

	Salvage *journal.Salvage // see journal.Options
}

// FS is an open pack. It is safe for concurrent use.
type FS struct {
	o Options

	mu       sync.Mutex
	journal  *journal.Journal
	folders  map[string]map[string]*node // nodes by folder and name; nil for a folder in a folder
	nodes    map[uint64]*node
	last     uint64 // id of the newest node
	seq      uint64 // number of the newest record
	live     int64  // estimated bytes of the records of all live data
	readers  map[*reader]bool
	compacts *compaction // the running compaction, or nil
}

var _ blob.FS = (*FS)(nil)

// node is a file. A rename does not change it.
type node struct {
	id      uint64
	name    string
	extents []*extent
	size    int64
	deleted bool
}

// extent is a part of a file's contents.
type extent struct {
	at   int64 // offset in the journal
	n    int
	next int64  // offset after the running compaction; 0: not yet known
	data []byte // contents of a removed file that a reader still reads
}

// Open opens a pack. Empty files make an empty pack. Open returns kv.ErrCorrupt, kv.ErrForeign and
// errors of the files.
func Open(o Options) (*FS, error) {
	if o.Extent == 0 {
		o.Extent = 1 << 20
	}
	if o.Slack == 0 {
		o.Slack = 16 << 20
	}
	f := &FS{
		o: o, folders: map[string]map[string]*node{".": {}}, nodes: map[uint64]*node{}, readers: map[*reader]bool{},
	}
	var err error
	j := journal.Options{Files: o.Files, Pair: o.Pair, Magic: magic, Step: o.Step, Salvage: o.Salvage}
	f.journal, err = journal.Open(j, func(head []byte, body int64, n int) error {
		r, ok := parse(head)
		if !ok || n > 0 && r.kind != kindData || f.check(&r) != nil {
			return fmt.Errorf("%w: record %.40x of a pack", kv.ErrCorrupt, head)
		}
		f.apply(&r, body, n)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return f, nil
}

// Close syncs all changes. The caller must not use open files after it.
func (f *FS) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.journal.Close()
}

// do makes a change: it checks the change, writes its record, and only then applies it.
func (f *FS) do(op string, r record, body []byte) error {
	if _, ok := parse(r.encode()); !ok {
		return &fs.PathError{Op: op, Path: r.name, Err: fs.ErrInvalid}
	}
	if err := f.check(&r); err != nil {
		return &fs.PathError{Op: op, Path: r.name, Err: err}
	}
	at, seq, err := f.journal.Append(r.encode(), body)
	if err != nil {
		return &fs.PathError{Op: op, Path: r.name, Err: err}
	}
	f.seq = seq
	f.apply(&r, at, len(body))
	if f.journal.CompactionDue(f.live, f.o.Slack) {
		f.compact()
	}
	return nil
}

// check returns the reason why a change is invalid, or nil.
func (f *FS) check(r *record) error {
	find := func(name string) (n *node, ok bool) {
		n, ok = f.folders[path.Dir(name)][path.Base(name)]
		return n, ok
	}
	switch n, exists := find(r.name); r.kind {
	case kindCreate:
		switch {
		case exists || r.name == "." || r.id <= f.last:
			return fs.ErrExist
		case f.folders[path.Dir(r.name)] == nil:
			return fs.ErrNotExist
		}
	case kindData:
		if f.nodes[r.id] == nil {
			return fs.ErrNotExist
		}
	case kindRename:
		to, replaces := find(r.to)
		switch {
		case n == nil || f.folders[path.Dir(r.to)] == nil:
			return fs.ErrNotExist
		case replaces && to == nil || r.to == ".":
			return fs.ErrExist // a folder
		}
	case kindRemove:
		if n == nil {
			return fs.ErrNotExist
		}
	case kindFolder:
		switch {
		case exists || r.name == ".":
			return fs.ErrExist
		case f.folders[path.Dir(r.name)] == nil:
			return fs.ErrNotExist
		}
	}
	return nil
}

// recordBytes is an estimate of the size of a record with a name, without its body.
const recordBytes = 120

// apply makes a checked change in memory. at and n are the offset and the length of the record's body in the journal.
func (f *FS) apply(r *record, at int64, n int) {
	switch r.kind {
	case kindCreate:
		newNode := &node{id: r.id, name: r.name}
		f.nodes[r.id], f.last = newNode, r.id
		f.put(newNode)
		f.live += recordBytes
	case kindData:
		to, e := f.nodes[r.id], &extent{at: at, n: n}
		to.extents = append(to.extents, e)
		to.size += int64(n)
		f.live += recordBytes + int64(n)
		if f.compacts != nil {
			f.compacts.since[at] = e
		}
	case kindRename:
		moved := f.take(r.name)
		if old := f.take(r.to); old != nil {
			f.forget(old)
		}
		moved.name = r.to
		f.put(moved)
	case kindRemove:
		f.forget(f.take(r.name))
	case kindFolder:
		f.folders[path.Dir(r.name)][path.Base(r.name)] = nil
		f.folders[r.name] = map[string]*node{}
		f.live += recordBytes
	}
}

func (f *FS) put(n *node) { f.folders[path.Dir(n.name)][path.Base(n.name)] = n }

// take removes a file from its folder and returns it.
func (f *FS) take(name string) *node {
	folder, base := f.folders[path.Dir(name)], path.Base(name)
	n := folder[base]
	delete(folder, base)
	return n
}

// forget removes a file that has no name from memory.
func (f *FS) forget(n *node) {
	n.deleted = true
	delete(f.nodes, n.id)
	f.live -= n.size + recordBytes*int64(1+len(n.extents))
}

// Create implements [blob.FS].
func (f *FS) Create(name string) (blob.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := record{kind: kindCreate, id: f.last + 1, name: name}
	if err := f.do("create", r, nil); err != nil {
		return nil, err
	}
	return &file{fsys: f, node: f.nodes[r.id]}, nil
}

// Rename implements [blob.FS].
func (f *FS) Rename(from, to string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.do("rename", record{kind: kindRename, name: from, to: to}, nil)
}

// Remove implements [blob.FS].
func (f *FS) Remove(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.do("remove", record{kind: kindRemove, name: name}, nil)
}

// MkdirAll implements [blob.FS].
func (f *FS) MkdirAll(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrInvalid}
	}
	var missing []string
	for at := name; f.folders[at] == nil; at = path.Dir(at) {
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		if err := f.do("mkdir", record{kind: kindFolder, name: at}, nil); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir implements [blob.FS]. It syncs all changes, in every folder.
func (f *FS) SyncDir(name string) error {
	f.mu.Lock()
	_, ok := f.folders[name]
	seq := f.seq
	f.mu.Unlock()
	if !ok {
		return &fs.PathError{Op: "syncdir", Path: name, Err: fs.ErrNotExist}
	}
	return f.journal.SyncTo(seq)
}

// ReadDir implements [blob.FS].
func (f *FS) ReadDir(name string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	folder, ok := f.folders[name]
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	names := make([]string, 0, len(folder))
	for base := range folder {
		names = append(names, base)
	}
	return names, nil
}

// find returns the file with a name; mu is held.
func (f *FS) find(op, name string) (*node, error) {
	if n := f.folders[path.Dir(name)][path.Base(name)]; n != nil && fs.ValidPath(name) {
		return n, nil
	}
	return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// Size implements [blob.FS].
func (f *FS) Size(name string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("size", name)
	if err != nil {
		return 0, err
	}
	return n.size, nil
}

// Open implements [blob.FS].
func (f *FS) Open(name string) (io.ReadCloser, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	r := &reader{fsys: f, name: name, rest: slices.Clone(n.extents)}
	f.readers[r] = true
	return r, nil
}

// Kinds of record.
const (
	kindCreate = 1 + iota // id, name
	kindData              // id; the body is the next part of the file's contents
	kindRename            // length of the name in bytes, name, to
	kindRemove            // name
	kindFolder            // name
)

// record is a change. Numbers are uvarints.
type record struct {
	kind     byte
	id       uint64
	name, to string
}

func (r *record) encode() []byte {
	b := []byte{r.kind}
	switch r.kind {
	case kindCreate, kindData:
		b = binary.AppendUvarint(b, r.id)
	case kindRename:
		b = binary.AppendUvarint(b, uint64(len(r.name)))
	}
	return append(append(b, r.name...), r.to...)
}

// parse decodes the head of a record. ok is false for an invalid head.
func parse(head []byte) (r record, ok bool) {
	if len(head) == 0 || head[0] < kindCreate || head[0] > kindFolder {
		return r, false
	}
	r.kind = head[0]
	rest := head[1:]
	switch r.kind {
	case kindCreate, kindData:
		id, n := binary.Uvarint(rest)
		if n <= 0 {
			return r, false
		}
		r.id, rest = id, rest[n:]
	case kindRename:
		size, n := binary.Uvarint(rest)
		if n <= 0 || size > uint64(len(rest)-n) {
			return r, false
		}
		r.name, rest = string(rest[n:][:size]), rest[n+int(size):]
		r.to = string(rest)
		return r, fs.ValidPath(r.name) && fs.ValidPath(r.to)
	}
	r.name = string(rest)
	return r, (r.kind == kindData) == (r.name == "") && (r.name == "" || fs.ValidPath(r.name))
}
