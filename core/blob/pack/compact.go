package pack

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/sightline-dev/sightline/core/kv/journal"
)

// compaction writes the folders and files that existed when it began, with their contents. It runs under the lock of the FS, between
// changes.
type compaction struct {
	fsys    *FS
	folders []string   // folders to write, parents first
	files   []liveFile // files to write, by id
	begun   bool       // the create record of files[0] is written
	since   map[int64]*extent
}

// liveFile is a file at the start of the compaction.
type liveFile struct {
	id      uint64
	name    string
	extents []*extent // extents to write
}

var _ journal.Source = (*compaction)(nil)

// compact begins a compaction; mu is held.
func (f *FS) compact() {
	c := &compaction{fsys: f, since: map[int64]*extent{}}
	for _, name := range slices.Sorted(maps.Keys(f.folders)) {
		if name != "." {
			c.folders = append(c.folders, name)
		}
	}
	for _, n := range f.nodes {
		c.files = append(c.files, liveFile{n.id, n.name, slices.Clone(n.extents)})
	}
	slices.SortFunc(c.files, func(a, b liveFile) int { return cmp.Compare(a.id, b.id) })
	f.compacts = c
	f.journal.Compact(c)
}

// Next implements [journal.Source].
func (c *compaction) Next(to *journal.Copier, n int) (done bool, err error) {
	for n > 0 {
		var r record
		switch {
		case len(c.folders) > 0:
			r = record{kind: kindFolder, name: c.folders[0]}
			c.folders = c.folders[1:]
		case len(c.files) == 0:
			return true, nil
		case !c.begun:
			r = record{kind: kindCreate, id: c.files[0].id, name: c.files[0].name}
			c.begun = true
		case len(c.files[0].extents) == 0:
			c.files, c.begun = c.files[1:], false
			continue
		default:
			at := &c.files[0]
			e := at.extents[0]
			r = record{kind: kindData, id: at.id}
			if e.next, err = to.Copy(r.encode(), e.at, e.n); err != nil {
				return false, err
			}
			at.extents = at.extents[1:]
			n -= e.n
			continue
		}
		if _, err := to.Put(r.encode(), nil); err != nil {
			return false, err
		}
		n -= recordBytes
	}
	return false, nil
}

// NoteMove implements [journal.Source].
func (c *compaction) NoteMove(from, to int64) {
	if e := c.since[from]; e != nil {
		e.next = to
	}
}

// errUnmoved means that a compaction omitted contents, which is a bug of this package.
var errUnmoved = errors.New("contents were not compacted")

// Switch implements [journal.Source]. It reads removed files with an open reader into memory, since the new file does not contain them.
func (c *compaction) Switch(read func(off int64, p []byte) error) error {
	f := c.fsys
	all := map[*extent]bool{}
	for _, n := range f.nodes {
		for _, e := range n.extents {
			if e.next == 0 {
				return errUnmoved
			}
			all[e] = true
		}
	}
	for r := range f.readers {
		for _, e := range r.rest {
			if e.next == 0 && e.data == nil {
				data := make([]byte, e.n)
				if err := read(e.at, data); err != nil {
					return err
				}
				e.data = data
			}
			all[e] = true
		}
	}
	for e := range all {
		e.at, e.next = e.next, 0
	}
	return nil
}

// Close implements [journal.Source].
func (c *compaction) Close() {
	for _, n := range c.fsys.nodes {
		for _, e := range n.extents {
			e.next = 0
		}
	}
	for r := range c.fsys.readers {
		for _, e := range r.rest {
			e.next = 0
		}
	}
	c.fsys.compacts = nil
}
