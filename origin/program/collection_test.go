package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold/foldtest"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// contentDigest returns the digest of the only application of a folder. No process may have the folder open.
func contentDigest(t testing.TB, dir string) string {
	t.Helper()
	n, err := server.OpenNode(t.Context(), server.FolderSettings(dir, &server.Env{Options: New().Server}), discard, server.Use{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	apps, err := control.Apps.Do(t.Context(), n, control.Nothing{})
	if err != nil || len(apps) != 1 {
		t.Fatalf("%d applications, %v", len(apps), err)
	}
	app, err := catalog.ParseAppID(apps[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := foldtest.ContentDigest(n.Folder.Store, app)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", digest)
}

// importSum runs an import and returns its summary.
func importSum(t testing.TB, wantCode int, args ...string) importOutput {
	t.Helper()
	code, stdout, stderr := runCode(t, append([]string{"import", "--json"}, args...)...)
	if code != wantCode {
		t.Fatalf("import %q: exit code %d, want %d\n%s%s", args, code, wantCode, stdout, stderr)
	}
	var s importOutput
	decode(t, stdout, &s)
	return s
}

// newFolder creates a data folder with one application.
func newFolder(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	mustRun(t, "app", "create", "test", "--data", dir)
	return dir
}

func TestImportFolderAndAgain(t *testing.T) {
	testkit.SkipRace(t)
	album, _ := album(t)
	data := newFolder(t)
	if got := importSum(t, 0, album, "--data", data, "--label-by-folder"); got.Added != 3 || got.Inputs != 3 {
		t.Errorf("import = %+v, want 3 added", got)
	}
	if got := importSum(t, 0, album, "--data", data); got.Added != 0 || got.There != 3 {
		t.Errorf("import again = %+v, want all there", got)
	}
	s := testSettings(t)
	s.Data = data
	_, base := startOrigin(t, s)
	rewrite(t, filepath.Join(album, "broken.jpg"), "\xff\xd8\xff\xe0 no picture")
	got := importSum(t, 3, album, "--url", base, "--key", keyOf(strings.TrimPrefix(base, "http://")))
	if got.There != 3 || got.Failed != 1 {
		t.Errorf("import over HTTP = %+v, want 3 there and 1 failed", got)
	}
	out := mustRun(t, "search", "--label", "a", "--data", data, "--json")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, `"id":"a/turtle"`) {
		t.Errorf("search by the folder's concept: %s", out)
	}
}

func TestImportManyFormats(t *testing.T) {
	dir, _ := album(t)
	pictureServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/turtle" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(sample(t, "09-sea-turtle.jpg"))
	}))
	defer pictureServer.Close()
	lines := filepath.Join(dir, "some.jsonl")
	rewrite(t, lines, `{"id":"pizza","path":"b pizza.jpg","concepts":["food"],"metadata":{"a <b> & c": [1, 2.0]},"geo":{"longitude":11.5,"latitude":48},"crop":[0,0,1,0.5]}
{"id":"gone","path":"gone.jpg"}
{"id":"turtle","url":"`+pictureServer.URL+`/turtle","concepts":[{"id":"food","value":false}]}
{"id":"nowhere","url":"`+pictureServer.URL+`/nowhere"}
`)
	s := testSettings(t)
	s.AllowPrivate = true
	_, base := startOrigin(t, s)
	key := keyOf(strings.TrimPrefix(base, "http://"))
	if got := importSum(t, 3, lines, "--url", base, "--key", key); got.Added != 2 || got.Failed != 2 {
		t.Errorf("import of lines = %+v, want 2 added and 2 failed", got)
	}
	table := filepath.Join(dir, "some.csv")
	rewrite(t, table, "id,path,concepts,lat,lon,metadata.shelf\nroadster,c.jpeg,car;red,48.1,11.5,7\npizza,b pizza.jpg,,,,\n")
	if got := importSum(t, 0, table, "--url", base, "--key", key); got.Added != 1 || got.There != 1 {
		t.Errorf("import of a table = %+v, want 1 added", got)
	}
	find := func(args ...string) string {
		out := mustRun(t, append([]string{"search", "--json", "--url", base, "--key", key}, args...)...)
		var ids []string
		for line := range strings.Lines(out) {
			var h struct{ Input struct{ ID string } }
			decode(t, line, &h)
			ids = append(ids, h.Input.ID)
		}
		return strings.Join(ids, " ")
	}
	picture := filepath.Join(dir, "c.jpeg")
	for _, tt := range []struct{ args, want string }{
		{"--label food", "pizza"},
		{"--not-label food", "turtle"},
		{"--label car --label red", "roadster"},
		{`--metadata {"shelf":7}`, "roadster"},
		{`--metadata {"a\u0020<b>\u0020&\u0020c":[2]}`, "pizza"},
		{"--near 48,11.5,1km", "pizza"},
		{"--near 48,11.5,1deg", "pizza roadster"},
		{"--box 47,11,48.05,12", "pizza"},
		{"--id turtle", "turtle"},
		{"--image-url " + pictureServer.URL + "/turtle", "turtle"},
		{"--similar " + picture + " --per-page 1", "roadster"},
		{"--similar id:turtle --per-page 1", "turtle"},
		{"--similar id:turtle --min-score 0.99", "turtle"},
		{"--concept car --per-page 1", "roadster"},
		{"--concept car --language de", ""},
		{"--concept Auto --language de --per-page 1", "roadster"},
		{"--page 2 --per-page 2 --near 0,0,180deg", ""},
	} {
		if got := find(strings.Fields(tt.args)...); got != tt.want {
			t.Errorf("search %s = %q, want %q", tt.args, got, tt.want)
		}
	}
	if out := mustRun(t, "search", "--label", "food", "--url", base, "--key", key); !strings.Contains(out, "1.0000  pizza  food") {
		t.Errorf("the table:\n%s", out)
	}
	for _, where := range [][]string{{"--url", base, "--key", key}, {"--data", s.Data}} {
		code, out, stderr := runCode(t, append([]string{"search", "--label", "foood", "--json"}, where...)...)
		if want := "foood: no such concept; food?\n"; code != 0 || out != "" || stderr != want {
			t.Errorf("search for an unknown name: exit code %d, %q, %q; want %q", code, out, stderr, want)
		}
	}
}

