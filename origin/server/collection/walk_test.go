package collection

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// lines returns what a walk found, each with its path if that differs from its name, or with its error.
func (l *Listing) lines() (out []string) {
	for _, f := range l.Found {
		line := PrintableName(f.Name)
		switch {
		case f.Err != nil:
			line += ": " + f.Err.Error()
		case f.Path != f.Name:
			line += " = " + f.Path
		}
		out = append(out, line)
	}
	return out
}

func checkLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// writeTree creates files, with "picture" and the name as their content.
func writeTree(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("picture "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func walkFolder(t *testing.T, dir string, o Options) *Listing {
	t.Helper()
	tree, err := system.OpenTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	return Walk(Files{FS: tree, IsPicture: isPicture}, o)
}

// TestWalkContinues walks a folder with names that are not UTF-8 and with every kind of link.
func TestWalkContinues(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	writeTree(t, outside, "far.jpg")
	writeTree(t, dir, "a.jpg", "latin1-caf\xe9.jpg", "\xff\xfe/\xe9.jpg", "z/last.jpg", ".store/1/key.jpg", ".store/2/x.jpg", ".one.jpg", "loop/b.jpg", "@eaDir/t.jpg")
	if err := os.WriteFile(filepath.Join(dir, "empty.JPG"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"album-link":      "z",                                    // read before, as a folder
		"z/to-a.jpg":      "../a.jpg",                             // read before, as a file
		"annex.jpg":       ".store/1/key.jpg",                     // in a folder that the walk leaves out
		"annex-again.jpg": filepath.Join(dir, ".store/1/key.jpg"), // the same
		"hidden.jpg":      ".one.jpg",
		"store":           ".store/2",
		"zall":            ".store", // has the two above
		"loop/up":         "..",
		"self":            "self",
		"nothing":         "missing.jpg",
		"out.jpg":         filepath.Join(outside, "far.jpg"),
		"out":             outside,
		".hidden-link":    "a.jpg",
		"link.xmp":        "a.jpg",
		"thumbnails":      "@eaDir",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	got := walkFolder(t, dir, Options{})
	checkLines(t, got.lines(), []string{
		"a.jpg",
		"album-link: " + errRepeat.Error(),
		"annex-again.jpg = .store/1/key.jpg", "annex.jpg: " + errRepeat.Error(),
		"empty.JPG: " + errEmpty.Error(),
		"hidden.jpg = .one.jpg",
		`latin1-caf\xe9.jpg`,
		"loop/b.jpg", "loop/up: " + errRepeat.Error(),
		"nothing: link: no such file or directory", "out: " + system.ErrOutside.Error(), "out.jpg: " + system.ErrOutside.Error(), "self: link: EvalSymlinks: too many links", "store/x.jpg = .store/2/x.jpg",
		"z/last.jpg", "z/to-a.jpg: " + errRepeat.Error(),
		`\xff\xfe/\xe9.jpg`,
	})
	if want := map[Reason]int{Hidden: 4, Sidecars: 1, Thumbnails: 2}; !maps.Equal(got.LeftOut, want) {
		t.Errorf("left out %v, want %v", got.LeftOut, want)
	}
}

// broken is a file system with files and folders that cannot be read.
type broken struct{ fstest.MapFS }

var errBroken = errors.New("permission denied")

func (b broken) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "locked") || strings.HasSuffix(name, "private.jpg") {
		return nil, errBroken
	}
	return b.MapFS.Open(name)
}

func (b broken) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := b.MapFS.ReadDir(name)
	switch {
	case strings.HasSuffix(name, "locked"):
		return nil, errBroken
	case name == "shrinking": // a file of it was deleted after the listing, and another could not be listed
		gone, _ := b.MapFS.ReadDir("gone")
		return append(entries, gone...), errBroken
	}
	return entries, err
}

func TestWalkUnreadable(t *testing.T) {
	picture := &fstest.MapFile{Data: []byte("picture")}
	got := Walk(Files{FS: broken{fstest.MapFS{
		"a.jpg": picture, "b/locked/c.jpg": picture, ".d/locked/c.jpg": picture, "@eaDir/private.jpg": picture, "e/private.jpg": picture,
		"shrinking/1.jpg": picture, "gone/2.jpg": picture, "z.jpg": picture,
	}}, IsPicture: isPicture}, Options{})
	checkLines(t, got.lines(), []string{
		"a.jpg", "b/locked: permission denied", "e/private.jpg: permission denied", "gone/2.jpg", "shrinking: permission denied", "shrinking/1.jpg",
		"shrinking/2.jpg: open shrinking/2.jpg: file does not exist", "z.jpg",
	})
	if want := map[Reason]int{Thumbnails: 1}; !maps.Equal(got.LeftOut, want) {
		t.Errorf("left out %v, want %v", got.LeftOut, want)
	}
}

// zipEntry is an entry of an archive for tests.
type zipEntry struct {
	name    string // the bytes in the archive
	utf8    bool   // the flag
	unicode string // the Unicode Path field; ""; none
	wrong   bool   // the field belongs to another name
	madeBy  byte
	mode    fs.FileMode
	secret  bool
}

func zipOf(t *testing.T, entries []zipEntry) fs.FS {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, e := range entries {
		h := &zip.FileHeader{Name: e.name, NonUTF8: !e.utf8}
		if e.utf8 {
			h.Flags |= flagUTF8
		}
		if e.unicode != "" {
			sum := crc32.ChecksumIEEE([]byte(e.name))
			if e.wrong {
				sum++
			}
			field := append(binary.LittleEndian.AppendUint32([]byte{1}, sum), e.unicode...)
			h.Extra = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, fieldUnicodePath), uint16(len(field)))
			h.Extra = append(h.Extra, field...)
		}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		if e.secret {
			h.Flags |= 1
		}
		f, err := w.CreateHeader(h)
		if err == nil && !strings.HasSuffix(e.name, "/") {
			_, err = fmt.Fprintf(f, "picture %d", i)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		t.Fatal(err)
	}
	for i, e := range entries {
		z.File[i].CreatorVersion = uint16(e.madeBy)<<8 | z.File[i].CreatorVersion&0xff
	}
	return OpenZip(z)
}

