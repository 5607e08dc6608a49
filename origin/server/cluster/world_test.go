package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cluster/clustertest"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// bucket is the URL of the pictures of a test's cluster. Nothing connects to it.
const bucket = "http://127.0.0.1:1/bucket"

// node is a node on this machine. While it serves, it is opened again as often as its cluster asks for it, as package server does.
type node struct {
	t       testing.TB
	dir     string
	address identity.Address
	url     string      // the flag --public-url
	full    atomic.Bool // the disk has no room
	log     lines

	cluster *Cluster // nil: the node is stopped
	stop    context.CancelFunc
	ended   chan error

	mu      sync.Mutex
	store   kv.Store // nil: the node is not open
	local   kv.Store // the folder's
	batches int      // that other nodes wrote and this one followed
	roles   []string
	reopens []error // why it was opened again
}

// lines is the log of a node, by message.
type lines struct {
	mu  sync.Mutex
	all []slog.Record
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l *lines) WithGroup(string) slog.Handler                    { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	return nil
}

// find returns the attributes of the lines with a message.
func (l *lines) find(message string) (all []map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.all {
		if r.Message == message {
			attributes := map[string]string{}
			r.Attrs(func(a slog.Attr) bool {
				attributes[a.Key] = a.Value.String()
				return true
			})
			all = append(all, attributes)
		}
	}
	return all
}

// newNode returns a node at a free address. Its folder does not exist.
func newNode(t testing.TB) *node {
	t.Helper()
	return &node{t: t, dir: filepath.Join(t.TempDir(), "data"), address: clustertest.Addresses(t, 1)[0]}
}

