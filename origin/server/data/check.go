package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Finding is a fault in a data folder.
type Finding struct {
	Part     string `json:"part"`          // store, audit, log, state, index, pictures, names
	App      string `json:"app,omitempty"` // id of the application it concerns, or control
	Text     string `json:"text"`
	Harmless bool   `json:"harmless,omitempty"` // no acknowledged data is missing or wrong
	Repaired bool   `json:"repaired,omitempty"`

	lost bool // an input's picture is missing
}

// CheckCounts counts the data that a check has read.
type CheckCounts struct {
	Apps     int    `json:"applications"`
	Keys     int    `json:"keys"`
	Entries  uint64 `json:"log_entries"`
	Inputs   int    `json:"inputs"`
	Pictures int    `json:"pictures"`
	Bytes    int64  `json:"picture_bytes"`
}

// Report holds the findings of a check.
type Report struct {
	Findings []Finding   `json:"findings"`
	Checked  CheckCounts `json:"checked"`
}

// OK reports whether all acknowledged data is complete and correct, possibly after repairs.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Harmless && !f.Repaired })
}

// CheckOptions are the options of a check.
type CheckOptions struct {
	Space    index.Space       // space of the base model of the indexes
	Repair   bool              // repair faults that can be repaired without losing data; only for a folder that no process has open
	Progress func(part string) // called at the start of each part of the check; nil: not called
}

// checker is a check in progress.
type checker struct {
	CheckOptions
	store   kv.Store
	blobs   blob.Blobs
	report  Report
	missing []missingPicture
	used    map[blob.Hash]bool // pictures that any application's data names
	local   map[blob.Hash]bool // those of them that no origin can send
	good    map[blob.Hash]bool // existing, undamaged pictures
	damaged []blob.Hash        // pictures whose bytes do not match their hashes
}

// Check reads all data of an open folder and reports the faults. With Repair nothing else in this process may use the folder meanwhile. An
// error means that the check itself failed.
func (f *Folder) Check(ctx context.Context, o CheckOptions) (Report, error) {
	c := newChecker(f.Store, f.Blobs, o)
	err := c.run(ctx, f.Files)
	return c.report, err
}

// CheckInUse checks the folder dir, which another process has open. That process makes checkpoints of its store for the check. CheckInUse
// reads pictures in the folder itself. Additions and deletions in the meantime are not faults.
func CheckInUse(ctx context.Context, dir string, checkpoint func(to string) error, o CheckOptions) (_ Report, err error) {
	folder, err := system.OpenFolder(dir)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	files := readOnly{folder}
	blobs, err := blob.OpenFolder(files, blob.Options{})
	if err != nil {
		return Report{}, err
	}
	o.Repair = false
	var missing []missingPicture
	r, err := withCheckpoint(dir, checkpoint, func(store kv.Store) (r Report, err error) {
		c := newChecker(store, blobs, o)
		err = c.run(ctx, files)
		missing = c.missing
		return c.report, err
	})
	if err != nil || len(missing) == 0 {
		return r, err
	}
	// Pictures are not lost if their inputs were deleted meanwhile, or if the origin has accepted them. So check the missing ones again.
	recheck, err := withCheckpoint(dir, checkpoint, func(store kv.Store) (Report, error) {
		c := newChecker(store, blobs, o)
		for _, m := range missing {
			needed, err := c.needs(m)
			if err != nil {
				return c.report, err
			}
			if needed {
				c.lose(m)
			}
		}
		c.reportMissing()
		return c.report, nil
	})
	r.Findings = append(slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.lost }), recheck.Findings...)
	return r, err
}

