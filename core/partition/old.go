package partition

import (
	"bytes"
	"context"
	"errors"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// Version 0.1.0 wrote records that nothing reads any more. Open deletes them. A restored origin noted deletions that came before their things:
//
//	early/DOT   the deletion
//
// They become entries of the log, where they count for things that come later.
const earlyName = "early/"

var oldNames = []string{earlyName, "left/", "life/", "moved/", "opened", "renamed/"}

// oldOnce is the number of early deletions that become entries at once.
const oldOnce = 512

// dropOld deletes the records of version 0.1.0. The rules by which early deletions count must be in force; otherwise the next Open does it.
func (p *Partition) dropOld() error {
	h, err := catalog.Read(p.o.Store, p.o.App).Header()
	if err != nil || h.Fold < fold.RulesOfNames && p.replica == nil && p.o.App != catalog.Control {
		return err
	}
	for _, name := range oldNames {
		for more := true; more && err == nil; {
			more, err = p.dropSome(name)
		}
	}
	return err
}

// dropSome deletes some of the records with a name. more reports whether there may be others.
func (p *Partition) dropSome(name string) (more bool, err error) {
	var drop kv.Batch
	var bodies []log.Body
	lo, hi := under(p.o.App, name)
	for key, value := range kv.Range(p.o.Store, lo, hi, &err) {
		drop.Delete(bytes.Clone(key))
		if body := earlyDeletion(bytes.Clone(value)); name == earlyName && body != nil {
			bodies = append(bodies, body)
		}
		if more = drop.Len() == oldOnce; more {
			break
		}
	}
	switch {
	case err != nil || drop.Len() == 0:
		return false, err
	case len(bodies) == 0:
		return more, p.o.Store.Apply(&drop)
	}
	_, err = p.Submit(context.Background(), "", bodies, func(b *kv.Batch) { replay(b, &drop) })
	if errors.Is(err, kv.ErrFull) { // the next Open does it
		return false, nil
	}
	return more, err
}

// earlyDeletion returns the deletion in an early record; nil: it is the clock of an operation that deleted all.
func earlyDeletion(value []byte) log.Body {
	op, err := log.Decode(value)
	if err != nil || !log.Deletes(op.Body) {
		return nil
	}
	return op.Body
}
