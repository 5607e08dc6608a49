package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/s3/s3test"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// nodes is a cluster of three processes with an S3 server, all on this machine:
//
//	writers ──▶ node 0   node 1   node 2          one of them is the primary
//	               └────────┼────────┘
//	                    versitygw
type nodes struct {
	t      testing.TB
	s3     *s3test.Server
	all    []*node
	app    string // the first application
	key    string // of app
	client *http.Client
}

// node is one process of a cluster, which a test ends and starts again.
type node struct {
	*process
	nodes   *nodes
	number  int
	listen  string // address for clients
	address string // address for the other nodes
	out     *safeBuffer
	running bool
	stopped bool // SIGSTOP
}

// newNodes starts a cluster and waits until its three nodes are members. It skips the test if versitygw is missing.
func newNodes(t testing.TB) *nodes {
	t.Helper()
	c := &nodes{t: t, s3: s3test.New(t)}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	c.client = &http.Client{Transport: transport, Timeout: time.Minute}
	c.first()
	c.join()
	c.join()
	c.wait("three members", func() bool { return c.status().State == "running" })
	return c
}

// first creates the cluster and starts its first node.
func (c *nodes) first() {
	c.t.Helper()
	n := c.newNode()
	c.command("cluster", "create", "--data", n.data, "--address", n.address, "--s3", c.s3.URL)
	n.start()
	c.wait("the first key", func() bool {
		c.app, c.key = printedApp(n.out.String()), printedKey(n.out.String())
		return c.key != ""
	})
}

// join adds a node, which follows when join returns.
func (c *nodes) join() *node {
	c.t.Helper()
	n := c.enter()
	n.start()
	n.waitReady()
	return n
}

// enter adds a node without starting it.
func (c *nodes) enter() *node {
	c.t.Helper()
	token := strings.TrimSpace(c.command("cluster", "token", "--data", c.all[0].data))
	n := c.newNode()
	c.command("cluster", "join", token, "--data", n.data, "--address", n.address)
	return n
}

func (c *nodes) newNode() *node {
	c.t.Helper()
	at := clustertest.Addresses(c.t, 2)
	listen := at[0].String()
	n := &node{
		process: &process{data: filepath.Join(c.t.TempDir(), "data"), base: "http://" + listen},
		nodes:   c, number: len(c.all), listen: listen, address: at[1].String(),
	}
	c.all = append(c.all, n)
	return n
}

// program returns a command of this program, with the S3 credentials.
func (c *nodes) program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asServer+"=1", "AWS_ACCESS_KEY_ID="+c.s3.AccessKey, "AWS_SECRET_ACCESS_KEY="+c.s3.Secret)
	return cmd
}

// command runs a command, which must succeed, and returns its output.
func (c *nodes) command(args ...string) string {
	c.t.Helper()
	cmd := c.program(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// start starts the node's process. It does not wait.
func (n *node) start() {
	t := n.nodes.t
	t.Helper()
	p := &process{data: n.data, base: n.base, cmd: n.nodes.program(
		"serve", "--data", n.data, "--listen", n.listen, "--workers", "1", "--log-format", "text")}
	n.process, n.out, n.running, n.stopped = p, &safeBuffer{}, true, false
	p.cmd.Stdout = n.out
	p.launch(t)
	t.Cleanup(func() {
		if t.Failed() {
			lines := slices.DeleteFunc(p.lines(""), func(line string) bool { return strings.Contains(line, "status=200") })
			t.Logf("log of node %d at %s:\n%s", n.number, n.address, strings.Join(lines, "\n"))
		}
	})
}

// kill ends the node's process with SIGKILL.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	<-n.exited
	n.running, n.stopped = false, false
}

// pause stops the node's process with SIGSTOP, and proceed lets it continue.
func (n *node) pause() {
	n.stopped = true
	_ = n.cmd.Process.Signal(syscall.SIGSTOP)
}

func (n *node) proceed() {
	n.stopped = false
	_ = n.cmd.Process.Signal(syscall.SIGCONT)
}

// ready reports whether the node leads or follows.
func (n *node) ready() bool {
	client := http.Client{Transport: n.nodes.client.Transport, Timeout: 5 * time.Second}
	res, err := client.Get(n.base + "/readyz")
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// check fails the test if the process has ended by itself.
func (n *node) check() {
	n.nodes.t.Helper()
	if n.running && len(n.exited) > 0 {
		n.running = false
		n.nodes.t.Fatalf("node %d has ended: %v", n.number, <-n.exited)
	}
}

func (n *node) waitReady() {
	n.nodes.t.Helper()
	n.nodes.wait(fmt.Sprintf("node %d leads or follows", n.number), n.ready)
}

// wait waits until a condition holds.
func (c *nodes) wait(condition string, is func() bool) {
	c.t.Helper()
	for end := system.Now().Add(time.Minute); !is(); system.Pause(c.t.Context(), 10*time.Millisecond) {
		for _, n := range c.all {
			n.check()
		}
		if c.t.Context().Err() != nil || system.Now().After(end) {
			c.t.Fatalf("%s: not within a minute", condition)
		}
	}
}

// status returns the status of the cluster, as the first node sees it that answers.
func (c *nodes) status() (s cluster.Status) {
	c.t.Helper()
	for _, n := range c.all {
		if !n.running || n.stopped {
			continue
		}
		out, err := c.program("cluster", "status", "--data", n.data, "--json").Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			c.t.Fatal(err)
		}
		if json.Unmarshal(out, &s) == nil {
			return s
		}
	}
	return s
}

// primary returns the node that leads. It waits for one.
func (c *nodes) primary() (leads *node) {
	c.t.Helper()
	c.wait("a primary", func() bool {
		for _, s := range c.status().Nodes {
			for _, n := range c.all {
				if s.Primary && s.Address == n.address && n.running && !n.stopped {
					leads = n
				}
			}
		}
		return leads != nil
	})
	return leads
}

// settle waits until all running nodes lead or follow and lack no record. While writers write, a node always lacks some: see recovered.
func (c *nodes) settle() {
	c.t.Helper()
	c.waitLag(0)
}

// recovered waits until all running nodes lead or follow.
func (c *nodes) recovered() {
	c.t.Helper()
	c.waitLag(1000)
}

func (c *nodes) waitLag(most int64) {
	c.t.Helper()
	running := map[string]bool{}
	for _, n := range c.all {
		if running[n.address] = n.running; n.running {
			n.waitReady()
		}
	}
	c.wait("all nodes follow", func() bool {
		s := c.status()
		has := 0
		for i := range s.Nodes {
			if n := &s.Nodes[i]; running[n.Address] && n.Lag <= most && (n.State == "leading" || n.State == "following") {
				has++
			}
		}
		want := 0
		for _, n := range c.all {
			if n.running {
				want++
			}
		}
		return has == want && s.State == "running"
	})
}

// bases returns the URLs of the nodes, beginning with one of them.
func (c *nodes) bases(first int) []string {
	var urls []string
	for i := range c.all {
		urls = append(urls, c.all[(first+i)%len(c.all)].base)
	}
	return urls
}
