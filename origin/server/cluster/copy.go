package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// A node without a store, or with one that etcd can no longer continue, copies the store of another node:
//
//	POST /checkpoint ─▶ DIR/checkpoints/ID/…   links to the files of the other node's store, at one moment
//	GET each file that DIR/store.copy/ lacks   a second copy fetches only what has changed
//	DIR/store ─▶ DIR/store.old                 once all have their hashes
//	DIR/store.copy ─▶ DIR/store                a process that ends before finds no store, and copies again
const (
	checkpointsDir = "checkpoints"
	copyDir        = "store.copy"
	storeDir       = "store"
	oldDir         = "store.old"
)

// checkpoint describes a checkpoint.
type checkpoint struct {
	ID       string `json:"id"`
	Revision int64  `json:"revision"` // the store has all records up to it
	Files    []file `json:"files"`
}

// file is a file of a checkpoint.
type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

// keepCheckpoint is the time after which a checkpoint is deleted that no node has fetched to its end.
const keepCheckpoint = time.Hour

// makeCheckpoint makes a checkpoint of this node's store.
func (c *Cluster) makeCheckpoint(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	store, d := c.store, c.driver
	c.mu.Unlock()
	if store == nil {
		refuse(w, http.StatusServiceUnavailable, errors.New("this node has no store at present"))
		return
	}
	cp, err := c.checkpoint(store, d)
	if err != nil {
		c.o.Log.Error("cannot make a checkpoint for another node", "error", err)
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	reply(w, cp)
}

func (c *Cluster) checkpoint(store *pebblekv.Store, d *channel.Driver) (cp checkpoint, err error) {
	at, _ := d.Store.Position() // the store may have more
	cp.Revision = at.Revision
	if err := c.dropOld(system.Now().Add(-keepCheckpoint)); err != nil {
		return cp, err
	}
	if cp.ID, err = identity.NewID(system.Random); err != nil {
		return cp, err
	}
	dir := path.Join(checkpointsDir, cp.ID)
	if err := store.Checkpoint(filepath.Join(c.o.Data, dir)); err != nil {
		return cp, err
	}
	names, err := c.folder.ReadDir(dir)
	for _, name := range names {
		if err == nil {
			var f file
			f, err = c.describe(dir, name)
			cp.Files = append(cp.Files, f)
		}
	}
	if err != nil {
		err = errors.Join(err, c.folder.RemoveAll(dir))
	}
	return cp, err
}

// dropOld deletes the checkpoints that are older than a time.
func (c *Cluster) dropOld(before time.Time) error {
	if err := c.folder.MkdirAll(checkpointsDir); err != nil {
		return err
	}
	names, err := c.folder.ReadDir(checkpointsDir)
	for _, name := range names {
		dir := path.Join(checkpointsDir, name)
		if info, e := fs.Stat(c.folder.FS(), dir); e == nil && info.ModTime().Before(before) {
			err = errors.Join(err, c.folder.RemoveAll(dir))
		}
	}
	return err
}

// describe reads a file.
func (c *Cluster) describe(dir, name string) (file, error) {
	r, err := c.folder.Open(path.Join(dir, name))
	if err != nil {
		return file{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return file{name, n, hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, r.Close())
}

// sendCheckpoint sends a file of a checkpoint.
func (c *Cluster) sendCheckpoint(w http.ResponseWriter, r *http.Request) {
	id, name := r.PathValue("id"), r.PathValue("name")
	if !filepath.IsLocal(id) || !filepath.IsLocal(name) || filepath.Base(id) != id || filepath.Base(name) != name {
		http.NotFound(w, r)
		return
	}
	http.ServeFileFS(w, r, c.folder.FS(), path.Join(checkpointsDir, id, name))
}

// dropCheckpoint deletes a checkpoint.
func (c *Cluster) dropCheckpoint(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		http.NotFound(w, r)
		return
	}
	if err := c.folder.RemoveAll(path.Join(checkpointsDir, id)); err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	reply(w, struct{}{})
}

// retryCopy is the time until a copy is tried again.
const retryCopy = time.Second

// Prepare copies the store of another node, if the folder needs one. The folder's store must be closed. It tries until it succeeds or ctx ends.
func (c *Cluster) Prepare(ctx context.Context) error {
	for {
		c.mu.Lock()
		needed := c.copies
		c.mu.Unlock()
		if !needed {
			return ctx.Err()
		}
		c.become(copying)
		err := c.copyStore(ctx)
		if err == nil {
			c.mu.Lock()
			c.copies = false
			c.mu.Unlock()
			c.become(starting)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.o.Log.Warn("cannot copy the store of another node", "error", err)
		system.Pause(ctx, retryCopy)
	}
}

// sources returns the nodes whose store can be copied: those that follow first.
func (c *Cluster) sources() []identity.Node {
	all := c.known.list()
	var from []identity.Node
	for _, s := range []state{following, leading, behind} {
		for _, k := range all {
			if k.State == s && k.ID != c.file.Node.ID && k.lives(system.Now()) {
				from = append(from, identity.Node{ID: k.ID, Address: k.Address})
			}
		}
	}
	c.mu.Lock()
	peers := c.file.Peers // savePeers replaces them
	c.mu.Unlock()
	for _, n := range peers {
		if !slices.ContainsFunc(from, func(x identity.Node) bool { return x.ID == n.ID }) {
			from = append(from, n)
		}
	}
	return from
}

// copyStore copies the store of the first node that has one.
func (c *Cluster) copyStore(ctx context.Context) error {
	err := errors.New("no other node is known")
	for _, n := range c.sources() {
		if err = c.copyFrom(ctx, n); err == nil || ctx.Err() != nil {
			return err
		}
		err = fmt.Errorf("node %s: %w", n.Address, err)
	}
	return err
}

// copyFrom copies the store of a node.
func (c *Cluster) copyFrom(ctx context.Context, n identity.Node) error {
	began := system.Now()
	var cp checkpoint
	if err := c.order(ctx, n, http.MethodPost, pathCheckpoint, struct{}{}, &cp); err != nil {
		return err
	}
	defer func() {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), helloTime)
		defer stop()
		_ = c.order(last, n, http.MethodDelete, pathCheckpoint+"/"+cp.ID, struct{}{}, nil) // it is deleted later in any case
	}()
	c.mu.Lock()
	c.copied = cp.Revision
	c.mu.Unlock()
	fetched, err := c.fetchAll(ctx, n, cp)
	if err == nil {
		err = system.SyncDisk(c.o.Data)
	}
	if err == nil {
		err = c.replaceStore()
	}
	if err == nil {
		c.known.mu.Lock()
		c.known.before = 0 // the copy may be older than the store that it replaces
		if k := c.known.all[c.file.Node.ID]; k != nil {
			k.Synced = 0
		}
		c.known.mu.Unlock()
		c.o.Log.Info("copied the store of another node", "node", n.Address.String(), "files", len(cp.Files), "fetched", fetched, "took", system.Now().Sub(began))
	}
	return err
}

// replaceStore makes the copy the folder's store. The folder never has a store without some of its files.
func (c *Cluster) replaceStore() error {
	err := c.folder.RemoveAll(oldDir)
	if err == nil {
		err = c.folder.Rename(storeDir, oldDir)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = c.folder.Rename(copyDir, storeDir)
	}
	if err == nil {
		err = system.SyncDisk(c.o.Data)
	}
	if err == nil {
		err = c.folder.RemoveAll(oldDir)
	}
	return err
}

// copiesAtOnce is the number of files that are fetched at once.
const copiesAtOnce = 4

// fetchAll fetches the files of a checkpoint that an earlier copy has not fetched.
func (c *Cluster) fetchAll(ctx context.Context, n identity.Node, cp checkpoint) (fetched int, err error) {
	if err := c.folder.MkdirAll(copyDir); err != nil {
		return 0, err
	}
	wanted := map[string]file{}
	for _, f := range cp.Files {
		if filepath.Base(f.Name) != f.Name || !filepath.IsLocal(f.Name) {
			return 0, fmt.Errorf("the checkpoint has a file %q", f.Name)
		}
		wanted[f.Name] = f
	}
	names, err := c.folder.ReadDir(copyDir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if have, err := c.describe(copyDir, name); err == nil && have == wanted[name] {
			delete(wanted, name)
		} else if err := c.folder.RemoveAll(path.Join(copyDir, name)); err != nil {
			return 0, err
		}
	}
	var (
		work  sync.WaitGroup
		mu    sync.Mutex
		queue = make(chan file, len(wanted))
	)
	for _, f := range wanted {
		queue <- f
	}
	close(queue)
	for range copiesAtOnce {
		work.Go(func() {
			for f := range queue {
				e := c.fetch(ctx, n, cp.ID, f)
				mu.Lock()
				err = errors.Join(err, e)
				failed := err != nil
				mu.Unlock()
				if failed {
					return
				}
			}
		})
	}
	work.Wait()
	return len(wanted), err
}

// fetch fetches one file.
func (c *Cluster) fetch(ctx context.Context, n identity.Node, id string, f file) (err error) {
	res, err := c.ask(ctx, n, http.MethodGet, pathCheckpoint+"/"+id+"/"+url.PathEscape(f.Name), struct{}{})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	w, err := c.folder.Create(path.Join(copyDir, f.Name))
	if err != nil {
		return err
	}
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(w, sum), res.Body)
	err = errors.Join(err, w.Close())
	if err == nil && (size != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.Sum) {
		err = fmt.Errorf("file %s arrived damaged", f.Name)
	}
	return err
}
