package program

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// shade returns a small PNG of one colour.
func shade(t testing.TB, c color.Color) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, 32, 32))
	draw.Draw(img, img.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// scores searches by a concept and returns the hits' inputs with their scores.
func scores(t testing.TB, client *http.Client, base, concept string) map[string]float64 {
	t.Helper()
	query := fmt.Sprintf(`{"query":{"ands":[{"output":{"data":{"concepts":[{"name":%q}]}}}]},"pagination":{"per_page":1000}}`, concept)
	res, err := client.Post(base+"/v2/searches", "application/json", strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a struct {
		Hits []struct {
			Score float64
			Input struct{ ID string }
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil || res.StatusCode != 200 {
		t.Fatalf("search: %d, %v", res.StatusCode, err)
	}
	found := map[string]float64{}
	for _, h := range a.Hits {
		found[h.Input.ID] = h.Score
	}
	return found
}

// metric returns the value of a metric without labels.
func metric(t testing.TB, client *http.Client, base, name string) string {
	t.Helper()
	res, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no metric %s", name)
	return ""
}

// TestNewProgramWithNewNetwork opens a data folder with a program that has another network. The program answers with the old network, which
// the folder keeps, until it has re-analysed every input, and then with its own network. A third start no longer needs the old one.
func TestNewProgramWithNewNetwork(t *testing.T) {
	const each = 40
	s, client := testSettings(t), own(t)
	s.Bundles = apitest.TinyBundles(t)
	srv, base := startOrigin(t, s)
	var body []cli.Object
	for i := range each {
		for name, c := range map[string]color.Color{"red": color.RGBA{R: 255 - uint8(i), A: 255}, "blue": color.RGBA{B: 255 - uint8(i), A: 255}} {
			body = append(body, cli.Object{"id": fmt.Sprint(name, i), "data": cli.Object{"image": cli.Object{"base64": base64.StdEncoding.EncodeToString(shade(t, c))}}})
		}
	}
	lost := shade(t, color.RGBA{G: 255, A: 255})
	body = append(body, cli.Object{"id": "lost", "data": cli.Object{"image": cli.Object{"base64": base64.StdEncoding.EncodeToString(lost)}}})
	b, err := json.Marshal(cli.Object{"inputs": body})
	if err != nil {
		t.Fatal(err)
	}
	if code, got := callInputs(t, client, "POST", base+"/v2/inputs", b); code != 200 || len(got.Inputs) != 2*each+1 {
		t.Fatalf("%d inputs are added: %d %+v", len(got.Inputs), code, got.Status)
	}
	red := shade(t, color.RGBA{R: 255, A: 255})
	predicted := func() float64 {
		t.Helper()
		code, out := predictBy(t, client, base, generalID, byBase64(red))
		if code != 200 || len(out.Outputs) != 1 || len(out.Outputs[0].Data.Concepts) == 0 {
			t.Fatalf("prediction: %d %+v", code, out.Status)
		}
		for _, c := range out.Outputs[0].Data.Concepts {
			if c.Name == "red" {
				return c.Value
			}
		}
		t.Fatal("red is not predicted red")
		return 0
	}
	found := func() float64 {
		t.Helper()
		hits := scores(t, client, base, "red")
		for i := range each {
			if _, ok := hits[fmt.Sprint("red", i)]; !ok {
				t.Fatalf("red%d is not found among %d inputs", i, len(hits))
			}
		}
		return hits["red0"]
	}
	if n := metric(t, client, base, "sightline_renewal_applications"); n != "0" {
		t.Errorf("%s applications change their network from the start", n)
	}
	if n := metric(t, client, base, "sightline_pictures_missing"); n != "0" {
		t.Errorf("%s pictures are missing from the start", n)
	}
	was, had := predicted(), found()
	if err := srv.Folder.Blobs.Delete(t.Context(), blob.Sum(lost)); err != nil {
		t.Fatal(err)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}

	s.Bundles = apitest.TinyNextBundles(t)
	srv, base = startOrigin(t, s)
	for deadline := time.Now().Add(time.Minute); ; system.Pause(t.Context(), 5*time.Millisecond) {
		found()
		if now := predicted(); now > was {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("after a minute %s of %s inputs are analysed anew, %s failed", metric(t, client, base, "sightline_renewal_inputs_done"),
				metric(t, client, base, "sightline_renewal_inputs"), metric(t, client, base, "sightline_renewal_inputs_failed"))
		}
	}
	if has := found(); has <= had {
		t.Errorf("the score of a red input is %v, it was %v by the old network", has, had)
	}
	if n := metric(t, client, base, "sightline_renewal_applications"); n != "0" {
		t.Errorf("%s applications are still under way", n)
	}
	if n := metric(t, client, base, "sightline_pictures_missing"); n != "1" {
		t.Errorf("%s pictures are missing, want 1", n)
	}
	if _, out, _ := run(t, nil, "status", "--data", s.Data); !strings.Contains(out, "missing         pictures of 1 inputs") {
		t.Errorf("status:\n%s", out)
	}
	now := predicted()
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	_, base = startOrigin(t, s)
	if again := predicted(); again != now {
		t.Errorf("the next start predicts %v, want %v", again, now)
	}
	found()
	bundles, err := os.ReadDir(filepath.Join(s.Data, "bundles"))
	if err != nil || len(bundles) != 1 {
		t.Errorf("the folder keeps the bundles of %d networks, %v; want one", len(bundles), err)
	}
}
