package main_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web/process"
)

// until asks again and again until it is so.
func until(t testing.TB, condition string, so func() bool) {
	t.Helper()
	for begun := system.Now(); !so(); system.Pause(t.Context(), 20*time.Millisecond) {
		if system.Now().Sub(begun) > patience {
			hangs(t, condition)
		}
	}
}

// copies returns an edge's report of its replicas.
func copies(t testing.TB, binary, data string) []control.ReplicaStatus {
	t.Helper()
	var s control.Status
	if err := json.Unmarshal([]byte(command(t, binary, "status", "--data", data, "--json")), &s); err != nil {
		t.Fatal(err)
	}
	return s.Replicas
}

// joining is a test of an application that an origin, two edges and a tab of a browser have.
type joining struct {
	t              *testing.T
	origin, binary string // programs
	app, key       string
	data           string // of the origin
	hub            *server
	names          []string // of pictures
	witness        *witness

	originScreen *screen // the origin
	edges        [2]*server
	folders      [2]string
	tab          *tab // nil: there is no browser
	all          []*screen

	inputs, doomed []string // ids of inputs that were acknowledged, and of those whose deletion was
	writes         int
}

// checkConvergence: an origin, two edges and a tab of a browser all write while each in turn is disconnected, killed and back. Afterwards
// all have the same data, with equal digests. No acknowledged write is lost and no deleted input is back. No copy ever showed an operation
// as confirmed that the origin did not have. Before the end, a head that another program trained predicts the same everywhere. Then the
// origin deletes the application, and nothing of it is left anywhere.
func checkConvergence(t *testing.T, binary string) {
	since := system.Now()
	report := func(step string) { t.Logf("%6.1f s: %s", system.Now().Sub(since).Seconds(), step) }
	j := startJoining(t, binary)
	j.until("the copies hold what the origin did before", j.same)
	report("joined")
	for i := range j.all {
		j.add(i, "north")
		j.add(i, "south")
	}
	j.until("all hold what each wrote", j.same)
	report("all have written")
	j.cutEach()
	j.conflict()
	report("each was cut off")
	j.killEach()
	report("each was killed")
	j.withoutOrigin()
	report("the origin was away")
	j.checkOtherHead()
	report("a head was trained elsewhere")
	j.checkAcknowledged()
	j.digests()
	report("all agree")
	j.checkAppDeletion()
	report("nothing is left")
	t.Logf("%d looks at screens, at %d of which operations waited", j.witness.checked, j.witness.waiting)
	if j.witness.checked < 20 || j.witness.waiting < 10 {
		t.Error("that is too few to tell")
	}
}

// startJoining starts everybody.
func startJoining(t *testing.T, binary string) *joining {
	node, chromium := browser(t)
	j := &joining{t: t, origin: hubOf(t, binary), binary: binary, data: filepath.Join(t.TempDir(), "origin"), names: photos(t)}
	j.app, j.key, _ = owner(t, j.origin, j.data, "shared")
	j.hub = serve(t, j.origin, j.data)
	address := strings.TrimPrefix(j.hub.base, "http://")
	j.originScreen = &screen{name: "the origin", ask: func(method, path string, body any) (int, http.Header, object, error) {
		return j.hub.as(t, j.key).ask(method, path, body)
	}}
	j.all = []*screen{j.originScreen}
	j.witness = &witness{t: t, app: j.app, key: j.key, origin: func() string { return j.hub.base }}
	j.add(0, "north")
	for i := range j.edges {
		var enrolment struct{ Token string }
		text := command(t, j.origin, "edge", "create", fmt.Sprintf("edge %d", i), "--apps", j.app, "--data", j.data, "--json")
		if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
			t.Fatal(err)
		}
		way := newLink(t, address)
		j.folders[i] = folder(t, binary)
		j.edges[i] = serve(t, binary, j.folders[i], "--origin", way.base, "--token", enrolment.Token)
		j.all = append(j.all, &screen{name: fmt.Sprintf("edge %d", i), link: way, ask: func(method, path string, body any) (int, http.Header, object, error) {
			return j.edges[i].as(t, j.key).ask(method, path, body)
		}})
	}
	if chromium != "" {
		way := newGate(t, address)
		j.tab = openTab(t, node, chromium, way.base)
		j.openTab()
		j.all = append(j.all, &screen{name: "the tab", link: way, ask: j.tab.ask})
	}
	j.witness.screens = j.all[1:]
	return j
}