func parse(t testing.TB, address string) identity.Address {
	t.Helper()
	a, err := identity.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// found makes the first node of a new cluster, which does not serve yet.
func found(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	file, err := identity.Create(identity.Options{Address: n.address, S3: bucket, Election: identity.MinElection}, system.Now(), system.Random)
	if err != nil {
		t.Fatal(err)
	}
	folder := n.open()
	if err := Create(t.Context(), file, folder, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(folder.Close(), file.Save(n.dir)); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *node) open() *data.Folder {
	n.t.Helper()
	f, err := data.Open(n.dir, data.Options{MinFree: 1 << 20, Free: n.free, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		n.t.Fatal(err)
	}
	return f
}

func (n *node) free() (int64, error) {
	if n.full.Load() {
		return 0, nil
	}
	return 1 << 40, nil
}

func (n *node) token() string {
	n.t.Helper()
	text, err := n.cluster.NewToken(n.t.Context())
	if err != nil {
		n.t.Fatal(err)
	}
	return text
}

// join makes another node of the cluster, which does not serve yet.
func (n *node) join() *node {
	n.t.Helper()
	x := newNode(n.t)
	if _, err := Join(n.t.Context(), x.dir, n.token(), x.address, 0, "v"); err != nil {
		n.t.Fatal(err)
	}
	return x
}

// tryStart starts the node. It returns the errors of its start.
func (n *node) tryStart() error {
	c, err := Open(n.t.Context(), Options{Data: n.dir, PublicURL: n.url, Version: "v", Log: slog.New(&n.log)})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	n.cluster, n.stop, n.ended = c, stop, make(chan error, 1)
	ready := make(chan error, 1)
	go func() { n.ended <- n.serve(ctx, c, ready) }()
	if err := <-ready; err != nil {
		stop()
		n.cluster = nil
		return errors.Join(err, c.Close())
	}
	return nil
}

// start starts the node, and stops it at the end of the test.
func (n *node) start() *node {
	n.t.Helper()
	if err := n.tryStart(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(n.close)
	return n
}

// serve opens the node, and again if its cluster asks for it. ready receives the result of the first opening of its store.
func (n *node) serve(ctx context.Context, c *Cluster, ready chan<- error) error {
	for first := true; ; {
		if err := c.Prepare(ctx); err != nil {
			return nil // the node stops
		}
		f := n.open()
		store, err := c.OpenStore(f, cmp.Or(c.PublicURL(), "http://public.example"))
		if err == nil {
			n.show(store, f.Store)
			if first {
				first = false
				ready <- nil
			}
			err = c.Run(ctx, n)
			n.show(nil, nil)
			err = errors.Join(err, store.Close())
		} else {
			err = errors.Join(err, f.Store.Close())
		}
		if closed := f.Close(); closed != nil && !errors.Is(closed, kv.ErrClosed) {
			err = errors.Join(err, closed)
		}
		if !errors.Is(err, server.ErrReopen) {
			if first {
				ready <- err
			}
			return err
		}
		n.mu.Lock()
		n.reopens = append(n.reopens, err)
		n.mu.Unlock()
	}
}

func (n *node) show(store, local kv.Store) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.store, n.local = store, local
}

// end stops the node as a process that ends. It returns the error with which the node had stopped to follow.
func (n *node) end() (err error) {
	if n.cluster == nil {
		return nil
	}
	n.stop()
	err = <-n.ended
	if closed := n.cluster.Close(); closed != nil {
		n.t.Errorf("close %s: %v", n.address, closed)
	}
	n.cluster = nil
	return err
}

func (n *node) close() {
	if err := n.end(); err != nil {
		n.t.Errorf("node %s: %v", n.address, err)
	}
}

// Advance implements [server.Machine].
func (n *node) Advance(context.Context, *kv.Batch) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.batches++
	return nil
}

// Lead implements [server.Machine].
func (n *node) Lead(context.Context) error { return n.role("leads") }

// Follow implements [server.Machine].
func (n *node) Follow(context.Context) error { return n.role("follows") }

func (n *node) role(r string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.roles = append(n.roles, r)
	return nil
}

// commit commits a batch.
func (n *node) commit(b *kv.Batch) error {
	n.mu.Lock()
	s := n.store
	n.mu.Unlock()
	if s == nil {
		return kv.ErrFollows
	}
	return kv.CommitAndWait(s, b)
}

// put commits a key.
func (n *node) put(key string) error {
	var b kv.Batch
	b.Put([]byte(key), []byte("v"))
	return n.commit(&b)
}

func (n *node) mustPut(key string) {
	n.t.Helper()
	if err := n.put(key); err != nil {
		n.t.Fatalf("put %s: %v", key, err)
	}
}

// has reports whether the node's own store has a key.
func (n *node) has(key string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.local == nil {
		return false
	}
	v, err := kv.Find(n.local, []byte(key))
	return err == nil && v != nil
}

// content returns the keys and values of the node's store.
func (n *node) content() []byte {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	var (
		all bytes.Buffer
		err error
	)
	for k, v := range kv.WithPrefix(n.local, nil, &err) {
		fmt.Fprintf(&all, "%q=%q\n", k, v)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	return all.Bytes()
}

// await waits until the node has a state.
func (n *node) await(s state) {
	n.t.Helper()
	clustertest.Until(n.t, fmt.Sprintf("node %s is %s", n.address, s), func() bool { return n.cluster.present() == s })
}

// leads waits until one of the nodes leads, and returns it.
func leads(t testing.TB, nodes ...*node) (p *node) {
	t.Helper()
	clustertest.Until(t, "a primary", func() bool {
		i := slices.IndexFunc(nodes, func(n *node) bool { return n.cluster != nil && n.cluster.confirm(t.Context()) == nil })
		if i >= 0 {
			p = nodes[i]
		}
		return i >= 0
	})
	return p
}

// putAt commits a key at the node that leads, and again if another one takes over meanwhile.
func putAt(t testing.TB, key string, nodes ...*node) {
	t.Helper()
	err := kv.ErrFollows
	for errors.Is(err, kv.ErrFollows) {
		err = leads(t, nodes...).put(key)
	}
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

// three starts three nodes, and waits until each is a member that leads or follows.
func three(t testing.TB) []*node {
	t.Helper()
	a := found(t).start()
	a.await(leading)
	nodes := []*node{a, a.join().start(), a.join().start()}
	voters(t, nodes, 3)
	return nodes
}

// voters waits until each node that is open knows that it is a member, and etcd has n members.
func voters(t testing.TB, nodes []*node, n int) {
	t.Helper()
	clustertest.Until(t, strconv.Itoa(n)+" members", func() bool {
		s, err := nodes[0].cluster.Status(t.Context())
		return err == nil && s.Healthy() && members(&s)["member"] == n && len(s.Nodes) == n && !slices.ContainsFunc(nodes, func(x *node) bool {
			x.cluster.mu.Lock()
			defer x.cluster.mu.Unlock()
			return !x.cluster.file.EtcdStarted
		})
	})
}

// members counts the nodes of a status by their kind.
func members(s *Status) map[string]int {
	kinds := map[string]int{}
	for _, n := range s.Nodes {
		kinds[n.Member]++
	}
	return kinds
}

// copyTree copies a folder.
func copyTree(t testing.TB, to, from string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// setBack copies a folder of a stopped node. It returns a function that replaces the folder by the copy.
func (n *node) setBack(name string) func() {
	n.t.Helper()
	saved := filepath.Join(n.t.TempDir(), "saved")
	copyTree(n.t, saved, filepath.Join(n.dir, name))
	return func() {
		n.t.Helper()
		if err := os.RemoveAll(filepath.Join(n.dir, name)); err != nil {
			n.t.Fatal(err)
		}
		copyTree(n.t, filepath.Join(n.dir, name), saved)
	}
}
