package command

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/httpd"
)

// recorded is /v2 with what concerns people put into the audit log before it is answered: applications and keys
// made with a session, and calls that delete everything. Each is an operation of a log too, which
// a crash between the two does not lose.
type recorded struct {
	httpd.Handler
	n *node
}

// Serve implements [httpd.Handler].
func (h recorded) Serve(ctx context.Context, r *api.Request) api.Response {
	path := strings.Trim(r.Path, "/")
	last := path[strings.LastIndexByte(path, '/')+1:]
	wipes := r.Method == "DELETE" && deletesAll(r.Body)
	makes := r.Method == "POST" && (last == "apps" || last == "keys")
	if !wipes && !makes {
		return h.Handler.Serve(ctx, r)
	}
	e := account.Event{Remote: r.Remote}
	e.Actor, e.Target = h.who(ctx, r)
	res := h.Handler.Serve(ctx, r)
	if res.Status != http.StatusOK {
		return res
	}
	switch {
	case wipes:
		e.Action = account.Action(last + ".delete_all")
	case last == "apps":
		e.Action, e.Target = account.AppCreate, newIn(res.Body).Apps[0].ID
	default:
		in := newIn(res.Body)
		e.Action, e.Target = account.KeyCreate, in.Keys[0].Apps[0].ID+"/"+auth.By(auth.HashKey(in.Keys[0].ID))
	}
	if err := h.n.accounts.Record(e); err != nil {
		return h.Refuse(r, err)
	}
	return res
}

func deletesAll(body []byte) bool {
	var in struct {
		All bool `json:"delete_all"`
	}
	return bytes.Contains(body, []byte("delete_all")) && json.Unmarshal(body, &in) == nil && in.All
}

// who is on whose behalf a request asks, and for which application.
func (h recorded) who(ctx context.Context, r *api.Request) (actor, app string) {
	if hash, err := auth.Key(r.Authorization); err == nil {
		k, err := catalog.Read(h.n.folder.Store, catalog.Control).Key(hash)
		if err != nil {
			return "", ""
		}
		if actor = k.By; actor == "" {
			actor = account.ByOperator
		}
		return actor, k.App
	}
	if token, ok := auth.Bearer(r.Authorization); ok {
		claims, err := h.n.tokens.Read(token)
		if err != nil {
			return "", ""
		}
		a, err := h.n.register.App(claims.App)
		if actor = a.Owner; err == nil && actor == "" {
			actor = account.ByOperator
		}
		return actor, claims.App
	}
	actor, err := h.n.accounts.Session(ctx, r.Session)
	if err != nil {
		return "", ""
	}
	return actor, actor
}

// created is what a call that makes something answers.
type created struct {
	Apps [1]struct{ ID string }
	Keys [1]struct {
		ID   string
		Apps [1]struct{ ID string }
	}
}

func newIn(answer []byte) (m created) {
	_ = json.Unmarshal(answer, &m) // our own answer
	return m
}
