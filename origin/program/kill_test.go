package program

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// inputState is the required state of an input: its label and the number in its metadata.
type inputState struct {
	label bool // of concept "a"; false: an explicit false
	n     int
}

// killer is a client that changes its inputs, one call at a time, and records the acknowledged changes. If the server dies during a call,
// that call was executed completely or not at all.
type killer struct {
	name    string
	rnd     *rand.Rand
	client  *http.Client
	base    string
	serial  int
	inputs  map[string]inputState
	after   map[string]inputState // inputs if the pending call is executed; nil: no call is pending
	changes atomic.Int64          // acknowledged
}

var errDead = errors.New("the server is dead")

// call sends one request. A server that does not answer is dead.
func (k *killer) call(method, path string, body any) (int, []byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(method, k.base+path, bytes.NewReader(b))
	if err != nil {
		panic(err)
	}
	res, err := k.client.Do(req)
	if err != nil {
		return 0, nil, errDead
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, errDead
	}
	return res.StatusCode, answer, nil
}

// change makes a call that turns the inputs into after. If it succeeds, change counts n acknowledged changes.
func (k *killer) change(n int, after map[string]inputState, method, path string, body any) error {
	k.after = after
	for {
		code, answer, err := k.call(method, path, body)
		switch {
		case err != nil:
			return err
		case code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests:
			continue // the server rejected the call and changed nothing
		case code != http.StatusOK:
			return fmt.Errorf("%s %s: %d %.300q", method, path, code, answer)
		}
		k.inputs, k.after = after, nil
		k.changes.Add(int64(n))
		return nil
	}
}

// step makes one random change.
func (k *killer) step(pictures []string, pictureURL string) error {
	after := maps.Clone(k.inputs)
	some := slices.Sorted(maps.Keys(k.inputs))
	k.rnd.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = some[:min(len(some), 1+k.rnd.IntN(24))]
	switch kind := k.rnd.IntN(10); {
	case kind < 5 || len(some) == 0:
		var inputs []cli.Object
		for range 1 + k.rnd.IntN(24) {
			k.serial++
			id := fmt.Sprintf("%s/%d", k.name, k.serial)
			image := cli.Object{"base64": pictures[k.rnd.IntN(len(pictures))]}
			if k.rnd.IntN(8) == 0 {
				image = cli.Object{"url": fmt.Sprintf("%s/%d", pictureURL, k.rnd.IntN(8)), "allow_duplicate_url": true}
			}
			after[id] = inputState{true, k.serial}
			inputs = append(inputs, cli.Object{"id": id, "data": cli.Object{"image": image, "concepts": []cli.Object{{"id": "a"}}, "metadata": cli.Object{"n": k.serial}}})
		}
		return k.change(len(inputs), after, "POST", "/v2/inputs", cli.Object{"inputs": inputs})
	case kind < 8:
		var inputs []cli.Object
		for _, id := range some {
			k.serial++
			after[id] = inputState{k.rnd.IntN(2) == 0, k.serial}
			inputs = append(inputs, cli.Object{"id": id, "data": cli.Object{"concepts": []cli.Object{{"id": "a", "value": after[id].label}}, "metadata": cli.Object{"n": k.serial}}})
		}
		return k.change(len(inputs), after, "PATCH", "/v2/inputs", cli.Object{"action": "merge", "inputs": inputs})
	default:
		for _, id := range some {
			delete(after, id)
		}
		return k.change(len(some), after, "DELETE", "/v2/inputs", cli.Object{"ids": some})
	}
}

