package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Stage adds the index changes of a fold's outcome to the batch that changes the state. tx shows the state after the outcome, derived
// records included. The caller must call ConfirmStage or Discard afterwards, after an error, too.
func (x *Index) Stage(tx *kv.Overlay, out *fold.Outcome) error {
	x.lockStage()
	if out.DeletedAll {
		x.reset = true
		kv.DeletePrefix(tx, x.prefix)
	}
	if out.DeletedAll || len(out.Changes) > 0 {
		tx.Put(x.section(sectionFormat), []byte{format})
	}
	s := x.newStage(tx)
	s.fresh = &x.newest
	for _, c := range net(out.Changes) {
		if err := s.change(c.Before, c.After); err != nil {
			return err
		}
	}
	s.flush()
	x.noteTouched(s)
	return s.failed
}

// noteTouched adds the blocks that a stage has touched to those of the batch.
func (x *Index) noteTouched(s *stage) {
	for sp, blocks := range s.touched {
		if all := x.touched[sp]; all != nil {
			all.Or(blocks)
		} else {
			x.touched[sp] = blocks
		}
	}
}

func (x *Index) lockStage() {
	if !x.staged {
		x.commit.Lock()
		x.staged = true
	}
}

// ConfirmStage ends the last calls of Stage. The caller calls it once their batch is visible.
func (x *Index) ConfirmStage() {
	if !x.staged {
		return
	}
	for sp, blocks := range x.touched {
		sp.due.add(blocks)
	}
	if x.reset {
		x.forgetMemory()
	}
	x.Discard()
}

// DropCaches empties the caches in memory. The caller has loaded a snapshot of another log, in which ordinals belong to other inputs.
func (x *Index) DropCaches() {
	x.commit.Lock()
	defer x.commit.Unlock()
	x.forgetMemory()
}

// forgetMemory empties the caches in memory, and invalidates a running step.
func (x *Index) forgetMemory() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.epoch++
	x.heads.reset()
	x.dates = newColumnCache[uint32]()
	for _, s := range x.spaces {
		s.graph.Store(nil)
		s.links = nil
		s.due.add(nil)
	}
}

// Discard ends the last calls of Stage if their batch was given up.
func (x *Index) Discard() {
	if x.staged {
		x.staged, x.reset = false, false
		clear(x.touched)
		x.commit.Unlock()
	}
}

// net merges the changes of each input into one.
func net(changes []fold.Change) []fold.Change {
	out := make([]fold.Change, 0, len(changes))
	var at map[uint32]int // index in out of each input; nil while all inputs are new and in ascending order
	for i, c := range changes {
		ord := ordOf(c)
		if at == nil && (c.Before != nil || i > 0 && ordOf(out[i-1]) >= ord) {
			at = make(map[uint32]int, len(changes))
			for j := range out {
				at[ordOf(out[j])] = j
			}
		}
		if j, ok := at[ord]; ok {
			out[j].After = c.After
			continue
		}
		if at != nil {
			at[ord] = len(out)
		}
		out = append(out, c)
	}
	return slices.DeleteFunc(out, func(c fold.Change) bool { return c.Before == nil && c.After == nil })
}

func ordOf(c fold.Change) uint32 {
	if c.After != nil {
		return c.After.Ord
	}
	return c.Before.Ord
}

// stage holds the chunks that a run of changes touches.
type stage struct {
	x       *Index
	tx      *kv.Overlay
	chunks  map[spaceChunk]*members
	places  map[uint32]*places
	terms   map[termChunk]*members     // of postings by term
	slab    []members                  // memory for new members
	fresh   *fresh                     // terms of the newest chunk; nil if unknown
	seq     map[*space]uint64          // number of each space's last intent
	touched map[*space]*roaring.Bitmap // blocks whose analysed inputs change
	derived int                        // whether derived records exist: 1 yes, −1 no, 0 not checked yet
	failed  error

	meta     document
	labels   map[string]term // terms of concepts, without a kind
	old, now []term          // scratch
	scratch  []byte
	value    []byte
}

// termChunk names a chunk of a term's posting.
type termChunk struct {
	term   term
	number uint32
}

func (x *Index) newStage(tx *kv.Overlay) *stage {
	return &stage{
		x: x, tx: tx, chunks: map[spaceChunk]*members{}, terms: map[termChunk]*members{}, places: map[uint32]*places{}, seq: map[*space]uint64{},
		labels: map[string]term{}, touched: map[*space]*roaring.Bitmap{},
	}
}

