package data

import (
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// partitions returns the partitions of a store: the control partition and each application's partition.
func partitions(store kv.Store) ([]catalog.AppID, error) {
	all := []catalog.AppID{catalog.Control}
	var failed error
	err := catalog.Read(store, catalog.Control).Apps(func(a catalog.App) bool {
		var id catalog.AppID
		id, failed = catalog.ParseAppID(a.ID)
		all = append(all, id)
		return failed == nil
	})
	return all, errors.Join(err, failed)
}

// title returns the name of a partition for messages.
func title(app catalog.AppID) string {
	if app == catalog.Control {
		return "control"
	}
	return app.String()
}

// openLog opens the existing log of a partition. Do not use it to start a new log.
func openLog(store kv.Store, app catalog.AppID) (*log.Store, error) {
	l, err := log.Open(store, log.Options{Prefix: app.LogPrefix()})
	if err != nil {
		return nil, fmt.Errorf("log of %s: %w", title(app), err)
	}
	return l, nil
}

// foldRun is the number of entries that are folded in one batch.
const foldRun = 1000

// refold folds a log from its start up to the entry seq into an empty store.
func refold(l *log.Store, app catalog.AppID, seq uint64, scratch kv.Store) error {
	f := fold.New(app)
	tx := kv.NewOverlay(scratch)
	var run []log.Entry
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		if err := f.Begin(tx); err != nil {
			return err
		}
		for i := range run {
			if _, err := f.Apply(&run[i]); err != nil {
				return err
			}
		}
		f.End()
		err := scratch.Apply(tx.Batch())
		tx.Reset(scratch)
		run = run[:0]
		return err
	}
	var failed error
	err := l.Read(1, func(e log.Entry) bool {
		if e.Seq > seq {
			return false
		}
		if run = append(run, e); len(run) == foldRun {
			failed = flush()
		}
		return failed == nil
	})
	return errors.Join(err, failed, flush())
}