// listing returns all inputs of the application.
func (k *killer) listing() (map[string]inputState, error) {
	all := map[string]inputState{}
	for page := 1; ; page++ {
		_, answer, err := k.call("GET", fmt.Sprintf("/v2/inputs?page=%d&per_page=1000", page), nil)
		if err != nil {
			return nil, err
		}
		var list struct {
			Inputs []struct {
				ID   string
				Data struct {
					Concepts []struct {
						ID    string
						Value float64
					}
					Metadata struct{ N int }
				}
			}
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			return nil, err
		}
		for _, in := range list.Inputs {
			if _, twice := all[in.ID]; twice {
				return nil, fmt.Errorf("%q is listed twice", in.ID)
			}
			if len(in.Data.Concepts) != 1 {
				return nil, fmt.Errorf("%q has labels %v", in.ID, in.Data.Concepts)
			}
			all[in.ID] = inputState{in.Data.Concepts[0].Value == 1, in.Data.Metadata.N}
		}
		if len(list.Inputs) < 1000 {
			return all, nil
		}
	}
}

// killedServer is a data folder, its clients and its trainings, over many server processes.
type killedServer struct {
	t          *testing.T
	data       string
	killers    []*killer
	trainings  map[string]bool // acknowledged versions
	pictures   []string
	pictureURL string
	resumed    int // trainings that were unfinished when a server started
}

// TestKillProcess kills a server with SIGKILL while clients add, patch, delete, train, search, predict and download. After a restart
// everything acknowledged is stored. Everything else is stored completely or not at all. Counts agree, doctor finds no fault, and trainings
// and downloads finish.
func TestKillProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of killing")
	}
	var pictures []string
	for i := range 8 {
		pictures = append(pictures, base64.StdEncoding.EncodeToString(dots(t, uint64(i), 16)))
	}
	picture := dots(t, 99, 16)
	pictureServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(picture) }))
	defer pictureServer.Close()
	acknowledged, rounds, resumed, started := int64(0), 0, 0, system.Now()
	var r *killedServer
	for seed := range testkit.Seeds(t, 5, 500) {
		if rounds%20 == 0 { // doctor folds the whole log of a folder, so a small folder is faster
			r = newKilledServer(t, seed, pictures, pictureServer.URL)
		}
		before := r.changes()
		r.round(rand.New(rand.NewPCG(seed, 4)))
		acknowledged += r.changes() - before
		if rounds++; rounds%20 == 0 || rounds < 20 {
			resumed, r.resumed = resumed+r.resumed, 0
		}
	}
	t.Logf("%d kills, %d acknowledgements, 0 lost, %d trainings went on after a kill, %.0f s", rounds, acknowledged, resumed, system.Now().Sub(started).Seconds())
}

func newKilledServer(t *testing.T, seed uint64, pictures []string, pictureURL string) *killedServer {
	r := &killedServer{t: t, data: t.TempDir(), trainings: map[string]bool{}, pictures: pictures, pictureURL: pictureURL}
	for i := range 4 {
		r.killers = append(r.killers, &killer{
			name: fmt.Sprintf("%c%d", 'a'+i, seed), rnd: rand.New(rand.NewPCG(seed, uint64(i))), inputs: map[string]inputState{},
		})
	}
	return r
}

func (r *killedServer) changes() (n int64) {
	for _, k := range r.killers {
		n += k.changes.Load()
	}
	return n
}

