package data

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
)

// parts returns the parts that the findings are about, each once, in the order of the findings.
func parts(r *Report) string {
	var names []string
	for _, f := range r.Findings {
		if !slices.Contains(names, f.Part) {
			names = append(names, f.Part)
		}
	}
	return strings.Join(names, " ")
}

// TestCheckFindsAndRepairs damages one part of a folder after the other. It checks the folder, repairs it, and checks it again.
func TestCheckFindsAndRepairs(t *testing.T) {
	tests := []struct {
		name   string
		damage func(u *sampleFolder)
		finds  string // parts in the findings
		sound  bool   // the check reports no damage
		after  string // parts in the findings after a repair
	}{
		{"nothing", func(*sampleFolder) {}, "", true, ""},
		{"the log was trimmed", func(u *sampleFolder) {
			p, err := u.world.Engine.Partition(u.app.String())
			if err == nil {
				err = p.Log().Trim(p.Log().Head())
			}
			if err != nil {
				u.t.Fatal(err)
			}
		}, "", true, ""},
		{"a picture is gone", func(u *sampleFolder) {
			if err := u.Blobs.Delete(u.t.Context(), u.picture("i1")); err != nil {
				u.t.Fatal(err)
			}
		}, "pictures", false, "pictures"},
		{"a picture is damaged", func(u *sampleFolder) { damage(u.t, u.Dir, u.picture("i1").String()) }, "pictures", false, "pictures"},
		{"a picture is gone that a restore has lost", func(u *sampleFolder) {
			lost := u.picture("i1")
			if err := u.Blobs.Delete(u.t.Context(), lost); err != nil {
				u.t.Fatal(err)
			}
			u.change(func(b *kv.Batch) {
				partition.PutConflict(b, u.app, &partition.Conflict{
					Op:      log.Op{Dot: log.Dot{Writer: 9, Seq: 1}, Body: &log.InputCreate{Blob: lost}},
					Verdict: fold.Verdict{Code: fold.Refused, Detail: "restore: " + partition.LostPicture},
				})
			})
		}, "pictures", true, ""},
		{"a damaged picture that nothing needs", func(u *sampleFolder) {
			if _, err := u.Blobs.Put(u.t.Context(), strings.NewReader("a stray"), blob.Hash{}); err != nil {
				u.t.Fatal(err)
			}
			damage(u.t, u.Dir, blob.Sum([]byte("a stray")).String())
		}, "pictures", true, ""},
		{"a damaged picture of an application that cannot be read", func(u *sampleFolder) {
			damage(u.t, u.Dir, u.picture("i1").String())
			key := u.lastKey(table(catalog.Control, 'A'))
			u.change(func(b *kv.Batch) { b.Put(key, []byte{0xff}) })
		}, "state pictures", false, "pictures"},
		{"a picture that nothing needs", func(u *sampleFolder) {
			if _, err := u.Blobs.Put(u.t.Context(), strings.NewReader("stray"), blob.Hash{}); err != nil {
				u.t.Fatal(err)
			}
		}, "", true, ""},
		{"a record is not what the log says", func(u *sampleFolder) {
			key := u.lastKey(table(u.app, 'n'))
			u.change(func(b *kv.Batch) { b.Delete(key) })
		}, "state", false, ""},
		{"a record that nothing can read", func(u *sampleFolder) {
			key := u.lastKey(table(u.app, 'i'))
			u.change(func(b *kv.Batch) { b.Put(key, []byte{0xff}) })
		}, "state index", false, ""},
		{"the index lacks something", func(u *sampleFolder) {
			key := u.lastKey(u.app.IndexPrefix())
			u.change(func(b *kv.Batch) { b.Delete(key) })
		}, "index", false, ""},
		{"an entry of the log is gone", func(u *sampleFolder) {
			key := u.lastKey(u.app.LogPrefix())
			u.change(func(b *kv.Batch) { b.Delete(key) })
		}, "log", false, "log"},
		{"the last entry of the log cannot be read", func(u *sampleFolder) {
			key := u.lastKey(u.app.LogPrefix())
			u.change(func(b *kv.Batch) { b.Put(key, []byte{0xff}) })
		}, "log", false, "log"},
		{"an application's record cannot be read", func(u *sampleFolder) {
			key := u.lastKey(table(catalog.Control, 'A'))
			u.change(func(b *kv.Batch) { b.Put(key, []byte{0xff}) })
		}, "state", false, ""},
		{"a name cannot be read", func(u *sampleFolder) {
			err := filepath.WalkDir(filepath.Join(u.Dir, namesDir), func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					err = os.WriteFile(name, []byte("torn"), 0o600)
				}
				return err
			})
			if err != nil {
				u.t.Fatal(err)
			}
		}, "names", true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newSampleFolder(t, t.TempDir())
			tt.damage(u)
			var progress []string
			o := u.options()
			o.Progress = func(part string) { progress = append(progress, part) }
			r, err := u.Check(t.Context(), o)
			if err != nil || r.OK() != tt.sound || !strings.HasPrefix(parts(&r), tt.finds) || tt.finds == "" && len(r.Findings) != 0 {
				t.Errorf("Check = %+v, %v; want findings about %q, sound %v", r, err, tt.finds, tt.sound)
			}
			if len(progress) < 5 || !slices.Equal(progress[:3], []string{"store", "audit log", "pictures"}) {
				t.Errorf("it tells of %q", progress)
			}
			o.Repair = true
			before := u.storedPictures()
			if _, err := u.Check(t.Context(), o); err != nil {
				t.Errorf("repair: %v", err)
			}
			if after := u.storedPictures(); !slices.Equal(after, before) {
				t.Errorf("after the repair the inputs have the pictures %v, before %v", after, before)
			}
			if r, err = u.Check(t.Context(), u.options()); err != nil || r.OK() != (tt.after == "") || tt.after != "" && !strings.HasPrefix(parts(&r), tt.after) {
				t.Errorf("after the repair: %+v, %v; want findings about %q", r, err, tt.after)
			}
		})
	}
}

