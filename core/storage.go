package core

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
)

// StorageUsage counts stored inputs.
type StorageUsage struct {
	Inputs int64
	Bytes  int64 // size of their pictures and records
}

func (s *StorageUsage) add(o StorageUsage) { s.Inputs, s.Bytes = s.Inputs+o.Inputs, s.Bytes+o.Bytes }

func (s *StorageUsage) sub(o StorageUsage) { s.Inputs, s.Bytes = s.Inputs-o.Inputs, s.Bytes-o.Bytes }

// storage counts what accounts with limits store, in memory. It counts an application from its state, at the first write of the
// application's account, so the counts need not outlive the process. It does not count accounts without limits.
//
//	stored + reserved by operations that are not folded + requested ≤ limit, over all applications of the account
//
// An input with the same picture as another input counts the picture's bytes too.
type storage struct {
	limits api.Storage
	size   func(blob.Hash) (int64, error)
	apps   *apps

	mu      sync.Mutex
	owners  map[string]string // account of each application, which never changes
	tallies map[catalog.AppID]*tally
}

// tally counts the inputs of one application.
type tally struct {
	stored   StorageUsage
	inputs   map[log.Dot]inputSize
	reserved map[log.Dot]StorageUsage // room of each operation that is not folded yet; negative for deletions
	pending  StorageUsage             // sum of reserved
}

// inputSize is the size of an input, in bytes.
type inputSize struct {
	picture blob.Hash
	bytes   int64 // of the picture
	record  int64
	leaves  bool // its deletion is reserved
}

func (i *inputSize) usage() StorageUsage { return StorageUsage{1, i.bytes + i.record} }

// appQuota is the [partition.Quota] of an application.
type appQuota struct {
	*storage
	app catalog.AppID
}

var _ partition.Quota = appQuota{}

// needsRoom reports whether an operation stores data that counts towards the limits.
func needsRoom(body log.Body) bool {
	switch b := body.(type) {
	case *log.InputDelete:
		return false
	case *log.InputFetched:
		return !b.Blob.IsZero()
	case *log.InputMeta:
		return slices.ContainsFunc(b.Writes, func(w log.MetaWrite) bool { return w.Action != log.MetaRemove })
	}
	kind, _ := log.SubjectOf(body)
	return kind == log.InputSubject
}

// room returns the maximum numbers of inputs and bytes that op adds.
func (s *storage) room(op *log.Op) (StorageUsage, error) {
	room := StorageUsage{Bytes: int64(len(log.Encode(nil, op)))}
	var picture blob.Hash
	switch b := op.Body.(type) {
	case *log.InputCreate:
		room.Inputs, picture = 1, b.Blob
	case *log.InputFetched:
		picture = b.Blob
	}
	n, err := s.pictureSize(picture)
	room.Bytes += n
	return room, err
}

