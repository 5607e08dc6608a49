package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Errors of a node that cannot take part in its cluster.
var (
	// ErrEtcdFolder is returned by Open for a member whose etcd folder is missing or old: it has forgotten its votes.
	ErrEtcdFolder = errors.New("the folder of etcd is missing or older than this node, so it cannot start")
	// ErrStoreOld is returned for a store that was set back.
	ErrStoreOld = errors.New("the store is older than the cluster knows this node")
	// ErrPublicURL is returned for a node with another public URL than the others.
	ErrPublicURL = errors.New("the nodes of a cluster must have the same --public-url")
)

// rejoin is the fix for a node that cannot take part any more.
const rejoin = "join again with a new folder: 'sightline cluster token' on another node, then 'sightline cluster join TOKEN --data NEW --address HOST:PORT'"

// Options are the settings of a node. All are required, except those whose comment gives a meaning of nil or "".
type Options struct {
	Data      string // data folder
	PublicURL string // the flag; "": that of the other nodes, or the default
	Version   string // of the program
	Log       *slog.Logger

	// Blobs returns the store of the pictures over those in the folder. nil: the folder's, for tests.
	Blobs func(local *blob.Folder, leads func(ctx context.Context) error) data.Blobs

	Collectors []prometheus.Collector // further metrics of the node

	// Leading is called in a goroutine when the node begins to lead. ctx ends with the term. nil: nothing is called.
	Leading func(ctx context.Context)
}

// Cluster is this process's node. Its methods are safe for concurrent use.
type Cluster struct {
	o           Options
	folder      *system.Folder // the data folder
	credentials *identity.Credentials
	certificate member.Certificates
	self        string // this start of this node, as in its claims
	port        *port
	remote      *clientv3.Client // client of the members at other nodes
	calls       *http.Transport  // to the node port of other nodes: forwarded calls
	orders      *http.Transport  // to the node port of other nodes: everything else
	cancel      context.CancelFunc
	loops       sync.WaitGroup
	tends       sync.WaitGroup // the loop that tends the node, which may start the member
	check       checks
	local       atomic.Pointer[http.Handler] // commands of this node's folder
	peersServe  bool                         // all other nodes lead or follow at the start of this one
	ended       chan struct{}                // closed when etcd has ended by itself
	endedOnce   sync.Once

	mu       sync.Mutex
	file     *identity.File
	savedURL string         // public URL in the data folder's file
	member   *member.Member // nil: this node uses the etcd of other nodes
	driver   *channel.Driver
	store    *pebblekv.Store // of the folder; nil: the node is not open
	keys     []log.PublicKey // with which this node signs tokens
	state    state
	problem  string // why the node is stopped
	copies   bool   // the store must be copied before the node is opened
	copied   int64  // revision of the store that was copied, or is being copied; 0: none
	known    nodes
}

var _ server.Cluster = (*Cluster)(nil)

// state is the state of a node, as its record and the status have it.
type state string

const (
	starting  state = "starting"
	leading   state = "leading"
	following state = "following"
	copying   state = "copying"
	behind    state = "behind"
	stopped   state = "stopped"
)

