package program

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
)

// obstacles creates a folder with four pictures and everything that an import cannot read or leaves out. It returns the names in the reports.
func obstacles(t *testing.T) (dir string, reports []string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"a.png", "latin1-caf\xe9.png", strings.Repeat("long/", 40) + "1.png", "album/status.png"} {
		write(name, dots(t, uint64(i), 16))
	}
	for _, name := range []string{".hidden.png", ".folder/b.png", "@eaDir/a.png/SYNOPHOTO_THUMB.png", "#recycle/old.png", "._a.png", "__MACOSX/a.png"} {
		write(name, dots(t, 9, 16))
	}
	for _, name := range []string{"a.xmp", "a.png.json", "Thumbs.db", "notes.txt"} {
		write(name, []byte("BMW 320d, oil in March"))
	}
	write("empty.jpg", nil)
	for name, target := range map[string]string{
		"link-to-folder": "album", "album/link.png": "../a.png", "out.png": filepath.Join(t.TempDir(), "x.png"), "self": ".",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	reports = []string{"empty.jpg: ", "link-to-folder: ", "album/link.png: ", "out.png: ", "self: "}
	if os.Getuid() > 0 { // root can read everything
		for _, name := range []string{"locked/p.png", "private.png"} {
			write(name, dots(t, 9, 16))
		}
		for name, mode := range map[string]os.FileMode{"locked": 0, "private.png": 0} {
			at := filepath.Join(dir, name)
			if err := os.Chmod(at, mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(at, 0o700) }) // the folder is temporary
			reports = append(reports, name+": ")
		}
	}
	return dir, reports
}

// TestImportContinues imports a folder with every obstacle, twice, and predicts it. All other pictures are added, each obstacle is
// named, and the exit code is 3.
func TestImportContinues(t *testing.T) {
	testkit.SkipRace(t)
	dir, reports := obstacles(t)
	data := newFolder(t)
	check := func(stderr string) {
		t.Helper()
		for _, report := range reports {
			if strings.Count("\n"+stderr, "\n"+report) != 1 {
				t.Errorf("standard error does not name %q once:\n%s", report, stderr)
			}
		}
	}
	code, stdout, stderr := runCode(t, "import", dir, "--data", data)
	want := fmt.Sprintf("4 added, 0 already existed, %d failed; left out: 2 sidecars, 2 thumbnails of a NAS, 2 hidden, 3 system files, 1 of unknown formats\n", len(reports))
	if code != 3 || stdout != want {
		t.Errorf("exit code %d, %q, want %q", code, stdout, want)
	}
	check(stderr)
	if got := importSum(t, 3, dir, "--data", data); got.Added != 0 || got.There != 4 || got.Failed != len(reports) || got.LeftOut["thumbnails"] != 2 {
		t.Errorf("import again = %+v", got)
	}
	if got := importSum(t, 3, dir, "--data", data, "--hidden"); got.Added != 2 || got.There != 4 || got.LeftOut["hidden"] != 0 {
		t.Errorf("import of hidden files = %+v", got)
	}
	names := map[string]bool{}
	out := filepath.Join(t.TempDir(), "out")
	mustRun(t, "export", out, "--data", data)
	text, err := os.ReadFile(filepath.Join(out, "inputs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var in struct {
			ID       string
			Metadata struct{ File string }
		}
		decode(t, line, &in)
		if names[in.Metadata.File] = true; in.ID != in.Metadata.File && len(in.ID) != 32 {
			t.Errorf("the ID of %s is %s", in.Metadata.File, in.ID)
		}
	}
	for _, name := range []string{"a.png", `latin1-caf\xe9.png`, strings.Repeat("long/", 40) + "1.png", "album/status.png", ".hidden.png", ".folder/b.png"} {
		if !names[name] {
			t.Errorf("no metadata have the path %s: %v", name, names)
		}
	}
	code, stdout, stderr = runCode(t, "predict", dir)
	if code != 3 || !strings.Contains(stdout, `latin1-caf\xe9.png`) || !strings.Contains(stderr, fmt.Sprintf("%d pictures, %d failed", 4+len(reports), len(reports))) ||
		!strings.Contains(stderr, "left out: 2 sidecars, 2 thumbnails") {
		t.Errorf("predict: exit code %d\n%s%s", code, stdout, stderr)
	}
	check(strings.ReplaceAll(stderr, dir+"/", ""))
}

