package memkv

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
)

// place is the number of bytes that lie in a journal: a body, or a part of one. It is the same wherever compactions
// move them.
type place uint32

// places are the offsets of values that stay in the files and are read on request. They follow a compaction between begin and end, which
// count as a reader. A dropped value stays readable until the last of the present readers leaves.
//
// A lock that is also held in each Append guards them.
type places struct {
	at       []int64 // by place
	free     []place // to be given again
	next     []int64 // by place: where it will lie after the compaction under way, 0 as long as that is not known; nil without
	since    map[int64][]place
	readers  int
	dead     map[place]int    // dropped while there were readers: its bytes
	retained map[place][]byte // those of dead that are no more in the file
}

// errUnmoved says that a compaction has left out a place. It is a mistake of ours.
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

// drop takes back the place of n bytes.
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

// enter notes that a reader begins.
func (p *places) enter() { p.readers++ }

// leave says that somebody has read.
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

// begin is called with the start of a compaction.
func (p *places) begin() {
	p.enter()
	p.next, p.since = make([]int64, len(p.at)), map[int64][]place{}
}

// noteCopy notes the offset of a place after the compaction.
func (p *places) noteCopy(id place, off int64) { p.next[id] = off }

// noteMove implements [journal.Source].
func (p *places) noteMove(from, to int64) {
	for _, id := range p.since[from] {
		p.next[id] = p.at[id] + to - from
	}
}

// switchFile implements [journal.Source]: what was dropped before the compaction began, and is still read, is read now.
func (p *places) switchFile(read func(off int64, p []byte) error) error {
	free := map[place]bool{}
	for _, id := range p.free {
		free[id] = true
	}
	kept := map[place][]byte{}
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
		kept[id] = make([]byte, n)
		if err := read(p.at[id], kept[id]); err != nil {
			return err
		}
	}
	for id, data := range p.retained {
		kept[id] = data
	}
	p.at, p.next, p.retained = p.next, nil, kept
	return nil
}

// end is called when the compaction has ended, whether well or not.
func (p *places) end() {
	p.next, p.since = nil, nil
	p.leave()
}

// read fills data from a place.
func (p *places) read(j *journal.Journal, id place, data []byte) error {
	at, kept := p.where(id)
	if kept == nil {
		return j.Read(at, data)
	}
	if len(data) != len(kept) {
		return fmt.Errorf("%w: %d of %d bytes read", kv.ErrCorrupt, len(data), len(kept))
	}
	copy(data, kept)
	return nil
}
