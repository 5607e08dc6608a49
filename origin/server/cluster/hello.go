package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// greeting is the question of a node that starts, and the answer of another one.
type greeting struct {
	ID        string    `json:"id"`
	PublicURL string    `json:"public_url,omitempty"`
	Now       time.Time `json:"now"`
	State     state     `json:"state,omitempty"`
	Known     *record   `json:"known,omitempty"` // record of the node that asks, as the other one knows it
}

// hello answers a node that starts.
func (c *Cluster) hello(w http.ResponseWriter, r *http.Request) {
	var in greeting
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	out := greeting{ID: c.file.Node.ID, PublicURL: c.PublicURL(), Now: system.Now(), State: c.present()}
	c.known.mu.Lock()
	if k := c.known.all[in.ID]; k != nil {
		out.Known = &k.record
	}
	c.known.mu.Unlock()
	reply(w, out)
}

// helloTime is the time limit of a greeting. A node that does not answer in it is not asked.
const helloTime = 2 * time.Second

// comparePeers compares this node with those that answer: its clock, its public URL, and how much it had synced before it stopped. A node that
// has just joined waits until it knows their public URL.
func (c *Cluster) comparePeers(ctx context.Context) error {
	for {
		if err := c.greetPeers(ctx); err != nil {
			return err
		}
		if c.PublicURL() != "" || len(c.file.Peers) == 0 || ctx.Err() != nil {
			return ctx.Err()
		}
		c.o.Log.Warn("no other node of the cluster answers: this node waits for one", "nodes", len(c.file.Peers))
		system.Pause(ctx, retryCopy)
	}
}

func (c *Cluster) greetPeers(ctx context.Context) error {
	serving := 0
	defer func() { c.peersServe = serving > 0 && serving == len(c.file.Peers) }()
	for _, n := range c.file.Peers {
		var out greeting
		limited, stop := context.WithTimeout(ctx, helloTime)
		err := c.order(limited, n, http.MethodPost, pathHello, greeting{ID: c.file.Node.ID}, &out)
		stop()
		if err != nil {
			c.o.Log.Debug("another node does not answer", "node", n.Address.String(), "error", err)
			continue
		}
		if out.State == leading || out.State == following {
			serving++
		}
		if err := identity.CheckClock(out.Now, system.Now()); err != nil {
			return err
		}
		if c.o.PublicURL != "" && out.PublicURL != "" && c.o.PublicURL != out.PublicURL {
			return fmt.Errorf("%w: this node has %s, and node %s has %s: start all with one of them", ErrPublicURL, c.o.PublicURL, n.Address, out.PublicURL)
		}
		c.mu.Lock()
		if c.file.PublicURL == "" {
			c.file.PublicURL = out.PublicURL
		}
		c.mu.Unlock()
		if out.Known == nil {
			continue
		}
		c.known.mu.Lock()
		c.known.before = max(c.known.before, out.Known.Synced)
		c.known.mu.Unlock()
		if err := c.checkMember(out.Known); err != nil {
			return err
		}
	}
	return nil
}

// checkMember checks that the files of this node's member are not older than the other nodes know.
func (c *Cluster) checkMember(known *record) error {
	if known.Applied == 0 || !c.file.EtcdStarted {
		return nil
	}
	last, err := member.LastEntry(c.o.Data)
	if err != nil && !errors.Is(err, member.ErrNoMember) {
		return err
	}
	if last < known.Applied {
		return fmt.Errorf("%w (it ends at entry %d, and had applied %d): %s", ErrEtcdFolder, last, known.Applied, rejoin)
	}
	return nil
}