func TestSearchMistakes(t *testing.T) {
	for _, args := range []string{
		"--near 1,2", "--near 1,2,x", "--box 1,2,3", "--metadata {", "--crop 0,0,1,1", "--similar x --crop 1", "--app x", "--data x --key y", "",
	} {
		if code, _, stderr := runCode(t, append([]string{"search"}, strings.Fields(args)...)...); code != 2 {
			t.Errorf("search %s: exit code %d, %s", args, code, stderr)
		}
	}
}

// fill adds one or a few of every kind of record to a server's application.
func fill(t testing.TB, client *http.Client, base string, pictures string) {
	t.Helper()
	send := func(method, path string, body any) {
		t.Helper()
		b, err := collection.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, []byte(`"spread"`), []byte("{\"x\": [1, 2.0, \"<&>\"],\n \"y\":{}}"), 1)
		req, err := http.NewRequest(method, base+path, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != 200 {
			var text bytes.Buffer
			_, _ = text.ReadFrom(res.Body)
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text.String())
		}
	}
	image := func(name string) cli.Object { return cli.Object{"base64": sample(t, name)} }
	send("POST", "/v2/concepts", cli.Object{"concepts": []cli.Object{{"id": "zebra"}, {"id": "c1", "name": "Käse & Brot"}}})
	send("POST", "/v2/inputs", cli.Object{"inputs": []cli.Object{
		{"id": "späte/pizza", "data": cli.Object{
			"image": image("35-slice-of-pizza.jpg"), "concepts": []cli.Object{{"id": "c1", "value": true}, {"id": "zebra", "value": false}},
			"metadata": "spread", "geo": cli.Object{"longitude": 1.25, "latitude": -3},
		}},
		{"data": cli.Object{"image": cli.Object{"base64": sample(t, "35-slice-of-pizza.jpg"), "crop": []float64{0.1, 0.2, 0.9, 0.8}}}},
	}})
	send("POST", "/v2/inputs", cli.Object{"inputs": []cli.Object{
		{"id": "by address", "data": cli.Object{"image": cli.Object{"url": pictures + "/turtle"}, "concepts": []cli.Object{{"id": "turtle"}}}},
	}})
	send("POST", "/v2/inputs", cli.Object{"inputs": []cli.Object{
		{"id": "again", "data": cli.Object{"image": cli.Object{"url": pictures + "/turtle", "allow_duplicate_url": true}}},
		{"id": "to delete", "data": cli.Object{"image": image("04-old-camera.jpg")}},
	}})
	send("PATCH", "/v2/inputs/sp%C3%A4te%2Fpizza/outputs", cli.Object{"action": "merge", "outputs": []cli.Object{{"data": cli.Object{"concepts": []cli.Object{{"id": "c1", "value": 0.25}}}}}})
	send("PATCH", "/v2/inputs/sp%C3%A4te%2Fpizza/outputs", cli.Object{"action": "remove", "outputs": []cli.Object{{"data": cli.Object{"concepts": []cli.Object{{"id": "zebra"}}}}}})
	send("PATCH", "/v2/inputs", cli.Object{"action": "merge", "inputs": []cli.Object{{"id": "again", "data": cli.Object{"metadata": cli.Object{"k": 1}, "concepts": []cli.Object{{"id": "turtle", "value": 1}}}}}})
	send("DELETE", "/v2/inputs/to%20delete", nil)
	send("POST", "/v2/models", cli.Object{"model": cli.Object{"id": "m 1", "name": "Kiosk", "output_info": cli.Object{
		"data":          cli.Object{"concepts": []cli.Object{{"id": "zebra"}, {"id": "c1"}}},
		"output_config": cli.Object{"closed_environment": true, "concepts_mutually_exclusive": false},
	}}})
	send("POST", "/v2/models", cli.Object{"model": cli.Object{"id": "m2"}})
	send("PATCH", "/v2/models", cli.Object{"action": "remove", "models": []cli.Object{{"id": "m 1", "output_info": cli.Object{"data": cli.Object{"concepts": []cli.Object{{"id": "zebra"}}}}}}})
	send("POST", "/v2/workflows", cli.Object{"workflows": []cli.Object{{"id": "w1", "nodes": []cli.Object{{"id": "general", "model": cli.Object{"id": generalID}}}}}})
	send("PATCH", "/v2/concepts", cli.Object{"action": "overwrite", "concepts": []cli.Object{{"id": "zebra", "name": "Zebra"}}})
}