// set adds an ordinal to a posting of a space, or removes it. The posting is that of a concept or, if concept is analysed, of the analysed
// inputs.
func (s *stage) set(sp *space, concept int, ord uint32, in bool) {
	at := spaceChunk{sp, concept, ord >> chunkBits}
	m := s.chunks[at]
	if m == nil {
		m = s.read(at.key())
		s.chunks[at] = m
	}
	m.put(ord, in)
}

// setTerm adds an ordinal to a term's posting, or removes it.
func (s *stage) setTerm(t term, ord uint32, in bool) {
	s.term(t, ord>>chunkBits).put(ord, in)
}

// term returns a chunk of a term's posting, for changes.
func (s *stage) term(t term, number uint32) *members {
	at := termChunk{t, number}
	if m := s.terms[at]; m != nil {
		return m
	}
	f := s.fresh
	known := f != nil && f.known && f.number == number
	var m *members
	if known && !f.terms.Has(t[:]) {
		f.terms.Add(t[:])
		m = s.none()
	} else {
		m = s.read(s.termKey(at))
	}
	s.terms[at] = m
	return m
}

// termKey returns the key of a chunk, valid until the next call.
func (s *stage) termKey(at termChunk) []byte {
	s.scratch = append(append(append(s.scratch[:0], s.x.prefix...), sectionPosting), at.term[:]...)
	s.scratch = binary.BigEndian.AppendUint32(s.scratch, at.number)
	return s.scratch
}

func (s *stage) fail(err error) {
	if s.failed == nil {
		s.failed = err
	}
}

// flush writes the chunks, ordered by key so that equal runs give equal batches.
func (s *stage) flush() {
	terms := slices.SortedFunc(maps.Keys(s.terms), func(a, b termChunk) int {
		return cmp.Or(compareTerms(a.term, b.term), cmp.Compare(a.number, b.number))
	})
	for _, at := range terms {
		s.write(s.termKey(at), s.terms[at])
	}
	chunks := make(map[string]*members, len(s.chunks))
	for at, m := range s.chunks {
		chunks[string(at.key())] = m
	}
	for _, k := range slices.Sorted(maps.Keys(chunks)) {
		s.write([]byte(k), chunks[k])
	}
	for _, b := range slices.Sorted(maps.Keys(s.places)) {
		s.places[b].put(s.tx, numberedKey(s.x.section(sectionPlaces), b))
	}
	for _, sp := range s.x.all() {
		if last, ok := s.seq[sp]; ok {
			s.tx.Put(sp.section(spaceLast), lastValue(last))
		}
	}
}

func (s *stage) change(before, after *catalog.Input) error {
	ord := ordOf(fold.Change{Before: before, After: after})
	if before == nil {
		s.enter(ord)
	}
	s.old, s.now = s.termsOf(s.old[:0], before, after), s.termsOf(s.now[:0], after, before)
	s.move(ord, s.old, s.now)
	s.edits(ord, before, after)
	if err := s.place(ord, pointOf(before), pointOf(after)); err != nil {
		return err
	}
	for _, sp := range s.x.learning() {
		if err := s.derive(sp, ord, before, after); err != nil {
			return err
		}
	}
	return s.failed
}

// edits updates the stored values of an input's edited predictions.
func (s *stage) edits(ord uint32, before, after *catalog.Input) {
	for i := range editsOf(before) {
		e := &before.Edits[i]
		if after == nil || !slices.ContainsFunc(after.Edits, func(x catalog.Edit) bool { return x.Concept == e.Concept }) {
			s.tx.Delete(numberedKey(s.x.edits(e.Concept), ord))
		}
	}
	for i := range editsOf(after) {
		e := &after.Edits[i]
		s.tx.Put(numberedKey(s.x.edits(e.Concept), ord), binary.LittleEndian.AppendUint32(nil, math.Float32bits(editedValue(e))))
	}
}

func editsOf(in *catalog.Input) []catalog.Edit {
	if in == nil {
		return nil
	}
	return in.Edits
}

// editedValue returns the value of an edited prediction: a removed one is 0.
func editedValue(e *catalog.Edit) float32 {
	if e.Removed {
		return 0
	}
	return e.Value
}