// TestCheckWithFailedReads makes one read of a repair fail, or that read and all later ones. If something was not read, the folder is not
// reported as undamaged. No picture is lost.
func TestCheckWithFailedReads(t *testing.T) {
	for _, once := range []bool{false, true} {
		u := newSampleFolder(t, t.TempDir())
		store := kvtest.NewFailing(u.Store)
		store.Once = once
		before := u.storedPictures()
		o := u.options()
		o.Repair = true
		for reads := int64(0); ; reads += int64(testkit.Size(t, 10, 5, 1, 1)) {
			store.Left.Store(reads)
			c := newChecker(store, u.Blobs, o)
			err := c.run(t.Context(), u.Files)
			if store.Left.Load() >= 0 {
				if err != nil || !c.report.OK() || reads < 50 {
					t.Errorf("whole after %d reads: %+v, %v", reads, c.report, err)
				}
				break
			}
			if err == nil && c.report.OK() && len(c.report.Findings) == 0 {
				t.Errorf("once %v, read %d fails: nothing is found", once, reads)
			}
			if after := u.storedPictures(); !slices.Equal(after, before) {
				t.Fatalf("once %v, read %d fails: the inputs have the pictures %v, before %v", once, reads, after, before)
			}
		}
	}
}

func TestCheckReportsTwentyLostPictures(t *testing.T) {
	c := newChecker(nil, nil, CheckOptions{})
	c.lose(missingPicture{}) // from a conflict, which names no input
	for range maxFindings + 4 {
		c.lose(missingPicture{id: "x"})
	}
	c.reportMissing()
	if text := c.report.Findings[0].Text; !strings.HasPrefix(text, "a pending or rejected write: picture ") {
		t.Error(text)
	}
	if n := len(c.report.Findings); n != maxFindings+1 || c.report.Findings[maxFindings].Text != "5 more inputs with missing pictures" {
		t.Errorf("%d findings, the last %+v", n, c.report.Findings[n-1])
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	u := newSampleFolder(t, t.TempDir())
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := u.Check(ended, u.options()); !errors.Is(err, context.Canceled) {
		t.Errorf("Check = %v, want context.Canceled", err)
	}
}

// TestCheckInUse checks checkpoints of a folder while a process uses it. The check changes nothing in the folder, and does not report
// deletions in the meantime as losses.
func TestCheckInUse(t *testing.T) {
	u := newSampleFolder(t, t.TempDir())
	checkpoint := func(to string) error { return u.Store.Checkpoint(to) }
	o := u.options()
	o.Repair = true // has no effect on a folder in use
	if _, err := u.Blobs.Put(t.Context(), strings.NewReader("stray"), blob.Hash{}); err != nil {
		t.Fatal(err)
	}
	r, err := CheckInUse(t.Context(), u.Dir, checkpoint, o)
	if err != nil || !r.OK() || len(r.Findings) != 0 || r.Checked.Inputs != 3 {
		t.Fatalf("CheckInUse = %+v, %v", r, err)
	}
	if ok, err := u.Blobs.Has(t.Context(), blob.Sum([]byte("stray"))); !ok || err != nil {
		t.Errorf("it removed a picture: %v", err)
	}

	// An input and its picture are deleted between the first checkpoint and the second.
	deletedPicture := u.picture("i1")
	if err := u.Blobs.Delete(t.Context(), deletedPicture); err != nil {
		t.Fatal(err)
	}
	looks := 0
	r, err = CheckInUse(t.Context(), u.Dir, func(to string) error {
		if looks++; looks == 2 {
			u.call("DELETE", "/v2/inputs/i1", "")
		}
		return checkpoint(to)
	}, o)
	if err != nil || looks != 2 || !r.OK() {
		t.Errorf("an input deleted meanwhile: %+v, %v after %d looks", r, err, looks)
	}

	// If the input still exists, the picture counts as lost.
	if err := u.Blobs.Delete(t.Context(), u.picture("i0")); err != nil {
		t.Fatal(err)
	}
	r, err = CheckInUse(t.Context(), u.Dir, checkpoint, o)
	if err != nil || r.OK() || parts(&r) != "pictures" {
		t.Errorf("a lost picture: %+v, %v", r, err)
	}

	// The checkpoint itself fails.
	trouble := errors.New("no space")
	if _, err := CheckInUse(t.Context(), u.Dir, func(string) error { return trouble }, o); !errors.Is(err, trouble) {
		t.Errorf("without a checkpoint: %v", err)
	}
	r, err = CheckInUse(t.Context(), u.Dir, func(to string) error {
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, "CURRENT"), []byte("another program's"), 0o600)
	}, o)
	if err != nil || r.OK() || parts(&r) != "store" {
		t.Errorf("a store that cannot be opened: %+v, %v", r, err)
	}
	left, err := filepath.Glob(filepath.Join(u.Dir, "*"))
	if err != nil || slices.ContainsFunc(left, func(n string) bool { return strings.Contains(filepath.Base(n), "tmp") }) {
		t.Errorf("it leaves behind %q, %v", left, err)
	}
}

// TestReadOnlyChangesNothing requests every kind of change to files of another process.
func TestReadOnlyChangesNothing(t *testing.T) {
	u := newSampleFolder(t, t.TempDir())
	before := listing(t, u.Dir)
	r := readOnly{u.Files}
	if _, err := r.Create("x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Create = %v", err)
	}
	if err := r.Rename(bootFile, "x"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Rename = %v", err)
	}
	if err := errors.Join(r.Remove("LOCK"), r.MkdirAll("y"), r.SyncDir(".")); err != nil {
		t.Errorf("tidying = %v, want to be left out", err)
	}
	if after := listing(t, u.Dir); !bytes.Equal(before, after) {
		t.Errorf("the folder holds\n%s\nit held\n%s", after, before)
	}
}

func listing(t *testing.T, dir string) []byte {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(n.Name() + "\n")
	}
	return b.Bytes()
}
