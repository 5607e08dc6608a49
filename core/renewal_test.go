package core_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

// renewing is an application that changes its network.
type renewing struct {
	testing.TB
	*apitest.World
	red, all int // number of red inputs, and of all inputs
}

// answer holds the fields of an answer that tests read.
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

// add adds n inputs of each picture in label, in one call. The value is the picture's label; "" means none. No two inputs have the same
// picture and crop.
func (r *renewing) add(n int, label map[string]string) {
	r.Helper()
	var inputs []string
	for range n {
		for _, name := range slices.Sorted(maps.Keys(label)) {
			concepts := ""
			if label[name] != "" {
				concepts = `,"concepts":[{"id":"` + label[name] + `"}]`
			}
			inputs = append(inputs, fmt.Sprintf(`{"id":"%s-%d","data":{"image":{"base64":"%s","crop":[0,0,1,%v]}%s}}`,
				name, r.all, base64.StdEncoding.EncodeToString(apitest.Picture(name)), 1-float64(r.all)/100_000, concepts))
			r.all++
			if name == "red.png" {
				r.red++
			}
		}
	}
	r.call("POST", "/v2/inputs", `{"inputs":[`+strings.Join(inputs, ",")+`]}`)
}

// reddestScore checks that a search finds all red inputs, and returns the best score.
func (r *renewing) reddestScore() float64 {
	r.Helper()
	a := r.call("POST", "/v2/searches", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"red"}]}}}]},"pagination":{"per_page":1000}}`)
	if len(a.Hits) != min(r.red, 1000) {
		r.Fatalf("%d inputs are predicted red, want %d", len(a.Hits), min(r.red, 1000))
	}
	return a.Hits[0].Score
}

// check checks searches by concept and by picture, and the predictions of the custom model.
func (r *renewing) check() {
	r.Helper()
	r.reddestScore()
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	a := r.call("POST", "/v2/searches", `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":"`+picture+`"}}}}}]},"pagination":{"per_page":1000}}`)
	if len(a.Hits) != min(r.all, 1000) {
		r.Fatalf("%d inputs are more or less like red, want %d", len(a.Hits), min(r.all, 1000))
	}
	for i, hit := range a.Hits {
		if red := i < r.red; red != (hit.Score >= 0.999) {
			r.Fatalf("hit %d of %d red inputs scores %v", i, r.red, hit.Score)
		}
	}
	if v := r.custom("red.png"); v < 0.5 {
		r.Fatalf("the own model gives red %v", v)
	}
	if v := r.custom("blue.png"); v > 0.5 {
		r.Fatalf("the own model gives blue %v", v)
	}
}

// custom returns the custom model's value of "warm" for a picture.
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

// TestNetworkChangeSurvivesKills changes the network of an application and kills the program twice meanwhile. Searches and predictions work
// throughout, and nothing is lost.
func TestNetworkChangeSurvivesKills(t *testing.T) { changeNetwork(t, 30) }

// TestNetworkChangeOfManyInputs does the same with 1,000 inputs. The command make soak LAW=NetworkChangeOfManyInputs runs it with 10,000.
func TestNetworkChangeOfManyInputs(t *testing.T) {
	switch {
	case testkit.Soaking():
		changeNetwork(t, 10_000)
	case testing.Short() || runtime.GOOS == "wasip1":
		t.Skip("many inputs are for a fast machine")
	default:
		changeNetwork(t, 1000)
	}
}

