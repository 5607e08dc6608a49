package collection

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/system"
)

func isPicture(start []byte) bool { return bytes.HasPrefix(start, []byte("picture")) }

func open(t *testing.T, fsys fs.FS, name string, o Options) *Source {
	t.Helper()
	s, err := Open(Files{FS: fsys, IsPicture: isPicture}, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func all(t *testing.T, s *Source) (inputs []Input) {
	t.Helper()
	if err := s.Inputs(func(in Input) error { inputs = append(inputs, in); return nil }); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count(); n != len(inputs) || err != nil {
		t.Errorf("Count = %d, %v; want %d", n, err, len(inputs))
	}
	return inputs
}

func TestFolderOfPictures(t *testing.T) {
	long := "cats/" + strings.Repeat("x", 140) + ".jpg"
	fsys := fstest.MapFS{
		"b.jpg":        {Data: []byte("picture b")},
		"cats/a.jpg":   {Data: []byte("picture a")},
		long:           {Data: []byte("picture long")},
		"cats/t.txt":   {Data: []byte("no picture")},
		"cats/c\n.jpg": {Data: []byte("picture control")},
		"status":       {Data: []byte("picture of a reserved name")},
	}
	s := open(t, fsys, "", Options{FolderConcepts: true})
	got := map[string]Input{}
	for _, in := range all(t, s) {
		got[in.Path] = in
		if data, err := s.Read(&in); err != nil || !bytes.Equal(data, fsys[in.Path].Data) {
			t.Errorf("Read(%q) = %q, %v", in.Path, data, err)
		}
	}
	if len(got) != 5 || got["b.jpg"].ID != "b.jpg" || got["cats/a.jpg"].ID != "cats/a.jpg" {
		t.Errorf("got %v", got)
	}
	for _, name := range []string{long, "cats/c\n.jpg", "status"} {
		if id := got[name].ID; len(id) != 32 {
			t.Errorf("the id of %q is %q, want 32 hex digits", name, id)
		}
	}
	if c := got["cats/a.jpg"].Concepts; !slices.Equal(c, []Concept{{ID: "cats"}}) || got["b.jpg"].Concepts != nil {
		t.Errorf("concepts of folders: %v", c)
	}
}

func TestLines(t *testing.T) {
	manifest := strings.Join([]string{
		`{"id":"a","url":"http://x/1.jpg","concepts":["cat",{"id":"dog","value":false},{"id":"cow","value":1}],"metadata":{"b": [1, 2.0]},"geo":{"longitude":1,"latitude":2}}`,
		``,
		`{"id":null,"data":{"image":{"url":"http://x/1.jpg","crop":[0,0,1,0.5],"allow_duplicate_url":true},"concepts":[{"id":"x","value":0}],"metadata":null},"status":{"code":30000}}`,
		`{"url":"http://x/1.jpg"}`,
		`{"url":"http://x/1.jpg"}`,
		`{"path":"p/1.jpg"}`,
		`{"path":"p/1.jpg","sha256":"` + strings.Repeat("1", 64) + `"}`,
		`{"base64":"cGljdHVyZQ=="}`,
		`{"id":"bad value","path":"p/1.jpg","concepts":[{"id":"x","value":0.5}]}`,
		`{"id":"bad base64","base64":"!"}`,
		`{"id":"nothing"}`,
		`{"id":`,
	}, "\n")
	fsys := fstest.MapFS{"inputs.jsonl": {Data: []byte(manifest)}, "p/1.jpg": {Data: []byte("picture")}}
	s := open(t, fsys, "", Options{})
	in := all(t, s)
	if len(in) != 11 {
		t.Fatalf("%d inputs", len(in))
	}
	want := Input{
		ID: "a", Name: "inputs.jsonl:1", URL: "http://x/1.jpg", Concepts: []Concept{{"cat", false}, {"dog", true}, {"cow", false}},
		Metadata: json.RawMessage(`{"b": [1, 2.0]}`), Geo: json.RawMessage(`{"longitude":1,"latitude":2}`),
	}
	if d := cmp.Diff(want, in[0]); d != "" {
		t.Errorf("line 1 (-want +got):\n%s", d)
	}
	second := in[1]
	if second.ID == "" || second.Name != "inputs.jsonl:3" || string(second.Crop) != "[0,0,1,0.5]" || !second.AllowDuplicateURL || second.Metadata != nil || !second.Concepts[0].False {
		t.Errorf("line 3 = %+v", second)
	}
	if in[2].ID == in[3].ID || in[2].ID == second.ID || len(in[2].ID) != 32 {
		t.Errorf("ids of equal addresses: %q, %q, %q", second.ID, in[2].ID, in[3].ID)
	}
	if in[4].ID != "p/1.jpg" || in[5].ID == in[4].ID {
		t.Errorf("ids of one path: %q, %q", in[4].ID, in[5].ID)
	}
	if data, err := s.Read(&in[4]); string(data) != "picture" || err != nil {
		t.Errorf("Read = %q, %v", data, err)
	}
	if _, err := s.Read(&in[5]); !errors.Is(err, ErrPicture) {
		t.Errorf("Read of another picture = %v, want ErrPicture", err)
	}
	if data, err := s.Read(&in[6]); string(data) != "picture" || err != nil {
		t.Errorf("Read of base64 = %q, %v", data, err)
	}
	for _, i := range in[7:] {
		if i.Err == nil {
			t.Errorf("%+v has no error", i)
		}
	}
	again := all(t, open(t, fsys, "", Options{}))
	for i := range in {
		if again[i].ID != in[i].ID {
			t.Errorf("read again, input %d is %q and was %q", i, again[i].ID, in[i].ID)
		}
	}
}

func TestTable(t *testing.T) {
	table := "\xef\xbb\xbfid,path,concepts,not_concepts,lat,lon,metadata.a.b,Metadata.c\n"
	s := open(t, fstest.MapFS{"t.csv": {Data: []byte(table)}}, "t.csv", Options{})
	if err := s.Inputs(nil); !errors.Is(err, ErrFormat) {
		t.Errorf("an unknown column: %v, want ErrFormat", err)
	}
	table = "\xef\xbb\xbfid,path,concepts,not_concepts,lat,lon,metadata.a.b,metadata.c\n" +
		"1,x.jpg,cat; dog,cow,48.5,-11,7,true\n" +
		",x.jpg,,,,,007,\"x, \"\"y\"\"\"\n" +
		"3,x.jpg,,,1,,,\n" +
		"4,x.jpg\n" +
		"5,x.jpg,,,NaN,1,,\n" +
		"6,,,,,,,\n" +
		"\"7\"x,,,,,,,\n"
	in := all(t, open(t, fstest.MapFS{"t.csv": {Data: []byte(table)}}, "t.csv", Options{}))
	if len(in) != 7 {
		t.Fatalf("%d inputs: %+v", len(in), in)
	}
	want := Input{
		ID: "1", Name: "x.jpg", Path: "x.jpg", Concepts: []Concept{{"cat", false}, {"dog", false}, {"cow", true}},
		Metadata: json.RawMessage(`{"a":{"b":7},"c":true}`), Geo: json.RawMessage(`{"geo_point":{"latitude":48.5,"longitude":-11}}`),
	}
	if d := cmp.Diff(want, in[0]); d != "" {
		t.Errorf("row 1 (-want +got):\n%s", d)
	}
	if got := string(in[1].Metadata); got != `{"a":{"b":"007"},"c":"x, \"y\""}` {
		t.Errorf("metadata of row 2 = %s", got)
	}
	for i, line := range []int{4, 5, 6, 7, 8} {
		if got := in[2+i]; got.Err == nil || got.Path == "" && got.Name != fmt.Sprintf("t.csv:%d", line) {
			t.Errorf("row %d = %+v, want an error", line, got)
		}
	}
}

// utf16File returns a text in UTF-16 with a byte order mark.
func utf16File(order binary.AppendByteOrder, text string) (b []byte) {
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return b
}

// TestSpreadsheets reads tables and lines as spreadsheets and editors write them: with semicolons or tabs, decimal commas, byte order marks and
// in UTF-16.
func TestSpreadsheets(t *testing.T) {
	const semicolons = "id;path;concepts;lat;lon;metadata.note\r\na;a.jpg;\"cat;dog\";47,5;-12.25;\"Größe, 1,5\"\r\n"
	tabs := strings.NewReplacer("\";", "\"\t", ";path", "\tpath", ";concepts", "\tconcepts", ";l", "\tl", ";m", "\tm", "a;a.jpg;", "a\ta.jpg\t", "5;", "5\t").Replace(semicolons)
	commas := "id,path,concepts,lat,lon,metadata.note\na,a.jpg,cat;dog,47.5,-12.25,\"Größe, 1,5\"\n"
	line := `{"id":"a","path":"a.jpg","concepts":["cat","dog"],"geo":{"geo_point":{"latitude":47.5,"longitude":-12.25}},"metadata":{"note":"Größe, 1,5"}}`
	for name, list := range map[string][]byte{
		"semicolons.csv": []byte(semicolons), "tabs.tsv": []byte(tabs), "tabs.csv": []byte(tabs), "commas.csv": []byte(commas),
		"mark.csv": []byte("\ufeff" + semicolons), "mark.jsonl": []byte("\ufeff" + line), "LINES.NDJSON": []byte(line + "\r\n"),
		"little.csv": utf16File(binary.LittleEndian, semicolons), "big.csv": utf16File(binary.BigEndian, commas), "little.tsv": utf16File(binary.LittleEndian, tabs),
		"little.jsonl": utf16File(binary.LittleEndian, line+"\r\n"),
	} {
		s := open(t, fstest.MapFS{name: {Data: list}, "a.jpg": {Data: []byte("picture")}}, name, Options{})
		in := all(t, s)
		if len(in) != 1 || in[0].Err != nil {
			t.Errorf("%s: %+v", name, in)
			continue
		}
		want := []Concept{{ID: "cat"}, {ID: "dog"}}
		if in[0].ID != "a" || in[0].Path != "a.jpg" || !slices.Equal(in[0].Concepts, want) ||
			string(in[0].Geo) != `{"geo_point":{"latitude":47.5,"longitude":-12.25}}` || string(in[0].Metadata) != `{"note":"Größe, 1,5"}` {
			t.Errorf("%s: %s %s %+v", name, in[0].Geo, in[0].Metadata, in[0])
		}
	}
	for name, list := range map[string]string{
		"decimal comma between commas": "path,lat,lon\na.jpg,\"47,5\",1\n",
		"two commas":                   "path;lat;lon\na.jpg;1,047,5;1\n",
		"comma and point":              "path;lat;lon\na.jpg;1,047.5;1\n",
		"Windows-1252":                 "path;concepts\na.jpg;Stra\xdfe\n",
	} {
		if in := all(t, open(t, fstest.MapFS{"a.csv": {Data: []byte(list)}}, "a.csv", Options{})); len(in) != 1 || in[0].Err == nil {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

func TestExportIsReadBack(t *testing.T) {
	inputs := []Input{
		{ID: "a/1", URL: "http://x/1.jpg", Crop: json.RawMessage("[0,0,1,1]"), Concepts: []Concept{{"cat", false}, {"dog", true}}, Metadata: json.RawMessage(`{"k":1.0}`), Geo: json.RawMessage(`{"geo_point":{"longitude":1,"latitude":2}}`)},
		{ID: "b"},
		{ID: "c"},
	}
	pictures := [][]byte{[]byte("picture 1"), []byte("picture 2"), []byte("picture 1")}
	for _, kind := range []string{"folder", "zip"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			var target Target
			if kind == "zip" {
				f, err := os.Create(filepath.Join(dir, "x.zip"))
				if err != nil {
					t.Fatal(err)
				}
				target = NewZip(f)
			} else {
				f, err := system.OpenFolder(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				target = NewFolder(f)
			}
			w := Create(target, system.Spool)
			for i := range inputs {
				if err := w.Input(&inputs[i], pictures[i], "image/jpeg"); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Line(ModelsFile, map[string]string{"id": "m"}); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			fsys := os.DirFS(dir)
			if kind == "zip" {
				z, err := zip.OpenReader(filepath.Join(dir, "x.zip"))
				if err != nil {
					t.Fatal(err)
				}
				defer z.Close()
				fsys = z
			}
			s := open(t, fsys, "", Options{})
			m, ok, err := s.Manifest()
			if !ok || err != nil || m.Counts[InputsFile] != 3 || m.Counts[PicturesDir] != 2 {
				t.Errorf("Manifest = %+v, %v, %v", m, ok, err)
			}
			got := all(t, s)
			for i, in := range got {
				data, err := s.Read(&in)
				if err != nil || !bytes.Equal(data, pictures[i]) || in.Hash != blob.Sum(pictures[i]) || filepath.Ext(in.Path) != ".jpg" {
					t.Errorf("picture %d = %q of %s, %v", i, data, in.Path, err)
				}
				in.Path, in.Name, in.Hash = "", "", blob.Hash{}
				if d := cmp.Diff(inputs[i], in); d != "" {
					t.Errorf("input %d (-want +got):\n%s", i, d)
				}
			}
			models := 0
			if err := s.Lines(ModelsFile, func(line json.RawMessage) error { models++; return nil }); err != nil || models != 1 {
				t.Errorf("%d models, %v", models, err)
			}
		})
	}
}

func TestWrongSources(t *testing.T) {
	if _, err := Open(Files{FS: fstest.MapFS{"x.txt": {}}}, "x.txt", Options{}); !errors.Is(err, ErrFormat) {
		t.Errorf("Open of a text = %v, want ErrFormat", err)
	}
	for name, manifest := range map[string]string{"newer": `{"format":"sightline-export","version":99}`, "other": `{"format":"x"}`, "broken": `{`} {
		s := open(t, fstest.MapFS{InputsFile: {}, ManifestFile: {Data: []byte(manifest)}}, "", Options{})
		if _, _, err := s.Manifest(); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: Manifest = %v, want ErrFormat", name, err)
		}
	}
	s := open(t, fstest.MapFS{InputsFile: {Data: []byte(`{"path":"../x"}`)}}, "", Options{})
	in := all(t, s)
	if _, err := s.Read(&in[0]); err == nil {
		t.Error("a path out of the source was read")
	}
}

// TestCameraRaw checks that camera raw is imported with more bytes than other pictures, and exported with its extension.
func TestCameraRaw(t *testing.T) {
	big := make([]byte, 21_000_000)
	files := fstest.MapFS{"a.nef": {Data: append([]byte("II*\x00"), big...)}, "b.jpg": {Data: append([]byte("\xff\xd8\xff"), big...)}}
	s := &Source{files: Files{FS: files}}
	if data, err := s.Read(&Input{Path: "a.nef"}); err != nil || len(data) != 21_000_004 {
		t.Errorf("camera raw: %d bytes, %v", len(data), err)
	}
	if _, err := s.Read(&Input{Path: "b.jpg"}); err == nil || err.Error() != "more than 20000000 bytes" {
		t.Errorf("JPEG: %v", err)
	}
	for contentType, want := range map[string]string{
		"image/x-nikon-nef": ".nef", "image/x-canon-cr3": ".cr3", "image/x-fuji-raf": ".raf", "image/x-dcraw": "", "image/png": ".png", "text/x-a-b": "",
	} {
		if got := extension(contentType); got != want {
			t.Errorf("the extension of %s is %q, want %q", contentType, got, want)
		}
	}
}
