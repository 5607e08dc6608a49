package partition

import (
	"bytes"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// NeededPictures yields the pictures that the replica of an application needs for something other than its inputs, until yield returns
// false. Pending operations need their pictures until the origin has them, and a user may submit a conflict again. NeededPictures reads the
// store directly, and a partition may be open on it. It yields nothing for an application that is not a replica, and may yield a picture
// more than once. Errors: those of the store.
func NeededPictures(r kv.Reader, app catalog.AppID, yield func(blob.Hash) bool) error {
	return claims(r, app, func(*log.Op) bool { return false }, yield)
}

// UnsentPictures is [NeededPictures] without pending operations whose input was deleted, as far as the replica knows. An origin that was
// restored from a backup lacks such an operation, and its picture was removed with the input.
func UnsentPictures(r kv.Reader, app catalog.AppID, yield func(blob.Hash) bool) error {
	deleted, all := map[log.Dot]bool{}, log.HLC(0)
	var named []*log.InputDeleteAll
	note := func(op *log.Op) bool {
		switch b := op.Body.(type) {
		case *log.InputDelete:
			deleted[b.Input] = true
		case *log.InputDeleteAll:
			if named = append(named, b); b.Upto == nil {
				all = max(all, op.At)
			}
		}
		return true
	}
	n, err := readPlace(r, app)
	if err == nil {
		err = log.Peek(r, app.LogPrefix(), 1, func(e log.Entry) bool { return note(&e.Op) })
	}
	if err == nil {
		err = scanFrames(kv.Range, r, app, n.kept.set, 0, func(_ uint64, f Frame) bool {
			entries, _ := log.DecodeRows(f.Rows, f.From)
			for i := range entries {
				note(&entries[i].Op)
			}
			return true
		})
	}
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return claims(r, app, func(op *log.Op) bool {
		input := op.Dot
		if b, ok := op.Body.(*log.InputFetched); ok {
			input = b.Input
		}
		return deleted[input] || op.At < all || slices.ContainsFunc(named, func(b *log.InputDeleteAll) bool { return b.Covers(input) })
	}, yield)
}

func claims(r kv.Reader, app catalog.AppID, passes func(*log.Op) bool, yield func(blob.Hash) bool) error {
	n, err := readPlace(r, app)
	if isMissing(err) {
		return nil
	}
	more := true
	claim := func(op *log.Op) bool {
		if h := PictureOf(op); !h.IsZero() {
			more = yield(h)
		}
		return more
	}
	if err == nil {
		err = log.Peek(r, app.LogPrefix(), n.confirmed.after(0), func(e log.Entry) bool { return n.confirmed.has(e.Seq) || passes(&e.Op) || claim(&e.Op) })
	}
	if err == nil && more {
		err = conflictsIn(r, app, func(c Conflict) bool { return c.lacksPicture() || claim(&c.Op) })
	}
	return err
}

// LostPictures returns the pictures that no host had after a restore. Their inputs are listed as conflicts. Errors: those of the store.
func LostPictures(r kv.Reader, app catalog.AppID) (map[blob.Hash]bool, error) {
	lost := map[blob.Hash]bool{}
	err := conflictsIn(r, app, func(c Conflict) bool {
		if c.Verdict.Detail == lostFor+LostPicture {
			lost[PictureOf(&c.Op)] = true
		}
		return true
	})
	return lost, err
}

// lacksPicture reports whether the origin refused the operation because the replica could not send its picture. A restored origin gets
// operations again whose inputs and pictures were deleted long ago.
func (c *Conflict) lacksPicture() bool {
	return c.Verdict.Code == fold.Refused && strings.HasPrefix(c.Verdict.Detail, "blob:")
}

// PictureOf returns the picture that an operation needs, or the zero hash.
func PictureOf(op *log.Op) blob.Hash {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		return b.Blob
	case *log.InputFetched:
		return b.Blob
	}
	return blob.Hash{}
}

// ConflictPicture returns the picture that an operation in conflict gave a public name. The input of that operation does not exist, or
// lacks the name. The error is catalog.ErrNotFound if no conflict gave the name.
func ConflictPicture(r kv.Reader, app catalog.AppID, name [16]byte) (p blob.Picture, err error) {
	found := false
	err = conflictsIn(r, app, func(c Conflict) bool {
		if b, ok := c.Op.Body.(*log.InputCreate); ok && b.Hosted == name && !b.Blob.IsZero() {
			p, found = blob.Picture{Hash: b.Blob, App: app, ContentType: b.ContentType}, true
		}
		return !found
	})
	if err == nil && !found {
		err = catalog.ErrNotFound
	}
	return p, err
}

// conflictsIn yields an application's conflicts in a store, oldest first, until yield returns false.
func conflictsIn(r kv.Reader, app catalog.AppID, yield func(Conflict) bool) (err error) {
	for _, value := range kv.WithPrefix(r, app.LocalKey(conflictName), &err) {
		c, failed := readConflict(bytes.Clone(value))
		if failed != nil {
			return failed
		}
		if !yield(c) {
			break
		}
	}
	return err
}