func changeNetwork(t *testing.T, inputs int) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	random := rand.New(rand.NewPCG(7, 7)) // draws the writes that a crash undoes
	disk := &tape{Store: kvtest.OrLate(t, memkv.New())}
	r := &renewing{TB: t, World: apitest.NewWorld(t, disk, old, nil, nil)}
	r.add(10, map[string]string{"red.png": "warm", "blue.png": "cold"})
	for r.all < inputs {
		r.add(min(60, (inputs-r.all)/2), map[string]string{"red.png": "", "blue.png": ""})
	}
	r.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"closed_environment":true}}}}`)
	r.call("POST", "/v2/models/own/versions", "")
	r.Step(t, time.Second)
	r.check()
	was := r.reddestScore()
	if b := r.base(); b != old.Base() {
		t.Fatalf("base %x, want %x", b, old.Base())
	}

	r.ReopenWithNetwork(t, next, old)
	r.check()
	killed, rounds := 0, 0
	for ; r.base() != next.Base(); rounds++ {
		if rounds > 4*inputs+500 {
			p, err := r.Engine.ReembedProgress()
			t.Fatalf("it does not come to an end: %+v, %v", p, err)
		}
		r.Now = r.Now.Add(time.Second)
		r.Round(t)
		if rounds%(inputs/4) == 3 {
			r.check()
		}
		switch rounds {
		case inputs / 6, inputs / 2:
			r.add(1, map[string]string{"red.png": ""})
		case inputs / 3, 2 * inputs / 3:
			disk = disk.crash(t, random)
			r.Store = disk
			r.ReopenWithNetwork(t, next, old)
			killed++
		}
	}
	if killed != 2 || rounds < inputs {
		t.Fatalf("killed %d times in %d rounds", killed, rounds)
	}
	r.check()
	if now := r.reddestScore(); now <= was {
		t.Errorf("the new network gives red %v, the old gave %v", now, was)
	}
	if v := r.call("GET", "/v2/models/own/versions", ""); len(v.Versions) != 3 {
		t.Errorf("versions %+v, want the untrained, the trained and the renewed", v.Versions)
	}
	if p, err := r.Engine.ReembedProgress(); err != nil || len(p) != 0 {
		t.Errorf("Renewals = %+v, %v", p, err)
	}

	// The data of the old network is dropped, and the application continues to work.
	for range 10 {
		r.Step(t, 10*time.Second)
	}
	r.add(1, map[string]string{"red.png": "warm"})
	r.check()
	base := old.Base()
	left := 0
	err := r.Store.Scan(nil, nil, func(k, _ []byte) bool {
		if len(k) > 32 && [32]byte(k[len(k)-32:]) == base {
			left++
		}
		return true
	})
	if err != nil || left > 0 {
		t.Errorf("%d keys of the old network are left, %v", left, err)
	}
	r.ReopenWithNetwork(t, next, old)
	r.check()
}

// TestNetworkChangeWithoutPicture deletes the picture of a training's input before the new network sees it. The application changes its
// network all the same, without that input.
func TestNetworkChangeWithoutPicture(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	r := &renewing{TB: t, World: apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), old, nil, nil)}
	r.add(3, map[string]string{"red.png": "warm", "blue.png": "cold"})
	lost := r.call("POST", "/v2/inputs", `{"inputs":[{"id":"lost","data":{"image":{"base64":"`+
		base64.StdEncoding.EncodeToString(apitest.Picture("half.png"))+`"},"concepts":[{"id":"cold"}]}}]}`)
	if lost.Status.Code != 10000 {
		t.Fatalf("add = %+v", lost)
	}
	r.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"closed_environment":true}}}}`)
	r.call("POST", "/v2/models/own/versions", "")
	r.Step(t, time.Second)
	in, err := r.Input("lost")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Blobs.Delete(t.Context(), in.Blob); err != nil {
		t.Fatal(err)
	}
	r.ReopenWithNetwork(t, next, old)
	for rounds := 0; r.base() != next.Base(); rounds++ {
		if rounds > 200 {
			t.Fatal("it does not come to an end")
		}
		r.Now = r.Now.Add(time.Second)
		r.Round(t)
	}
	if v := r.custom("red.png"); v < 0.5 {
		t.Errorf("the own model gives red %v", v)
	}
	if _, err := r.Input("lost"); err != nil {
		t.Errorf("the input itself: %v", err)
	}

	// A replica brings the picture an hour later.
	similar := func() int {
		return len(r.call("POST", "/v2/searches", `{"query":{"ands":[{"output":{"input":{"data":{"image":{"base64":"`+
			base64.StdEncoding.EncodeToString(apitest.Picture("half.png"))+`"}}}}}]}}`).Hits)
	}
	if n := similar(); n != r.all {
		t.Errorf("%d inputs are found, want %d", n, r.all)
	}
	if n, err := r.Engine.MissingPictures(); n != 1 || err != nil {
		t.Errorf("MissingPictures = %d, %v", n, err)
	}
	r.Step(t, time.Hour)
	if _, err := r.Blobs.Put(t.Context(), bytes.NewReader(apitest.Picture("half.png")), in.Blob); err != nil {
		t.Fatal(err)
	}
	r.Step(t, time.Hour)
	if n := similar(); n != r.all+1 {
		t.Errorf("%d inputs are found after the picture came, want %d", n, r.all+1)
	}
	if n, err := r.Engine.MissingPictures(); n != 0 || err != nil {
		t.Errorf("MissingPictures = %d, %v after the picture came", n, err)
	}
}

// TestReplicaFollowsNetworkChange changes the network of an origin while a replica of its application is open. The replica has both
// networks. It answers as the origin does before the change, after it and after a restart.
func TestReplicaFollowsNetworkChange(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	c := apitest.NewReplica(t, old, nil)
	origin, copied := &renewing{TB: t, World: c.Origin}, &renewing{TB: t, World: c.World}
	origin.add(10, map[string]string{"red.png": "warm", "blue.png": "cold"})
	origin.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"closed_environment":true}}}}`)
	origin.call("POST", "/v2/models/own/versions", "")
	origin.Step(t, time.Second)
	same := func(when string) {
		t.Helper()
		c.Sync(t)
		c.World.Now = c.Origin.Now
		c.World.Step(t, 0)
		copied.red, copied.all = origin.red, origin.all
		origin.check()
		copied.check()
		if a, b := origin.reddestScore(), copied.reddestScore(); a != b {
			t.Errorf("%s the copy gives red %v, the origin %v", when, b, a)
		}
		if a, b := origin.custom("half.png"), copied.custom("half.png"); a != b {
			t.Errorf("%s the copy's own model gives %v, the origin's %v", when, b, a)
		}
	}
	same("before the change")
	c.World.ReopenWithNetwork(t, next, old)
	same("with the next program")
	origin.ReopenWithNetwork(t, next, old)
	was := copied.reddestScore()
	for rounds := 0; origin.base() != next.Base(); rounds++ {
		if rounds > 500 {
			t.Fatal("it does not come to an end")
		}
		origin.Now = origin.Now.Add(time.Second)
		origin.Round(t)
		if rounds%10 == 3 {
			same("on the way")
		}
	}
	same("after the change")
	if now := copied.reddestScore(); now <= was {
		t.Errorf("the copy gives red %v by the new network, it gave %v", now, was)
	}
	origin.add(1, map[string]string{"red.png": "warm"})
	same("with another input")
	c.World.ReopenWithNetwork(t, next, next) // the folder no longer has the old network
	same("after a restart")
}

// TestVersionOfOfflineReplicaIsRetrained trains a version at a replica that is offline while its origin changes the network. The origin
// trains the version again when it arrives, with the same inputs.
func TestVersionOfOfflineReplicaIsRetrained(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	c := apitest.NewReplica(t, old, nil)
	origin, copied := &renewing{TB: t, World: c.Origin}, &renewing{TB: t, World: c.World}
	origin.add(10, map[string]string{"red.png": "warm", "blue.png": "cold"})
	origin.call("POST", "/v2/models", `{"model":{"id":"own","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]},"output_config":{"closed_environment":true}}}}`)
	c.Sync(t)
	copied.call("POST", "/v2/models/own/versions", "")
	c.World.Step(t, time.Second)
	copied.custom("red.png")
	origin.ReopenWithNetwork(t, next, old)
	for origin.base() != next.Base() {
		origin.Now = origin.Now.Add(time.Second)
		origin.Round(t)
	}
	c.World.ReopenWithNetwork(t, next, old)
	c.Sync(t)
	if v := origin.call("GET", "/v2/models/own/versions", ""); len(v.Versions) != 2 {
		t.Fatalf("versions %+v, want the untrained and the copy's", v.Versions)
	}
	for range 3 {
		origin.Step(t, time.Minute)
	}
	origin.check()
	if v := origin.call("GET", "/v2/models/own/versions", ""); len(v.Versions) != 3 {
		t.Errorf("versions %+v, want another one", v.Versions)
	}
}

// TestReembeddingOfDuplicates re-embeds inputs that have the same picture and therefore one derived record. The index agrees with the
// records after each task.
func TestReembeddingOfDuplicates(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	r := &renewing{TB: t, World: apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), old, nil, nil)}
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	var inputs []string
	for i := range 4 {
		inputs = append(inputs, fmt.Sprintf(`{"id":"%d","data":{"image":{"base64":"%s"}}}`, i, picture))
	}
	r.call("POST", "/v2/inputs", `{"inputs":[`+strings.Join(inputs, ",")+`]}`)
	r.Step(t, time.Second)
	r.ReopenWithNetwork(t, next, old)
	for rounds := 0; r.base() != next.Base(); rounds++ {
		if rounds > 50 {
			t.Fatal("it does not come to an end")
		}
		r.Now = r.Now.Add(time.Second)
		r.Round(t)
		p, err := r.Engine.Partition(r.App)
		if err != nil {
			t.Fatal(err)
		}
		v := p.View()
		err = p.Index().Check(t.Context(), v.Reader)
		if err := errors.Join(err, v.Close()); err != nil {
			t.Fatalf("round %d: %v", rounds, err)
		}
	}
}

