package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestBackupIsRestored restores a backup of a folder in use: it has all data, and the logs of the time of the backup.
func TestBackupIsRestored(t *testing.T) {
	u := newSampleFolder(t, t.TempDir())
	parent := t.TempDir()
	backup, restored := filepath.Join(parent, "backup"), filepath.Join(parent, "restored")
	copied, err := u.Backup(t.Context(), backup, silent)
	if err != nil {
		t.Fatal(err)
	}
	if copied.Files != 3 || copied.Bytes == 0 { // two pictures of inputs, one sent to be predicted
		t.Errorf("backup of %+v, want 3 pictures", copied)
	}
	place := placeOf(t, u.Store, u.app)
	u.call("DELETE", "/v2/inputs/i0", "") // after the backup

	again, err := Restore(t.Context(), backup, restored, silent)
	if err != nil || again != copied {
		t.Fatalf("Restore = %+v, %v, want %+v", again, err, copied)
	}
	f := mustOpen(t, restored, Options{MinFree: 1})
	defer f.Close()
	report, err := f.Check(t.Context(), u.options())
	if err != nil || !report.OK() || len(report.Findings) != 0 || report.Checked.Inputs != 3 || report.Checked.Pictures != 3 || report.Checked.Apps != 1 {
		t.Errorf("the restored folder: %+v, %v", report, err)
	}
	if _, err := catalog.Read(f.Store, u.app).InputByID("i0"); err != nil {
		t.Errorf("an input of the time of the backup: %v", err)
	}
	names, err := blob.OpenHosted(blob.HostedOptions{FS: f.Files, Blobs: f.Blobs, Random: system.Random, References: func(blob.Hash) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := names.Lookup(u.hosted, system.Now()); err != nil {
		t.Errorf("the picture sent to be predicted: %v", err)
	}
	if _, err := f.Bundles(u.set.Base()); err != nil {
		t.Errorf("the bundles of the network that serves: %v", err)
	}
	if note, err := system.ReadIn(f.folder, restoredFile, maxNote); err != nil || string(note) != backup+"\n" {
		t.Errorf("the folder says it comes from %q, %v", note, err)
	}
	if got := placeOf(t, f.Store, u.app); got != place || got == placeOf(t, u.Store, u.app) {
		t.Errorf("the log ends at %s, want %s", got, place)
	}
	if got, want := placeOf(t, f.Store, catalog.Control), placeOf(t, u.Store, catalog.Control); got != want {
		t.Errorf("the control log ends at %s, want %s", got, want)
	}
	if got, err := fold.Digest(f.Store, u.app); err != nil || got == ([32]byte{}) {
		t.Errorf("digest %x, %v", got, err)
	}
}

// TestOnlyOwnerCanReadFolder walks a data folder, its backup in a folder that everyone may enter, and a data folder restored of it. Folders
// have mode 0700 and files 0600.
func TestOnlyOwnerCanReadFolder(t *testing.T) {
	parent := t.TempDir()
	dir, backup, restored := filepath.Join(parent, "data"), filepath.Join(parent, "backup"), filepath.Join(parent, "restored")
	if err := os.Mkdir(backup, 0o755); err != nil {
		t.Fatal(err)
	}
	u := newSampleFolder(t, dir)
	if err := u.Store.Compact(t.Context(), []byte{0}, []byte{0xff}); err != nil { // writes a table
		t.Fatal(err)
	}
	if _, err := u.Backup(t.Context(), backup, silent); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), backup, restored, silent); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{dir, backup, restored} {
		seen := map[string]bool{}
		err := filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
			if err != nil || name == backup { // the mode of a folder that exists is its owner's choice
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			want := os.FileMode(0o600)
			if d.IsDir() {
				want = os.ModeDir | 0o700
			}
			if info.Mode() != want {
				t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
			}
			seen[filepath.Ext(name)] = true
			return nil
		})
		if err != nil || !seen[".sst"] || !seen[".log"] {
			t.Errorf("%s: %v, with files %v", root, err, seen)
		}
	}
}

// A folder that nothing was done with has neither pictures nor names nor bundles.
func TestEmptyFolderIsRestored(t *testing.T) {
	f := mustOpen(t, t.TempDir(), Options{MinFree: 1})
	defer f.Close()
	parent := t.TempDir()
	backup, restored := filepath.Join(parent, "backup"), filepath.Join(parent, "restored")
	if copied, err := f.Backup(t.Context(), backup, silent); err != nil || copied != (control.BackupStats{}) {
		t.Fatalf("Backup = %+v, %v", copied, err)
	}
	if copied, err := Restore(t.Context(), backup, restored, silent); err != nil || copied != (control.BackupStats{}) {
		t.Fatalf("Restore = %+v, %v", copied, err)
	}
	folder := mustOpen(t, restored, Options{MinFree: 1})
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
}

// TestBackupOmitsCluster backs up the folder of a cluster's node. Its backup, and a folder restored of it, have no identity of the node, no
// etcd and no cache.
func TestBackupOmitsCluster(t *testing.T) {
	parent := t.TempDir()
	dir, backup, restored := filepath.Join(parent, "data"), filepath.Join(parent, "backup"), filepath.Join(parent, "restored")
	u := newSampleFolder(t, dir)
	for _, name := range []string{identity.FileName, "etcd/member/wal/0.wal", "etcd-tls/node-key.pem", "cache/3f/3f9a"} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("secret"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.Backup(t.Context(), backup, silent); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), backup, restored, silent); err != nil {
		t.Fatal(err)
	}
	expected := []string{storeDir, "blobs", "blobs.new", namesDir, bundlesDir, backupFile, restoredFile, "LOCK"}
	for _, root := range []string{backup, restored} {
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) == 0 {
			t.Errorf("%s holds %v, %v", root, entries, err)
		}
		for _, e := range entries {
			if !slices.Contains(expected, e.Name()) {
				t.Errorf("%s holds %s", root, e.Name())
			}
		}
	}
}

