package partition

import (
	"bytes"
	"errors"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Claims reports whether the copy of an application in a store holds a picture for something else than an input: for
// an own operation that its origin does not have yet, which cannot be sent without, or for a conflict, from which a
// person may say it again. It reads the store as it is, whoever has the partition open; an application that is
// no copy claims nothing so. Errors: the store's.
func Claims(r kv.Reader, app catalog.AppID, h blob.Hash) (claimed bool, err error) {
	data, err := r.Get(noteKey(app))
	if isMissing(err) {
		return false, nil
	}
	var n note
	if err == nil {
		n, err = decodeNote(data)
	}
	var confirmed uint64
	if err == nil {
		confirmed, err = catalog.Read(catalog.Before(r, app), app).SiteSeq(n.site)
	}
	if err == nil {
		err = log.Peek(r, app.LogPrefix(), confirmed+1, func(op log.Op) bool {
			claimed = names(&op, h)
			return !claimed
		})
	}
	if err == nil && !claimed {
		err = conflictsIn(r, app, func(c Conflict) bool {
			claimed = names(&c.Op, h)
			return !claimed
		})
	}
	return claimed, err
}

// names reports whether an operation cannot be without a picture.
func names(op *log.Op, h blob.Hash) bool {
	switch b := op.Body.(type) {
	case *log.InputCreate:
		return b.Blob == h
	case *log.InputFetched:
		return b.Blob == h
	}
	return false
}

// Disputed finds the picture behind a public name that an operation in conflict gave it: the input has no
// such name, or there is none. The error is catalog.ErrNotFound where there is no such conflict.
func Disputed(r kv.Reader, app catalog.AppID, name [16]byte) (p blob.Picture, err error) {
	found := false
	err = conflictsIn(r, app, func(c Conflict) bool {
		if b, ok := c.Op.Body.(*log.InputCreate); ok && b.Hosted == name && !b.Blob.IsZero() {
			p, found = blob.Picture{Hash: b.Blob, ContentType: b.ContentType}, true
		}
		return !found
	})
	if err == nil && !found {
		err = catalog.ErrNotFound
	}
	return p, err
}

// conflictsIn yields the conflicts that a store has of an application, oldest first, until yield returns false.
func conflictsIn(r kv.Reader, app catalog.AppID, yield func(Conflict) bool) error {
	lo, hi := conflictRange(app)
	var failed error
	err := r.Scan(lo, hi, func(_, value []byte) bool {
		c, err := decodeConflict(bytes.Clone(value))
		if err != nil {
			failed = err
			return false
		}
		return yield(c)
	})
	return errors.Join(err, failed)
}