// TestReplicaWithoutNetworkStopsPulling pulls a change of the network to replicas whose program has only one of the two networks. Without
// the next network the replica stops pulling and answers as before. Without the old one it finds nothing before the change, and everything
// after it.
func TestReplicaWithoutNetworkStopsPulling(t *testing.T) {
	old, next := apitest.Tiny(t), apitest.TinyNext(t)
	for _, program := range []*predict.Set{old, next} {
		c := apitest.NewReplica(t, old, nil)
		origin, copied := &renewing{TB: t, World: c.Origin}, &renewing{TB: t, World: c.World}
		origin.add(10, map[string]string{"red.png": "warm", "blue.png": "cold"})
		c.Sync(t)
		c.World.ReopenWithNetwork(t, program, program)
		if program == old {
			copied.red = 10
		}
		was := 0.0
		if copied.red > 0 {
			was = copied.reddestScore()
		} else if a := copied.call("POST", "/v2/searches", `{"query":{"ands":[{"output":{"data":{"concepts":[{"name":"red"}]}}}]}}`); len(a.Hits) > 0 {
			t.Errorf("%d hits by a network that the program lacks", len(a.Hits))
		}
		origin.ReopenWithNetwork(t, next, old)
		for origin.base() != next.Base() {
			origin.Now = origin.Now.Add(time.Second)
			origin.Round(t)
		}
		err := c.TryPull(t)
		c.World.Now = c.Origin.Now
		c.World.Step(t, 0)
		copied.red = 10
		switch now := copied.reddestScore(); {
		case program == old && (!errors.Is(err, fold.ErrNewer) || now != was):
			t.Errorf("the old program pulls: %v, and gives red %v, want ErrNewer and %v", err, now, was)
		case program == next && (err != nil || now != origin.reddestScore()):
			t.Errorf("the next program pulls: %v, and gives red %v, want %v", err, now, origin.reddestScore())
		}
		c.World.ReopenWithNetwork(t, next, old) // the old program is replaced
		if err = c.TryPull(t); err != nil {
			t.Fatal(err)
		}
		c.World.Step(t, 0)
		if now := copied.reddestScore(); now != origin.reddestScore() {
			t.Errorf("after an upgrade the copy gives red %v, want %v", now, origin.reddestScore())
		}
	}
}