// withCheckpoint calls do with a checkpoint of the store, and removes the checkpoint afterwards.
func withCheckpoint(parent string, checkpoint func(to string) error, do func(kv.Store) (Report, error)) (r Report, err error) {
	dir, done, err := system.TempFolder(parent)
	if err != nil {
		return r, err
	}
	defer done()
	if err := checkpoint(filepath.Join(dir, storeDir)); err != nil {
		return r, err
	}
	store, err := pebblekv.Open(filepath.Join(dir, storeDir), pebblekv.Options{FS: storeFS})
	if err != nil {
		return Report{Findings: []Finding{{Part: "store", Text: err.Error()}}}, nil
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return do(store)
}

func newChecker(store kv.Store, blobs blob.Blobs, o CheckOptions) *checker {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return &checker{CheckOptions: o, store: store, blobs: blobs, used: map[blob.Hash]bool{}, local: map[blob.Hash]bool{}, good: map[blob.Hash]bool{}}
}

// run runs all parts of the check.
func (c *checker) run(ctx context.Context, files blob.FS) error {
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{{"store", c.scan}, {"audit log", c.audit}, {"pictures", c.pictures}, {"applications", c.partitions}} {
		c.Progress(part.name)
		if err := part.do(ctx); err != nil {
			return err
		}
	}
	c.reportMissing()
	if err := c.unreferenced(ctx); err != nil {
		return err
	}
	return c.orphans(ctx, files)
}

// missingPicture is a picture that an input needs. If id is empty, a pending or rejected write needs it.
type missingPicture struct {
	app  catalog.AppID
	dot  log.Dot
	id   string
	blob blob.Hash
}

// needs reports whether the application still needs a picture that was missing.
func (c *checker) needs(m missingPicture) (bool, error) {
	copied, err := c.isReplica(m.app)
	if err != nil {
		return false, err
	}
	if copied {
		unsent, err := c.pictureSet(m.app, partition.UnsentPictures)
		return unsent[m.blob], err
	}
	in, err := catalog.Read(c.store, m.app).InputByDot(m.dot)
	if errors.Is(err, catalog.ErrNotFound) {
		return false, nil
	}
	return err == nil && in.Blob == m.blob, err
}

// pictureSet returns the set of an application's pictures that list yields.
func (c *checker) pictureSet(app catalog.AppID, list func(kv.Reader, catalog.AppID, func(blob.Hash) bool) error) (map[blob.Hash]bool, error) {
	all := map[blob.Hash]bool{}
	err := list(c.store, app, func(h blob.Hash) bool {
		all[h] = true
		return true
	})
	return all, err
}

func (c *checker) lose(m missingPicture) { c.missing = append(c.missing, m) }

// reportMissing adds a finding for each missing picture, up to maxFindings.
func (c *checker) reportMissing() {
	for i, m := range c.missing {
		if i == maxFindings {
			c.addFinding(Finding{Part: "pictures", Text: fmt.Sprintf("%d more inputs with missing pictures", len(c.missing)-i), lost: true})
			break
		}
		of := fmt.Sprintf("input %q", m.id)
		if m.id == "" {
			of = "a pending or rejected write"
		}
		c.addFinding(Finding{Part: "pictures", App: title(m.app), Text: fmt.Sprintf("%s: picture %s is missing or damaged", of, m.blob), lost: true})
	}
}

func (c *checker) addFinding(f Finding) { c.report.Findings = append(c.report.Findings, f) }

// damage adds a finding for err and returns nil. If err means that the context has ended, damage returns err.
func (c *checker) damage(part, app string, err error) error {
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		c.addFinding(Finding{Part: part, App: app, Text: err.Error()})
	}
	return nil
}