// browser finds what a tab needs; empty: there is none. In CI there has to be.
func browser(t testing.TB) (node, chromium string) {
	t.Helper()
	if os.Getenv("CI") == "" {
		for _, program := range []string{"node", "chromium"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Logf("%s is missing: there is no tab", program)
				return "", ""
			}
		}
	}
	node, chromium = process.Need(t, "node"), process.Need(t, "chromium", "chromium-browser", "google-chrome")
	pages := exec.Command("make", "--no-print-directory", "web/runtime/served/dist/index.js")
	pages.Dir = testkit.Root(t)
	if out, err := pages.CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	return node, chromium
}

// openTab opens the copy in the tab.
func (j *joining) openTab() {
	j.t.Helper()
	var opened struct {
		Owner bool
		Store string
	}
	j.tab.do("open", object{"app": j.app, "credential": "Key " + j.key}, &opened)
	if !opened.Owner || opened.Store != "private" {
		j.t.Errorf("the tab has opened %+v", opened)
	}
}

// until waits for a condition, and checks the screens meanwhile.
func (j *joining) until(condition string, so func() bool) {
	j.t.Helper()
	until(j.t, condition, func() bool {
		if so() {
			return true
		}
		j.witness.look()
		return false
	})
}

// same reports whether all hold the same.
func (j *joining) same() bool {
	want := j.originScreen.holds()
	for _, x := range j.all[1:] {
		if x.holds() != want {
			return false
		}
	}
	return true
}

// add adds an input at a place.
func (j *joining) add(at int, concept string) (id string) {
	j.t.Helper()
	id = fmt.Sprintf("made-%d-at-%d", j.writes, at)
	picture := photo(j.t, j.names[j.writes%len(j.names)])
	j.writes++
	j.all[at].must(j.t, "POST", "/v2/inputs", object{"inputs": []object{input(id, picture, concept)}})
	j.inputs = append(j.inputs, id)
	return id
}

// change has a place write what it can: another input, a label on what any place has made, the deletion of one of all.
func (j *joining) change(at int) {
	j.t.Helper()
	j.add(at, "south")
	label := fmt.Sprintf("label-%d", j.writes)
	j.all[at].must(j.t, "PATCH", "/v2/inputs", object{"action": "merge", "inputs": []object{
		{"id": j.inputs[0], "data": object{"concepts": []object{{"id": label, "value": 1}}, "metadata": object{label: marker}}},
	}})
	j.inputs = append(j.inputs, label)
	for i, id := range j.inputs {
		if strings.HasSuffix(id, fmt.Sprintf("-at-%d", (at+1)%len(j.all))) && i > 0 && j.there(at, id) {
			j.all[at].must(j.t, "DELETE", "/v2/inputs/"+id, nil)
			j.recordDeletion(i)
			return
		}
	}
}

// recordDeletion notes that the deletion of an input was acknowledged.
func (j *joining) recordDeletion(i int) {
	j.doomed = append(j.doomed, j.inputs[i])
	j.inputs = append(j.inputs[:i:i], j.inputs[i+1:]...)
}

// marker is in written metadata, and nowhere else.
const marker = "this is only ever in metadata"

// there reports whether a place has an input.
func (j *joining) there(at int, id string) bool {
	status, _, _, err := j.all[at].ask("GET", "/v2/inputs/"+id, nil)
	return err == nil && status == 200
}

// cutEach cuts each copy off, while all write, and has it back.
func (j *joining) cutEach() {
	for at, x := range j.all {
		if x.link == nil {
			continue
		}
		x.link.set(true)
		j.change(0)
		j.change(at)
		j.witness.look()
		if c, ok := x.look(); !ok || c.pending == 0 || len(c.outbox) == 0 {
			j.t.Errorf("%s is cut off and shows %+v, %v", x.name, c, ok)
		}
		x.link.set(false)
	}
	j.until("all hold what each wrote alone", j.same)
}

// conflict: an edge labels, while it is disconnected, an input that is deleted meanwhile. It lists the failed operation until a person
// has dismissed it.
func (j *joining) conflict() {
	t, x := j.t, j.all[1]
	id := j.add(0, "north")
	j.until("the edge has what will be deleted", func() bool { return j.there(1, id) })
	x.link.set(true)
	j.originScreen.must(t, "DELETE", "/v2/inputs/"+id, nil)
	j.recordDeletion(len(j.inputs) - 1)
	x.must(t, "PATCH", "/v2/inputs", object{"action": "merge", "inputs": []object{
		{"id": id, "data": object{"concepts": []object{{"id": "late", "value": 1}}}},
	}})
	x.link.set(false)
	listed := func() []any {
		_, _, out, _ := x.ask("GET", "/v2/sync/conflicts", nil)
		all, _ := out["conflicts"].([]any)
		return all
	}
	j.until("the edge lists what came to nothing", func() bool { return len(listed()) > 0 })
	first := listed()[0]
	if at(t, first, "kind") != "input_labels" || at(t, first, "verdict") != "gone" || at(t, first, "input_id") != id || at(t, first, "content", "concepts", 0, "id") != "late" {
		t.Errorf("the edge lists %v", first)
	}
	x.must(t, "DELETE", "/v2/sync/conflicts/"+at(t, first, "id").(string), nil)
	if left := listed(); len(left) > 0 {
		t.Errorf("a person has seen it, and it lists %v", left)
	}
}

