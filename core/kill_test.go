package core_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/core/testkit"
)

// tape is a store in memory that records its batches. From them it can compute the state after a crash: all synced batches and a prefix of
// the others.
type tape struct {
	kv.Store

	mu      sync.Mutex
	batches [][]byte
	synced  int
}

func (s *tape) record(b *kv.Batch) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, slices.Clone(b.Bytes()))
	return len(s.batches)
}

func (s *tape) Apply(b *kv.Batch) error {
	s.record(b)
	return s.Store.Apply(b)
}

func (s *tape) Commit(b *kv.Batch) (func() error, error) {
	n := s.record(b)
	wait, err := s.Store.Commit(b)
	return func() error {
		s.mu.Lock()
		s.synced = max(s.synced, n)
		s.mu.Unlock()
		return wait()
	}, err
}

// crash returns a store with a possible state after a crash of s.
func (s *tape) crash(t testing.TB, r *rand.Rand) *tape {
	t.Helper()
	left := &tape{Store: kvtest.OrLate(t, memkv.New())}
	for _, data := range s.batches[:s.synced+r.IntN(len(s.batches)-s.synced+1)] {
		b, err := kv.ParseBatch(data)
		if err == nil {
			err = left.Apply(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	left.synced = len(left.batches) // all of this has been written to the disk
	return left
}

// TestKillInputs adds, changes and deletes inputs while the background works. It kills the program at random moments, between any two
// steps and during tasks, and restarts it on a possible result of the crash. No acknowledged change is lost or comes back, every input
// reaches its final status, and at the end exactly the pictures of the inputs are stored.
func TestKillInputs(t *testing.T) {
	set := apitest.Tiny(t)
	for seed := range testkit.Seeds(t, 300, 30_000) {
		r := rand.New(rand.NewPCG(seed, 4))
		store := &tape{Store: kvtest.OrLate(t, memkv.New())}
		k := killing{T: t, r: r, store: store, world: apitest.NewWorld(t, store, set, nil, nil), live: map[string]string{}}
		for range 20 {
			k.step(10)
		}
		for range 10 {
			k.step(7) // without kills, because a start would repair the state
		}
		k.settle()
	}
}

type killing struct {
	*testing.T
	r     *rand.Rand
	store *tape
	world *apitest.World
	live  map[string]string // acknowledged inputs: id → URL, empty for bytes
	next  int
}

// step does one random step: one of the cases below first.
func (k *killing) step(first int) {
	switch k.r.IntN(first) {
	case 0, 1, 2:
		k.add()
	case 3:
		k.delete()
	case 4, 5, 6:
		k.world.Now = k.world.Now.Add(time.Duration(k.r.IntN(3)) * time.Second)
		k.world.Round(k.T)
	case 7:
		k.interrupt()
	default:
		k.kill()
	}
}

func (k *killing) call(method, path string, body any) map[string]any {
	k.Helper()
	r := api.Request{Method: method, Path: path}
	if body != nil {
		var err error
		if r.Body, err = json.Marshal(body); err != nil {
			k.Fatal(err)
		}
	}
	got := k.world.Serve(k.T, r)
	var out map[string]any
	if err := json.Unmarshal(got.Body, &out); err != nil || got.Status >= 500 {
		k.Fatalf("%s %s = %d %s, %v", method, path, got.Status, got.Body, err)
	}
	return out
}

// places are URLs of pictures and of failing downloads.
var places = []string{"red.png", "half.png", "blue.png", "gone", "down.png", "trouble", "torn.png"}

func (k *killing) add() {
	type object = map[string]any
	var inputs []any
	added := map[string]string{}
	for range 1 + k.r.IntN(3) {
		k.next++
		id, image := fmt.Sprint(k.next), object{}
		if k.r.IntN(2) == 0 {
			image["base64"] = base64.StdEncoding.EncodeToString(apitest.Picture([]string{"red.png", "white.png", "black.png"}[k.r.IntN(3)]))
			added[id] = ""
		} else {
			added[id] = "http://pictures.test/" + places[k.r.IntN(len(places))] + "?" + id
			image["url"] = added[id]
		}
		inputs = append(inputs, object{"id": id, "data": object{"image": image, "concepts": []any{object{"id": "c" + id}}}})
	}
	k.call("POST", "/v2/inputs", object{"inputs": inputs})
	maps.Copy(k.live, added)
}

func (k *killing) delete() {
	if k.r.IntN(6) == 0 {
		k.call("DELETE", "/v2/inputs", map[string]any{"delete_all": true})
		clear(k.live)
		return
	}
	for id := range k.live {
		k.call("DELETE", "/v2/inputs/"+id, nil)
		delete(k.live, id)
		return
	}
}

// interrupt kills the program while it works on a task.
func (k *killing) interrupt() {
	tasks, err := k.world.Engine.Take(k.world.Now, 2)
	if err != nil {
		k.Fatal(err)
	}
	for _, task := range tasks {
		k.world.RunTask(task)
	}
	k.kill()
}

func (k *killing) kill() {
	k.store = k.store.crash(k.T, k.r)
	k.world.Open(k.T, k.store)
	k.compare()
}

// compare compares the inputs with the acknowledged changes.
func (k *killing) compare() map[string]map[string]any {
	k.Helper()
	got := map[string]map[string]any{}
	list := k.world.Serve(k.T, api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=1000"})
	var out struct{ Inputs []map[string]any }
	if err := json.Unmarshal(list.Body, &out); err != nil {
		k.Fatal(err)
	}
	for _, in := range out.Inputs {
		got[in["id"].(string)] = in
	}
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(k.live)); !slices.Equal(a, b) {
		k.Fatalf("after a kill there are %v, acknowledged %v", a, b)
	}
	return got
}

// settle runs the background work to its end and checks everything.
func (k *killing) settle() {
	for range 5 {
		k.world.Step(k.T, 30*time.Second)
	}
	wantBlobs := map[blob.Hash]bool{}
	good := 0
	for id, in := range k.compare() {
		code := int(in["status"].(map[string]any)["code"].(float64))
		address := in["data"].(map[string]any)["image"].(map[string]any)["url"].(string)
		if code == 30001 {
			k.Errorf("input %s stays pending", id)
		}
		if want := map[string]int{"gone": 30002, "down.png": 30002, "trouble": 30300, "torn.png": 30300}[placeOf(k.live[id])]; want != 0 {
			if code != want {
				k.Errorf("input %s of %s ends at %d, want %d", id, address, code, want)
			}
			continue
		}
		if code != 30000 {
			k.Errorf("input %s of %s ends at %d", id, address, code)
			continue
		}
		good++
		if outputs := k.call("GET", "/v2/inputs/"+id+"/outputs", nil)["outputs"].([]any); len(outputs) != 1 {
			k.Errorf("input %s has no predictions", id)
		}
		thumb := k.world.Serve(k.T, api.Request{Method: "GET", Path: "/v2/inputs/" + id + "/thumbnail"})
		if thumb.Status != 200 || thumb.ContentType != "image/jpeg" {
			k.Errorf("input %s has no thumbnail: %s", id, thumb.Body)
		}
		wantBlobs[k.pictureOf(id)] = true
		if k.live[id] != "" {
			continue
		}
		_, name, _ := strings.Cut(address, api.HostedPath)
		p, err := k.world.Engine.Register.HostedPicture(name)
		if err != nil || p.Hash != k.pictureOf(id) || p.ContentType != "image/png" {
			k.Errorf("input %s is hosted as %+v, %v", id, p, err)
		}
		if storedThumb, err := k.world.Engine.Register.Thumbnail(name); err != nil || string(storedThumb) != string(thumb.Body) {
			k.Errorf("beside input %s stands %d bytes, %v", id, len(storedThumb), err)
		}
	}
	counts := k.call("GET", "/v2/inputs/status", nil)["counts"].(map[string]any)
	if counts["processed"] != float64(good) || counts["to_process"] != 0.0 || counts["errors"] != float64(len(k.live)-good) {
		k.Errorf("counts %v of %d inputs, %d good", counts, len(k.live), good)
	}
	gotBlobs := map[blob.Hash]bool{}
	if err := k.world.Blobs.Each(k.Context(), blob.Hash{}, func(h blob.Hash) error { gotBlobs[h] = true; return nil }); err != nil {
		k.Fatal(err)
	}
	if !maps.Equal(gotBlobs, wantBlobs) {
		k.Errorf("%d blobs are kept, the inputs have %d", len(gotBlobs), len(wantBlobs))
	}
}

// placeOf returns the element of places that a URL refers to.
func placeOf(url string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "http://pictures.test/"), "?")
	return name
}

// pictureOf returns the hash of an input's picture.
func (k *killing) pictureOf(id string) blob.Hash {
	k.Helper()
	in, err := k.world.Input(id)
	if err != nil {
		k.Fatal(err)
	}
	return in.Blob
}

// TestClosedEngineRunsNoSteps checks that a closed engine hands out no tasks and runs no steps.
func TestClosedEngineRunsNoSteps(t *testing.T) {
	w := apitest.NewWorld(t, kvtest.OrLate(t, memkv.New()), apitest.Tiny(t), nil, nil)
	if err := w.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Engine.Take(w.Now, 1); !errors.Is(err, register.ErrClosed) {
		t.Errorf("Take = %v, want register.ErrClosed", err)
	}
	if _, err := w.Engine.Step(t.Context(), w.Now); !errors.Is(err, register.ErrClosed) {
		t.Errorf("Step = %v, want register.ErrClosed", err)
	}
}
