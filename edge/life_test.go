package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/origin/server/control"
)

const general = "aaa03c23b3724a16a56b629203edc62c"

// TestNode has one binary do what people do with an edge, from outside.
func TestNode(t *testing.T) {
	binary := own(t)
	for name, test := range map[string]func(t *testing.T, binary string){
		"life":      life,
		"pages":     checkPages,
		"killed":    killAndRestart,
		"idle":      idle,
		"drain":     drain,
		"full disk": fullDisk,
		"earlier":   earlier,
		"refusals":  refusals,
		"activated": checkSocketActivation,
		"joined":    checkConvergence,
		"shared":    credentials,
		"local":     localOnly,
		"small":     checkThumbnails,
		"stored":    checkStored,
		"slow urls": slowURLs,
		"rollback":  rolledBack,
		"restored":  restoredEdge,
		"hosted":    hostedURLs,
		"backup":    restoredOrigin,
		"back":      testTakeBack,
	} {
		t.Run(name, func(t *testing.T) { test(t, binary) })
	}
}

// life is a first day: an application and a key, pictures in, predicted, taught and found, a token, a
// hosted picture, a copy of everything, and the next morning.
func life(t *testing.T, binary string) {
	data := filepath.Join(t.TempDir(), "data")
	app, key, ids := owner(t, binary, data, "birds")
	srv := serve(t, binary, data)
	c := srv.as(t, key)

	names := photos(t)
	answer := c.must("POST", "/v2/models/"+general+"/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, names[6])}}}}})
	if first := at(t, answer, "outputs", 0, "data", "concepts", 0, "name"); first == "" {
		t.Errorf("predict answers no concept: %v", answer)
	}

	var inputs []object
	for i, name := range names[:8] {
		concept := "north"
		if i%2 == 1 {
			concept = "south"
		}
		inputs = append(inputs, input(fmt.Sprintf("in-%d", i), photo(t, name), concept))
	}
	added := c.must("POST", "/v2/inputs", object{"inputs": inputs})
	c.settle(8)
	trainAndPredict(t, c, names)
	found := c.must("POST", "/v2/searches", object{"query": object{"ands": []object{{"output": object{"input": object{"data": object{"image": object{"base64": photo(t, names[3])}}}}}}}})
	if id := at(t, found, "hits", 0, "input", "id"); id != "in-3" {
		t.Errorf("the picture most like in-3 is %v", id)
	}

	hosted, err := url.Parse(at(t, added, "inputs", 0, "data", "image", "url").(string))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := get(t, srv.base+hosted.Path, 200), decode(t, photo(t, names[0])); got != want {
		t.Errorf("the hosted picture has %d bytes, want %d", len(got), len(want))
	}
	tokens(t, srv, ids)
	operations(t, binary, srv, data)

	backup, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "restored")
	command(t, binary, "backup", backup, "--data", data, "--quiet")
	command(t, binary, "doctor", "--data", data) // while it serves
	export := filepath.Join(t.TempDir(), "birds.zip")
	command(t, binary, "export", export, "--data", data, "--app", app, "--quiet")
	srv.terminate(t)
	command(t, binary, "doctor", "--data", data)
	command(t, binary, "restore", backup, "--data", restored, "--quiet")

	// The copy is the application with its key; the export is it without.
	restoredServer := serve(t, binary, restored)
	c = restoredServer.as(t, key)
	if total := len(at(t, c.must("GET", "/v2/inputs", nil), "inputs").([]any)); total != 8 {
		t.Errorf("the restored folder has %d inputs, want 8", total)
	}
	_, key, _ = owner(t, binary, restored, "copy")
	command(t, binary, "import", export, "--url", restoredServer.base, "--key", key, "--quiet")
	if total := len(at(t, restoredServer.as(t, key).must("GET", "/v2/inputs", nil), "inputs").([]any)); total != 8 {
		t.Errorf("the imported application has %d inputs, want 8", total)
	}
	restoredServer.terminate(t)
}

