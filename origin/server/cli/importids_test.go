package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/origin/server/collection"
)

// listedApp is a session with an application that stores IDs, hashes and metadata.
type listedApp struct {
	Session
	mu       sync.Mutex
	old      bool // the server does not know show=sha256
	calls    int
	order    []string
	hashes   map[string]blob.Hash
	metadata map[string]string
}

func (a *listedApp) call(_ context.Context, method, address string, body []byte) (reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	at, err := url.Parse(address)
	if err != nil {
		return reply{}, err
	}
	input := func(id string) Object {
		image := Object{}
		if !a.old && strings.Contains(at.RawQuery, "show=sha256") {
			image["sha256"] = a.hashes[id].String()
		}
		return Object{"id": id, "data": Object{"image": image}, "status": Object{"code": downloaded}}
	}
	answer := Object{"status": Object{"code": 10000}}
	id, isSource := strings.CutSuffix(strings.TrimPrefix(at.Path, "/v2/inputs/"), "/source")
	_, exists := a.hashes[id]
	switch {
	case at.Path == "/v2/inputs/status":
		answer["counts"] = counts{Processed: len(a.order)}
	case method == "POST" && at.Path == "/v2/inputs":
		answer["inputs"], err = a.add(body)
	case at.Path == "/v2/inputs":
		n, _ := strconv.Atoi(at.Query().Get("page"))
		rows, _ := strconv.Atoi(at.Query().Get("per_page"))
		var inputs []Object
		for _, id := range a.order[min(len(a.order), (n-1)*rows):min(len(a.order), n*rows)] {
			inputs = append(inputs, input(id))
		}
		answer["inputs"] = inputs
	case !exists:
		return reply{status: 404, body: []byte(`{"status":{"code":11101}}`)}, nil
	case isSource:
		answer["source"] = Object{"sha256": a.hashes[id].String()}
	default:
		answer["input"] = input(id)
	}
	text, err2 := json.Marshal(answer)
	if err == nil {
		err = err2
	}
	return reply{status: 200, body: text}, err
}

func (a *listedApp) add(body []byte) (items []Object, err error) {
	var call struct {
		Inputs []struct {
			ID   string
			Data struct {
				Image    struct{ Base64 []byte }
				Metadata json.RawMessage
			}
		}
	}
	err = json.Unmarshal(body, &call)
	for _, in := range call.Inputs {
		code := downloaded
		if _, exists := a.hashes[in.ID]; exists {
			code = 30100
		} else {
			a.hashes[in.ID], a.metadata[in.ID] = blob.Sum(in.Data.Image.Base64), string(in.Data.Metadata)
			a.order = append(a.order, in.ID)
		}
		items = append(items, Object{"id": in.ID, "status": Object{"code": code}})
	}
	return items, err
}

func newListedApp() *listedApp {
	return &listedApp{hashes: map[string]blob.Hash{}, metadata: map[string]string{}}
}

// importTo imports files, or a list of them, and returns the summary and the number of calls.
func importTo(t *testing.T, app *listedApp, files fstest.MapFS, list string) (importSummary, int) {
	t.Helper()
	if list != "" {
		files["list.csv"] = &fstest.MapFile{Data: []byte(list)}
	}
	name := ""
	if list != "" {
		name = "list.csv"
	}
	source, err := collection.Open(collection.Files{FS: files, IsPicture: IsPicture}, name, collection.Options{})
	if err != nil {
		t.Fatal(err)
	}
	total, err := source.Count()
	if err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	im := newImporter(app, source, total)
	im.keepPaths = true
	im.progress = NewProgress(&report, ProgressOptions{Quiet: true})
	before := app.calls
	if err := im.run(t.Context(), true); err != nil || report.Len() > 0 {
		t.Fatalf("%v %s", err, report.String())
	}
	return im.sum, app.calls - before
}

func gif(content string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("GIF89a" + content)}
}

