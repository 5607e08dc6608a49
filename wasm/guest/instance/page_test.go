package instance_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// fetch makes a request as a page's script does, checks its status, and returns the body.
func (p *page) fetch(t testing.TB, status int, method, path, authorization, body string) string {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	r := p.answer(t, &api.Request{Method: method, Path: path, Query: query, Authorization: authorization, Body: []byte(body)})
	if r.Status != status {
		t.Fatalf("%s %s = %d %s, want %d", method, path, r.Status, r.Body, status)
	}
	return string(r.Body)
}

// picture returns an input with one of apitest's pictures in base64.
func picture(id, name, concepts string) string {
	return fmt.Sprintf(`{"id":%q,"data":{"image":{"base64":%q}%s}}`, id, base64.StdEncoding.EncodeToString(apitest.Picture(name)), concepts)
}

// imageURL returns the name of the first hosted picture in an answer.
func imageURL(t testing.TB, body string) (name string) {
	t.Helper()
	_, rest, ok := strings.Cut(body, "/hosted/")
	if !ok {
		t.Fatalf("no picture in %s", body)
	}
	name, _, _ = strings.Cut(rest, `"`)
	return name
}

// TestPage does with a page's instance what the demo does: predict, add, train, search.
func TestPage(t *testing.T) {
	p := openPage(t, apitest.TinyBundles(t), nil)
	general := "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs"
	body := p.fetch(t, 200, "POST", general, "", `{"inputs":[`+picture("one", "red.png", "")+`]}`)
	if !strings.Contains(body, `"name":"red"`) || !strings.Contains(body, "/hosted/") {
		t.Errorf("predict = %s", body)
	}
	hosted, err := abi.ParseHosted(p.ask(t, abi.Query{What: abi.AskHosted, Name: imageURL(t, body)}))
	if err != nil || !bytes.Equal(hosted.Data, apitest.Picture("red.png")) || hosted.ContentType != "image/png" || hosted.Hash != blob.Sum(hosted.Data) {
		t.Errorf("hosted = %+v, %v", hosted, err)
	}
	if !hosted.Expires.Equal(apitest.Start.Add(24 * time.Hour)) {
		t.Errorf("it expires at %v", hosted.Expires)
	}

	p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+
		picture("red", "red.png", `,"concepts":[{"id":"warm","value":1}]`)+","+
		picture("blue", "blue.png", `,"concepts":[{"id":"warm","value":0}]`)+","+
		`{"id":"half","data":{"image":{"url":"http://pictures.test/half.png"}}},{"id":"none","data":{"image":{"url":"http://pictures.test/none"}}}]}`)
	p.rest(t, time.Second)
	body = p.fetch(t, 200, "GET", "/v2/inputs/status", "", "")
	if !strings.Contains(body, `"processed":3,"to_process":0,"errors":1`) {
		t.Errorf("inputs = %s", body)
	}
	name := imageURL(t, p.fetch(t, 200, "GET", "/v2/inputs/red", "", ""))
	if data := p.ask(t, abi.Query{What: abi.AskThumbnail, Name: name}); !bytes.HasPrefix(data, []byte{0xff, 0xd8}) {
		t.Errorf("thumbnail = %.20q", data)
	}
	h := blob.Sum(apitest.Picture("half.png"))
	if data := p.ask(t, abi.Query{What: abi.AskBlob, Name: string(h[:])}); !bytes.Equal(data, apitest.Picture("half.png")) {
		t.Error("a picture that came by its address is not kept")
	}

	body = p.fetch(t, 200, "POST", "/v2/searches", "", `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":"`+base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))+`"}}}}}]}}`)
	if red, half := strings.Index(body, `"id":"red"`), strings.Index(body, `"id":"half"`); red < 0 || half < red {
		t.Errorf("search = %s", body)
	}

	body = p.fetch(t, 200, "POST", "/v2/models", "", `{"model":{"id":"warmth","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
	if !strings.Contains(body, `"id":"warmth"`) {
		t.Fatal(body)
	}
	p.fetch(t, 200, "POST", "/v2/models/warmth/versions", "", "")
	p.rest(t, time.Second)
	body = p.fetch(t, 200, "POST", "/v2/models/warmth/outputs", "", `{"inputs":[`+picture("w", "red.png", "")+","+picture("c", "blue.png", "")+`]}`)
	var out struct {
		Outputs []struct {
			Data struct{ Concepts []struct{ Value float64 } }
		}
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil || len(out.Outputs) != 2 ||
		out.Outputs[0].Data.Concepts[0].Value < 0.5 || out.Outputs[1].Data.Concepts[0].Value > 0.5 {
		t.Errorf("taught: %s, %v", body, err)
	}
	memory, err := abi.ParseMemory(p.ask(t, abi.Query{What: abi.AskMemory}))
	if err != nil || memory.Heap == 0 || memory.System < memory.Heap {
		t.Errorf("memory = %+v, %v", memory, err)
	}
}

// lateBundles are bundles that have no background embeddings until complete is set.
type lateBundles struct {
	fs.FS
	complete bool
}

func (a *lateBundles) Open(name string) (fs.File, error) {
	if path.Base(name) == "background.f16" && !a.complete {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return a.FS.Open(name)
}

// TestBackgroundArrivesLater opens a page without the background embeddings of its network. It predicts, and a training waits until the
// file background.f16 arrives.
func TestBackgroundArrivesLater(t *testing.T) {
	bundles := &lateBundles{FS: apitest.TinyBundles(t)}
	p := openPage(t, bundles, nil)
	body := p.fetch(t, 200, "POST", "/v2/models/aaa03c23b3724a16a56b629203edc62c/outputs", "", `{"inputs":[`+picture("one", "red.png", "")+`]}`)
	if !strings.Contains(body, `"name":"red"`) {
		t.Errorf("predict = %s", body)
	}
	p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+
		picture("red", "red.png", `,"concepts":[{"id":"warm","value":1}]`)+","+picture("blue", "blue.png", `,"concepts":[{"id":"warm","value":0}]`)+`]}`)
	p.rest(t, time.Second)
	p.fetch(t, 200, "POST", "/v2/models", "", `{"model":{"id":"warmth","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
	p.fetch(t, 200, "POST", "/v2/models/warmth/versions", "", "")
	p.rest(t, time.Second)
	const queued, trained = `"code":21103`, `"code":21100`
	if body := p.fetch(t, 200, "GET", "/v2/models/warmth", "", ""); !strings.Contains(body, queued) {
		t.Errorf("without the background: %s", body)
	}
	bundles.complete = true
	p.rest(t, 5*time.Second)
	if body := p.fetch(t, 200, "GET", "/v2/models/warmth", "", ""); !strings.Contains(body, trained) {
		t.Errorf("with the background: %s", body)
	}
}

// TestAskNetwork checks that AskNetwork returns the network of the engine's bundles.
func TestAskNetwork(t *testing.T) {
	bundles := apitest.TinyBundles(t)
	set, err := predict.Load(bundles)
	if err != nil {
		t.Fatal(err)
	}
	want := set.Base()
	p := openPage(t, bundles, nil)
	if got := p.ask(t, abi.Query{What: abi.AskNetwork}); !bytes.Equal(got, want[:]) {
		t.Errorf("network of the engine = %x, want %x", got, want)
	}
}

// TestAcceptedCredentials checks which credentials a page accepts, and that all give access to the same application.
func TestAcceptedCredentials(t *testing.T) {
	p := openPage(t, apitest.TinyBundles(t), nil)
	key := "Key " + strings.Repeat("0af9", 8)
	for _, authorization := range []string{"", " ", key, "Bearer x", "bearer " + strings.Repeat("y", 4096)} {
		p.fetch(t, 200, "GET", "/v2/inputs", authorization, "")
	}
	for authorization, want := range map[string]string{
		"Key": `"code":11102`, "Key short": `"code":11009`, "Key " + strings.Repeat("0AF9", 8): `"code":11009`,
		"Bearer ": `"code":11`, "Bearer " + strings.Repeat("y", 4097): `"code":11001`, "nonsense": `"code":11102`,
		"Basic eA==": `"code":11`,
	} {
		if body := p.fetch(t, 401, "GET", "/v2/inputs", authorization, ""); !strings.Contains(body, want) {
			t.Errorf("%q is refused with %s, want %s", authorization, body, want)
		}
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("any:secret"))
	for range 2 {
		body := p.fetch(t, 200, "POST", "/v2/token", basic, `"grant_type=client_credentials"`)
		var token struct {
			Token string `json:"access_token"`
		}
		if err := json.Unmarshal([]byte(body), &token); err != nil || token.Token == "" {
			t.Fatalf("token = %s, %v", body, err)
		}
		p.fetch(t, 200, "GET", "/v2/inputs", "Bearer "+token.Token, "")
	}
	p.fetch(t, 401, "POST", "/v2/token", "", "")
	p.fetch(t, 401, "POST", "/v2/token", "Basic Og==", "")
	var reply struct {
		Model struct {
			App string `json:"app_id"`
		}
	}
	body := p.fetch(t, 200, "POST", "/v2/models", key, `{"model":{"id":"own"}}`)
	if err := json.Unmarshal([]byte(body), &reply); err != nil || reply.Model.App == "" {
		t.Fatalf("model = %s, %v", body, err)
	}
	p.fetch(t, 200, "GET", "/v2/users/me/apps/"+reply.Model.App+"/inputs", key, "")
	p.fetch(t, 404, "GET", "/v2/users/me/apps/00000000000000000000000000000000/inputs", key, "")
}

// TestInvalidQueries sends unknown queries, queries for pictures that do not exist, and a request to a closed instance.
func TestInvalidQueries(t *testing.T) {
	p := openPage(t, apitest.TinyBundles(t), nil)
	for _, q := range []abi.Query{
		{What: "nothing"},
		{What: abi.AskHosted, Name: "x"},
		{What: abi.AskThumbnail},
		{What: abi.AskBlob, Name: "short"},
		{What: abi.AskBlob, Name: strings.Repeat("x", 32)},
	} {
		if value, guestErr, err := abi.ParseReply(p.Ask(q.Marshal())); guestErr == nil || err != nil || value != nil {
			t.Errorf("%+v is answered with %q, %v, %v", q, value, guestErr, err)
		}
	}
	p.ask(t, abi.Query{What: abi.AskClose})
	if r := p.answer(t, &api.Request{Method: "GET", Path: "/v2/inputs"}); r.Status < 500 {
		t.Errorf("a closed instance answers %d", r.Status)
	}
	if _, guestErr, _ := abi.ParseReply(p.Ask((&abi.Query{What: abi.AskHosted}).Marshal())); !errors.Is(guestErr, api.ErrOptions) {
		t.Errorf("a closed instance says %v", guestErr)
	}
}
