package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/control"
)

// trainedKiosk serves a folder in which model kiosk has a trained version.
func trainedKiosk(t *testing.T) (srv *server.Server, base, data string) {
	s := testSettings(t)
	s.Data = newFolder(t)
	srv, base = startOrigin(t, s)
	dir := t.TempDir()
	for _, concept := range []string{"beach", "car"} {
		if err := os.Mkdir(filepath.Join(dir, concept), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(t, filepath.Join(dir, "beach", "1.jpg"), string(sample(t, "08-beach-in-the-wind.jpg")))
	rewrite(t, filepath.Join(dir, "car", "2.jpg"), string(sample(t, "26-green-roadster.jpg")))
	mustRun(t, "import", dir, "--data", s.Data, "--label-by-folder")
	model := t.TempDir()
	for name, text := range map[string]string{
		"sightline.json": `{"format":"sightline-export","version":1}`, "inputs.jsonl": "",
		"models.jsonl": `{"id":"kiosk","name":"kiosk","concepts":["beach","car"]}` + "\n",
	} {
		rewrite(t, filepath.Join(model, name), text)
	}
	mustRun(t, "import", model, "--data", s.Data)
	mustRun(t, "train", "kiosk", "--data", s.Data)
	return srv, base, s.Data
}

// ask sends a request to the API and returns its answer, which must have status 200.
func ask(t *testing.T, base, method, path string, body []byte) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := own(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(res.Body); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s %s: %d, %v, %s", method, path, res.StatusCode, err, text.String())
	}
	return text.String()
}

// concepts returns the concepts of the first output in an answer.
func concepts(t *testing.T, answer string) string {
	t.Helper()
	var out struct {
		Outputs []struct {
			Data struct{ Concepts json.RawMessage }
		}
	}
	decode(t, answer, &out)
	return string(out.Outputs[0].Data.Concepts)
}

// TestHeadsRoundTrip exports a head in both formats and imports it. The new versions' predictions have the same bytes.
func TestHeadsRoundTrip(t *testing.T) {
	testkit.SkipRace(t)
	srv, base, data := trainedKiosk(t)
	picture := byBase64(sample(t, "27-red-sports-car.jpg"))
	want := concepts(t, ask(t, base, "POST", "/v2/models/kiosk/outputs", picture))
	if !strings.Contains(want, `"value":0.`) {
		t.Fatalf("the trained version says %s", want)
	}
	var first, reexport control.Head
	for _, format := range []string{"json", "spago"} {
		file := filepath.Join(t.TempDir(), "head")
		mustRun(t, "head", "export", "--model", "kiosk", "--format", format, file, "--data", data)
		var imported struct {
			Model   string `json:"model_id"`
			Version string `json:"version_id"`
		}
		decode(t, mustRun(t, "head", "import", "--model", "kiosk", file, "--data", data, "--json"), &imported)
		decode(t, mustRun(t, "head", "export", "--model", "kiosk", "-", "--data", data), &reexport)
		if first.Version == "" {
			first = reexport
		}
		if imported.Model != "kiosk" || imported.Version != reexport.Version {
			t.Errorf("%s: %+v was imported, %q is the newest version", format, imported, reexport.Version)
		}
		if reexport.Version = first.Version; fmt.Sprint(reexport) != fmt.Sprint(first) {
			t.Errorf("%s: another head comes back", format)
		}
		if got := concepts(t, ask(t, base, "POST", "/v2/models/kiosk/versions/"+imported.Version+"/outputs", picture)); got != want {
			t.Errorf("%s: the imported version says %s, want %s", format, got, want)
		}
		if metrics := ask(t, base, "GET", "/v2/models/kiosk/versions/"+imported.Version+"/metrics", nil); !strings.Contains(metrics, `"details":"The version was imported.`) {
			t.Errorf("%s: metrics %s", format, metrics)
		}
		if code, _, stderr := runCode(t, "head", "export", "--model", "kiosk", file, "--data", data); code != 1 || !strings.Contains(stderr, "file already exists") {
			t.Errorf("exporting over a file: exit code %d, %s", code, stderr)
		}
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	head, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	env := server.Env{Args: []string{"head", "import", "--model", "kiosk", "-", "--data", data}, Stdin: bytes.NewReader(head), Stdout: &out, Stderr: &out, Environ: func() []string { return nil }}
	if code := cli.Run(t.Context(), New(), env); code != 0 || !strings.Contains(out.String(), ", 2 concepts, imported\n") {
		t.Errorf("import from standard input without a server: exit code %d, %s", code, out.String())
	}
}

// TestUnfitHeadFiles imports invalid files. The error names the fault, and nothing is changed.
func TestUnfitHeadFiles(t *testing.T) {
	testkit.SkipRace(t)
	_, base, data := trainedKiosk(t)
	exported := mustRun(t, "head", "export", "--model", "kiosk", "-", "--data", data)
	spago := mustRun(t, "head", "export", "--model", "kiosk", "--format", "spago", "-", "--data", data)
	with := func(change func(h *control.Head)) string {
		var h control.Head
		decode(t, exported, &h)
		change(&h)
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := ask(t, base, "GET", "/v2/models/kiosk/versions", nil)
	for _, tt := range []struct{ file, message string }{
		{"", "not a head in JSON"},
		{"{}", `embedding "", want 64 hex digits`},
		{exported[:1000], "not a head in JSON: unexpected end"},
		{strings.Replace(exported, `"biases":[`, `"biases":[1e300,`, 1), "cannot unmarshal number 1e300"},
		{strings.Replace(exported, `"biases":[`, `"biases":[1,`, 1), "2 rows of weights and 3 biases"},
		{with(func(h *control.Head) { h.Weights[1] = h.Weights[1][1:] }), "255 weights of output 1, want 256"},
		{with(func(h *control.Head) { h.Concepts = h.Concepts[:1] }), "2 outputs for 1 concepts"},
		{with(func(h *control.Head) { h.Concepts[0] = "cart" }), `no concept "beach", which model "kiosk" has`},
		{with(func(h *control.Head) { h.Concepts[0] = h.Concepts[1] }), `no concept "beach"`},
		{with(func(h *control.Head) { h.Embedding = strings.Repeat("0", 64) }), "embedding 0000000000"},
		{with(func(h *control.Head) { h.Embedding = h.Embedding[1:] }), "want 64 hex digits"},
		{with(func(h *control.Head) { h.Exclusive = true }), "are not mutually exclusive"},
		{spago[:len(spago)-9], "not a spago model"},
		{strings.Replace(spago, "beach", "coast", 1), `no concept "beach"`},
		{strings.Replace(spago, "Concepts", "Concerns", 1), "no Concepts or Embedding; keep these fields"},
		{"\xff" + strings.Repeat(" ", maxHeadFile), fmt.Sprintf("more than %d bytes", maxHeadFile)},
	} {
		file := filepath.Join(t.TempDir(), "head")
		rewrite(t, file, tt.file)
		if code, stdout, stderr := runCode(t, "head", "import", "--model", "kiosk", file, "--data", data); code != 1 || stdout != "" || !strings.Contains(stderr, tt.message) {
			t.Errorf("exit code %d, want %q: %s%s", code, tt.message, stdout, stderr)
		}
	}
	for _, tt := range []struct {
		args    string
		message string
	}{
		{"export --model none -", "model none: not found"},
		{"export --model kiosk --version none -", "version none: not found"},
		{"export -", "--model is required"},
		{"export --model kiosk --format onnx -", `--format must be json or spago, not "onnx"`},
		{"export --model kiosk --json -", `--json cannot be combined with "-"`},
		{"import --model kiosk", "expected one argument: the file"},
		{"import --model kiosk --app none " + filepath.Join(data, "none"), "no such file"},
	} {
		args := append([]string{"head"}, append(strings.Fields(tt.args), "--data", data)...)
		if code, stdout, stderr := runCode(t, args...); code == 0 || stdout != "" || !strings.Contains(stderr, tt.message) {
			t.Errorf("%s: exit code %d, want %q: %s%s", tt.args, code, tt.message, stdout, stderr)
		}
	}
	if after := ask(t, base, "GET", "/v2/models/kiosk/versions", nil); after != before {
		t.Errorf("versions after what was refused:\n%s\nbefore:\n%s", after, before)
	}
}
