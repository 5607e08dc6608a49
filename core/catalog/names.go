package catalog

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Names is the record of a writer: which of its operations were folded, by their sequence numbers.
//
//	1 2 3 4 5 6 7 8 9      folded: 1…4 and 7, 8; the log lost 5 and 6
//	└─────┘     └─┘
//
// A value of 8 bytes is the last number of one range from 1. A writer has such a value as long as nothing else is known of it: under rules
// that folded the operations of a writer only in sequence, and for a site.
//
//field:message names
type Names struct {
	Ranges      []NameRange `wire:"1"`       // ascending, with a gap after each
	Newest      log.HLC     `wire:"2,fixed"` // clock that the writer gave its newest operation; 0: unknown
	DeletedUpTo uint64      `wire:"3"`       // every input of the writer with a sequence number up to this one was deleted
	Until       log.HLC     `wire:"4,fixed"` // highest other clock of an operation that the record is needed for; 0: none above Newest
}

// NameRange is a range of sequence numbers of one writer, with both ends.
type NameRange struct {
	First uint64 `wire:"1"`
	Last  uint64 `wire:"2"`
}

// Last returns the highest sequence number in the set; 0: the set is empty.
func (n *Names) Last() uint64 {
	if len(n.Ranges) == 0 {
		return 0
	}
	return n.Ranges[len(n.Ranges)-1].Last
}

// Has reports whether a sequence number is in the set. No operation has 0, which counts as known.
func (n *Names) Has(seq uint64) bool {
	i := n.find(seq)
	return seq == 0 || i < len(n.Ranges) && n.Ranges[i].First <= seq
}

// find returns the index of the first range that ends at a sequence number or above it.
func (n *Names) find(seq uint64) int {
	return sort.Search(len(n.Ranges), func(i int) bool { return n.Ranges[i].Last >= seq })
}

// Add adds a sequence number that is not in the set.
func (n *Names) Add(seq uint64) {
	i := n.find(seq)
	joins := i > 0 && n.Ranges[i-1].Last+1 == seq
	switch next := i < len(n.Ranges) && n.Ranges[i].First == seq+1; {
	case joins && next:
		n.Ranges[i-1].Last = n.Ranges[i].Last
		n.Ranges = slices.Delete(n.Ranges, i, i+1)
	case joins:
		n.Ranges[i-1].Last = seq
	case next:
		n.Ranges[i].First = seq
	default:
		n.Ranges = slices.Insert(n.Ranges, i, NameRange{seq, seq})
	}
}

// Remove removes a sequence number from the set.
func (n *Names) Remove(seq uint64) {
	i := n.find(seq)
	if i == len(n.Ranges) || n.Ranges[i].First > seq {
		return
	}
	before, after := NameRange{n.Ranges[i].First, seq - 1}, NameRange{seq + 1, n.Ranges[i].Last}
	parts := slices.DeleteFunc([]NameRange{before, after}, func(r NameRange) bool { return r.First > r.Last })
	n.Ranges = slices.Replace(slices.Clone(n.Ranges), i, i+1, parts...)
}

// KeepUntil keeps the record until the horizon is above a clock.
func (n *Names) KeepUntil(at log.HLC) {
	if at > n.Newest {
		n.Until = max(n.Until, at)
	}
}

// isOver reports whether only operations below the horizon need the record. A record without clocks is never over.
func (n *Names) isOver(horizon log.HLC) bool {
	last := max(n.Newest, n.Until)
	return last > 0 && last < horizon && (n.Newest > 0 || len(n.Ranges) == 0)
}

// encode returns the value of the record.
func (n *Names) encode() []byte {
	if len(n.Ranges) == 1 && n.Ranges[0].First == 1 && n.Newest == 0 && n.DeletedUpTo == 0 && n.Until == 0 {
		return appendUint64(nil, n.Ranges[0].Last)
	}
	return encodeNames(nil, n)
}

// readNames reads a value. A number begins with 0, since no writer has 2⁵⁶ operations, and a message with its version.
func readNames(value []byte) (Names, error) {
	if len(value) == 8 && value[0] == 0 {
		return Names{Ranges: []NameRange{{1, binary.BigEndian.Uint64(value)}}}, nil
	}
	return decodeNames(value)
}

