package memkv

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
)

// place identifies bytes in a journal: a body, or a part of one. It stays the same when compactions move the bytes.
type place uint32

// places maps places to the offsets of values that stay in the files and are read on request. Between begin and end it follows a
// compaction, which counts as a reader. A dropped value stays readable until the last reader has left.
//
// The caller holds a lock that it also holds during each Append.
type places struct {
	at       []int64 // offset, by place
	free     []place // places for reuse
	next     []int64 // by place: offset after the running compaction, 0: not known yet; nil without a compaction
	since    map[int64][]place
	readers  int
	dead     map[place]int    // bytes of places that were dropped while there were readers
	retained map[place][]byte // contents of those dead places that the file no longer has
}

// errUnmoved is returned if a compaction has left out a place, which is a bug in this package.
var errUnmoved = errors.New("compaction skipped a value in use")

// add returns a place for the bytes at off, in the body that was appended at body.
func (p *places) add(body, off int64) (id place) {
	if last := len(p.free) - 1; last >= 0 {
		id, p.free = p.free[last], p.free[:last]
		p.at[id] = off
	} else {
		id = place(len(p.at))
		p.at = append(p.at, off)
		if p.next != nil {
			p.next = append(p.next, 0)
		}
	}
	if p.next != nil {
		p.since[body] = append(p.since[body], id)
	}
	return id
}

// drop releases the place of n bytes for reuse.
func (p *places) drop(id place, n int) {
	if p.readers == 0 {
		p.free = append(p.free, id)
		return
	}
	if p.dead == nil {
		p.dead = map[place]int{}
	}
	p.dead[id] = n
}

// enter counts a new reader.
func (p *places) enter() { p.readers++ }

// leave ends a reader. After the last one, dropped places may be reused.
func (p *places) leave() {
	if p.readers--; p.readers > 0 {
		return
	}
	for id := range p.dead {
		p.free = append(p.free, id)
	}
	p.dead, p.retained = nil, nil
}

// where returns the offset of a place, or its bytes if the journal no longer has them.
func (p *places) where(id place) (off int64, data []byte) {
	if data, ok := p.retained[id]; ok {
		return 0, data
	}
	return p.at[id], nil
}

// begin starts a compaction.
func (p *places) begin() {
	p.enter()
	p.next, p.since = make([]int64, len(p.at)), map[int64][]place{}
}

// noteCopy sets the offset of a place after the compaction.
func (p *places) noteCopy(id place, off int64) { p.next[id] = off }

// noteMove implements [journal.Source].
func (p *places) noteMove(from, to int64) {
	for _, id := range p.since[from] {
		p.next[id] = p.at[id] + to - from
	}
}

// switchFile implements [journal.Source]. It reads values into memory that were dropped before the compaction began and that readers may
// still need.
func (p *places) switchFile(read func(off int64, p []byte) error) error {
	free := map[place]bool{}
	for _, id := range p.free {
		free[id] = true
	}
	retained := map[place][]byte{}
	for i := range p.at {
		id := place(i)
		_, was := p.retained[id]
		if p.next[id] != 0 || free[id] || was {
			continue
		}
		n, ok := p.dead[id]
		if !ok {
			return fmt.Errorf("%w: %d", errUnmoved, id)
		}
		retained[id] = make([]byte, n)
		if err := read(p.at[id], retained[id]); err != nil {
			return err
		}
	}
	for id, data := range p.retained {
		retained[id] = data
	}
	p.at, p.next, p.retained = p.next, nil, retained
	return nil
}

// end ends a compaction, whether it succeeded or failed.
func (p *places) end() {
	p.next, p.since = nil, nil
	p.leave()
}

// read fills data with the bytes of a place.
func (p *places) read(j *journal.Journal, id place, data []byte) error {
	at, retained := p.where(id)
	if retained == nil {
		return j.Read(at, data)
	}
	if len(data) != len(retained) {
		return fmt.Errorf("%w: %d of %d bytes read", kv.ErrCorrupt, len(data), len(retained))
	}
	copy(data, retained)
	return nil
}