func TestImportedExportIsEqual(t *testing.T) {
	testkit.SkipRace(t)
	turtle := sample(t, "09-sea-turtle.jpg")
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(turtle) }))
	s := testSettings(t)
	s.AllowPrivate = true
	srv, base := startOrigin(t, s)
	fill(t, own(t), base, pictures.URL)
	key := keyOf(strings.TrimPrefix(base, "http://"))
	awaitProcessed(t, own(t), base, 4)
	pictures.Close() // the server cannot download anything again

	dir := t.TempDir()
	mustRun(t, "export", filepath.Join(dir, "by-http.zip"), "--url", base, "--key", key)
	mustRun(t, "export", filepath.Join(dir, "by-socket"), "--data", s.Data)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "export", filepath.Join(dir, "directly.zip"), "--data", s.Data)
	want := contentDigest(t, s.Data)
	for _, name := range []string{"by-http.zip", "by-socket", "directly.zip"} {
		data := newFolder(t)
		got := importSum(t, 0, filepath.Join(dir, name), "--data", data)
		if got.Added != 4 || got.Models != 2 || got.Workflows != 1 || got.Concepts < 2 {
			t.Errorf("%s: import = %+v", name, got)
		}
		if digest := contentDigest(t, data); digest != want {
			t.Errorf("%s: content digest %s, want %s", name, digest, want)
		}
		reimport := importSum(t, 0, filepath.Join(dir, name), "--data", data)
		if reimport.Added != 0 || reimport.There != 4 || reimport.Models != 0 {
			t.Errorf("%s: import again = %+v", name, reimport)
		}
		if digest := contentDigest(t, data); digest != want {
			t.Errorf("%s: content digest after importing again %s, want %s", name, digest, want)
		}
	}
	if code, _, stderr := runCode(t, "export", filepath.Join(dir, "by-socket"), "--data", s.Data); code != 1 || !strings.Contains(stderr, "not empty") {
		t.Errorf("export over another: exit code %d, %s", code, stderr)
	}
	damaged, err := filepath.Glob(filepath.Join(dir, "by-socket", "pictures", "*", "*"))
	if err != nil || len(damaged) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	rewrite(t, damaged[0], "something else")
	code, _, stderr := runCode(t, "import", filepath.Join(dir, "by-socket"), "--data", newFolder(t))
	if code != 3 || !strings.Contains(stderr, "does not match its SHA-256") {
		t.Errorf("a damaged export: exit code %d, %s", code, stderr)
	}
}

