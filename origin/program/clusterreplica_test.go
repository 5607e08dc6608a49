package program

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// clusterReplica is a separate process with a replica of the cluster's application: a folder that 'sightline sync --watch' keeps in sync with one
// node, or an edge.
type clusterReplica struct {
	*process
	nodes  *nodes
	call   func(method, path, body string) (status int, answer []byte) // without an answer the status is 0
	writer *clusterWriter
}

// newFolder starts a replica in a folder.
func (c *nodes) newFolder(at *node, seed uint64) *clusterReplica {
	c.t.Helper()
	data := filepath.Join(c.t.TempDir(), "copy")
	r := &clusterReplica{nodes: c, process: &process{
		data: data, cmd: c.program("sync", "--watch", "--data", data, "--origin", at.base, "--key", c.key, "--app", c.app),
	}}
	r.launch(c.t)
	c.wait("the replica's folder", func() bool {
		_, err := os.Stat(filepath.Join(r.data, control.Socket))
		return err == nil
	})
	caller := server.Dial(r.data)
	c.t.Cleanup(func() { _ = caller.Close() })
	r.call = func(method, path, body string) (status int, answer []byte) {
		res, err := caller.Call(c.t.Context(), c.app, &api.Request{Method: method, Path: path, Body: []byte(body)})
		if err != nil {
			return 0, []byte(err.Error())
		}
		return res.Status, res.Body
	}
	r.begin("folder", seed)
	return r
}

// newEdge starts an edge with the program that make build has made. Without the program it returns nil.
func (c *nodes) newEdge(at *node, seed uint64) *clusterReplica {
	c.t.Helper()
	program := filepath.Join(testkit.Root(c.t), "bin", "sightline-edge")
	if _, err := os.Stat(program); err != nil {
		c.t.Logf("no edge: %v; make build makes it", err)
		return nil
	}
	var enrolment struct{ Token string }
	text := c.command("edge", "create", "edge", "--apps", c.app, "--data", at.data, "--json")
	if err := json.Unmarshal([]byte(text), &enrolment); err != nil {
		c.t.Fatal(err)
	}
	data, address := filepath.Join(c.t.TempDir(), "edge"), freeAddress(c.t)
	r := &clusterReplica{nodes: c, process: &process{data: data, base: "http://" + address, cmd: exec.Command(
		program, "serve", "--data", data, "--listen", address, "--origin", at.base, "--token", enrolment.Token, "--allow-private-fetch", "--log-format", "text")}}
	r.launch(c.t)
	r.call = func(method, path, body string) (status int, answer []byte) {
		return c.do(method, r.base+path, []byte(body))
	}
	r.begin("edge", seed)
	return r
}

// begin waits until the replica has the application, and gives it a writer.
func (r *clusterReplica) begin(name string, seed uint64) {
	c := r.nodes
	c.t.Helper()
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("log of the %s:\n%s", name, strings.Join(r.lines(""), "\n"))
		}
	})
	c.wait("the "+name+" has the application", func() bool {
		r.check()
		code, _ := r.call("GET", "/v2/inputs/status", "")
		return code == http.StatusOK
	})
	r.writer = c.newWriter(name, 0, seed)
	r.writer.sends = r.send
}

// check fails the test if the process has ended by itself.
func (r *clusterReplica) check() {
	r.nodes.t.Helper()
	if len(r.exited) > 0 {
		r.nodes.t.Fatalf("the replica has ended: %v", <-r.exited)
	}
}

// send makes a change in the replica, which stores it until the cluster has it.
func (r *clusterReplica) send(method string, body []byte) fate {
	code, answer := r.call(method, "/v2/inputs", string(body))
	if code != http.StatusOK {
		r.nodes.t.Errorf("%s in the replica %s: %s: %d %.500s", method, r.writer.name, body[:min(len(body), 200)], code, answer)
		return unknown
	}
	return done
}

// settle waits until the replica and the cluster have all operations of each other.
func (r *clusterReplica) settle() {
	r.nodes.t.Helper()
	r.nodes.wait("the replica "+r.writer.name+" is current", func() bool {
		r.check()
		code, answer := r.call("GET", "/v2/sync/status", "")
		return code == http.StatusOK && strings.Contains(string(answer), `"phase":"current"`) &&
			strings.Contains(string(answer), `"queued":0,"sent":0,"conflicts":0`)
	})
}

// stop ends the replica's process.
func (r *clusterReplica) stop() {
	r.nodes.t.Helper()
	if _, err := r.terminate(r.nodes.t); err != nil {
		r.nodes.t.Errorf("the replica %s after SIGTERM: %v", r.writer.name, err)
	}
}

// stop ends all nodes by SIGTERM.
func (c *nodes) stop() {
	c.t.Helper()
	for _, n := range c.all {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, n := range c.all {
		if err := <-n.exited; err != nil {
			c.t.Errorf("node %d after SIGTERM: %v", n.number, err)
		}
		n.running = false
	}
}

// checkDigests compares the application's states in folders that no process has open.
func (c *nodes) checkDigests(folders ...string) {
	c.t.Helper()
	app, err := catalog.ParseAppID(c.app)
	if err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for _, folder := range folders {
		f, err := data.Open(folder, data.Options{})
		if err != nil {
			c.t.Fatal(err)
		}
		digest, err := fold.Digest(f.Store, app)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			c.t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%x", digest))
	}
	for _, d := range all {
		if d != all[0] {
			c.t.Errorf("the states differ: %s", strings.Join(all, ", "))
			return
		}
	}
}

// printedApp returns the application's id from the output of a first start.
func printedApp(text string) string {
	_, rest, _ := strings.Cut(text, "\n    app_id  ")
	id, _, _ := strings.Cut(rest, "\n")
	return id
}