// placeOf returns the last place of a log: its epoch, entry and chain.
func placeOf(t *testing.T, store kv.Store, app catalog.AppID) string {
	t.Helper()
	l, err := openLog(store, app)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := l.Chain(l.Head())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x %d %x", l.EpochOf(l.Head()).Epoch, l.Head(), chain)
}

func TestInvalidBackups(t *testing.T) {
	u := newSampleFolder(t, t.TempDir())
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"relative", full} {
		if _, err := u.Backup(t.Context(), to, silent); !errors.Is(err, control.ErrArgument) {
			t.Errorf("Backup to %s = %v, want ErrArgument", to, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := u.Backup(ended, filepath.Join(t.TempDir(), "b"), silent); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup without time = %v", err)
	}
	damage(t, u.Dir, u.picture("i0").String())
	to := filepath.Join(t.TempDir(), "b")
	if _, err := u.Backup(t.Context(), to, silent); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Backup of a damaged picture = %v, want ErrCorrupt", err)
	}
	if _, err := Restore(t.Context(), to, filepath.Join(t.TempDir(), "r"), silent); !errors.Is(err, ErrBackup) {
		t.Errorf("Restore of half a backup = %v, want ErrBackup", err)
	}
}

func TestInvalidRestores(t *testing.T) {
	u := newSampleFolder(t, t.TempDir())
	backup := filepath.Join(t.TempDir(), "b")
	if _, err := u.Backup(t.Context(), backup, silent); err != nil {
		t.Fatal(err)
	}
	fresh := func() string { return filepath.Join(t.TempDir(), "r") }
	for _, from := range []string{filepath.Join(backup, "missing"), t.TempDir(), filepath.Join(backup, backupFile)} {
		if _, err := Restore(t.Context(), from, fresh(), silent); !errors.Is(err, ErrBackup) {
			t.Errorf("Restore of %s = %v, want ErrBackup", from, err)
		}
	}
	if _, err := Restore(t.Context(), backup, u.Dir, silent); err == nil {
		t.Error("Restore wrote into a folder that is in use")
	}
	note := filepath.Join(backup, backupFile)
	for text, want := range map[string]error{
		`{"format":"sightline-backup","version":2}`: kv.ErrNewer, `{"format":"another","version":1}`: ErrBackup, `{`: ErrBackup,
	} {
		if err := os.WriteFile(note, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), backup, fresh(), silent); !errors.Is(err, want) {
			t.Errorf("Restore with the note %s = %v, want %v", text, err, want)
		}
	}
	if err := os.WriteFile(note, []byte(`{"format":"sightline-backup","version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	damage(t, backup, u.picture("i1").String())
	if _, err := Restore(t.Context(), backup, fresh(), silent); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Restore of a damaged picture = %v, want ErrCorrupt", err)
	}
	if err := os.Truncate(filepath.Join(backup, storeDir, "SIGHTLINE"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), backup, fresh(), silent); err == nil {
		t.Error("Restore of a damaged store is no error")
	}
}

// TestFailedBackupsLeaveNothing has a backup and a restore fail in the middle. The new folder is empty then, so that a full disk has its
// space again, and the folder that was backed up takes writes. The folder of a killed restore does not open.
func TestFailedBackupsLeaveNothing(t *testing.T) {
	empty := func(dir string) {
		t.Helper()
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%s holds %v, %v, want nothing", dir, names, err)
		}
	}
	u := newSampleFolder(t, t.TempDir())
	backup, to := filepath.Join(t.TempDir(), "b"), filepath.Join(t.TempDir(), "r")
	if _, err := u.Backup(t.Context(), backup, silent); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{u.Dir, backup} {
		damage(t, dir, u.picture("i1").String())
	}
	if _, err := u.Backup(t.Context(), to, silent); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Backup of a damaged picture = %v, want ErrCorrupt", err)
	}
	empty(to)
	if err := commit(u.Folder, "k", "v"); err != nil {
		t.Errorf("a write after a backup that failed: %v", err)
	}
	if _, err := Restore(t.Context(), backup, to, silent); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("Restore of a damaged picture = %v, want ErrCorrupt", err)
	}
	empty(to)
	if err := os.WriteFile(filepath.Join(u.Dir, restoringFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(u.Dir, Options{MinFree: 1}); err == nil || !strings.Contains(err.Error(), "incomplete restore") {
		t.Errorf("Open of half a restored folder = %v, %v", f, err)
	}
}

// TestBackupWithoutSpace has the store's copy find no space. The error names the full disk, nothing is left, and the folder takes writes.
func TestBackupWithoutSpace(t *testing.T) {
	to := filepath.Join(t.TempDir(), "b")
	full := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, to+"/store/") {
			return syscall.ENOSPC
		}
		return nil
	})
	f := mustOpen(t, t.TempDir(), Options{MinFree: 1, StoreFS: errorfs.Wrap(vfs.Default, full)})
	defer f.Close()
	if _, err := f.Backup(t.Context(), to, silent); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Backup without space = %v, want ErrFull", err)
	}
	if names, err := os.ReadDir(to); err != nil || len(names) > 0 {
		t.Errorf("the backup holds %v, %v, want nothing", names, err)
	}
	if err := commit(f, "k", "v"); err != nil {
		t.Errorf("a write after a backup without space: %v", err)
	}
}
