package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// keyView is a key in an answer.
type keyView struct {
	ID          string   `json:"id"` // start of its hash
	Description string   `json:"description"`
	Scopes      []string `json:"scopes"`
	Created     string   `json:"created_at"`
	Used        string   `json:"last_used_at,omitempty"`
	Calls       int64    `json:"calls"`
	Key         string   `json:"key,omitempty"` // the key itself, only in the answer that creates it
}

func keyOf(k *catalog.Key, use account.KeyUse) keyView {
	v := keyView{ID: auth.ByKey(k.Hash), Description: k.Description, Scopes: k.Scopes, Created: timestamp(k.Created.Time()), Calls: use.Calls}
	if use.Calls > 0 {
		v.Used = timestamp(use.Last)
	}
	return v
}

func (c *call) keys(a *catalog.App) (any, error) {
	keys, err := c.o.Register.Keys(a.ID)
	if err != nil {
		return nil, err
	}
	uses, err := c.o.Accounts.KeyUses(a.ID)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(keys, func(a, b catalog.Key) int {
		return cmp.Or(a.Created.Time().Compare(b.Created.Time()), slices.Compare(a.Hash[:], b.Hash[:]))
	})
	views := []keyView{}
	for i := range keys {
		views = append(views, keyOf(&keys[i], uses[auth.ByKey(keys[i].Hash)]))
	}
	return map[string]any{"keys": views}, nil
}

// wantedKey describes a key to create.
type wantedKey struct {
	Description string
	Scopes      []string
}

func (c *call) createKey(a *catalog.App, in wantedKey) (any, error) {
	keys, err := c.o.Register.Keys(a.ID)
	if err != nil {
		return nil, err
	}
	if len(keys) >= api.MaxKeys && !c.account.Operator {
		return nil, fmt.Errorf("%w: an application can have at most %d API keys", errMany, api.MaxKeys)
	}
	return newKey(c.o.Register.CreateKey(c.ctx, c.by(), register.NewKey{App: a.ID, Scopes: in.Scopes, Description: in.Description}))
}

// newKey answers with a new key, which no later answer shows.
func newKey(key string, record catalog.Key, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	v := keyOf(&record, account.KeyUse{})
	v.Key = key
	return map[string]any{"key": v}, nil
}

// findKey returns the application's key with the id in the path.
func (c *call) findKey(a *catalog.App) (catalog.Key, error) {
	keys, err := c.o.Register.Keys(a.ID)
	if err != nil {
		return catalog.Key{}, err
	}
	for i := range keys {
		if auth.ByKey(keys[i].Hash) == c.key {
			return keys[i], nil
		}
	}
	return catalog.Key{}, errMissing
}

func (c *call) deleteKey(a *catalog.App) (any, error) {
	k, err := c.findKey(a)
	if err != nil {
		return nil, err
	}
	return nil, c.o.Register.DeleteKey(c.ctx, c.by(), k.App, k.Hash)
}

func (c *call) replaceKey(a *catalog.App) (any, error) {
	k, err := c.findKey(a)
	if err != nil {
		return nil, err
	}
	return newKey(c.o.Register.ReplaceKey(c.ctx, c.by(), k.App, k.Hash))
}

func (c *call) replaceSecret(a *catalog.App) (any, error) {
	client, err := c.o.Register.ReplaceSecret(c.ctx, c.by(), a.ID)
	return map[string]any{"client": client}, err
}

func (c *call) revokeTokens(a *catalog.App) (any, error) {
	return nil, c.o.Register.RevokeTokens(c.ctx, c.by(), a.ID)
}

// pageToken returns an access token of the application for a page, which uses it at this server. The token is like the client's tokens and is
// revoked together with them, but its reads do not count as calls of the account. At an origin it also ends with the session of the page.
func (c *call) pageToken(a *catalog.App) (any, error) {
	if c.o.Tokens == nil {
		return nil, errMissing
	}
	client, err := c.o.Register.Client(a.ID)
	if errors.Is(err, register.ErrApplication) {
		return nil, errClient
	}
	if err != nil {
		return nil, err
	}
	claims := auth.Claims{App: a.ID, Client: client.ID, Generation: client.Generation, Page: true}
	if c.o.Edge == nil {
		claims.Session = account.SessionID(c.token)
	}
	token, life, err := c.o.Tokens.Issue(claims)
	return map[string]any{"token": token, "expires_in": int64(life / time.Second)}, err
}

// edges lists the enrolled edges that hold the application, by name. Each receives a new key at its next contact.
func (c *call) edges(a *catalog.App) (any, error) {
	type edge struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	all, err := c.o.Register.Edges()
	if err != nil {
		return nil, err
	}
	edges := []edge{}
	for i := range all {
		if e := &all[i]; e.Enrolled != 0 && e.Replicates(a.ID) {
			edges = append(edges, edge{e.ID, e.Name})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID)) })
	return map[string]any{"edges": edges}, nil
}

// scopes lists the possible scopes of a key, with the scopes that each one needs.
func (c *call) scopes() (any, error) {
	type scope struct {
		ID    string   `json:"id"`
		Name  string   `json:"name"`
		Needs []string `json:"needs"`
	}
	scopes := []scope{}
	for _, id := range auth.ScopeNames() {
		scopes = append(scopes, scope{id, strings.ReplaceAll(id, "_", ":"), append([]string{}, auth.SuggestedScopes(id)...)})
	}
	return map[string]any{"scopes": scopes}, nil
}