// killEach kills the processes of each copy, while it is disconnected with pending writes, and starts it again.
func (j *joining) killEach() {
	for at, x := range j.all {
		if x.link == nil {
			continue
		}
		x.link.set(true)
		j.change(at)
		before, ok := x.look()
		if at <= len(j.edges) {
			if err := syscall.Kill(j.edges[at-1].child(j.t), syscall.SIGKILL); err != nil {
				j.t.Fatal(err)
			}
			j.edges[at-1].find(j.t, serving, 2)
		} else {
			j.tab.do("kill", nil, nil)
			j.openTab()
		}
		after, again := x.look()
		if !ok || !again || !slices.Equal(after.confirmed, before.confirmed) || after.pending < before.pending {
			j.t.Errorf("%s showed %+v, %v before it was killed, and then %+v, %v", x.name, before, ok, after, again)
		}
		j.change(0)
		j.witness.settle()
		x.link.set(false)
	}
	j.until("all hold what each wrote before it was killed", j.same)
}

// withoutOrigin kills the origin while it is written to, has the copies work alone, and then has it back. The tab has just been
// opened: it has analysed nothing yet, and can load no script for it any more.
func (j *joining) withoutOrigin() {
	t := j.t
	j.tab.do("kill", nil, nil)
	j.openTab()
	j.change(0)
	if err := j.hub.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-j.hub.ended
	for at := range j.all[1:] {
		j.change(at + 1)
		j.change(at + 1)
	}
	lone := j.names[(j.writes+1)%len(j.names)]
	j.writes++ // that picture is nobody else's
	edge := j.all[2]
	edge.must(t, "POST", "/v2/inputs", object{"inputs": []object{input("lone", photo(t, lone), "north")}})
	j.inputs = append(j.inputs, "lone")
	found := edge.must(t, "POST", "/v2/searches", object{"query": object{"ands": []object{{"output": object{"input": object{"data": object{"image": object{"base64": photo(t, lone)}}}}}}}})
	if id := at(t, found, "hits", 0, "input", "id"); id != "lone" {
		t.Errorf("alone, the picture most like lone is %v", id)
	}
	edge.must(t, "POST", "/v2/models", object{"model": object{"id": "way", "name": "way", "output_info": object{"data": object{"concepts": []object{{"id": "north"}, {"id": "south"}}}}}})
	edge.must(t, "POST", "/v2/models/way/versions", nil)
	j.until("an edge trains alone", func() bool { return j.modelVersion(edge) != "" })
	version := j.modelVersion(edge)
	digest := j.digest(edge, version)
	for _, folder := range j.folders {
		j.until("an edge tells of writes that the origin cannot have", func() bool {
			c := copies(t, j.binary, folder)
			return len(c) == 1 && c[0].Pending > 0 && c[0].Phase != "current"
		})
	}
	j.witness.look()
	if len(j.witness.claims) == 0 {
		t.Error("nobody has shown anything while the origin was away")
	}
	for _, x := range j.all[1:] {
		x.link.set(true) // claims of the time offline are compared with its state at its start
	}
	j.hub = serve(t, j.origin, j.data, "--listen", strings.TrimPrefix(j.hub.base, "http://"))
	if !j.witness.settle() {
		t.Error("the origin is back and shows nothing")
	}
	for _, x := range j.all[1:] {
		x.link.set(false)
	}
	j.add(0, "north")
	for _, x := range j.all {
		j.until("the version that was trained alone is everywhere", func() bool { return j.modelVersion(x) == version })
		if got := j.digest(x, version); got != digest {
			t.Errorf("%s: digest %v, the edge that trained has %v", x.name, got, digest)
		}
		x.must(t, "POST", "/v2/models/way/outputs", object{"inputs": []object{{"data": object{"image": object{"base64": photo(t, lone)}}}}})
	}
}

// modelVersion returns the model's version at a host; empty: none.
func (j *joining) modelVersion(x *screen) string {
	status, _, out, err := x.ask("GET", "/v2/models/way", nil)
	if err != nil || status != 200 || at(j.t, out, "model", "model_version", "status", "code") != float64(21100) {
		return ""
	}
	return at(j.t, out, "model", "model_version", "id").(string)
}

