package server

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/v2"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/console"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// openAccounts opens the registry of accounts and the audit log in the folder's store.
func (n *Node) openAccounts() error {
	o := account.Options{
		Store: n.Store, Follow: n.Settings.Cluster != nil, Now: system.Now, Random: system.Random, Log: n.Log,
		PublicURL: strings.TrimRight(n.Settings.PublicURL, "/"), NewKeys: n.newKeys,
	}
	if f := n.Settings.Options.Accounts; f != nil {
		if err := f(&o); err != nil {
			return err
		}
	}
	var err error
	n.Accounts, err = account.Open(o)
	return err
}

// newKeys returns the keys of an account's applications that were created at or after since, oldest first.
func (n *Node) newKeys(a account.Account, since time.Time) (keys []account.NewKey, err error) {
	apps, err := n.Register.Apps()
	if err != nil {
		return nil, err
	}
	for i := range apps {
		app := &apps[i]
		if !a.Owns(app.Owner) {
			continue
		}
		all, err := n.Register.Keys(app.ID)
		if err != nil {
			return nil, err
		}
		for j := range all {
			if k := &all[j]; !k.Created.Time().Before(since) {
				keys = append(keys, account.NewKey{ID: auth.ByKey(k.Hash), Description: k.Description, App: app.Name, Created: k.Created.Time()})
			}
		}
	}
	slices.SortFunc(keys, func(a, b account.NewKey) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// auditCall records the action of a call in the audit log.
func (n *Node) auditCall(r *api.Request, did api.AuditEvent) error {
	return n.Accounts.Audit(register.Caller{Account: did.By, Remote: r.Remote}, register.Action(did.Action), did.App)
}

// flushEvery is the time between two writes of usage.
const flushEvery = 5 * time.Second

// maintainAccounts sends emails and writes usage until ctx ends.
func (n *Node) maintainAccounts(ctx context.Context) {
	n.Begin(func(ctx context.Context) { n.Accounts.Deliver(ctx, system.Pause) })
	system.Every(ctx, flushEvery, func(context.Context) {
		if err := n.Accounts.Flush(); err != nil {
			n.Log.Warn("cannot write usage of accounts", "error", err)
		}
	})
}

// LogAudit verifies the audit log and logs its length and its last hash. They show later whether somebody replaced the audit log of the
// folder.
func (n *Node) LogAudit() {
	a, err := n.Accounts.VerifyAudit()
	if err != nil {
		n.Log.Error("audit log is damaged", "error", err)
		return
	}
	n.Log.Info("audit log verified", "records", a.Count, "hash", a.Hash)
}

// Console returns the handler of the pages' API. It adds to o the parts that every program has: the register, its tokens, and the server's
// origins.
func (srv *Server) Console(o console.Options) (*console.Handler, error) {
	o.Register, o.Refuse, o.Tokens, o.Version, o.Now = srv.Register, srv.Engine.Refuse, srv.Tokens, Version, system.Now
	o.PublicURL, o.Origins = strings.TrimRight(srv.Settings.PublicURL, "/"), srv.ownOrigins()
	return console.New(o)
}

// ownOrigins returns the origins of loopback in addition to the public URL.
func (srv *Server) ownOrigins() []string {
	host, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil || !system.IsLoopback(host) {
		return nil
	}
	scheme := "http"
	if srv.secure != nil {
		scheme = "https"
	}
	var origins []string
	for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
		u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port)}
		origins = append(origins, u.String())
	}
	return origins
}

// ParseDemo reads whether the server is a demo. A demo signs in everyone who can reach it, so it must listen on loopback, without a proxy
// in front.
func ParseDemo(k *koanf.Koanf, s *Settings) (bool, error) {
	demo, err := strconv.ParseBool(k.String("demo"))
	if err != nil {
		return false, Usagef("demo: %q is not true or false", k.String("demo"))
	}
	host, _, err := net.SplitHostPort(s.Listen)
	if demo && (err != nil || !system.IsLoopback(host) || s.BehindProxy) {
		return false, Usagef("demo: refusing to run on %s, where anyone could sign in; use a loopback address without a proxy", s.Listen)
	}
	return demo, nil
}
