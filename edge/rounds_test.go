package main_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web/process"
	runtime "github.com/sightline-dev/sightline/web/runtime/test"
)

// TestNothingIsLost has an origin, two edges and a page write, each in its own process. It kills processes, cuts their power and their
// links, fills disks, sets disks back to an earlier copy, and restores hosts from backups. Afterwards each acknowledged write is at all
// hosts or is listed as a conflict with its content, no deleted input exists, and all digests are equal. It forgives only the loss of a
// write of which no copy is left, see [round.strike].
func TestNothingIsLost(t *testing.T) {
	p := testPrograms(t)
	begun := system.Now()
	var sum tally
	for seed := range testkit.Seeds(t, 7, 200) {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			r := newRound(t, p, seed)
			r.play()
			sum.add(&r.tally)
		})
	}
	t.Logf("%.0f s: %+v", system.Now().Sub(begun).Seconds(), sum)
}

// tally counts what happened.
type tally struct {
	Acknowledged, Deleted, Conflicts, Forgiven    int
	Kills, Cuts, Rollbacks, Restores, Full, Links int
	Bytes                                         int64 // that power cuts took
	Names                                         int   // of files that power cuts took
}

func (t *tally) add(o *tally) {
	t.Acknowledged += o.Acknowledged
	t.Deleted += o.Deleted
	t.Conflicts += o.Conflicts
	t.Forgiven += o.Forgiven
	t.Kills += o.Kills
	t.Cuts += o.Cuts
	t.Rollbacks += o.Rollbacks
	t.Restores += o.Restores
	t.Full += o.Full
	t.Links += o.Links
	t.Bytes += o.Bytes
	t.Names += o.Names
}

// programs are the paths of the programs.
type programs struct {
	origin, edge string // the test binary by other names, see TestMain
	node         string // empty: there is no page
	runtime      string // folder of the page's scripts
}

func testPrograms(t *testing.T) (p programs) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(self), "programs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p.origin, p.edge = filepath.Join(dir, originName), filepath.Join(dir, "sightline-edge")
	for _, name := range []string{p.origin, p.edge} {
		if err := os.Link(self, name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(asProgram, "yes")
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("CI") == "" {
		t.Log("node is missing: there is no page")
		return p
	}
	p.node, p.runtime = process.Need(t, "node"), runtime.AssembleRuntime(t)
	t.Cleanup(runtime.Forget)
	return p
}

// host is one of those that write.
type host struct {
	name   string
	number int
	data   string // folder
	disk   string // folder of the faults of the disk; empty: it has none
	way    *link  // to the origin; nil: it is the origin

	srv  *server // of the origin and the edges
	page *tab    // of the page
	up   bool

	served int             // how often the process said that it serves
	life   int             // of the store: another one after each rollback and restore
	seen   map[string]bool // inputs that it showed in this life
	saved  *savedState     // the latest; nil: none
	place  place           // of a replica, the last that was asked for
}

// savedState is an earlier state of a host's folder: a copy, or a backup.
type savedState struct {
	folder string
	backup bool
	writes map[*write]bool // writes that are in it
	seen   map[string]bool
}

// round is one run of all hosts.
type round struct {
	t *testing.T
	programs
	rnd   *rand.Rand
	seed  uint64
	app   string
	key   string
	hosts []*host // the origin, the edges and the page

	mu       sync.Mutex
	writes   []*write
	pictures map[string][]byte // by input
	scratch  string            // folder for temporary files
	reported map[*write]bool   // was listed as a conflict once
	serial   int

	tally
}

// newRound starts all hosts and waits until they have the application.
func newRound(t *testing.T, p programs, seed uint64) *round {
	t.Helper()
	r := &round{
		t: t, programs: p, seed: seed, rnd: rand.New(rand.NewPCG(seed, 24)), pictures: map[string][]byte{}, reported: map[*write]bool{}, scratch: t.TempDir(),
	}
	origin := r.host("origin")
	r.app, r.key, _ = owner(t, p.origin, origin.data, "rounds")
	r.start(origin, "--listen", "127.0.0.1:0")
	address := strings.TrimPrefix(origin.srv.base, "http://")
	for _, name := range []string{"edge 1", "edge 2"} {
		h := r.host(name)
		var enrolment struct{ Token string }
		text := command(t, p.origin, "edge", "create", name, "--apps", r.app, "--data", origin.data, "--json")
		if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
			t.Fatal(err)
		}
		h.way = newLink(t, address)
		process.Warm(t, r.edge)
		r.start(h, "--origin", h.way.base, "--token", enrolment.Token)
	}
	if p.node != "" {
		h := r.host("page")
		h.way = newLink(t, address)
		r.start(h)
	}
	t.Cleanup(r.logReplicas)
	until(t, "all have the application", r.idle)
	return r
}

