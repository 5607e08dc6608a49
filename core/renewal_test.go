package core_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// renewing is an application on its way to another network.
type renewing struct {
	testing.TB
	*apitest.World
	red, all int // inputs that are red, and in all
}

// answer is what tests read of an answer.
type answer struct {
	Status struct{ Code int }
	Hits   []struct {
		Score float64
		Input struct{ ID string }
	}
	Outputs []struct {
		Data struct {
			Concepts []struct {
				ID    string
				Value float64
			}
		}
		Model struct {
			Version struct{ ID string } `json:"model_version"`
		}
	}
	Versions []struct{ ID string } `json:"model_versions"`
}

func (r *renewing) call(method, path, body string) answer {
	r.Helper()
	got := r.Serve(r, api.Request{Method: method, Path: path, Body: []byte(body)})
	var a answer
	if err := json.Unmarshal(got.Body, &a); err != nil || got.Status != 200 || a.Status.Code != 10000 {
		r.Fatalf("%s %s %.200s = %d %.400s", method, path, body, got.Status, got.Body)
	}
	return a
}

func (r *renewing) add(name, label string) {
	r.Helper()
	picture := base64.StdEncoding.EncodeToString(apitest.Picture(name))
	r.call("POST", "/v2/inputs", fmt.Sprintf(
		`{"inputs":[{"id":"%s-%d","data":{"image":{"base64":"%s","crop":[0,0,1,%v]},"concepts":[{"id":"%s"}]}}]}`,
		name, r.all, picture, 1-float64(r.all)/1000, label))
	r.all++
	if name == "red.png" {
		r.red++
	}
}

// predicted returns the score of the reddest input, after seeing that all red ones are found.
func (r *renewing) predicted() float64 {
	r.Helper()
	a := r.call("POST", "/v2/searches", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"red"}]}}}]},"pagination":{"per_page":1000}}`)
	if len(a.Hits) != r.red {
		r.Fatalf("%d inputs are predicted red, want %d", len(a.Hits), r.red)
	}
	return a.Hits[0].Score
}

// check sees that everything that the application does is done.
func (r *renewing) check() {
	r.Helper()
	r.predicted()
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	a := r.call("POST", "/v2/searches", `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":"`+picture+`"}}}}}]},"pagination":{"per_page":1000}}`)
	if len(a.Hits) != r.all || a.Hits[0].Score < 0.999 || a.Hits[r.red-1].Score < 0.999 || r.red < r.all && a.Hits[r.red].Score > 0.9 {
		r.Fatalf("the red ones are not what is like red: %+v", a.Hits[:r.red+1])
	}
	if v := r.custom("red.png"); v < 0.5 {
		r.Fatalf("the own model gives red %v", v)
	}
	if v := r.custom("blue.png"); v > 0.5 {
		r.Fatalf("the own model gives blue %v", v)
	}
}

// custom is what the own model says of "warm" in a picture.
func (r *renewing) custom(name string) float64 {
	r.Helper()
	picture := base64.StdEncoding.EncodeToString(apitest.Picture(name))
	a := r.call("POST", "/v2/models/own/outputs", `{"inputs":[{"data":{"image":{"base64":"`+picture+`"}}}]}`)
	for _, c := range a.Outputs[0].Data.Concepts {
		if c.ID == "warm" {
			return c.Value
		}
	}
	r.Fatal("the own model does not say")
	return 0
}

func (r *renewing) base() [32]byte {
	r.Helper()
	app, err := catalog.ParseAppID(r.App)
	if err != nil {
		r.Fatal(err)
	}
	h, err := catalog.Read(r.Store, app).Header()
	if err != nil {
		r.Fatal(err)
	}
	return h.Base
}

// TestAnotherNetwork changes the network under an application, kills the program twice on the
// way, and sees every search and predict answer throughout.
func TestAnotherNetwork(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	r := &renewing{TB: t, World: apitest.NewWorld(t, memkv.New(), old, nil, nil)}
	for range 15 {
		r.add("red.png", "warm")
		r.add("blue.png", "cold")
	}
	r.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"closed_environment":true}}}}`)
	r.call("POST", "/v2/models/own/versions", "")
	r.Step(t, time.Second)
	r.check()
	was := r.predicted()
	if b := r.base(); b != old.Base() {
		t.Fatalf("base %x, want %x", b, old.Base())
	}

	r.Renew(t, next, old)
	r.check()
	killed, rounds := 0, 0
	for ; r.base() != next.Base(); rounds++ {
		if rounds > 500 {
			p, err := r.Engine.Renewals()
			t.Fatalf("it does not come to an end: %+v, %v", p, err)
		}
		r.Now = r.Now.Add(time.Second)
		r.Round(t)
		if rounds%7 == 3 {
			r.check()
		}
		switch rounds {
		case 5, 12:
			r.add("red.png", "warm")
		case 10, 20:
			r.Renew(t, next, old) // killed, and started again
			killed++
		}
	}
	if killed != 2 || rounds < 30 {
		t.Fatalf("killed %d times in %d rounds", killed, rounds)
	}
	r.check()
	if now := r.predicted(); now <= was {
		t.Errorf("the new network gives red %v, the old gave %v", now, was)
	}
	if v := r.call("GET", "/v2/models/own/versions", ""); len(v.Versions) != 3 {
		t.Errorf("versions %+v, want the untrained, the trained and the renewed", v.Versions)
	}
	if p, err := r.Engine.Renewals(); err != nil || len(p) != 0 {
		t.Errorf("Renewals = %+v, %v", p, err)
	}

	// What the old network left goes, and the application works on.
	for range 100 {
		r.Step(t, 10*time.Second)
	}
	r.add("red.png", "warm")
	r.check()
	base := old.Base()
	err := r.Store.Scan(nil, nil, func(k, _ []byte) bool {
		if len(k) > 32 && [32]byte(k[len(k)-32:]) == base {
			t.Errorf("key %x of the old network is left", k)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Renew(t, next, old)
	r.check()
}
