package server

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/httpd"
)

// Cluster connects a node with the other nodes of its cluster. One node leads: it writes. The others follow.
type Cluster interface {
	// OpenStore returns the node's store over that of its folder, and sets the folder's store of pictures. publicURL is that of the node.
	// ErrReopen: the folder needs the copy of another node's store first.
	OpenStore(f *data.Folder, publicURL string) (kv.Store, error)

	// Run lets m lead and follow, until ctx ends; then it returns nil. ErrReopen: the node must be opened again. ErrCluster: the process
	// must end. After other errors the node no longer follows.
	Run(ctx context.Context, m Machine) error

	// Ready returns nil if the node leads or follows, and otherwise the reason.
	Ready() error

	// Control returns a handler of commands that sends those of the whole cluster to the node that leads.
	Control(local http.Handler) http.Handler

	// Forward and Leads decide where a request is answered, and Calls returns the listener of requests that other nodes forward; see package httpd.
	Forward(ctx context.Context, r *api.Request) (httpd.Forwarder, error)
	Leads(ctx context.Context, r *api.Request) error
	Calls() net.Listener

	// Leave lets another node lead before this one stops.
	Leave(ctx context.Context)
}

// Reasons why a node cannot continue.
var (
	ErrReopen  = errors.New("the node must be opened again")
	ErrCluster = errors.New("the node has lost its cluster") // the process must end
)

// Machine is a node above its store. *Node implements it.
type Machine interface {
	// Advance takes in a batch of the node that leads. Lead makes the node write, and Follow ends that.
	Advance(ctx context.Context, b *kv.Batch) error
	Lead(ctx context.Context) error
	Follow(ctx context.Context) error
}

var _ Machine = (*Node)(nil)

// joinCluster puts the stores of the cluster over those of the folder.
func (n *Node) joinCluster() (err error) {
	n.Store, err = n.Settings.Cluster.OpenStore(n.Folder, n.Settings.PublicURL)
	return err
}

// follow lets the cluster decide what the node does.
func (n *Node) follow(ctx context.Context) {
	err := n.Settings.Cluster.Run(ctx, n)
	switch {
	case err == nil || ctx.Err() != nil:
	case errors.Is(err, ErrReopen), errors.Is(err, ErrCluster):
		n.left <- err
	default: // its data stays as it is, and calls go to the other nodes
		n.Log.Error("this node no longer follows its cluster", "error", err)
	}
}

// forwardControl returns the cluster's handler over that of the node; nil: there is no cluster.
func (n *Node) forwardControl() func(http.Handler) http.Handler {
	if n.Settings.Cluster == nil {
		return nil
	}
	return n.Settings.Cluster.Control
}

// Advance implements [Machine].
func (n *Node) Advance(ctx context.Context, b *kv.Batch) error { return n.engine().Advance(ctx, b) }

// Lead implements [Machine].
func (n *Node) Lead(context.Context) error {
	if err := n.engine().Lead(); err != nil {
		return err
	}
	if err := n.Accounts.Lead(); err != nil {
		return err
	}
	n.leads.Store(true)
	n.Begin(n.startLeading)
	return nil
}

// OnLead lets f run each time the node of a cluster begins to lead, in a goroutine.
func (n *Node) OnLead(f func(ctx context.Context)) {
	n.onLead.Store(&f)
	if n.leads.Load() {
		n.Begin(f)
	}
}

// startLeading runs the function of OnLead, and once what a server without a cluster does at its start.
func (n *Node) startLeading(ctx context.Context) {
	if f := n.onLead.Load(); f != nil {
		(*f)(ctx)
	}
	welcome := n.welcome.Swap(nil)
	if welcome == nil {
		return
	}
	if err := (*welcome)(ctx); err != nil {
		n.welcome.CompareAndSwap(nil, welcome)
		if !errors.Is(err, kv.ErrFollows) && ctx.Err() == nil {
			n.Log.Error("cannot set up the new cluster", "error", err)
		}
	}
}

// Follow implements [Machine].
func (n *Node) Follow(ctx context.Context) error {
	n.leads.Store(false)
	n.Accounts.Follow()
	return n.engine().Follow(ctx)
}

// engine returns the engine of a node in a cluster.
func (n *Node) engine() clusterEngine { return n.Engine.(clusterEngine) } // only the origin has clusters, and its engine implements it

// clusterEngine is an engine that can lead and follow; see core.Engine.
type clusterEngine interface {
	Advance(ctx context.Context, b *kv.Batch) error
	Lead() error
	Follow(ctx context.Context) error
}
