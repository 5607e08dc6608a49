package location

import (
	"encoding/binary"
	"math"
)

// fragment keeps the samples of a fragment's tracks of pictures or sound. A track's data begins at an offset in its header, or at the
// fragment, or after the data of the track before it.
func (f *film) fragment(fragment box) {
	const (
		hasBase, hasDescription, hasDuration, hasSize = 1, 2, 8, 16 // what a header contains
		baseIsFragment                                = 1 << 17
	)
	last := fragment.at // end of the data of the track before
	first, removed := true, false
	for b := range f.boxes(fragment.body, fragment.at+fragment.head) {
		if string(b.kind) != "traf" {
			continue
		}
		var header box
		for c := range f.boxes(b.body, b.at+b.head) {
			if string(c.kind) == "tfhd" {
				header = c
				break
			}
		}
		flags, id := number(header.body, 0), number(header.body, 4)
		size, isHidden := f.sizes[id], f.hidden[id]
		at, base, moves := 8, last, false
		switch {
		case flags&hasBase != 0:
			base, at = wide(header.body, at), at+8
		case flags&baseIsFragment != 0 || first:
			base = fragment.at
		default:
			moves = removed && !isHidden
		}
		for _, has := range []uint32{hasDescription, hasDuration, hasSize} {
			if flags&has == 0 {
				continue
			}
			if has == hasSize {
				size = int64(number(header.body, at))
			}
			at += 4
		}
		if moves {
			// The track before is removed, so its data no longer shows where this track's data begins.
			f.move(header.at+header.head, flags|baseIsFragment)
		}
		last = base
		for c := range f.boxes(b.body, b.at+b.head) {
			if string(c.kind) == "trun" {
				last = f.run(c, base, last, size, isHidden, moves, base-fragment.at)
			}
		}
		first, removed = false, removed || isHidden
	}
}

// run keeps the samples of a run, unless its track is removed. They begin at an offset from base, or at next. It returns the end of the
// samples. If the run moves, its offset grows by shift.
func (f *film) run(b box, base, next, size int64, isHidden, moves bool, shift int64) int64 {
	const hasOffset, hasFirst, hasSize = 1, 4, 0x200
	flags, samples := number(b.body, 0), int64(number(b.body, 4))
	at := 8
	if flags&hasOffset != 0 {
		offset := int64(int32(number(b.body, at)))
		next = base + offset
		if moves && shift != 0 && len(b.body) >= at+4 && int64(int32(offset+shift)) == offset+shift {
			f.move(b.at+b.head+int64(at), uint32(offset+shift))
		}
		at += 4
	}
	if flags&hasFirst != 0 {
		at += 4
	}
	bytes := min(samples, f.size()) * size
	if flags&hasSize != 0 {
		bytes = 0
		each, field := 0, 0 // bytes of a sample in the list, and the offset of its size there
		for bit := uint32(0x100); bit <= 0x800; bit <<= 1 {
			if bit == hasSize {
				field = each
			}
			if flags&bit != 0 {
				each += 4
			}
		}
		for ; samples > 0 && at+each <= len(b.body); samples, at = samples-1, at+each {
			bytes += int64(number(b.body, at+field))
		}
	}
	f.step(int64(len(b.body)))
	if !isHidden {
		f.keep(next, bytes, bytes)
	}
	if bytes > math.MaxInt64/4 || next > math.MaxInt64/2 || next < 0 {
		return 0 // outside the file
	}
	return next + bytes
}

// move gives the number at an offset a new value. Each one needs an edit, so a film with more of them is zeroed as a whole.
func (f *film) move(at int64, value uint32) {
	f.rebased[at] = value
	f.over = f.over || len(f.rebased) > maxEdits
}

// rebase changes the numbers of a header or a run of a fragment, whose body begins at an offset.
func (f *film) rebase(at int64) {
	for _, at := range []int64{at, at + 8} {
		if v, ok := f.rebased[at]; ok {
			f.put(at, binary.BigEndian.AppendUint32(nil, v))
		}
	}
}