// trainAndPredict has a model trained of the two concepts, and asks it.
func trainAndPredict(t *testing.T, c *client, names []string) {
	t.Helper()
	c.must("POST", "/v2/models", object{"model": object{
		"id": "halves", "output_info": object{"data": object{"concepts": []object{{"id": "north"}, {"id": "south"}}}},
	}})
	c.must("POST", "/v2/models/halves/versions", nil)
	until(t, "the model is trained", func() bool {
		code := at(t, c.must("GET", "/v2/models/halves", nil), "model", "model_version", "status", "code").(float64)
		if code != 21100 && code != 21103 && code != 21101 {
			t.Fatalf("the training ends with %v", code)
		}
		return code == 21100
	})
	for i, want := range []string{"north", "south"} {
		out := c.must("POST", "/v2/models/halves/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, names[i])}}}}})
		if id := at(t, out, "outputs", 0, "data", "concepts", 0, "id"); id != want {
			t.Errorf("picture %d is %v, want %s", i, id, want)
		}
	}
}

// tokens has the application's client get a token, which opens the same door, and a wrong secret none.
func tokens(t *testing.T, srv *server, ids [2]string) {
	t.Helper()
	ask := func(id, secret string) (int, object) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.base+"/v2/token", strings.NewReader("grant_type=client_credentials"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(id, secret)
		res, err := asking.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		out := object{}
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, out
	}
	status, out := ask(ids[0], ids[1])
	if status != 200 {
		t.Fatalf("token: %d, %v", status, out)
	}
	c := &client{t, srv, "Bearer " + at(t, out, "access_token").(string)}
	c.must("GET", "/v2/inputs/in-0", nil)
	if status, _ := ask(ids[0], strings.Repeat("0", 64)); status != 401 {
		t.Errorf("a wrong secret: %d, want 401", status)
	}
	c.auth += "x"
	if status, _, err := c.do("GET", "/v2/inputs/in-0", nil); status != 401 || err != nil {
		t.Errorf("a forged token: %d, %v, want 401", status, err)
	}
}

// get reads an address.
func get(t *testing.T, address string, want int) string {
	t.Helper()
	res, err := asking.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Fatalf("GET %s = %d, %v, want %d", address, res.StatusCode, err, want)
	}
	return string(b)
}

// operations asks what an operator asks.
func operations(t *testing.T, binary string, srv *server, data string) {
	t.Helper()
	get(t, srv.base+"/healthz", 200)
	get(t, srv.base+"/readyz", 200)
	if text := get(t, srv.base+"/metrics", 200); !strings.Contains(text, "sightline_pictures_total") {
		t.Error("/metrics says nothing of pictures")
	}
	get(t, srv.base+"/samples/01-canal-in-venice.jpg", 200)
	for _, path := range []string{"/nowhere", "/console/sign-up", "/runtime/none.js"} {
		if text := get(t, srv.base+path, 404); !strings.Contains(text, `"status"`) {
			t.Errorf("GET %s = %q, want the interface's envelope", path, text)
		}
	}
	var s control.Status
	if err := json.Unmarshal([]byte(command(t, binary, "status", "--data", data, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Program != "sightline-edge" || s.URL != srv.base || s.Apps != 1 || s.Module == nil || s.Module.Instances < 1 || s.Module.Bytes == 0 {
		t.Errorf("status = %+v, %+v", s, s.Module)
	}
	var v struct{ Module string }
	if err := json.Unmarshal([]byte(get(t, srv.base+"/version", 200)), &v); err != nil || v.Module != s.Module.SHA256 || len(v.Module) != 64 {
		t.Errorf("/version names module %q, %v, status %q", v.Module, err, s.Module.SHA256)
	}
}

// killAndRestart kills the serving process, and then its supervisor, while pictures come in. Acknowledged writes are stored; after the
// first kill the server restarts by itself.
func killAndRestart(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "killed")
	srv := serve(t, binary, data)
	var acknowledged sync.Map
	add := func(srv *server, from int) func() {
		c := srv.as(t, key)
		var stop atomic.Bool
		var adding sync.WaitGroup
		for worker := range 3 {
			adding.Go(func() {
				for i := from + worker; !stop.Load(); i += 3 {
					id := fmt.Sprintf("k-%d", i)
					status, _, err := c.do("POST", "/v2/inputs", object{"inputs": []object{{"id": id, "data": object{"image": object{"url": srv.base + "/none/" + id}}}}})
					if err == nil && status == 200 {
						acknowledged.Store(id, true)
					} else if err != nil {
						return // it died
					}
				}
			})
		}
		return func() { stop.Store(true); adding.Wait() }
	}
	count := func() (n int) {
		acknowledged.Range(func(any, any) bool { n++; return true })
		return n
	}
	await := func(n int) { until(t, "inputs are acknowledged", func() bool { return count() >= n }) }
	checkInputs := func(srv *server) {
		t.Helper()
		c := srv.as(t, key)
		acknowledged.Range(func(id, _ any) bool {
			if status, _, err := c.do("GET", "/v2/inputs/"+id.(string), nil); status != 200 || err != nil {
				t.Errorf("%v was acknowledged, and is lost: %d, %v", id, status, err)
			}
			return true
		})
	}
	done := add(srv, 0)
	await(30)
	if err := syscall.Kill(srv.child(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	srv.find(t, serving, 2) // the supervisor starts another
	done()
	checkInputs(srv)

	done = add(srv, 10000)
	await(count() + 30)
	child := srv.child(t)
	if err := srv.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-srv.ended
	done()
	until(t, "the server dies with its supervisor", func() bool { return syscall.Kill(child, 0) != nil })
	srv = serve(t, binary, data)
	checkInputs(srv)
	srv.terminate(t)
	command(t, binary, "doctor", "--data", data)
	t.Logf("%d inputs were acknowledged, none lost", count())
}

// idle starts on a folder of several applications, none of which anybody has asked for yet.
func idle(t *testing.T, binary string) {
	data := folder(t, binary)
	keys := map[string]string{}
	for i := range 5 {
		name := fmt.Sprintf("app-%d", i)
		_, keys[name], _ = owner(t, binary, data, name)
	}
	srv := serve(t, binary, data)
	for name, key := range keys {
		srv.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("of-"+name, photo(t, photos(t)[0]))}})
	}
	srv.terminate(t)
	srv = serve(t, binary, data)
	for name, key := range keys {
		inputs := at(t, srv.as(t, key).must("GET", "/v2/inputs", nil), "inputs").([]any)
		if len(inputs) != 1 || at(t, inputs, 0, "id") != "of-"+name {
			t.Errorf("%s holds %v", name, inputs)
		}
	}
	srv.terminate(t)
}

// drain stops the server while calls are under way: those that it accepted are answered.
func drain(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "drain")
	srv := serve(t, binary, data)
	c := srv.as(t, key)
	var inputs []object
	for _, name := range photos(t) {
		inputs = append(inputs, object{"data": object{"image": object{"base64": photo(t, name)}}})
	}
	c.must("POST", "/v2/models/"+general+"/outputs", object{"inputs": inputs[:1]})
	answers := make(chan string, 2)
	for range 2 {
		go func() {
			status, out, err := c.do("POST", "/v2/models/"+general+"/outputs", object{"inputs": inputs})
			answers <- fmt.Sprint(status, err, len(out))
		}()
	}
	for under := int64(0); under < 2; { // both have come in
		var s control.Status
		if err := json.Unmarshal([]byte(command(t, binary, "status", "--data", data, "--json")), &s); err != nil {
			t.Fatal(err)
		}
		if under = s.Calls; len(answers) > 0 {
			t.Skip("the calls were over before the server was stopped")
		}
	}
	srv.terminate(t)
	for range 2 {
		if got := <-answers; !strings.HasPrefix(got, "200 <nil>") {
			t.Errorf("an accepted call was answered %s", got)
		}
	}
}

