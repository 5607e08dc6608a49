package api

import (
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// envelope is the common part of all answers.
type envelope struct {
	Status struct {
		Code        int
		Description string
		Details     string
	}
}

func readEnvelope(t testing.TB, r Response) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(r.Body, &e); err != nil || e.Status.Code == 0 || e.Status.Description == "" {
		t.Fatalf("no envelope in %q: %v", r.Body, err)
	}
	return e
}

func TestSloppyPaths(t *testing.T) {
	s, _ := newService(t, newSmallModels(t), Options{})
	want := string(serve(t, s, Request{Method: "GET", Path: "/v2/models/general/versions/generalv"}, fail).Body)
	for _, path := range []string{
		"/v2/models/general/versions/generalv/",
		"//v2/models/general/versions/generalv",
		"/v2///models//general/versions/generalv//",
		"/v2/models/general/version/generalv",
		"/v2/users/me/apps/" + fixedID + "/models/general/versions/generalv",
		"/v2/users/m%65/apps//" + fixedID + "/models/general/version/generalv/",
		"/v2/models/%67eneral/versions/generalv",
		"v2/models/general/versions/generalv",
	} {
		got := serve(t, s, Request{Method: "GET", Path: path, Query: "page=1&per_page=7&x=%zz;y"}, fail)
		if got.Status != 200 || string(got.Body) != want {
			t.Errorf("%s = %d %s, want %s", path, got.Status, got.Body, want)
		}
	}
	for _, path := range []string{
		"", "/", "/v1/models", "/v2", "/v2/model", "/V2/models", "/v2/models/general%2Fversions",
		"/v2/models/general/output_infos", "/v2/users/me/models", "/v2/models/%zz",
		"/v2/users/me/apps/main/models", "/v2/users/a%2Fb/apps/" + fixedID + "/models", "/v2/users//apps/" + fixedID + "/models",
		"/v2/models/general/versions/%",
		"/v2/models/general/versions/generalv/output_info/x", "/v2/models/general-v1.3",
	} {
		got := serve(t, s, Request{Method: "GET", Path: path}, fail)
		if e := readEnvelope(t, got); got.Status != 404 || e.Status.Code != 11101 {
			t.Errorf("%s = %d %s, want 404 and 11101", path, got.Status, got.Body)
		}
	}
}

// TestPathIDs checks that any id in a path is decoded correctly: the details of a 404 repeat it.
func TestPathIDs(t *testing.T) {
	s, _ := newService(t, newSmallModels(t), Options{})
	rapid.Check(t, func(rt *rapid.T) {
		id := rapid.StringN(1, 40, -1).Draw(rt, "id")
		path := "/v2/models/" + url.PathEscape(id)
		if rapid.Bool().Draw(rt, "twice") {
			path = strings.ReplaceAll(path, "/", "//")
		}
		if rapid.Bool().Draw(rt, "trailing") {
			path += "/"
		}
		got := serve(t, s, Request{Method: "GET", Path: path}, fail)
		want := "model_id '" + id + "' not found. Check the url of your request."
		if id == "general" || id == "color" || id == "embed" {
			return
		}
		if e := readEnvelope(t, got); got.Status != 404 || e.Status.Details != want {
			rt.Fatalf("%s = %d %q, want %q", path, got.Status, e.Status.Details, want)
		}
	})
}

