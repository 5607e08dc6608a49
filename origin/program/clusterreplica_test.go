package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// folderReplica is a replica in a folder, which 'sightline sync --watch' keeps in sync with one node of a cluster.
type folderReplica struct {
	*process
	nodes  *nodes
	caller *control.Caller
	writer *clusterWriter
}

// newReplica starts a replica of the cluster's application, with a writer. It returns once the replica has the application.
func (c *nodes) newReplica(at *node, seed uint64) *folderReplica {
	c.t.Helper()
	r := &folderReplica{nodes: c, process: &process{data: filepath.Join(c.t.TempDir(), "copy"), exited: make(chan error, 1)}}
	r.cmd = c.program("sync", "--watch", "--data", r.data, "--origin", at.base, "--key", c.key, "--app", c.app)
	out := &safeBuffer{}
	r.cmd.Stdout, r.cmd.Stderr = out, out
	if err := r.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { r.exited <- r.cmd.Wait() }()
	c.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			<-r.exited
		}
		if c.t.Failed() {
			c.t.Logf("output of the replica:\n%s", out)
		}
	})
	c.wait("the replica's folder", func() bool {
		_, err := os.Stat(filepath.Join(r.data, control.Socket))
		return err == nil
	})
	r.caller = server.Dial(r.data)
	c.t.Cleanup(func() { _ = r.caller.Close() })
	c.wait("the replica has the application", func() bool {
		code, _ := r.call("GET", "/v2/inputs/status", "")
		return code == 200
	})
	r.writer = c.newWriter("copy", 0, seed)
	r.writer.sends = r.send
	return r
}

// call makes a call in the replica. Without an answer the status is 0.
func (r *folderReplica) call(method, path, body string) (status int, answer []byte) {
	res, err := r.caller.Call(r.nodes.t.Context(), r.nodes.app, &api.Request{Method: method, Path: path, Body: []byte(body)})
	if err != nil {
		return 0, []byte(err.Error())
	}
	return res.Status, res.Body
}

// send makes a change in the replica, which stores it until the cluster has it.
func (r *folderReplica) send(method string, body []byte) fate {
	code, answer := r.call(method, "/v2/inputs", string(body))
	if code == 400 && strings.Contains(string(answer), "The input was deleted.") {
		// A replica sometimes answers this for a change that it has stored, if the creation of the input comes back from the origin meanwhile.
		return unknown
	}
	if code != 200 {
		r.nodes.t.Errorf("%s in the replica: %s: %d %.500s", method, body[:min(len(body), 200)], code, answer)
		return unknown
	}
	return done
}

// settle waits until the replica and the cluster have all operations of each other.
func (r *folderReplica) settle() {
	r.nodes.t.Helper()
	var answer []byte
	r.nodes.wait("the replica is current", func() bool {
		if len(r.exited) > 0 {
			r.nodes.t.Fatalf("the replica has ended: %v", <-r.exited)
		}
		var code int
		code, answer = r.call("GET", "/v2/sync/status", "")
		return code == 200 && strings.Contains(string(answer), `"phase":"current"`) && strings.Contains(string(answer), `"queued":0,"sent":0,"conflicts":0`)
	})
}

// stop ends the replica's process.
func (r *folderReplica) stop() {
	r.nodes.t.Helper()
	if _, err := r.terminate(r.nodes.t); err != nil {
		r.nodes.t.Errorf("sync --watch: %v", err)
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