// Open starts the node of a folder that is in a cluster: its port, its member of etcd, and the loop that tends both. It does not open the
// folder's store.
func Open(ctx context.Context, o Options) (_ *Cluster, err error) {
	file, err := identity.Load(o.Data)
	if err != nil {
		return nil, err
	}
	start, err := identity.NewID(system.Random)
	if err != nil {
		return nil, err
	}
	c := &Cluster{o: o, file: file, self: file.Node.ID + "/" + start, state: starting, cancel: func() {}, ended: make(chan struct{})}
	c.check.get = c.claimed
	c.savedURL = file.PublicURL
	if o.PublicURL != "" {
		file.PublicURL = o.PublicURL // before other nodes ask for it, which may start at the same time
	}
	c.known.init(file.Peers)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.folder, err = system.OpenFolder(o.Data); err != nil {
		return nil, err
	}
	if c.credentials, err = file.Credentials(system.Now); err != nil {
		return nil, err
	}
	files, err := file.WriteTLS(o.Data)
	if err != nil {
		return nil, err
	}
	c.certificate = member.Certificates{Authority: files.Authority, Certificate: files.Certificate, Key: files.Key, Name: string(identity.RoleNode)}
	c.calls, c.orders = c.transport(callProtocol), c.transport(orderProtocol)
	if c.port, err = c.listen(ctx); err != nil {
		return nil, err
	}
	if err := c.comparePeers(ctx); err != nil {
		return nil, err
	}
	if err := c.startMember(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	err = c.dialMembers()
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	loops, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.tends.Go(func() { c.maintain(loops) })
	return c, nil
}

// startMember starts the member, if this node has one.
func (c *Cluster) startMember() error {
	if !member.Exists(c.o.Data) {
		if c.file.EtcdStarted {
			return fmt.Errorf("%w: %s", ErrEtcdFolder, rejoin)
		}
		return c.folder.RemoveAll(member.Dir) // left by a start that was interrupted
	}
	return c.runMember(nil, false)
}

// runMember starts the member. peers are needed at its first start.
func (c *Cluster) runMember(peers map[string]identity.Address, joins bool) error {
	m, err := member.Start(member.Options{
		Data: c.o.Data, Name: c.file.Node.ID, Address: c.file.Node.Address, Peers: peers, Cluster: c.file.Cluster.ID, Joins: joins,
		Certificates: &c.certificate, Election: c.file.Cluster.Election(), Compares: c.peersServe, Log: c.o.Log, Fatal: c.syncStore,
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.member = m
	c.mu.Unlock()
	c.loops.Go(func() {
		<-m.Ended()
		c.endedOnce.Do(func() { close(c.ended) })
	})
	return nil
}

// syncStore syncs the store before etcd ends the process: what etcd has decided may not be in etcd's files only.
func (c *Cluster) syncStore(why error) {
	c.o.Log.Error("etcd cannot continue", "error", why)
	if d := c.driving(); d != nil {
		_, _ = d.Store.Sync() // the process ends anyway
	}
}

// dialMembers makes the client of the members at other nodes. The caller holds mu.
func (c *Cluster) dialMembers() error {
	var at []string
	for _, n := range c.file.Peers {
		at = append(at, n.Address.EtcdClient().String())
	}
	if len(at) == 0 {
		return nil
	}
	remote, err := member.Dial(at, c.credentials.ClientTLS(identity.Node{}), c.o.Log)
	if err == nil {
		c.remote = remote
	}
	return err
}

// client returns the client of etcd: this node's member, unless it is a learner, or those of other nodes.
func (c *Cluster) client() *clientv3.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.member != nil && (!c.member.Server.IsLearner() || c.remote == nil) {
		return c.member.Client
	}
	return c.remote
}

// driving returns the driver of the open node, or nil.
func (c *Cluster) driving() *channel.Driver {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.driver
}

// leads reports whether the member of this node leads etcd. changed is closed when that may change.
func (c *Cluster) leads() (leads bool, changed <-chan struct{}) {
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m == nil {
		return false, nil
	}
	return m.Leads()
}

// OpenStore implements [server.Cluster].
func (c *Cluster) OpenStore(f *data.Folder, publicURL string) (kv.Store, error) {
	d, err := channel.OpenDriver(
		channel.Options{Store: f.Store, Cluster: uint64(c.file.Cluster.EtcdID), Self: c.self},
		channel.DriverOptions{Client: c.client, Log: c.o.Log, Leads: c.mayLead},
	)
	if errors.Is(err, channel.ErrCluster) {
		c.mu.Lock()
		c.copies = true
		c.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", server.ErrReopen, err)
	}
	if err != nil {
		return nil, err
	}
	at, _ := d.Store.Position()
	if synced := c.known.synced(c.file.Node.ID); at.Revision < synced {
		return nil, fmt.Errorf("%w, which had synced revision %d and has %d: %s", ErrStoreOld, synced, at.Revision, rejoin)
	}
	if c.o.Blobs != nil {
		f.UseBlobs(func(local *blob.Folder) data.Blobs { return c.o.Blobs(local, c.confirm) })
	}
	c.mu.Lock()
	c.driver, c.store = d, f.Store
	c.mu.Unlock()
	return d.Store, c.setPublicURL(publicURL)
}

// mayLead reports whether this node may claim.
func (c *Cluster) mayLead() (bool, <-chan struct{}) {
	leads, changed := c.leads()
	return leads && c.canLead(), changed
}

// Run implements [server.Cluster].
func (c *Cluster) Run(ctx context.Context, m server.Machine) error {
	d := c.driving()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-c.ended:
			stop()
		case <-ctx.Done():
		}
	}()
	err := d.Run(ctx, &termed{Machine: m, ctx: ctx, leading: c.o.Leading})
	c.mu.Lock()
	c.driver, c.store = nil, nil
	c.mu.Unlock()
	select {
	case <-c.ended:
		return errors.Join(server.ErrCluster, errors.New("etcd has ended"), err)
	default:
	}
	switch {
	case err == nil:
		c.become(starting)
		return nil
	case errors.Is(err, channel.ErrCompacted):
		c.mu.Lock()
		c.copies = true
		c.mu.Unlock()
		return fmt.Errorf("%w: %w", server.ErrReopen, err)
	}
	c.mu.Lock()
	c.problem = err.Error()
	c.mu.Unlock()
	c.become(stopped)
	return err
}

