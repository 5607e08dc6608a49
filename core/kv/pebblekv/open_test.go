//go:build !wasip1

package pebblekv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/sightline-dev/sightline/core/kv"
)

func create(t testing.TB, fsys vfs.FS, path, text string) {
	t.Helper()
	if err := fsys.MkdirAll(fsys.PathDir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func contents(t testing.TB, fsys vfs.FS, path string) string {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// withSum appends the line with the checksum to a marker's lines.
func withSum(lines string) string {
	return fmt.Sprintf("%ssum %08x\n", lines, crcOf(lines))
}

func TestRefusals(t *testing.T) {
	marker := folder + "/" + markerName
	tests := []struct {
		name  string
		make  func(t *testing.T, fsys vfs.FS)
		want  error
		words string
	}{
		{"another program's store", func(t *testing.T, fsys vfs.FS) {
			db, err := pebble.Open(folder, &pebble.Options{FS: fsys, Logger: logger{&Store{options: logging(io.Discard)}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}, kv.ErrForeign, "belongs to another program"},
		{"other files", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, folder+"/holiday.jpg", "x")
		}, kv.ErrForeign, "such as holiday.jpg"},
		{"a file of that name", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, "a ship's light")
		}, kv.ErrForeign, "SIGHTLINE file was not written by Sightline"},
		{"a newer format", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, withSum(markerMagic+"format 2\nstate folded\nnew line\n"))
		}, kv.ErrNewer, "format 2, but this version reads formats up to 1"},
		{"a newer pebble", func(t *testing.T, fsys vfs.FS) {
			createClosed(t, fsys)
			names, err := fsys.List(folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if strings.HasPrefix(name, "marker.format-version.") {
					create(t, fsys, folder+"/marker.format-version.999999.999", "")
				}
			}
			if err := writeMarker(fsys, folder, stateOpen, nil); err != nil {
				t.Fatal(err)
			}
		}, kv.ErrNewer, "unknown format"},
		{"no format", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, markerMagic+"state open\n")
		}, kv.ErrCorrupt, "format is missing"},
		{"no state", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, withSum(markerMagic+"format 1\n"))
		}, kv.ErrCorrupt, "marker"},
		{"an unknown state", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, withSum(markerMagic+"format 1\nstate asleep\n"))
		}, kv.ErrCorrupt, "marker"},
		{"a torn list", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, withSum(markerMagic+"format 1\nstate sealed\nfile x\n"))
		}, kv.ErrCorrupt, "marker"},
		{"a wrong sum", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, markerMagic+"format 1\nstate open\nsum 00000000\n")
		}, kv.ErrCorrupt, "marker"},
		{"only a marker", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, withSum(markerMagic+"format 1\nstate open\n"))
		}, kv.ErrCorrupt, "manifest is missing"},
		{"a lost file", func(t *testing.T, fsys vfs.FS) {
			create(t, fsys, marker, withSum(markerMagic+"format 1\nstate sealed\nfile MANIFEST-000001 5 00000000\n"))
		}, kv.ErrCorrupt, "MANIFEST-000001 is missing"},
		{"in use", func(t *testing.T, fsys vfs.FS) {
			s := open(t, small(fsys))
			t.Cleanup(func() { s.Close() })
		}, kv.ErrInUse, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := vfs.NewMem()
			tt.make(t, fsys)
			before := fsys.String()
			_, err := Open(folder, small(fsys))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.words) || !strings.Contains(err.Error(), folder) {
				t.Errorf("Open = %v, want %v with %q and the folder", err, tt.want, tt.words)
			}
			if after := fsys.String(); tt.want == kv.ErrForeign && after != before {
				t.Errorf("the folder was changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// createClosed creates a store and closes it.
func createClosed(t *testing.T, fsys vfs.FS) {
	t.Helper()
	if err := open(t, small(fsys)).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHalfCreatedStore: if a crash leaves only the first files of a store, Open returns an empty store.
func TestHalfCreatedStore(t *testing.T) {
	for _, names := range [][]string{nil, {lockName}, {lockName, markerTemp}, {ballastName, lockName}} {
		fsys := vfs.NewMem()
		for _, name := range names {
			create(t, fsys, folder+"/"+name, "torn")
		}
		createClosed(t, fsys)
		if got := contents(t, fsys, folder+"/"+markerName); !strings.Contains(got, "state sealed\nfile 000") {
			t.Errorf("marker after a clean stop:\n%s", got)
		}
	}
}

// TestTornCreation: a crash during creation may have left only some of Pebble's files.
func TestTornCreation(t *testing.T) {
	for _, prefix := range []string{"MANIFEST-", "marker.manifest", "marker.format", "OPTIONS-", "000002.log"} {
		fsys := vfs.NewMem()
		createClosed(t, fsys)
		names, err := fsys.List(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				if err := fsys.Remove(folder + "/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := writeMarker(fsys, folder, stateCreating, nil); err != nil {
			t.Fatal(err)
		}
		createClosed(t, fsys)
	}
}

// TestDamagedMarker: a marker is read as it was written. A marker with a flipped bit or with missing or added bytes is rejected.
func TestDamagedMarker(t *testing.T) {
	wantFiles := []sealedFile{{"MANIFEST-000001", 55, 7}, {"000002.log", 0, 0xffffffff}}
	encoded := marker(stateSealed, wantFiles)
	state, files, err := parseMarker(encoded)
	if err != nil || state != stateSealed || !slices.Equal(files, wantFiles) {
		t.Fatalf("parseMarker = %s, %v, %v, want sealed, %v", state, files, err, wantFiles)
	}
	refused := func(name string, data []byte) {
		t.Helper()
		_, _, err := parseMarker(data)
		if !errors.Is(err, kv.ErrCorrupt) && !errors.Is(err, kv.ErrForeign) && !errors.Is(err, kv.ErrNewer) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	for i := range encoded {
		refused(fmt.Sprintf("cut at %d", i), encoded[:i])
		for bit := range 8 {
			flipped := bytes.Clone(encoded)
			flipped[i] ^= 1 << bit
			refused(fmt.Sprintf("bit %d of byte %d", bit, i), flipped)
		}
	}
	for c := range 256 {
		refused(fmt.Sprintf("byte %d added", c), append(bytes.Clone(encoded), byte(c)))
	}
}

func TestStatesOfTheMarker(t *testing.T) {
	fsys := vfs.NewMem()
	for range 2 {
		s := open(t, small(fsys))
		if got := contents(t, fsys, folder+"/"+markerName); !strings.Contains(got, "state open\n") {
			t.Errorf("marker of an open store:\n%s", got)
		}
		if got := s.db.FormatMajorVersion(); got != pebble.FormatNewest {
			t.Errorf("Pebble's format = %d, want the newest, %d", got, pebble.FormatNewest)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOlderPebble: Open upgrades an older format of Pebble to the newest.
func TestOlderPebble(t *testing.T) {
	fsys := vfs.NewMem()
	db, err := pebble.Open(folder, &pebble.Options{FS: fsys, FormatMajorVersion: pebble.FormatMinSupported, Logger: logger{&Store{options: logging(io.Discard)}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), []byte("v"), pebble.Sync), db.Close(), writeMarker(fsys, folder, stateOpen, nil)); err != nil {
		t.Fatal(err)
	}
	s := open(t, small(fsys))
	defer s.Close()
	if v, err := s.Get([]byte("k")); string(v) != "v" || s.db.FormatMajorVersion() != pebble.FormatNewest {
		t.Errorf("Get = %q, %v; format %d, want the newest", v, err, s.db.FormatMajorVersion())
	}
}

func logging(w io.Writer) Options {
	o := Options{Logger: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	o.setDefaults()
	return o
}

func TestOnRealFiles(t *testing.T) {
	dir := t.TempDir() + "/a/b"
	o := Options{CacheBytes: 1 << 20, MemTableBytes: 64 << 10, Ballast: 1 << 16}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.Default.Stat(dir + "/" + ballastName); err != nil {
		t.Errorf("ballast: %v", err)
	}
	if _, err := Open(dir, o); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("a second Open = %v, want ErrInUse", err)
	}
	b := &kv.Batch{}
	b.Put([]byte("k"), []byte("v"))
	wait, err := s.Commit(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(wait(), s.Checkpoint(dir+".copy"), s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, dir + ".copy"} {
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.Get([]byte("k")); string(v) != "v" {
			t.Errorf("Get after opening again = %q, %v, want v", v, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLockErrors(t *testing.T) {
	other := errors.New("other")
	for err, want := range map[error]error{
		syscall.EAGAIN: kv.ErrInUse, syscall.EACCES: kv.ErrInUse,
		errors.New("lock held by current process"): kv.ErrInUse, other: other,
	} {
		if got := lockError(err); !errors.Is(got, want) {
			t.Errorf("lockError(%v) = %v, want %v", err, got, want)
		}
	}
}

// TestLogger: Pebble's messages are written to the log, and its Fatalf stops the store.
func TestLogger(t *testing.T) {
	var words bytes.Buffer
	o := logging(&words)
	var died error
	o.Fatal = func(err error) { died = err }
	s := &Store{options: o, health: newHealth(&o)}
	if err := s.health.serve(); err != nil {
		t.Fatal(err)
	}
	l := logger{s}
	l.Infof("routine %d", 1)
	l.Errorf("trouble %d", 2)
	l.Fatalf("end %d", 3)
	l.Fatalf("end %d", 4)
	events := s.events()
	events.DiskSlow(pebble.DiskSlowInfo{Path: "slow.log"})
	events.WriteStallBegin(pebble.WriteStallBeginInfo{Reason: "memtables"})
	events.WriteStallEnd()
	for _, want := range []string{"routine 1", "trouble 2", "end 3", "slow.log", "memtables", "writes continue"} {
		if !strings.Contains(words.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, words.String())
		}
	}
	if died == nil || died.Error() != "end 3" || !errors.Is(s.health.failure(), kv.ErrFailed) {
		t.Errorf("Fatal was told %v, failure %v, want end 3 and ErrFailed", died, s.health.failure())
	}
}
