package catalog

import (
	"bytes"
	"errors"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Kinds of cleaning up after deletions, each a key of the tidy table. The state does not contain these keys, and no longer refers to this
// data.
const (
	tidyPicture = 'd' // then blob crop/16: records derived from a picture, if no input has it
	tidyDerived = 'D' // all derived records whose picture no input has; value: the next key
	tidyHosted  = 'h' // public names of deleted inputs; value: the next key
	tidyObjects = 'O' // objects that no version names
	tidyBase    = 'B' // then base: derived records of a network; value: the next key
	tidyPurge   = 'P' // then app, in the control partition: all that a deleted application held, see Purge
)

func (w *Writer) scheduleDerivedCleanup(in *Input) {
	SchedulePictureCleanup(w.tx, w.app, in.Blob, in.Crop)
}

// SchedulePictureCleanup schedules the deletion of records derived from a picture and a crop. Tidy keeps them if an input has the picture
// and the crop.
func SchedulePictureCleanup(w kv.Writer, app AppID, picture blob.Hash, crop raster.Crop) {
	key := app.picture(tableDerived, picture, crop, 0)
	w.Put(app.TidyKey(string(tidyPicture)+string(key[len(app)+2:])), nil)
}

// ScheduleObjectCleanup schedules the deletion of the objects that no version names.
func ScheduleObjectCleanup(w kv.Writer, app AppID) { w.Put(app.TidyKey(string(tidyObjects)), nil) }

func (w *Writer) scheduleFullCleanup() {
	single := w.app.TidyKey(string(tidyPicture))
	kv.DeletePrefix(w.tx, single)
	w.tx.Put(w.app.TidyKey(string(tidyDerived)), nil)
	w.tx.Put(w.app.TidyKey(string(tidyHosted)), nil)
}

func (w *Writer) scheduleObjectCleanup() { ScheduleObjectCleanup(w.tx, w.app) }

// ScheduleBaseCleanup schedules the deletion of the derived records of a network.
func ScheduleBaseCleanup(b kv.Writer, app AppID, base [32]byte) {
	b.Put(app.TidyKey(string(tidyBase)+string(base[:])), nil)
}

// Tidy does some of the scheduled deletions, into tx. It looks at about limit keys and reports whether more is scheduled. The caller may
// run it only while every entry of the log is folded and none is being appended, since a derived record or an object may wait for its
// entry.
func Tidy(tx *kv.Overlay, app AppID, limit int) (more bool, err error) {
	t := tidier{tx: tx, r: Read(tx, app), app: app, left: limit}
	prefix := app.TidyKey("")
	type debt struct{ key, value []byte }
	var debts []debt
	for key, value := range kv.WithPrefix(tx, prefix, &err) {
		if debts = append(debts, debt{bytes.Clone(key), bytes.Clone(value)}); len(debts) > limit {
			t.more = true
			break
		}
	}
	for _, d := range debts {
		if err != nil || t.left <= 0 {
			return true, err
		}
		err = t.run(d.key, d.key[len(prefix):], d.value)
	}
	return t.more, err
}

type tidier struct {
	tx   *kv.Overlay
	r    Reader
	app  AppID
	left int  // number of keys that it may still look at
	more bool // more is scheduled
}

func (t *tidier) run(key, cleanup, value []byte) error {
	table := t.app.key(tableDerived, 0)
	switch cleanup[0] {
	case tidyPicture:
		t.left--
		t.tx.Delete(key)
		return t.picture(cleanup[1:])
	case tidyDerived:
		return t.sweep(key, table, value, func(k, _ []byte) (bool, error) {
			used, err := t.isUsed(k[len(table):][:pictureBytes])
			return !used, err
		})
	case tidyBase:
		return t.sweep(key, table, value, func(k, _ []byte) (bool, error) {
			return bytes.Equal(k[len(table)+pictureBytes:], cleanup[1:]), nil
		})
	case tidyHosted:
		return t.sweep(key, []byte{tableHosted}, value, t.isStale)
	case tidyObjects:
		t.tx.Delete(key)
		return t.objects()
	}
	return nil // a purge, which the engine does, or a kind of a later version
}

// pictureBytes is the length of a picture and its crop in a key.
const pictureBytes = len(blob.Hash{}) + 16

// isUsed reports whether a live input has a picture and crop.
func (t *tidier) isUsed(picture []byte) (bool, error) {
	return kv.AnyWithPrefix(t.tx, append(t.app.key(tableBlob, len(picture)), picture...))
}

func (t *tidier) picture(picture []byte) error {
	used, err := t.isUsed(picture)
	if err == nil && !used {
		kv.DeletePrefix(t.tx, append(t.app.key(tableDerived, len(picture)), picture...))
	}
	return err
}

// sweep deletes the keys of a table for which match returns true, starting at from. It stores the next key in debt. At the end it deletes
// debt.
func (t *tidier) sweep(debt, table, from []byte, match func(key, value []byte) (bool, error)) error {
	return t.sweepFrom(table, from, match, func(next []byte) {
		if next == nil {
			t.tx.Delete(debt)
		} else {
			t.tx.Put(debt, next)
		}
	})
}

// sweepFrom deletes the keys of a table for which match returns true, some at a time, starting at from. It calls later with the next key,
// or with nil at the end of the table.
func (t *tidier) sweepFrom(table, from []byte, match func(key, value []byte) (bool, error), later func(next []byte)) error {
	lo := table
	if len(from) > 0 {
		lo = from
	}
	var deletions [][]byte
	var next []byte
	var failed error
	for key, value := range kv.Range(t.tx, lo, kv.PrefixEnd(table), &failed) {
		if t.left--; t.left < 0 {
			next = bytes.Clone(key)
			break
		}
		ok, err := match(key, value)
		if err != nil {
			return err
		}
		if ok {
			deletions = append(deletions, bytes.Clone(key))
		}
	}
	if failed != nil {
		return failed
	}
	for _, key := range deletions {
		t.tx.Delete(key)
	}
	t.more = t.more || next != nil
	later(next)
	return nil
}

// isStale reports whether a public name belongs to a deleted input of this application.
func (t *tidier) isStale(key, value []byte) (bool, error) {
	if !bytes.Equal(key[len(key)-len(t.app):], t.app[:]) {
		return false, nil
	}
	ord, err := number4(value)
	if err != nil {
		return false, err
	}
	_, err = t.r.Input(ord)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	return false, err
}

// objects deletes the objects that no version names.
func (t *tidier) objects() error {
	references, err := t.r.namedObjects()
	if err != nil {
		return err
	}
	var deletions [][]byte
	table := t.app.key(tableObject, 0)
	for key := range kv.WithPrefix(t.tx, table, &err) {
		t.left--
		if !references[blob.Hash(key[len(table):])] {
			deletions = append(deletions, bytes.Clone(key))
		}
	}
	for _, key := range deletions {
		t.tx.Delete(key)
	}
	return err
}