// zipCases are entries with their names after reading. want has the error after the name, and is "" for an entry that is not a file.
var zipCases = []struct {
	entry zipEntry
	want  string
}{
	{zipEntry{name: "Sommer/M\x81nchen.jpg"}, "Sommer/München.jpg"},
	{zipEntry{name: "Sommer/M\x81nchen.jpg", madeBy: madeByUnix}, "Sommer/München.jpg"},
	{zipEntry{name: "\x80\xff\xe1.jpg"}, "Ç\u00a0ß.jpg"},
	{zipEntry{name: "München.jpg", utf8: true}, "München.jpg"},
	{zipEntry{name: "München.jpg", madeBy: madeByUnix}, "München.jpg"},
	{zipEntry{name: "München.jpg", madeBy: madeByMac}, "München.jpg"},
	{zipEntry{name: "München.jpg"}, "M├╝nchen.jpg"},
	{zipEntry{name: "M\x81nchen.jpg", utf8: true}, `M\x81nchen.jpg`},
	{zipEntry{name: "M_nchen.jpg", unicode: "München.jpg"}, "München.jpg"},
	{zipEntry{name: "M\x81nchen.jpg", unicode: "Zürich.jpg", wrong: true}, "München.jpg"},
	{zipEntry{name: "M\x81nchen.jpg", unicode: "\xff"}, "München.jpg"},
	{zipEntry{name: `Fotos\Urlaub 2019\1.jpg`}, "Fotos/Urlaub 2019/1.jpg"},
	{zipEntry{name: `C:\Users\me\1.jpg`}, "Users/me/1.jpg"},
	{zipEntry{name: "d:/1.jpg"}, "1.jpg"},
	{zipEntry{name: `\\server\share\1.jpg`}, "server/share/1.jpg"},
	{zipEntry{name: "../../etc/./1.jpg"}, "etc/1.jpg"},
	{zipEntry{name: "/abs//1.jpg"}, "abs/1.jpg"},
	{zipEntry{name: "link.jpg", mode: fs.ModeSymlink | 0o777, madeBy: madeByUnix}, "link.jpg: " + errZipLink.Error()},
	{zipEntry{name: "secret.jpg", secret: true}, "secret.jpg: " + errEncrypted.Error()},
	{zipEntry{name: ".."}, ""},
}

func TestZipNames(t *testing.T) {
	for _, tt := range zipCases {
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		checkLines(t, Walk(Files{FS: zipOf(t, []zipEntry{tt.entry}), IsPicture: isPicture}, Options{}).lines(), want)
	}
}

// TestZipEntriesWithEqualNames reads both entries with one name, and makes IDs as for long names where a name is not UTF-8.
func TestZipEntriesWithEqualNames(t *testing.T) {
	s := open(t, zipOf(t, []zipEntry{{name: "a.jpg"}, {name: "b/../a.jpg"}, {name: "\xe9.jpg", utf8: true}, {name: `b\`}, {name: "b/"}, {name: ".a.jpg"}}), "", Options{})
	var got []string
	for _, in := range all(t, s) {
		data, err := s.Read(&in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, in.ID+" "+in.Name+" "+string(data))
	}
	checkLines(t, got, []string{"a.jpg a.jpg picture 0", "a.jpg a.jpg picture 1", digest("path", "\xe9.jpg", 0) + ` \xe9.jpg picture 2`})
	if want := map[Reason]int{Hidden: 1}; !maps.Equal(s.LeftOut(), want) {
		t.Errorf("left out %v, want %v", s.LeftOut(), want)
	}
}