// digest is that of a version's training.
func (j *joining) digest(x *screen, version string) string {
	return at(j.t, x.must(j.t, "GET", "/v2/models/way/versions/"+version+"?show=digest", nil), "model_version", "digest").(string)
}

// checkAcknowledged waits until the origin has all operations, and compares its data with the acknowledged ones.
func (j *joining) checkAcknowledged() {
	for _, x := range j.all[1:] {
		j.until(x.name+" has no writes of its own", func() bool {
			c, ok := x.look()
			return ok && c.pending == 0 && len(c.outbox) == 0
		})
	}
	j.until("all hold the same", j.same)
	j.witness.look()
	content := j.originScreen.holds()
	for _, id := range j.inputs {
		if !strings.Contains(content, `"`+id+`"`) {
			j.t.Errorf("%s was acknowledged and is lost", id)
		}
	}
	for _, id := range j.doomed {
		if strings.Contains(content, `"`+id+`"`) {
			j.t.Errorf("%s was deleted and is there", id)
		}
	}
	if len(j.doomed) < 2*len(j.all) {
		j.t.Errorf("%d inputs were deleted in all", len(j.doomed))
	}
}

// digests holds the state of each copy to the origin's, byte by byte.
func (j *joining) digests() {
	t := j.t
	seq, want := j.witness.digest()
	if j.tab != nil {
		var got struct {
			Seq    uint64
			Digest string
		}
		j.until("the tab is where the origin is", func() bool {
			j.tab.do("digest", nil, &got)
			return got.Seq == seq
		})
		if got.Digest != want {
			t.Errorf("the tab's digest is %s, the origin's %s", got.Digest, want)
		}
	}
	for i, folder := range j.folders {
		j.until("an edge is where the origin is", func() bool {
			c := copies(t, j.binary, folder)
			return c[0].Cursor == seq
		})
		j.edges[i].terminate(t)
		if got := digestOf(t, folder, j.app); got != want {
			t.Errorf("the digest of edge %d is %s, the origin's %s", i, got, want)
		}
		j.edges[i] = serve(t, j.binary, folder)
	}
}

// digestOf is the digest of an application's state in the folder of a server that has stopped, in hexadecimal digits.
func digestOf(t testing.TB, folder, id string) string {
	t.Helper()
	app, err := catalog.ParseAppID(id)
	if err != nil {
		t.Fatal(err)
	}
	store, err := pebblekv.Open(filepath.Join(folder, "store"), pebblekv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := fold.Digest(store, app)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(digest[:])
}

// checkAppDeletion deletes the application at the origin: at their next contact nothing of it is left at the copies.
func (j *joining) checkAppDeletion() {
	t := j.t
	first := decode(t, photo(t, j.names[0]))
	marks := []string{marker, "label-", first[2000:2064]}
	for i, folder := range j.folders {
		_, _, out, err := j.all[1+i].ask("GET", "/v2/inputs/"+j.inputs[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		image, err := url.Parse(at(t, out, "input", "data", "image", "url").(string))
		if err != nil {
			t.Fatal(err)
		}
		if get(t, j.edges[i].base+image.Path, 200) != first {
			t.Errorf("edge %d has another picture", i)
		}
		if found := find(t, folder, marks); len(found) < len(marks) {
			t.Fatalf("edge %d holds %q alone, so this proves nothing", i, found)
		}
	}
	command(t, j.origin, "app", "delete", j.app, "--data", j.data, "--yes")
	for i, x := range j.all[1:] {
		until(t, "the application is gone at "+x.name, func() bool {
			status, _, _, err := x.ask("GET", "/v2/inputs", nil)
			return err == nil && (status == 401 || status == 410)
		})
		if i < len(j.edges) {
			j.edges[i].terminate(t)
			command(t, j.binary, "doctor", "--data", j.folders[i])
			if found := find(t, j.folders[i], marks); len(found) > 0 {
				t.Errorf("edge %d still has %q", i, found)
			}
			continue
		}
		var sizes map[string]int64
		j.tab.do("files", object{"app": j.app}, &sizes)
		for name, size := range sizes {
			if size > 0 {
				t.Errorf("the tab's file %s still has %d bytes", name, size)
			}
		}
		if len(sizes) == 0 {
			t.Error("the tab has no files, so this proves nothing")
		}
	}
}

// find returns those of some texts that a folder's files have.
func find(t testing.TB, folder string, marks []string) (found []string) {
	t.Helper()
	for _, mark := range marks {
		has := false
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || has {
				return err
			}
			data, err := os.ReadFile(path)
			has = bytes.Contains(data, []byte(mark))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if has {
			found = append(found, mark)
		}
	}
	return found
}