// scan reads every key. Reading verifies the checksum of every block of the store.
func (c *checker) scan(ctx context.Context) error {
	err := c.store.Scan(nil, nil, func(_, _ []byte) bool {
		c.report.Checked.Keys++
		return c.report.Checked.Keys%4096 != 0 || ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.damage("store", "", err)
}

// audit verifies the hash chain of the audit log.
func (c *checker) audit(context.Context) error {
	_, err := account.VerifyAudit(c.store)
	return c.damage("audit", "", err)
}

// pictures reads every blob and verifies its hash.
func (c *checker) pictures(ctx context.Context) error {
	return c.blobs.Each(ctx, blob.Hash{}, func(h blob.Hash) error {
		err := verify(ctx, c.blobs, h)
		if errors.Is(err, blob.ErrNotFound) {
			return nil // deleted meanwhile
		}
		c.report.Checked.Pictures++
		if errors.Is(err, blob.ErrCorrupt) {
			c.damaged = append(c.damaged, h)
			return nil
		}
		if err != nil {
			return c.damage("pictures", "", err)
		}
		n, err := c.blobs.Len(ctx, h)
		c.report.Checked.Bytes += n
		c.good[h] = true
		return err
	})
}

// partitions checks every application and the control partition.
func (c *checker) partitions(ctx context.Context) error {
	all, err := partitions(c.store)
	if err := c.damage("state", "control", err); err != nil {
		return err
	}
	for _, app := range all {
		if app != catalog.Control {
			c.report.Checked.Apps++
		}
		c.Progress(title(app))
		if err := c.partition(ctx, app); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) partition(ctx context.Context, app catalog.AppID) error {
	l, err := openLog(c.store, app)
	if err != nil {
		return c.damage("log", title(app), err)
	}
	if err := c.log(ctx, l, app); err != nil {
		return err
	}
	if err := c.state(ctx, l, app); err != nil {
		return err
	}
	if app == catalog.Control {
		return nil
	}
	if err := c.index(ctx, app); err != nil {
		return err
	}
	return c.inputs(ctx, app)
}

// log reads every log entry and verifies the chain of their digests.
func (c *checker) log(ctx context.Context, l *log.Store, app catalog.AppID) error {
	next := l.Floor()
	err := l.Read(next, func(e log.Entry) bool {
		next = e.Seq + 1
		c.report.Checked.Entries++
		return e.Seq%4096 != 0 || ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && next != l.Head()+1 {
		err = fmt.Errorf("log ends at entry %d of %d", next-1, l.Head())
	}
	return c.damage("log", title(app), err)
}

// state folds the log again and compares the result with the stored state.
func (c *checker) state(ctx context.Context, l *log.Store, app catalog.AppID) error {
	header, err := catalog.Read(c.store, app).Header()
	if err != nil {
		return c.damage("state", title(app), err)
	}
	if copied, err := c.isReplica(app); copied || err != nil {
		return err // the state results from the origin's log, and sync compares it
	}
	if header.Seq > l.Head() {
		return c.damage("state", title(app), fmt.Errorf("the state includes %d log entries, but the log has only %d", header.Seq, l.Head()))
	}
	if l.Floor() > 1 {
		return nil // the start of the log was trimmed, so the state cannot be derived again
	}
	dir, done, err := system.TempFolder("")
	if err != nil {
		return err
	}
	defer done()
	scratch, err := pebblekv.Open(filepath.Join(dir, storeDir), pebblekv.Options{FS: storeFS})
	if err != nil {
		return err
	}
	defer scratch.Close()
	if err := refold(l, app, header.Seq, scratch); err != nil {
		return c.damage("state", title(app), err)
	}
	want, err := fold.Digest(scratch, app)
	if err != nil {
		return err
	}
	got, err := fold.Digest(c.store, app)
	if err == nil && got != want {
		err = fmt.Errorf("digest is %x, but the log gives %x", got[:8], want[:8])
	}
	if err == nil || !c.Repair {
		return c.damage("state", title(app), err)
	}
	return c.replaceState(ctx, app, scratch, err)
}

// isReplica reports whether a partition's data comes from an origin and not only from its own log.
func (c *checker) isReplica(app catalog.AppID) (bool, error) {
	r := catalog.Read(c.store, catalog.Control)
	if app == catalog.Control {
		return r.HasReplicas()
	}
	_, seq, err := r.AppRecordSeq(app.String())
	return seq > 0, err
}

// replaceState replaces a stored state that differs from its log by the state in scratch.
func (c *checker) replaceState(ctx context.Context, app catalog.AppID, scratch kv.Store, wrong error) error {
	var b kv.Batch
	if err := catalog.ReplaceState(&b, scratch, app); err != nil {
		return c.damage("state", title(app), errors.Join(wrong, err))
	}
	if err := kv.CommitAndWait(c.store, &b); err != nil {
		return err
	}
	c.addFinding(Finding{Part: "state", App: title(app), Text: wrong.Error(), Repaired: true})
	if app == catalog.Control {
		return nil
	}
	x, err := index.Open(c.store, app, index.Options{Space: c.Space})
	if err != nil {
		return err
	}
	return x.Rebuild(ctx)
}

// index compares the index with the records. With Repair it rebuilds an index that differs.
func (c *checker) index(ctx context.Context, app catalog.AppID) error {
	x, err := index.Open(c.store, app, index.Options{Space: c.Space})
	if err == nil {
		err = x.Check(ctx, catalog.Read(c.store, app))
	}
	if err == nil || !c.Repair || x == nil || ctx.Err() != nil {
		return c.damage("index", title(app), err)
	}
	wrong := err
	if err := x.Rebuild(ctx); err != nil {
		return c.damage("index", title(app), errors.Join(wrong, err))
	}
	c.addFinding(Finding{Part: "index", App: title(app), Text: wrong.Error(), Repaired: true})
	return nil
}

// inputs looks for the picture of every input and of every pending or rejected write, and counts the inputs. A replica stores a picture of
// the origin only after a request for it.
func (c *checker) inputs(ctx context.Context, app catalog.AppID) error {
	copied, err1 := c.isReplica(app)
	claimed, err2 := c.pictureSet(app, partition.NeededPictures)
	unsent, err3 := c.pictureSet(app, partition.UnsentPictures) // pictures that may exist only in this replica
	lacks, err4 := partition.LostPictures(c.store, app)         // lost pictures that users have been informed of
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return c.damage("state", title(app), err)
	}
	for h := range claimed {
		c.used[h] = true
	}
	for h := range unsent {
		c.local[h] = true
	}
	r := catalog.Read(c.store, app)
	var n catalog.Counts
	listed := 0
	err := r.Inputs(0, func(in catalog.Input) bool {
		c.report.Checked.Inputs++
		switch in.Code {
		case catalog.InputReady:
			n.Processed++
		case catalog.InputPending:
			n.ToProcess++
		default:
			n.Errors++
		}
		if in.Blob.IsZero() {
			return ctx.Err() == nil
		}
		c.used[in.Blob] = true
		if !copied {
			c.local[in.Blob] = true
		}
		if c.local[in.Blob] && !c.good[in.Blob] {
			if lacks[in.Blob] {
				listed++
			} else {
				c.lose(missingPicture{app, in.Dot, in.ID, in.Blob})
			}
		}
		delete(unsent, in.Blob)
		return ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return c.damage("state", title(app), err)
	}
	if listed > 0 {
		c.addFinding(Finding{
			Part: "pictures", App: title(app), Harmless: true,
			Text: fmt.Sprintf("inputs whose pictures a restore has lost: %d; they are listed as conflicts", listed),
		})
	}
	for h := range unsent {
		if !c.good[h] {
			c.lose(missingPicture{app: app, blob: h})
		}
	}
	counts, err := r.Counts()
	if err == nil && counts != n {
		err = fmt.Errorf("counts are %+v, but %+v were found", counts, n)
	}
	return c.damage("state", title(app), err)
}

// maxFindings is the maximum number of findings of one kind.
const maxFindings = 20

// readAll reports whether the check could read or repair all data that may reference a picture. Otherwise no picture is removed.
func (c *checker) readAll() bool {
	return !slices.ContainsFunc(c.report.Findings, func(f Finding) bool { return !f.Harmless && !f.Repaired && !f.lost })
}

// unreferenced reports damaged pictures that cause no loss: pictures that nothing references, and pictures that a replica can download from
// its origin again once they are deleted.
func (c *checker) unreferenced(ctx context.Context) error {
	known := c.readAll()
	for _, h := range c.damaged {
		f := Finding{Part: "pictures", Text: fmt.Sprintf("%s is damaged", h)}
		switch {
		case c.local[h]:
			continue // already reported as lost
		case known:
			f.Text += ", but it can be downloaded again or is not needed"
			f.Harmless, f.Repaired = true, c.Repair
		}
		if f.Repaired {
			if err := c.blobs.Delete(ctx, h); err != nil {
				return err
			}
		}
		c.addFinding(f)
	}
	return nil
}

// orphans reports pictures that nothing references. With Repair it removes them.
func (c *checker) orphans(ctx context.Context, files blob.FS) error {
	names, err := blob.OpenHosted(blob.HostedOptions{FS: files, Blobs: c.blobs, Random: system.Random, References: func(h blob.Hash) bool { return c.used[h] }})
	if err != nil {
		return c.damage("names", "", err)
	}
	mend := c.Repair && c.readAll()
	if n := names.CountDamaged(); n > 0 {
		c.addFinding(Finding{Part: "names", Text: fmt.Sprintf("%d names of predicted pictures are unreadable", n), Harmless: true, Repaired: mend})
	}
	if !mend {
		return nil
	}
	n, err := names.Collect(ctx)
	if n > 0 {
		c.addFinding(Finding{Part: "pictures", Text: fmt.Sprintf("%d unreferenced pictures", n), Harmless: true, Repaired: true})
	}
	return err
}