func TestMethods(t *testing.T) {
	s, _ := newService(t, newSmallModels(t), Options{})
	got := serve(t, s, Request{Method: "PUT", Path: "/v2/models/"}, fail)
	want := `{"status":{"code":11103,"description":"Method not allowed","details":"Allowed methods: GET, POST, PATCH, DELETE, OPTIONS."},"models":[]}`
	if got.Status != 405 || string(got.Body) != want {
		t.Errorf("PUT = %d %s, want 405 %s", got.Status, got.Body, want)
	}
	if i := slices.IndexFunc(got.Header, func(f Field) bool { return f.Name == "Allow" }); i < 0 || got.Header[i].Value != "GET, HEAD, POST, PATCH, DELETE, OPTIONS" {
		t.Errorf("PUT has the headers %v, want Allow", got.Header)
	}
	if got := serve(t, s, Request{Method: "get", Path: "/v2/models/"}, fail); got.Status != 405 {
		t.Errorf("a method in small letters = %d, want 405", got.Status)
	}
	want = string(serve(t, s, Request{Method: "GET", Path: "/v2/models"}, fail).Body)
	if got := serve(t, s, Request{Method: "HEAD", Path: "/v2/models"}, fail); got.Status != 200 || string(got.Body) != want {
		t.Errorf("HEAD = %d %s, want what GET answers", got.Status, got.Body)
	}
	got = serve(t, s, Request{Method: "OPTIONS", Path: "//v2/anything/", Body: []byte("{")}, fail)
	if got.Status != 200 || string(got.Body) != `{"status":{"code":10000,"description":"Ok"}}` {
		t.Errorf("OPTIONS = %d %s", got.Status, got.Body)
	}
	header := map[string]string{}
	for _, f := range got.Header {
		header[f.Name] = f.Value
	}
	for name, part := range map[string]string{
		"Access-Control-Allow-Origin":  "*",
		"Access-Control-Allow-Methods": "PATCH",
		"Access-Control-Allow-Headers": "authorization",
		"Access-Control-Max-Age":       "86400",
	} {
		if !strings.Contains(header[name], part) {
			t.Errorf("%s: %q, want %q in it", name, header[name], part)
		}
	}
}

func TestEmptyBodies(t *testing.T) {
	s, _ := newService(t, newSmallModels(t), Options{})
	want := string(serve(t, s, Request{Method: "POST", Path: "/v2/models/searches"}, fail).Body)
	for _, body := range []string{"null", " null\n", "{}", "[]", `{"model_query":null}`, `{"model_query":[]}`, `{"model_query":{"name":null,"type":null},"pagination":null}`, `{"what":[1,{"is":"this"}]}`} {
		got := serve(t, s, Request{Method: "POST", Path: "/v2/models/searches", Body: []byte(body)}, fail)
		if got.Status != 200 || string(got.Body) != want {
			t.Errorf("body %s = %d %s, want %s", body, got.Status, got.Body, want)
		}
	}
	for _, body := range []string{"1", `"x"`, "[1]", "true"} {
		got := serve(t, s, Request{Method: "POST", Path: "/v2/models/searches", Body: []byte(body)}, fail)
		if e := readEnvelope(t, got); got.Status != 400 || e.Status.Code != 11100 {
			t.Errorf("body %s = %d %s, want 400 and 11100", body, got.Status, got.Body)
		}
	}
	// The service ignores a body that a GET should not have.
	if got := serve(t, s, Request{Method: "GET", Path: "/v2/models", Body: []byte("{")}, fail); got.Status != 200 {
		t.Errorf("GET with a body = %d %s", got.Status, got.Body)
	}
}

func TestPages(t *testing.T) {
	s, _ := newService(t, newSmallModels(t), Options{})
	tests := []struct {
		query string
		want  string // expected ids, or a status code
	}{
		{"", "ai_dog ai_dogsled ai_cat"},
		{"page=0&per_page=0", "ai_dog ai_dogsled ai_cat"},
		{"page=1&per_page=2", "ai_dog ai_dogsled"},
		{"page=2&per_page=2", "ai_cat"},
		{"page=3&per_page=2", ""},
		{"page=999999999", ""},
		{"page=9223372036854775807&per_page=9223372036854775807", ""},
		{"per_page=5000", "ai_dog ai_dogsled ai_cat"},
		{"page=", "ai_dog ai_dogsled ai_cat"},
		{"page=-1", "11102"},
		{"per_page=-1", "11102"},
		{"page=x", "11102"},
		{"page=1.5", "11102"},
		{"page=99999999999999999999", "11102"},
		{"show=&page=2&per_page=2", "ai_cat"},
		{"show=digest,progress,,sightline", "ai_dog ai_dogsled ai_cat"},
		{"show=Digest", "11102"},
		{"show=digest&show=all", "11102"},
		{"Show=all", "ai_dog ai_dogsled ai_cat"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			got := serve(t, s, Request{Method: "GET", Path: "/v2/concepts", Query: tt.query}, fail)
			var list struct {
				Status   struct{ Code json.Number }
				Concepts []struct{ ID string }
			}
			if err := json.Unmarshal(got.Body, &list); err != nil || list.Concepts == nil {
				t.Fatalf("%s: %v", got.Body, err)
			}
			if got.Status != 200 {
				if string(list.Status.Code) != tt.want {
					t.Errorf("status %d %s, want %s", got.Status, list.Status.Code, tt.want)
				}
				return
			}
			ids := make([]string, 0, 3)
			for _, c := range list.Concepts {
				ids = append(ids, c.ID)
			}
			if strings.Join(ids, " ") != tt.want {
				t.Errorf("concepts %v, want %s", ids, tt.want)
			}
		})
	}
	body := `{"concept_query":{"name":"*"},"pagination":{"page":2,"per_page":2}}`
	got := serve(t, s, Request{Method: "POST", Path: "/v2/concepts/searches", Query: "page=1&per_page=1", Body: []byte(body)}, fail)
	if strings.Count(string(got.Body), `"id"`) != 1 || !strings.Contains(string(got.Body), "dogsled-en") && !strings.Contains(string(got.Body), `"dogsled"`) {
		t.Errorf("the body's page is not what counts: %s", got.Body)
	}
}