// TestImportAgain imports 10,000 files twice, the second time in another order and with 100 new ones.
func TestImportAgain(t *testing.T) {
	app, files := newListedApp(), fstest.MapFS{}
	for i := range 10_000 {
		files[fmt.Sprintf("%d/IMG_%04d.JPG", i%7, i)] = gif(strconv.Itoa(i))
	}
	if sum, calls := importTo(t, app, files, ""); sum.Added != 10_000 || calls > 100 {
		t.Errorf("the first import: %+v, %d calls", sum, calls)
	}
	names := []string{}
	for i := range 100 {
		files[fmt.Sprintf("%d/new_%d.JPG", i%7, i)] = gif("new " + strconv.Itoa(i))
	}
	for name := range files {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(path.Base(b), path.Base(a)) })
	if sum, calls := importTo(t, app, files, "path\n"+strings.Join(names, "\n")+"\n"); sum.Added != 100 || sum.Existing != 10_000 || calls > 100 {
		t.Errorf("the second import: %+v, %d calls", sum, calls)
	}
	if sum, calls := importTo(t, app, fstest.MapFS{"0/new_0.JPG": gif("new 0"), "0/new_2.JPG": gif("new")}, ""); sum.Added != 1 || sum.Existing != 1 || calls > 5 {
		t.Errorf("an import of two files into a large application: %+v, %d calls", sum, calls)
	}
}

// TestImportOtherPicture imports pictures whose IDs belong to other pictures, in any order and again.
func TestImportOtherPicture(t *testing.T) {
	long := strings.Repeat("é", 64)
	id := otherID(long, blob.Sum(gif("B").Data))
	if want := strings.Repeat("é", 59) + "~" + blob.Sum(gif("B").Data).String()[:8]; id != want || !form.IsID(id) {
		t.Errorf("otherID = %q, want %q", id, want)
	}
	for _, old := range []bool{false, true} {
		app := newListedApp()
		app.old = old
		cameras := []fstest.MapFS{
			{"IMG_1.JPG": gif("A"), long: gif("A2")}, {"IMG_1.JPG": gif("B"), long: gif("B")}, {"IMG_1.JPG": gif("C"), "x": gif("C")},
		}
		for i, want := range []importSummary{{Inputs: 2, Added: 2}, {Inputs: 2, Added: 2, OtherIDs: 2}, {Inputs: 2, Added: 2, OtherIDs: 1}} {
			if sum, _ := importTo(t, app, cameras[i], ""); sum.Added != want.Added || sum.OtherIDs != want.OtherIDs || sum.Failed > 0 {
				t.Errorf("camera %d: %+v, want %+v", i, sum, want)
			}
		}
		for i := range cameras {
			if sum, _ := importTo(t, app, cameras[2-i], ""); sum.Added != 0 || sum.Existing != 2 {
				t.Errorf("camera %d again: %+v", 2-i, sum)
			}
		}
		if got := app.metadata[id]; got != `{"file":"`+long+`"}` {
			t.Errorf("the metadata of %s are %s", id, got)
		}
		// A list can name the same ID for two pictures, and has its own metadata.
		both := fstest.MapFS{"1.gif": gif("D"), "2.gif": gif("E")}
		if sum, _ := importTo(t, app, both, "id,path,metadata.file\nd,1.gif,mine\nd,2.gif,\nd,1.gif,\n"); sum.Added != 2 || sum.Existing != 1 || sum.OtherIDs != 1 {
			t.Errorf("an ID twice in a list: %+v", sum)
		}
		if got := app.metadata["d"] + app.metadata[otherID("d", blob.Sum(gif("E").Data))]; got != `{"file":"mine"}{"file":"2.gif"}` {
			t.Errorf("the metadata are %s", got)
		}
	}
}

func TestWithFile(t *testing.T) {
	long := strings.Repeat("x", maxFileBytes-1) + "é"
	for _, tt := range []struct{ metadata, file, want string }{
		{``, `a "b"/c.jpg`, `{"file":"a \"b\"/c.jpg"}`},
		{``, long, `{"file":"` + long[:maxFileBytes-1] + `"}`},
		{`{}`, "a", `{"file":"a"}`},
		{` { "k" : 1 } `, "a", `{"file":"a", "k" : 1 } `},
		{`{"file":null}`, "a", `{"file":null}`},
		{`{"x":{"file":1}}`, "a", `{"file":"a","x":{"file":1}}`},
		{`["file"]`, "a", `["file"]`},
		{`"text"`, "a", `"text"`},
		{`{"k":"` + strings.Repeat("x", form.MaxMetaBytes-10) + `"}`, "abc", ""},
		{`{"k":[1` + strings.Repeat(",1", form.MaxMetaMembers-2) + `]}`, "abc", ""},
	} {
		var metadata json.RawMessage
		if tt.metadata != "" {
			metadata = json.RawMessage(tt.metadata)
		}
		if tt.want == "" {
			tt.want = tt.metadata
		}
		if got := string(withFile(metadata, tt.file)); got != tt.want {
			t.Errorf("withFile(%.60s, %.60s) = %.80s, want %.80s", tt.metadata, tt.file, got, tt.want)
		}
	}
}