// TestExportLacksPicture exports an application that lacks the file of a picture. The export has everything else and reports the input. An
// import reports the input as well.
func TestExportLacksPicture(t *testing.T) {
	testkit.SkipRace(t)
	album, _ := album(t)
	data := newFolder(t)
	importSum(t, 0, album, "--data", data)
	complete := filepath.Join(t.TempDir(), "whole")
	mustRun(t, "export", complete, "--data", data)
	pictures, err := filepath.Glob(filepath.Join(complete, "pictures", "*", "*"))
	if err != nil || len(pictures) != 3 {
		t.Fatalf("pictures %v, %v", pictures, err)
	}
	hash, _, _ := strings.Cut(filepath.Base(pictures[0]), ".")
	removed := 0
	if err := filepath.WalkDir(data, func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.Contains(path, hash[4:]) {
			removed++
			err = os.Remove(path)
		}
		return err
	}); err != nil || removed != 1 {
		t.Fatalf("%d files of the picture, %v", removed, err)
	}
	part := filepath.Join(t.TempDir(), "part.zip")
	code, _, stderr := runCode(t, "export", part, "--data", data)
	if code != 3 || !strings.Contains(stderr, hash) || !strings.Contains(stderr, "pictures missing in ") {
		t.Errorf("export: exit code %d, %s", code, stderr)
	}
	if got := importSum(t, 3, part, "--data", newFolder(t)); got.Inputs != 3 || got.Added != 2 || got.Failed != 1 {
		t.Errorf("import = %+v", got)
	}
}

// awaitProcessed waits until n inputs have been processed.
func awaitProcessed(t testing.TB, client *http.Client, base string, n int) {
	t.Helper()
	for {
		res, err := client.Get(base + "/v2/inputs/status")
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Counts inputCounts }
		err = json.NewDecoder(res.Body).Decode(&answer)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if answer.Counts.ToProcess == 0 {
			if answer.Counts.Processed != n {
				t.Fatalf("counts %+v, want %d processed", answer.Counts, n)
			}
			return
		}
	}
}

func TestInterruptedImportContinues(t *testing.T) {
	dir, data := t.TempDir(), newFolder(t)
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.png", i)), dots(t, uint64(i), 16), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := contextThatEnds(t)
	var stderr strings.Builder
	code := cli.Run(ctx, New(), server.Env{
		Args: []string{"import", dir, "--data", data, "--parallel", "1"}, Stdin: strings.NewReader(""),
		Stdout: &bytes.Buffer{}, Stderr: &stderr, Environ: func() []string { cancel(); return nil },
	})
	if code == 0 {
		t.Errorf("an interrupted import ends with 0: %s", stderr.String())
	}
	got := importSum(t, 0, dir, "--data", data)
	if got.Added+got.There != 300 {
		t.Errorf("the second import = %+v, want 300 in all", got)
	}
	t.Logf("%d were there", got.There)
}