// Names returns the record of a writer; the zero Names: none of its operations was folded, or the horizon has dropped the record.
func (r Reader) Names(w log.Writer) (Names, error) {
	return orZero(r, r.app.writerKey(w), readNames)
}

// SiteSeq returns the highest sequence number of a writer's folded operations, 0 if there are none.
func (r Reader) SiteSeq(w log.Writer) (uint64, error) {
	n, err := r.Names(w)
	return n.Last(), err
}

// Writers yields the writers with their records, in the order of their keys.
func (r Reader) Writers(yield func(w log.Writer, n Names) bool) error {
	var failed error
	prefix := r.app.key(tableSite, 0)
	for key, value := range kv.WithPrefix(r.kv, prefix, &failed) {
		n, err := readNames(value)
		if err != nil || !yield(writerOf(key[len(prefix):]), n) {
			return err
		}
	}
	return failed
}

// PutNames writes the record of a writer.
func (w *Writer) PutNames(of log.Writer, n *Names) {
	w.tx.Put(w.app.writerKey(of), n.encode())
}

// Deletion returns the clock of a deletion that was folded before the operation which makes its thing, 0 if there is none.
func (r Reader) Deletion(thing log.Dot) (log.HLC, error) {
	at, err := orZero(r, r.app.dotKey(tableDeletion, thing, 0), number8)
	return log.HLC(at), err
}

// HasDeletions reports whether any thing has a [Reader.Deletion].
func (r Reader) HasDeletions() (bool, error) {
	return kv.AnyWithPrefix(r.kv, r.app.key(tableDeletion, 0))
}

// PutDeletion records the clock of a deletion whose thing may come later. 0 deletes the record.
func (w *Writer) PutDeletion(thing log.Dot, at log.HLC) {
	if key := w.app.dotKey(tableDeletion, thing, 0); at == 0 {
		w.tx.Delete(key)
	} else {
		w.tx.Put(key, appendUint64(nil, uint64(at)))
	}
}

// Forget drops the records of writers and deletions whose operations are all below the horizon.
func (w *Writer) Forget(horizon log.HLC) error {
	var dropped [][]byte
	err := w.Writers(func(of log.Writer, n Names) bool {
		if n.isOver(horizon) {
			dropped = append(dropped, w.app.writerKey(of))
		}
		return true
	})
	if err != nil {
		return err
	}
	for key, value := range kv.WithPrefix(w.tx, w.app.key(tableDeletion, 0), &err) {
		at, failed := number8(value)
		if failed != nil {
			return failed
		}
		if log.HLC(at) < horizon {
			dropped = append(dropped, slices.Clone(key))
		}
	}
	for _, key := range dropped {
		w.tx.Delete(key)
	}
	return err
}

// NewestInputs yields the newest live input of each writer, by one seek for each.
func (r Reader) NewestInputs(yield func(log.Dot) bool) (err error) {
	table := r.app.key(tableInputDot, 0)
	for hi := kv.PrefixEnd(table); ; {
		var newest log.Dot
		scanned := r.kv.ScanBack(table, hi, func(key, _ []byte) bool {
			newest, err = dotOf(key[len(table):])
			return false
		})
		if scanned != nil {
			return scanned
		}
		if err != nil || newest == (log.Dot{}) || !yield(newest) {
			return err
		}
		hi = r.app.dotKey(tableInputDot, log.Dot{Writer: newest.Writer}, 0)
	}
}

// InputsOf yields the ordinals of the live inputs of a writer with first ≤ sequence number ≤ last, in the order of these numbers.
func (r Reader) InputsOf(w log.Writer, first, last uint64, yield func(ord uint32) bool) (err error) {
	lo := r.app.dotKey(tableInputDot, log.Dot{Writer: w, Seq: first}, 0)
	hi := append(r.app.dotKey(tableInputDot, log.Dot{Writer: w, Seq: last}, 1), 0)
	scanned := r.kv.Scan(lo, hi, func(_, value []byte) bool {
		var ord uint32
		ord, err = number4(value)
		return err == nil && yield(ord)
	})
	if scanned != nil {
		return scanned
	}
	return err
}