// termed is a machine with work that lasts as long as it leads.
type termed struct {
	server.Machine
	ctx     context.Context
	leading func(ctx context.Context)
	end     context.CancelFunc
	works   sync.WaitGroup
}

// Lead implements [server.Machine].
func (t *termed) Lead(ctx context.Context) error {
	err := t.Machine.Lead(ctx)
	if err == nil && t.leading != nil {
		var term context.Context
		term, t.end = context.WithCancel(t.ctx)
		t.works.Go(func() { t.leading(term) })
	}
	return err
}

// Follow implements [server.Machine].
func (t *termed) Follow(ctx context.Context) error {
	if t.end != nil {
		t.end()
		t.works.Wait()
		t.end = nil
	}
	return t.Machine.Follow(ctx)
}

// become sets the state of the node.
func (c *Cluster) become(s state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = s
}

func (c *Cluster) present() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Ready implements [server.Cluster].
func (c *Cluster) Ready() error {
	switch s := c.present(); s {
	case leading, following:
		return nil
	case stopped:
		c.mu.Lock()
		defer c.mu.Unlock()
		return fmt.Errorf("this node has stopped: %s", c.problem)
	default:
		return fmt.Errorf("this node is %s", s)
	}
}

// TokenKeys publishes the keys with which this node signs access tokens, and returns those of the other nodes.
func (c *Cluster) TokenKeys(own []log.PublicKey) []log.PublicKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = own
	return c.known.keys(c.file.Node.ID)
}

// PublicURL returns the public URL of the nodes; "": no node has one yet.
func (c *Cluster) PublicURL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file.PublicURL
}

func (c *Cluster) setPublicURL(u string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.savedURL == u {
		return nil
	}
	c.file.PublicURL, c.savedURL = u, u
	return c.file.Save(c.o.Data)
}

// Calls returns a new listener of the calls that other nodes forward. It ends the one before.
func (c *Cluster) Calls() net.Listener { return c.port.newCalls() }

// Leave lets another node lead, before this one stops.
func (c *Cluster) Leave(ctx context.Context) {
	leads, _ := c.leads()
	if !leads {
		return
	}
	c.handOver(ctx)
}

// Close stops the node. It must not be open any more.
func (c *Cluster) Close() error {
	c.cancel()
	c.tends.Wait()
	var errs []error
	if c.port != nil {
		errs = append(errs, c.port.close())
	}
	if c.remote != nil {
		errs = append(errs, ignoreCanceled(c.remote.Close()))
	}
	c.mu.Lock()
	m := c.member
	c.mu.Unlock()
	if m != nil {
		errs = append(errs, m.Close())
	}
	c.loops.Wait()
	for _, t := range []*http.Transport{c.calls, c.orders} {
		if t != nil {
			t.CloseIdleConnections()
		}
	}
	if c.folder != nil {
		errs = append(errs, c.folder.Close())
	}
	return errors.Join(errs...)
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// nodeOf returns the node of a claim.
func nodeOf(c channel.Claim) string {
	id, _, _ := strings.Cut(c.Self, "/")
	return id
}