// fullDisk serves from a disk with too little space: reads work, writes are refused.
func fullDisk(t *testing.T, binary string) {
	data := folder(t, binary)
	_, key, _ := owner(t, binary, data, "full")
	srv := serve(t, binary, data)
	srv.as(t, key).must("POST", "/v2/inputs", object{"inputs": []object{input("one", photo(t, photos(t)[0]))}})
	srv.terminate(t)
	srv = serve(t, binary, data, "--min-free-space", "2047GB")
	c := srv.as(t, key)
	status, out, err := c.do("POST", "/v2/inputs", object{"inputs": []object{input("two", photo(t, photos(t)[1]))}})
	if status != 507 || err != nil || at(t, out, "status", "code") != float64(39998) {
		t.Errorf("an add on a full disk: %d, %v, %v, want 507 and 39998", status, out, err)
	}
	c.must("GET", "/v2/inputs/one", nil)
	c.must("POST", "/v2/searches", object{"query": object{"ands": []object{{"output": object{"input": object{"id": "one"}}}}}})
	get(t, srv.base+"/healthz", 200)
	get(t, srv.base+"/readyz", 503)
	if code, out, _ := try(t, binary, "status", "--data", data); code != 1 || !strings.Contains(out, "accepts writes  no") {
		t.Errorf("status = %d, %s", code, out)
	}
	srv.terminate(t)
}

// refusals has the program refuse plain HTTP that others could read, and commands that it lacks.
func refusals(t *testing.T, binary string) {
	data := t.TempDir()
	for _, tt := range []struct {
		args    []string
		message string
	}{
		{[]string{"serve", "--listen", "0.0.0.0:0", "--data", data}, "refusing plain HTTP on 0.0.0.0:0"},
		{[]string{"serve", "--behind-proxy", "--data", data}, "--public-url is required"},
		{[]string{"serve", "--call-timeout", "10ms", "--data", data}, "call-timeout"},
		{[]string{"serve", "--instance-memory", "8GB", "--data", data}, "instance-memory"},
		{[]string{"serve", "--sign-up", "closed"}, "unknown flag"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--origin", "https://origin.example", "--data", data}, "needs the token"},
		{[]string{"serve", "--listen", "127.0.0.1:0", "--origin", "http://origin.example", "--token", "t", "--data", data}, "https"},
		{[]string{"predict", "x.jpg"}, "unknown command"},
		{[]string{"module"}, "unknown command"},
	} {
		if code, out, stderr := try(t, binary, tt.args...); code != 2 || out != "" || !strings.Contains(stderr, tt.message) {
			t.Errorf("%s = %d, %q, %q, want 2 and %q", strings.Join(tt.args, " "), code, out, stderr, tt.message)
		}
	}
	if out := command(t, binary, "help", "app", "create"); strings.Contains(out, "sightline app") || !strings.Contains(out, "sightline-edge app create birds") {
		t.Errorf("the help calls the program by another's name:\n%s", out)
	}
	for _, how := range []string{"version", "--version"} {
		if out := command(t, binary, how); !strings.HasPrefix(out, "sightline-edge ") {
			t.Errorf("%s says %q", how, out)
		}
	}
}
