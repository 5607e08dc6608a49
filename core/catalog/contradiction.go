package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Limits of contradictions. Beyond them the oldest leave.
const (
	MaxContradictions      = 10_000 // in an application
	MaxContradictoryValues = 8      // in one register
)

// RegisterKind is the kind of a register.
type RegisterKind uint8

// Kinds of registers.
const (
	LabelRegister RegisterKind = 1 + iota
	MetaRegister
	PlaceRegister
	ConceptNameRegister
	ModelNameRegister
	DeletionRegister // of an input: whether it is deleted
)

// Register names a value that the last write sets: a label, a name, a part of metadata, a place, or the deletion of an input.
type Register struct {
	Kind RegisterKind `wire:"1"`
	Dot  log.Dot      `wire:"2"` // of the input or of the model; zero for the name of a concept
	ID   string       `wire:"3"` // of the concept, for a label or a name
	Path []string     `wire:"4"` // of a part of metadata
}

// sum returns the bytes that name the register among those of its dot.
func (g *Register) sum() (sum [8]byte) {
	b := g.Dot.AppendKey([]byte{byte(g.Kind)})
	if g.Kind != DeletionRegister {
		b = append(b, g.ID...)
		for _, name := range g.Path {
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(name))), name...)
		}
	}
	all := sha256.Sum256(b)
	return [8]byte(all[:8])
}

// String returns the id of the register in lists: c- and 16 hexadecimal digits. It is the same at every host.
func (g *Register) String() string {
	sum := g.sum()
	return "c-" + hex.EncodeToString(sum[:])
}

// Contradiction is a register with several values whose makers did not know of one another's. The last write serves, as in every register.
//
//field:message contradiction
type Contradiction struct {
	Register `wire:"+0"`
	Name     string       `wire:"5"` // ID of the input or the model, which an input that was deleted has nowhere else
	Seq      uint64       `wire:"6"` // log position of the operation with which it began
	Written  RegisterKind `wire:"7"` // of a deletion: the kind of the register that was written, which ID and Path describe
	Values   []SetValue   `wire:"8"` // in the order of the log
	Extra    Extra        `wire:"*"`
}

// SetValue is a value that a write set. Which field has the value depends on the register.
type SetValue struct {
	At      log.Stamp  `wire:"1"`
	By      string     `wire:"2"` // see log.Op; empty if it is not known
	Label   log.Value  `wire:"3,max=2"`
	Name    string     `wire:"4"`
	JSON    []byte     `wire:"5"` // of metadata; nil: removed
	Geo     *log.Point `wire:"6"` // nil: removed
	Deleted bool       `wire:"7"` // the input was deleted
}

// Equal reports whether two writes set the same value.
func (v *SetValue) Equal(o *SetValue) bool {
	samePlace := (v.Geo == nil) == (o.Geo == nil) && (v.Geo == nil || *v.Geo == *o.Geo)
	return v.Label == o.Label && v.Name == o.Name && bytes.Equal(v.JSON, o.JSON) && samePlace && v.Deleted == o.Deleted
}

// Serves returns the index of the value that serves: the one with the newest stamp.
func (c *Contradiction) Serves() int {
	newest := 0
	for i := range c.Values {
		if c.Values[newest].At.Less(c.Values[i].At) {
			newest = i
		}
	}
	return newest
}

// contradictionKey returns the key of a register's record.
func (a AppID) contradictionKey(g *Register) []byte {
	sum := g.sum()
	return append(a.dotKey(tableContradiction, g.Dot, len(sum)), sum[:]...)
}

// contradictionAgeKey returns the key that orders a record by age.
func (a AppID) contradictionAgeKey(c *Contradiction) []byte {
	sum := c.sum()
	k := c.Dot.AppendKey(a.uint64Key(tableContradictionAge, c.Seq))
	return append(k, sum[:]...)
}

// Contradiction returns the record of a register; without values if there is none.
func (r Reader) Contradiction(g Register) (Contradiction, error) {
	return orZero(r, r.app.contradictionKey(&g), ownContradiction)
}

// ownContradiction decodes a copy of a record's bytes.
func ownContradiction(data []byte) (Contradiction, error) {
	return decodeContradiction(slices.Clone(data))
}

// Contradictions yields the records, oldest first.
func (r Reader) Contradictions(yield func(Contradiction) bool) (err error) {
	for key := range kv.WithPrefix(r.kv, r.app.key(tableContradictionAge, 0), &err) {
		place := key[len(key)-20:] // dot and sum
		c, failed := lookup(r, append(r.app.key(tableContradiction, len(place)), place...), "contradiction", place, ownContradiction)
		if failed != nil || !yield(c) {
			return failed
		}
	}
	return err
}

// ContradictionsOf yields the records of the registers of an input or a model.
func (r Reader) ContradictionsOf(dot log.Dot, yield func(Contradiction) bool) (err error) {
	for _, data := range kv.WithPrefix(r.kv, r.app.dotKey(tableContradiction, dot, 0), &err) {
		c, failed := ownContradiction(data)
		if failed != nil || !yield(c) {
			return failed
		}
	}
	return err
}

// PutContradiction writes a record. h is the header that the caller will write. If there are too many records, the oldest leaves.
func (w *Writer) PutContradiction(h *Header, c *Contradiction) error {
	key := w.app.contradictionKey(&c.Register)
	_, err := w.tx.Get(key)
	w.tx.Put(key, encodeContradiction(nil, c))
	if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	w.tx.Put(w.app.contradictionAgeKey(c), nil)
	if h.Contradictions++; h.Contradictions <= MaxContradictions {
		return nil
	}
	var oldest Contradiction
	err = w.Contradictions(func(c Contradiction) bool {
		oldest = c
		return false
	})
	if err == nil {
		h.Dropped++
		w.DeleteContradiction(h, &oldest)
	}
	return err
}

// DeleteContradiction removes a record.
func (w *Writer) DeleteContradiction(h *Header, c *Contradiction) {
	w.tx.Delete(w.app.contradictionKey(&c.Register))
	w.tx.Delete(w.app.contradictionAgeKey(c))
	h.Contradictions--
}

// DeleteContradictionsOf removes the records of the registers of an input or a model, but not that of its deletion.
func (w *Writer) DeleteContradictionsOf(h *Header, dot log.Dot) error {
	if h.Contradictions == 0 {
		return nil
	}
	all, err := Collect(func(yield func(Contradiction) bool) error { return w.ContradictionsOf(dot, yield) })
	for i := range all {
		if all[i].Kind != DeletionRegister {
			w.DeleteContradiction(h, &all[i])
		}
	}
	return err
}

// IsContradictionID reports whether text has the form of an id of [Register.String].
func IsContradictionID(text string) bool {
	_, err := hex.DecodeString(strings.TrimPrefix(text, "c-"))
	return err == nil && len(text) == 2+16 && strings.HasPrefix(text, "c-") && strings.ToLower(text) == text
}
