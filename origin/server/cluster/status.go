package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/sightline-dev/sightline/origin/server/system"
)

// Status describes the cluster, as one node sees it.
type Status struct {
	Cluster  string       `json:"cluster"`
	State    string       `json:"state"`    // one member, two members, running or no primary
	Term     int64        `json:"term"`     // revision of the newest claim
	Position int64        `json:"position"` // number of records
	Nodes    []NodeStatus `json:"nodes"`
}

// NodeStatus describes a node.
type NodeStatus struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Version string `json:"version"`
	Primary bool   `json:"primary"`
	Member  string `json:"member"`         // member, learner or client
	State   string `json:"state"`          // leading, following, copying, behind, starting, "stopped: " and the reason, or not reachable
	Lag     int64  `json:"lag"`            // number of records that it has not applied, as far as its last record shows
	LagMS   int64  `json:"lag_ms"`         // age of its last record in milliseconds, if it lacks records; otherwise 0
	Etcd    string `json:"etcd,omitempty"` // id of its member of etcd
}

// Healthy reports whether nothing needs the operator.
func (s *Status) Healthy() bool {
	for i := range s.Nodes {
		if n := s.Nodes[i].State; n != string(leading) && n != string(following) {
			return false
		}
	}
	return s.State != noneLeads
}

// noneLeads is the state of a cluster without a primary.
const noneLeads = "no primary"

// Status returns the state of the cluster.
func (c *Cluster) Status(ctx context.Context) (Status, error) {
	ctx, stop := context.WithTimeout(ctx, checkTime)
	defer stop()
	s := Status{Cluster: c.file.Cluster.ID, State: noneLeads, Nodes: []NodeStatus{}}
	newest := c.newest()
	s.Term = newest.Revision
	c.known.mu.Lock()
	s.Position = c.known.records
	c.known.mu.Unlock()
	kinds, voters := map[uint64]string{}, 0
	e := c.client()
	list, err := e.MemberList(ctx)
	if err == nil {
		for _, m := range list.Members {
			if kinds[m.ID] = "learner"; !m.IsLearner {
				kinds[m.ID] = "member"
				voters++
			}
		}
	}
	now, leads := system.Now(), false
	for _, k := range c.known.list() {
		n := NodeStatus{ID: k.ID, Address: k.Address.String(), Version: k.Version, State: string(k.State), Member: kinds[k.Member]}
		if n.Member == "" {
			n.Member = "client"
		}
		if k.Member != 0 {
			n.Etcd = fmt.Sprintf("%016x", k.Member)
		}
		n.Lag = max(0, s.Position-k.Position)
		if n.Lag > 0 {
			n.LagMS = now.Sub(k.seen).Milliseconds()
		}
		switch {
		case k.State == stopped:
			n.State += ": " + k.Problem
		case !k.lives(now), k.State == leading && k.ID != nodeOf(newest):
			n.State = "not reachable"
		}
		n.Primary = k.State == leading && k.lives(now) && k.ID == nodeOf(newest)
		leads = leads || n.Primary
		s.Nodes = append(s.Nodes, n)
	}
	if _, confirmed := c.check.newest(ctx); err == nil && confirmed == nil && leads {
		s.State = map[int]string{1: "one member", 2: "two members"}[voters]
		if voters > 2 {
			s.State = "running"
		}
	}
	return s, nil
}

// Etcdctl returns the arguments with which etcdctl reaches the members.
func (c *Cluster) Etcdctl() (string, error) {
	var at []string
	for _, k := range c.known.list() {
		if k.Member != 0 {
			at = append(at, k.Address.EtcdClient().String())
		}
	}
	files, err := c.file.WriteTLS(c.o.Data)
	return fmt.Sprintf("--endpoints=%s --cacert=%s --cert=%s --key=%s", strings.Join(at, ","), files.Authority, files.OperatorCertificate, files.OperatorKey), err
}

// Commands of the cluster on the control socket of a node. The argument is an empty JSON object.
const (
	CommandStatus  = "cluster.status"  // a Status
	CommandToken   = "cluster.token"   // a Text: the token
	CommandEtcdctl = "cluster.etcdctl" // a Text: the arguments of etcdctl
)

// Text is the result of a command.
type Text struct {
	Text string `json:"text"`
}

// Control implements [server.Cluster]. Commands of this process and this folder stay here.
func (c *Cluster) Control(local http.Handler) http.Handler {
	c.local.Store(&local)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			at := p.In.Context().Value(placeKey{}).(place)
			p.SetURL(&url.URL{Scheme: "http", Host: at.node.Address.String(), Path: pathControl})
			p.Out.Host = "control"
		},
		Transport: c.orders, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuseCommand(w, err) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name := strings.TrimPrefix(r.URL.Path, "/"); name {
		case CommandStatus:
			answerCommand(w, func() (any, error) { return c.Status(r.Context()) })
		case CommandToken:
			answerCommand(w, func() (any, error) {
				text, err := c.NewToken(r.Context())
				return Text{text}, err
			})
		case CommandEtcdctl:
			answerCommand(w, func() (any, error) {
				text, err := c.Etcdctl()
				return Text{text}, err
			})
		case "backup", "store.checkpoint", "status":
			local.ServeHTTP(w, r)
		default:
			ctx, stop := context.WithTimeout(r.Context(), patience)
			at, err := c.find(ctx, 0)
			stop()
			switch {
			case err != nil:
				refuseCommand(w, fmt.Errorf("%s: %w", noPrimary, err))
			case at.here:
				local.ServeHTTP(w, r)
			default:
				proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), placeKey{}, at)))
			}
		}
	})
}

// placeKey is the key of a request's place in its context.
type placeKey struct{}

func answerCommand(w http.ResponseWriter, do func() (any, error)) {
	out, err := do()
	if err != nil {
		refuseCommand(w, err)
		return
	}
	reply(w, out)
}

// refuseCommand answers with an error in the form of package control.
func refuseCommand(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(Text{err.Error()})
}