// logReplicas logs where the replicas of a round that has failed were last.
func (r *round) logReplicas() {
	for _, h := range r.hosts[1:] {
		if r.t.Failed() {
			r.t.Logf("%s: %+v", h.name, h.place)
		}
	}
}

// host adds a host.
func (r *round) host(name string) *host {
	h := &host{name: name, number: len(r.hosts), data: filepath.Join(r.t.TempDir(), "data"), seen: map[string]bool{}}
	if name != "page" {
		h.disk = r.t.TempDir()
	}
	r.hosts = append(r.hosts, h)
	return h
}

// start starts a host.
func (r *round) start(h *host, args ...string) {
	r.t.Helper()
	h.up = true
	if h.number == 3 {
		cmd := exec.CommandContext(r.t.Context(), r.node, "folder.js")
		cmd.Dir = filepath.Join(testkit.Root(r.t), "web", "runtime", "test", "folder")
		cmd.Env = append(os.Environ(), "RUNTIME="+r.runtime)
		h.page = startTab(r.t, cmd)
		h.page.do("open", object{"folder": h.data, "origin": h.way.base, "app": r.app, "credential": "Key " + r.key}, nil)
		return
	}
	program := r.edge
	if h.way == nil {
		program = r.origin
	}
	if h.srv != nil { // where it was
		args = append(args, "--listen", strings.TrimPrefix(h.srv.base, "http://"))
	} else if h.way != nil {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	cmd := exec.Command(program, append([]string{
		"serve", "--data", h.data, "--log-format", "text", "--allow-private-fetch", "--min-free-space", "1MB",
	}, args...)...)
	cmd.Env = append(os.Environ(), diskOf+"="+h.disk, "TMPDIR="+r.scratch) // which killed processes do not empty
	h.srv, h.served = launch(r.t, cmd), 1
	h.srv.base = "http://" + h.srv.find(r.t, serving, 1)
}

// stop stops a host, which ends well.
func (r *round) stop(h *host) {
	r.t.Helper()
	if !h.up {
		return
	}
	h.up = false
	if h.page != nil {
		h.page.do("close", nil, nil)
		_ = h.page.in.Close()
		_ = h.page.cmd.Wait()
		return
	}
	h.srv.terminate(r.t)
	if h.disk != "" {
		forgetJournal(r.t, h.disk)
	}
}

// kill kills a host's processes.
func (r *round) kill(h *host) {
	r.t.Helper()
	if h.page != nil {
		_ = h.page.cmd.Process.Kill()
		_ = h.page.cmd.Wait()
		return
	}
	child, err := h.srv.findChild() // of an edge
	if killed := h.srv.cmd.Process.Kill(); killed != nil {
		r.t.Errorf("kill: %v", killed)
	}
	<-h.srv.ended
	if h.way != nil && err == nil {
		until(r.t, "the server dies with its supervisor", func() bool { return syscall.Kill(child, 0) != nil })
	}
}

// ask asks a host in the interface; an error is that it does not answer.
func (r *round) ask(h *host, method, path string, body any) (int, object, error) {
	if h.page != nil {
		status, _, out, err := h.page.call(method, path, body)
		return status, out, err
	}
	return h.srv.as(r.t, r.key).do(method, path, body)
}

// must asks a host, which answers.
func (r *round) must(h *host, method, path string) object {
	r.t.Helper()
	status, out, err := r.ask(h, method, path, nil)
	if err != nil || status != 200 {
		r.t.Fatalf("%s: %s %s = %d, %v, %.600v", h.name, method, path, status, err, out)
	}
	return out
}

// play is the round.
func (r *round) play() {
	r.keep(r.hosts[0])
	r.keep(r.hosts[1+r.rnd.IntN(len(r.hosts)-1)])
	steps := 2 + r.rnd.IntN(2)
	for step := range steps {
		r.faults()
		r.write(step)
		r.revive()
		if r.rnd.IntN(2) == 0 {
			r.settle()
		}
		r.strike()
	}
	r.heal()
	r.write(steps)
	r.revive()
	until(r.t, "all are in sync", r.idle)
	r.check()
	r.agree()
}

// logEvent logs an event, so that a failure shows the whole round.
func (r *round) logEvent(format string, args ...any) {
	r.t.Helper()
	r.t.Logf(format, args...)
}

// write has all hosts write, while processes are killed.
func (r *round) write(step int) {
	acks, victim := make(chan bool, 1000), r.hosts[r.rnd.IntN(len(r.hosts))]
	after, how := r.rnd.IntN(12), r.rnd.IntN(4)
	var writing sync.WaitGroup
	for _, h := range r.hosts {
		rnd := rand.New(rand.NewPCG(r.seed, uint64(100*step+h.number)))
		writing.Go(func() {
			for range 2 + rnd.IntN(4) {
				if !r.change(h, rnd) {
					return
				}
				acks <- true
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		writing.Wait()
		close(ended)
	}()
	for ; after > 0; after-- {
		select {
		case <-acks:
			continue
		case <-ended:
		}
		break
	}
	switch {
	case how == 0: // nobody is killed
	case how == 1 && victim.way != nil && victim.page == nil:
		r.Kills++
		r.logEvent("the server of %s is killed", victim.name)
		if child, err := victim.srv.findChild(); err == nil {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
		victim.served++
		victim.srv.find(r.t, serving, victim.served)
	default:
		r.kill(victim)
		victim.up = false
		if victim.disk == "" || how == 2 {
			r.Kills++
			r.logEvent("%s is killed", victim.name)
			break
		}
		size, names := cutPower(r.t, victim.disk, victim.data, r.rnd)
		r.Cuts++
		r.Bytes += size
		r.Names += names
		r.logEvent("the power of %s is cut: %d bytes and %d files are lost", victim.name, size, names)
	}
	<-ended
}

// change has a host make one write; false: it does not answer.
func (r *round) change(h *host, rnd *rand.Rand) bool {
	r.mu.Lock()
	r.serial++
	w := &write{at: h, life: h.life, mark: fmt.Sprintf("mark-%d", r.serial)}
	var ids []string
	for _, other := range r.writes {
		if other.kind == "add" {
			ids = append(ids, other.id)
		}
	}
	r.mu.Unlock()
	for range 3 { // an input that it has
		if len(ids) > 0 && w.id == "" {
			id := ids[rnd.IntN(len(ids))]
			status, _, err := r.ask(h, "GET", "/v2/inputs/"+id, nil)
			if err != nil {
				return false
			}
			if status == 200 {
				w.id = id
			}
		}
	}
	draw := rnd.IntN(12)
	patch := func(data object) (string, string, any) {
		return "PATCH", "/v2/inputs", object{"action": "merge", "inputs": []object{{"id": w.id, "data": data}}}
	}
	var method, path string
	var body any
	switch {
	case draw == 0:
		w.kind, w.id = "concept", w.mark
		method, path, body = "POST", "/v2/concepts", object{"concepts": []object{{"id": w.mark, "name": "name of " + w.mark}}}
	case draw < 5 || w.id == "":
		w.kind, w.id = "add", "input-of-"+w.mark
		picture := dot(rnd)
		r.mu.Lock()
		r.pictures[w.id] = picture
		r.mu.Unlock()
		in := input(w.id, base64.StdEncoding.EncodeToString(picture), "common")
		in["data"].(object)["metadata"] = object{w.mark: marker}
		method, path, body = "POST", "/v2/inputs", object{"inputs": []object{in}}
	case draw < 8:
		w.kind = "meta"
		method, path, body = patch(object{"metadata": object{w.mark: marker}})
	case draw < 10:
		w.kind = "label"
		method, path, body = patch(object{"concepts": []object{{"id": w.mark, "value": 1}}})
	default:
		w.kind = "delete"
		method, path = "DELETE", "/v2/inputs/"+w.id
	}
	r.mu.Lock()
	r.writes = append(r.writes, w)
	r.mu.Unlock()
	status, out, err := r.ask(h, method, path, body)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		return false
	case status == 200:
		w.acked = true
		r.Acknowledged++
	case status == 507, status == 503, status >= 400 && status < 500: // it was not done
		r.writes = slices.DeleteFunc(r.writes, func(x *write) bool { return x == w })
	default:
		r.t.Errorf("%s: %s %s = %d, %.300v", h.name, method, path, status, out)
	}
	return true
}

// dot is a small picture that no other input has.
func dot(rnd *rand.Rand) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 8, 8))
	for at := range 64 {
		n := rnd.Uint32()
		m.Set(at%8, at/8, color.RGBA{byte(n), byte(n >> 8), byte(n >> 16), 255})
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// revive starts hosts that were killed.
func (r *round) revive() {
	for _, h := range r.hosts {
		if !h.up {
			r.start(h)
		}
	}
}

// settle waits until the replicas that are connected are in sync, unless a disk is full.
func (r *round) settle() {
	r.t.Helper()
	for _, h := range r.hosts {
		if h.disk != "" {
			r.fill(h, false)
		}
	}
	until(r.t, "the replicas that are connected are in sync", r.idle)
	r.logEvent("all that are connected are in sync")
}