func pointOf(in *catalog.Input) *log.Point {
	if in == nil {
		return nil
	}
	return in.Geo
}

// derive updates an input's analysis in one space. derive adds it when the input reaches 30000, and removes it with the input. A log that
// was restored may give an ordinal to another input. A replica that fetched the picture of a URL itself may learn that the log has another
// picture.
func (s *stage) derive(sp *space, ord uint32, before, after *catalog.Input) error {
	was := before != nil && before.Code == catalog.InputReady
	is := after != nil && after.Code == catalog.InputReady
	switch {
	case is && !was:
		return s.learn(sp, after)
	case was && !is:
		return s.forget(sp, ord)
	case is && (before.Dot != after.Dot || before.Blob != after.Blob || before.Crop != after.Crop):
		if err := s.forget(sp, ord); err != nil {
			return err
		}
		return s.learn(sp, after)
	}
	return nil
}

// learn adds an analysed input to a space, if its derived record exists.
func (s *stage) learn(sp *space, in *catalog.Input) error {
	if !s.someDerived() {
		return s.failed
	}
	d, err := catalog.Read(s.tx, s.x.app).DerivedOfInput(sp.Base, in)
	if errors.Is(err, catalog.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := rowOf(&d, len(sp.Concepts))
	if err != nil {
		return err
	}
	s.touch(sp, in.Ord)
	s.set(sp, analysed, in.Ord, true)
	for _, c := range r.present {
		s.set(sp, int(c), in.Ord, true)
	}
	s.tx.Put(sp.row(in.Ord), r.encode())
	return s.intend(sp, in.Ord)
}

// someDerived reports whether derived records exist at all. A replica may have none. Then the stage does not look for them one by one.
func (s *stage) someDerived() bool {
	if s.derived == 0 && s.failed == nil {
		var some bool
		if some, s.failed = catalog.Read(s.tx, s.x.app).HasDerived(); some {
			s.derived = 1
		} else {
			s.derived = -1
		}
	}
	return s.derived > 0
}

// forget removes an input from a space.
func (s *stage) forget(sp *space, ord uint32) error {
	value, err := kv.Find(s.tx, sp.row(ord))
	if value == nil {
		return err
	}
	var r row
	if err := r.decode(value, len(sp.Concepts)); err != nil {
		return err
	}
	s.touch(sp, ord)
	s.set(sp, analysed, ord, false)
	for _, c := range r.present {
		s.set(sp, int(c), ord, false)
	}
	s.tx.Delete(sp.row(ord))
	if isPending(ord) {
		return nil
	}
	s.tx.Put(sp.removedRowKey(ord), value)
	if err := s.uncover(sp, ord); err != nil {
		return err
	}
	return s.intend(sp, ord)
}

// touch notes that the analysed inputs of an ordinal's block change.
func (s *stage) touch(sp *space, ord uint32) {
	if isPending(ord) {
		return
	}
	blocks := s.touched[sp]
	if blocks == nil {
		blocks = roaring.New()
		s.touched[sp] = blocks
	}
	blocks.Add(ord / blockSize)
}

// uncover removes the values of an ordinal from the columns, since another input may get the ordinal.
func (s *stage) uncover(sp *space, ord uint32) error {
	key := numberedKey(sp.section(spaceCovered), ord/blockSize)
	value, err := kv.Find(s.tx, key)
	at, bit := ord%blockSize/8, byte(1)<<(ord%8)
	if err != nil || len(value) != blockSize/8 || value[at]&bit == 0 {
		return err
	}
	value[at] &^= bit
	s.tx.Put(key, value)
	return nil
}

// isPending reports whether ord belongs to an input whose creation is pending. Such inputs are few and soon get another ordinal. So they
// are in no graph and no column, and searches read their rows. Their ordinals are far above all others, where no array of bits reaches.
func isPending(ord uint32) bool { return ord >= fold.PendingOrds }

// intend records that the graph must update the node of an ordinal.
func (s *stage) intend(sp *space, ord uint32) error {
	if isPending(ord) {
		return nil
	}
	last, ok := s.seq[sp]
	if !ok {
		var err error
		if last, err = sp.lastIntent(s.tx); err != nil {
			return err
		}
	}
	s.seq[sp] = last + 1
	s.tx.Put(sp.intent(last+1), intentValue(ord))
	return nil
}