// pictureSize returns the size of a picture in bytes. It is 0 for a zero hash and for a picture that is not stored.
func (s *storage) pictureSize(h blob.Hash) (int64, error) {
	if h.IsZero() {
		return 0, nil
	}
	n, err := s.size(h)
	if errors.Is(err, blob.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// owner returns the account of an application. Errors: ErrApplication and the store's.
func (s *storage) owner(app string) (string, error) {
	s.mu.Lock()
	owner, ok := s.owners[app]
	s.mu.Unlock()
	if ok {
		return owner, nil
	}
	record, err := s.apps.register.App(app)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[app] = record.Owner
	return record.Owner, nil
}

// appsOf returns the applications of an account.
func (s *storage) appsOf(account string) ([]catalog.AppID, error) {
	ids, err := s.apps.ids()
	if err != nil {
		return nil, err
	}
	var apps []catalog.AppID
	for _, id := range ids {
		owner, err := s.owner(id)
		if errors.Is(err, register.ErrApplication) || err == nil && owner != account {
			continue // deleted since, or another account's
		}
		if err != nil {
			return nil, err
		}
		app, err := catalog.ParseAppID(id)
		if err != nil {
			return nil, err
		}
		apps = append(apps, app)
	}
	return apps, nil
}

// of returns the account of an application and the account's limits. limited reports whether it has any.
func (s *storage) of(app string) (account string, limits api.StorageLimits, limited bool, err error) {
	if account, err = s.owner(app); err != nil || account == "" {
		return account, limits, false, err
	}
	limits, err = s.limits.StorageLimits(account)
	return account, limits, limits.Inputs > 0 || limits.Bytes > 0, err
}

// StorageUsage returns the numbers of inputs and bytes that all applications of an account store.
func (e *Engine) StorageUsage(account string) (StorageUsage, error) {
	s := e.apps.storage
	if s == nil {
		return StorageUsage{}, nil
	}
	apps, err := s.count(account)
	if err != nil {
		return StorageUsage{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum(apps, false), nil
}

// sum returns the usage of applications, with or without their reservations. The caller holds mu.
func (s *storage) sum(apps []catalog.AppID, reserved bool) (all StorageUsage) {
	for _, app := range apps {
		if t := s.tallies[app]; t != nil {
			all.add(t.stored)
			if reserved {
				all.add(t.pending)
			}
		}
	}
	return all
}

// count counts the applications of an account that are not counted yet, and returns all its applications.
func (s *storage) count(account string) ([]catalog.AppID, error) {
	apps, err := s.appsOf(account)
	if err != nil {
		return nil, err
	}
	for _, app := range apps {
		s.mu.Lock()
		known := s.tallies[app] != nil
		s.mu.Unlock()
		if known {
			continue
		}
		open, err := s.apps.application(app.String())
		if err == nil {
			err = open.Partition.State(func(r catalog.Reader) error { return s.scan(app, r) })
		}
		if err != nil && !isDeleted(err) && !errors.Is(err, register.ErrApplication) {
			return nil, err
		}
	}
	return apps, nil
}

// scan counts an application. The caller ensures that nothing of it is folded meanwhile.
func (s *storage) scan(app catalog.AppID, r catalog.Reader) error {
	t := &tally{inputs: map[log.Dot]inputSize{}, reserved: map[log.Dot]StorageUsage{}}
	var failed error
	err := r.Inputs(0, func(in catalog.Input) bool {
		failed = s.put(t, &in)
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tallies[app] == nil {
		s.tallies[app] = t
	}
	return nil
}

// put counts an input with its current size, which replaces its earlier one.
func (s *storage) put(t *tally, in *catalog.Input) (err error) {
	size := t.inputs[in.Dot]
	t.drop(in.Dot)
	if size.picture != in.Blob {
		size.picture = in.Blob
		size.bytes, err = s.pictureSize(in.Blob)
	}
	size.record = int64(in.RecordSize())
	t.inputs[in.Dot] = size
	t.stored.add(size.usage())
	return err
}

// drop removes an input from the counts.
func (t *tally) drop(input log.Dot) {
	if size, ok := t.inputs[input]; ok {
		t.stored.sub(size.usage())
		delete(t.inputs, input)
	}
}

// reserve reserves room for an operation.
func (t *tally) reserve(dot log.Dot, room StorageUsage) {
	t.reserved[dot] = room
	t.pending.add(room)
}

// leave returns the room that the deletion of an input frees, as negative numbers. It returns false if the input does not exist or its
// deletion is already reserved.
func (t *tally) leave(input log.Dot) (StorageUsage, bool) {
	size, ok := t.inputs[input]
	if !ok || size.leaves {
		return StorageUsage{}, false
	}
	size.leaves = true
	t.inputs[input] = size
	room := size.usage()
	return StorageUsage{-room.Inputs, -room.Bytes}, true
}

// settle ends a reservation.
func (t *tally) settle(dot log.Dot) {
	if room, ok := t.reserved[dot]; ok {
		t.pending.sub(room)
		delete(t.reserved, dot)
	}
}

// forget drops the counts of an application that was deleted, or whose account has no limits.
func (s *storage) forget(app catalog.AppID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tallies, app)
}

// Prepare implements [partition.Quota].
func (q appQuota) Prepare(bodies []log.Body) error {
	if !slices.ContainsFunc(bodies, needsRoom) {
		return nil
	}
	account, _, limited, err := q.of(q.app.String())
	switch {
	case err != nil:
		return err
	case !limited:
		q.forget(q.app)
		return nil
	}
	_, err = q.count(account)
	return err
}

// Reserve implements [partition.Quota].
func (q appQuota) Reserve(ops []log.Op) (refused []string, err error) {
	if !slices.ContainsFunc(ops, func(op log.Op) bool { return needsRoom(op.Body) }) {
		return nil, nil
	}
	account, limits, limited, err := q.of(q.app.String())
	if err != nil || !limited {
		return nil, err
	}
	apps, err := q.appsOf(account)
	if err != nil {
		return nil, err
	}
	rooms := make([]StorageUsage, len(ops))
	for i := range ops {
		if !needsRoom(ops[i].Body) {
			continue
		}
		if rooms[i], err = q.room(&ops[i]); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tallies[q.app]
	if t == nil { // the account had no limits when Prepare looked
		return nil, nil
	}
	all := q.sum(apps, true)
	refused = make([]string, len(ops))
	for i, room := range rooms {
		if b, ok := ops[i].Body.(*log.InputDelete); ok { // frees room for the operations after it
			if room, ok = t.leave(b.Input); ok {
				all.add(room)
				t.reserve(ops[i].Dot, room)
			}
			continue
		}
		switch {
		case room == StorageUsage{}:
		case limits.Inputs > 0 && room.Inputs > 0 && all.Inputs+room.Inputs > limits.Inputs:
			refused[i] = fmt.Sprintf("the account may store %d inputs; %s", limits.Inputs, limits.Advice)
		case limits.Bytes > 0 && all.Bytes+room.Bytes > limits.Bytes:
			refused[i] = fmt.Sprintf("the account may store %s; %s", sizeText(limits.Bytes), limits.Advice)
		default:
			all.add(room)
			t.reserve(ops[i].Dot, room)
		}
	}
	return refused, nil
}

// sizeText returns n bytes as text, in the largest unit that divides n.
func sizeText(n int64) string {
	for _, unit := range []struct {
		shift int
		name  string
	}{{30, "GB"}, {20, "MB"}, {10, "KB"}} {
		if n >= 1<<unit.shift && n%(1<<unit.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>unit.shift, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// Cancel implements [partition.Quota].
func (q appQuota) Cancel(ops []log.Op) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.tallies[q.app]; t != nil {
		for i := range ops {
			t.settle(ops[i].Dot)
			if b, ok := ops[i].Body.(*log.InputDelete); ok {
				if size, ok := t.inputs[b.Input]; ok {
					size.leaves = false
					t.inputs[b.Input] = size
				}
			}
		}
	}
}

// Settle implements [partition.Quota]. A picture whose size cannot be read counts as 0 bytes.
func (q appQuota) Settle(entries []log.Entry, o fold.Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tallies[q.app]
	if t == nil {
		return
	}
	for i := range entries {
		t.settle(entries[i].Op.Dot)
	}
	if o.DeletedAll {
		t.stored = StorageUsage{}
		clear(t.inputs)
	}
	for _, c := range o.Changes {
		switch {
		case c.After != nil:
			_ = q.put(t, c.After)
		case c.Before != nil:
			t.drop(c.Before.Dot)
		}
	}
}