func TestOptionsChecked(t *testing.T) {
	models := newSmallModels(t)
	clock := func() time.Time { return start }
	for name, o := range map[string]Options{
		"nothing":      {},
		"no hosting":   {Models: models, Apps: fixedApp("en"), Clock: clock, Rand: &counter{}},
		"public URL":   {PublicURL: "ftp://x"},
		"relative URL": {PublicURL: "/x"},
		"keep":         {PredictedTTL: -time.Second},
	} {
		if name != "nothing" && name != "no hosting" {
			hosted, _ := newHosted(t)
			o.Models, o.Hosted, o.Apps, o.Clock, o.Rand = models, hosted, fixedApp("en"), clock, &counter{}
		}
		if _, err := New(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: New = %v, want %v", name, err, ErrOptions)
		}
	}
}

func TestRefuse(t *testing.T) {
	s, _ := newService(t, newSmallModels(t), Options{})
	r := Request{Method: "POST", Path: "//v2/models/general/outputs/"}
	tests := []struct {
		err  error
		http int
		want string
	}{
		{ErrBusy, 503, `{"status":{"code":40030,"description":"Service busy","details":"server is busy; try again"},"outputs":[]}`},
		{ErrTimeout, 504, `{"status":{"code":40032,"description":"Request timed out","details":"the request timed out"},"outputs":[]}`},
		{jsonio.ErrTooLong, 413, `{"status":{"code":40033,"description":"Request too large","details":"text too long"},"outputs":[]}`},
		{errors.New("a secret"), 500, `{"status":{"code":99009,"description":"Internal error"},"outputs":[]}`},
	}
	for _, tt := range tests {
		got := s.Refuse(&r, tt.err)
		if got.Status != tt.http || string(got.Body) != tt.want {
			t.Errorf("Refuse(%v) = %d %s, want %d %s", tt.err, got.Status, got.Body, tt.http, tt.want)
		}
		retry := false
		for _, f := range got.Header {
			retry = retry || f.Name == "Retry-After"
		}
		if retry != (got.Status == 503) {
			t.Errorf("Refuse(%v) has Retry-After: %v", tt.err, retry)
		}
	}
}

// TestRandomSourceFails: if the random source fails, the call fails. The answer does not contain the source's error.
func TestRandomSourceFails(t *testing.T) {
	models := newSmallModels(t)
	hosted, _ := newHosted(t)
	s, err := New(Options{Models: models, Hosted: hosted, Apps: fixedApp("en"), Clock: func() time.Time { return start }, Rand: io.LimitReader(&counter{}, 40)})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"inputs":[{"data":{"image":{"url":"http://a/1.jpg"}}},{"data":{"image":{"url":"http://a/2.jpg"}}}]}`
	for range 2 {
		got := serve(t, s, Request{Method: "POST", Path: "/v2/models/color/outputs", Body: []byte(body)}, fail)
		if want := `{"status":{"code":99009,"description":"Internal error"},"outputs":[]}`; got.Status != 500 || string(got.Body) != want {
			t.Errorf("%d %s, want 500 %s", got.Status, got.Body, want)
		}
	}
}