// TestImportZipNames imports archives with the names that programs write.
func TestImportZipNames(t *testing.T) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, name := range []string{"Sommer/M\x81nchen.png", `C:\Fotos\1.png`, "twice.png", "twice.png", "twice.png", "../up.png"} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, NonUTF8: true})
		if err == nil {
			_, err = f.Write(dots(t, uint64(min(i, 3)), 16)) // the last three are equal
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name, data := filepath.Join(t.TempDir(), "all.zip"), newFolder(t)
	rewrite(t, name, b.String())
	for i, want := range []importOutput{{Inputs: 6, Added: 5, There: 1, OtherIDs: 1}, {Inputs: 6, There: 6}} {
		if got := importSum(t, 0, name, "--data", data); got.Added != want.Added || got.There != want.There || got.OtherIDs != want.OtherIDs {
			t.Errorf("import %d = %+v, want %+v", i, got, want)
		}
	}
}

// TestImportField imports the archives, the lists, and the folder of the script, of the field test.
func TestImportField(t *testing.T) {
	testkit.SkipRace(t)
	field := func(name string) string { return testkit.DataPath(t, "field", "import", name) }
	ids := func(data string) string {
		out := filepath.Join(t.TempDir(), "out")
		mustRun(t, "export", out, "--data", data)
		text, err := os.ReadFile(filepath.Join(out, "inputs.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for line := range strings.Lines(string(text)) {
			var in struct{ ID json.RawMessage }
			decode(t, line, &in)
			ids = append(ids, string(in.ID))
		}
		return strings.Join(ids, " ")
	}
	for name, want := range map[string]string{
		"windows-cp437.zip":   `"Sommer/München Olympiastadion.jpg" "Sommer/second picture in it.jpg"`,
		"backslash.zip":       `"Fotos/Urlaub 2019/first-picture.jpg" "second-picture-of-three.jpg"`,
		"same-name-twice.zip": `"pictures/IMG_0001-copy.jpg" "pictures/IMG_0001-copy.jpg~`,
		"with-bom.jsonl":      `"bom-1" "bom-2"`,
		"semicolons.csv":      `"semi-1" "semi-2"`,
		"utf16.csv":           `"u16-1" "u16-2"`,
	} {
		data := newFolder(t)
		if got := importSum(t, 0, field(name), "--data", data); got.Added != 2 || !strings.HasPrefix(ids(data), want) {
			t.Errorf("%s: %+v, IDs %s, want %s", name, got, ids(data), want)
		}
	}
	dir, data := t.TempDir(), newFolder(t)
	cameras, err := zip.OpenReader(field("two-cameras.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer cameras.Close()
	if err := os.CopyFS(dir, cameras); err != nil {
		t.Fatal(err)
	}
	for _, camera := range []string{"camera A", "camera B", "camera A"} {
		got := importSum(t, 0, filepath.Join(dir, camera), "--data", data)
		t.Logf("%s: %+v", camera, got)
	}
	if got := ids(data); !strings.HasPrefix(got, `"IMG_0001.JPG" "IMG_0001.JPG~`) || strings.Count(got, "IMG") != 2 {
		t.Errorf("the IDs of two cameras are %s", got)
	}
	sniffed := t.TempDir()
	for _, name := range []string{"BMW service history.txt", "pic-1.jpg"} {
		b, err := os.ReadFile(field(name))
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, filepath.Join(sniffed, name), string(b))
	}
	if got := importSum(t, 0, sniffed, "--data", newFolder(t)); got.Added != 1 || got.Failed != 0 {
		t.Errorf("a text that begins with BM: %+v", got)
	}
	tree := filepath.Join(t.TempDir(), "tree")
	if out, err := exec.Command("sh", field("make_tree.sh"), tree, field("pic-1.jpg"), field("pic-2.jpg")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(tree, "locked"), 0o700) })
	code, stdout, stderr := runCode(t, "import", tree, "--data", newFolder(t))
	want := 3
	if os.Getuid() == 0 {
		want++ // root reads the locked folder
	}
	if code != 3 || !strings.HasPrefix(stdout, fmt.Sprintf("%d added, ", want)) || !strings.Contains(stderr, "empty.jpg: ") || !strings.Contains(stderr, "link-to-folder: ") {
		t.Errorf("the folder of the script: exit code %d\n%s%s", code, stdout, stderr)
	}
}