func TestTrainCommand(t *testing.T) {
	testkit.SkipRace(t)
	data := newFolder(t)
	dir := t.TempDir()
	for concept, names := range map[string][]string{
		"beach": {"08-beach-in-the-wind.jpg", "34-pier-at-sunrise.jpg", "42-lighthouse-in-the-sea.jpg"},
		"car":   {"26-green-roadster.jpg", "27-red-sports-car.jpg", "28-yellow-tram-in-manchester.jpg"},
	} {
		if err := os.MkdirAll(filepath.Join(dir, concept), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			rewrite(t, filepath.Join(dir, concept, name), string(sample(t, name)))
		}
	}
	mustRun(t, "import", dir, "--data", data, "--label-by-folder")
	if code, _, stderr := runCode(t, "train", "kiosk", "--data", data); code != 1 || !strings.Contains(stderr, "kiosk") {
		t.Errorf("train without a model: exit code %d, %s", code, stderr)
	}
	s := testSettings(t)
	s.Data = data
	srv, base := startOrigin(t, s)
	for _, body := range []string{
		`{"model":{"id":"kiosk","output_info":{"data":{"concepts":[{"id":"beach"},{"id":"car"}]}}}}`,
		`{"model":{"id":"unlabelled","output_info":{"data":{"concepts":[{"id":"cat"}]}}}}`,
	} {
		res, err := own(t).Post(base+"/v2/models", "application/json", strings.NewReader(body))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("model: %v %v", res, err)
		}
		_ = res.Body.Close()
	}
	code, stdout, stderr := runCode(t, "train", "kiosk", "--data", data)
	if code != 0 || !strings.Contains(stdout, "beach    3") || !strings.Contains(stderr, "car has only 3 pictures; use at least 10 for good results") {
		t.Errorf("train through the socket: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := runCode(t, "train", "unlabelled", "--data", data); code != 0 || !strings.Contains(stderr, "This version calls nothing present.") {
		t.Errorf("train without labelled pictures: exit code %d, %s", code, stderr)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	out := mustRun(t, "train", "kiosk", "--data", data, "--json")
	var v trainedVersion
	if decode(t, out, &v); v.Status.Code != versionTrained || v.ID == "" {
		t.Errorf("train directly: %s", out)
	}
	if len(v.Digest) != 64 || !strings.Contains(stdout, "\ndigest "+v.Digest+"\n") || strings.Contains(stdout, v.ID) {
		t.Errorf("the same training directly has digest %q and version %s, want the digest and not the version of\n%s", v.Digest, v.ID, stdout)
	}
}

// TestImportOldNames imports an export with names that the API accepted before it rejected control characters.
func TestImportOldNames(t *testing.T) {
	testkit.SkipRace(t)
	dir, data := t.TempDir(), newFolder(t)
	for name, text := range map[string]string{
		"sightline.json": `{"format":"sightline-export","version":1}`,
		"inputs.jsonl":   "",
		"concepts.jsonl": `{"id":"red","name":"red\u001b[31m"}` + "\n" + `{"id":"blue","name":"blue"}` + "\n",
		"models.jsonl":   `{"id":"m","name":"two\nlines","concepts":["red"]}` + "\n",
	} {
		rewrite(t, filepath.Join(dir, name), text)
	}
	if got := importSum(t, 0, dir, "--data", data); got.Concepts != 2 || got.Models != 1 || got.Renamed != 2 {
		t.Errorf("import = %+v, want 2 concepts, 1 model and 2 changed names", got)
	}
	if got := importSum(t, 0, dir, "--data", data); got.Concepts != 0 || got.Models != 0 || got.Renamed != 0 {
		t.Errorf("import again = %+v", got)
	}
	if _, text, _ := runCode(t, "import", dir, "--data", newFolder(t)); !strings.Contains(text, "control characters replaced in 2 names") {
		t.Errorf("import prints %q", text)
	}
	out := filepath.Join(dir, "out")
	mustRun(t, "export", out, "--data", data)
	for name, want := range map[string]string{"concepts.jsonl": `"red [31m"`, "models.jsonl": `"two lines"`} {
		if text, err := os.ReadFile(filepath.Join(out, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s = %s, %v, want the name %s", name, text, err, want)
		}
	}
}