// round starts a server, checks it, sends it calls, and kills it.
func (r *killedServer) round(rnd *rand.Rand) {
	r.t.Helper()
	p := startOn(r.t, r.data, "--log", "error", "--allow-private-fetch")
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: keyTransport{transport}, Timeout: time.Minute}
	for _, k := range r.killers {
		k.client, k.base = client, p.base
	}
	operator := &killer{client: client, base: p.base}
	r.check(operator)
	if rnd.IntN(8) == 0 {
		if err := operator.change(1, nil, "DELETE", "/v2/inputs", cli.Object{"delete_all": true}); err != nil {
			r.t.Fatal(err)
		}
		for _, k := range r.killers {
			clear(k.inputs)
		}
	}
	target := r.changes() + 200 + int64(rnd.IntN(1600))
	var clients sync.WaitGroup
	for _, k := range r.killers {
		clients.Go(func() { r.live(k) })
	}
	clients.Go(func() { r.train(operator, 1+rnd.IntN(2)) })
	clients.Go(func() { r.read(client, p.base) })
	for deadline := system.Now().Add(time.Minute); r.changes() < target && !r.t.Failed(); system.Pause(r.t.Context(), time.Millisecond) {
		if system.Now().After(deadline) {
			r.t.Errorf("%d changes are missing after a minute", target-r.changes())
		}
	}
	_ = p.cmd.Process.Kill()
	clients.Wait()
	<-p.exited
	if errs := p.lines("level=ERROR"); len(errs) > 0 {
		r.t.Errorf("the server said: %s", errs[0])
	}
	if code, stdout, stderr := runCode(r.t, "doctor", "--data", r.data, "--quiet"); code != 0 {
		r.t.Errorf("doctor after the kill: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// live changes inputs until the server is dead.
func (r *killedServer) live(k *killer) {
	for {
		if err := k.step(r.pictures, r.pictureURL); errors.Is(err, errDead) {
			return
		} else if err != nil {
			r.t.Error(err)
			return
		}
	}
}

// train requests n trainings.
func (r *killedServer) train(k *killer, n int) {
	code, _, err := k.call("GET", "/v2/models/m", nil)
	if err != nil {
		return
	}
	if code == http.StatusNotFound {
		body := cli.Object{"model": cli.Object{"id": "m", "output_info": cli.Object{"data": cli.Object{"concepts": []cli.Object{{"id": "a"}}}}}}
		if code, answer, err := k.call("POST", "/v2/models", body); err == nil && code != 200 {
			r.t.Errorf("model: %d %s", code, answer)
		}
	}
	for range n {
		code, answer, err := k.call("POST", "/v2/models/m/versions", nil)
		if err != nil {
			return
		}
		var reply struct {
			Model struct {
				Version trainedVersion `json:"model_version"`
			}
		}
		if err := json.Unmarshal(answer, &reply); err != nil || code != 200 || reply.Model.Version.ID == "" {
			r.t.Errorf("training: %d %s", code, answer)
			return
		}
		r.trainings[reply.Model.Version.ID] = true
		k.changes.Add(1)
	}
}

// read searches and predicts until the server is dead.
func (r *killedServer) read(client *http.Client, base string) {
	k := &killer{client: client, base: base}
	for {
		for _, ask := range []struct {
			path string
			body any
		}{
			{"/v2/searches", cli.Object{"query": cli.Object{"ands": []cli.Object{{"input": cli.Object{"data": cli.Object{"concepts": []cli.Object{{"id": "a", "value": true}}}}}}}}},
			{"/v2/searches", cli.Object{"query": cli.Object{"ands": []cli.Object{{"output": cli.Object{"input": cli.Object{"data": cli.Object{"image": cli.Object{"base64": r.pictures[0]}}}}}}}}},
			{"/v2/models/" + generalID + "/outputs", cli.Object{"inputs": []cli.Object{{"data": cli.Object{"image": cli.Object{"base64": r.pictures[0]}}}}}},
		} {
			code, answer, err := k.call("POST", ask.path, ask.body)
			if err != nil {
				return
			}
			if code != 200 && code != http.StatusServiceUnavailable {
				r.t.Errorf("%s: %d %.300s", ask.path, code, answer)
				return
			}
		}
	}
}

// check compares the server's data with the acknowledged changes.
func (r *killedServer) check(k *killer) {
	r.t.Helper()
	all, err := k.listing()
	if err != nil {
		r.t.Fatalf("listing: %v", err)
	}
	total, labelled := 0, 0
	for _, x := range r.killers {
		states := map[string]inputState{}
		for id, is := range all {
			if len(id) > len(x.name) && id[:len(x.name)+1] == x.name+"/" {
				states[id] = is
			}
		}
		if maps.Equal(states, x.inputs) {
			x.after = nil
		} else if x.after != nil && maps.Equal(states, x.after) {
			x.inputs, x.after = x.after, nil
		} else {
			r.t.Errorf("client %s: %s", x.name, difference(states, x.inputs))
		}
		total += len(states)
		for _, is := range states {
			if is.label {
				labelled++
			}
		}
	}
	if total != len(all) {
		r.t.Errorf("%d inputs are there, of which the clients have %d", len(all), total)
	}
	r.checkSearch(k, labelled)
	r.settle(k, len(all))
	if r.t.Failed() {
		r.t.FailNow()
	}
}

// difference returns the first difference between the two states of the inputs. If they are equal, it returns an empty text.
func difference(got, want map[string]inputState) string {
	for id, w := range want {
		if g, ok := got[id]; !ok {
			return fmt.Sprintf("%q is lost, of %d", id, len(want))
		} else if g != w {
			return fmt.Sprintf("%q is %+v, want %+v", id, g, w)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			return fmt.Sprintf("%q was not acknowledged, or was deleted, of %d", id, len(got))
		}
	}
	return ""
}

// checkSearch checks that a search by label finds as many inputs as want.
func (r *killedServer) checkSearch(k *killer, want int) {
	r.t.Helper()
	found := 0
	for page := 1; ; page++ {
		_, answer, err := k.call("POST", "/v2/searches", cli.Object{
			"query":      cli.Object{"ands": []cli.Object{{"input": cli.Object{"data": cli.Object{"concepts": []cli.Object{{"id": "a", "value": true}}}}}}},
			"pagination": cli.Object{"page": page, "per_page": 1000},
		})
		if err != nil {
			r.t.Fatalf("search: %v", err)
		}
		var list struct{ Hits []json.RawMessage }
		if err := json.Unmarshal(answer, &list); err != nil {
			r.t.Fatalf("search: %v", err)
		}
		found += len(list.Hits)
		if len(list.Hits) < 1000 {
			break
		}
	}
	if found != want {
		r.t.Errorf("a search finds %d inputs by their label, want %d", found, want)
	}
}

// settle waits until all downloads and trainings are finished.
func (r *killedServer) settle(k *killer, inputs int) {
	r.t.Helper()
	deadline := system.Now().Add(time.Minute)
	for {
		_, answer, err := k.call("GET", "/v2/inputs/status", nil)
		var status struct{ Counts inputCounts }
		if err == nil {
			err = json.Unmarshal(answer, &status)
		}
		if err != nil {
			r.t.Fatalf("counts: %v", err)
		}
		n := status.Counts
		if n.Processed+n.ToProcess+n.Errors != inputs || n.Errors != 0 {
			r.t.Fatalf("counts are %+v, and there are %d inputs", n, inputs)
		}
		if n.ToProcess == 0 {
			break
		}
		if system.Now().After(deadline) {
			r.t.Fatalf("%d downloads do not go on", n.ToProcess)
		}
		system.Pause(r.t.Context(), 5*time.Millisecond)
	}
	for id := range r.trainings {
		for first := true; ; first = false {
			_, answer, err := k.call("GET", "/v2/models/m/versions/"+id, nil)
			var v struct {
				Version trainedVersion `json:"model_version"`
			}
			if err == nil {
				err = json.Unmarshal(answer, &v)
			}
			if err != nil || v.Version.Status.Code == 0 {
				r.t.Fatalf("version %s is lost: %v %s", id, err, answer)
			}
			if c := v.Version.Status.Code; c != versionTraining && c != versionQueued {
				delete(r.trainings, id)
				break
			}
			if first {
				r.resumed++
			}
			if system.Now().After(deadline) {
				r.t.Fatalf("version %s does not go on: %s", id, answer)
			}
			system.Pause(r.t.Context(), 5*time.Millisecond)
		}
	}
}
