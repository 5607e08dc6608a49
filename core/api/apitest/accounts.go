package apitest

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/register"
)

// Accounts are the accounts of a world in memory: anna and bert, with the emails anna@example.com and bert@example.com, and the
// passwords "anna's password" and "bert's password". Sessions are numbered: "session-1".
type Accounts struct {
	mu       sync.Mutex
	Calls    map[string]int64  // calls left, by account id; unlimited for other accounts
	Spent    []api.CountedCall // all counted calls
	Storage  map[string]api.StorageLimits
	Kept     map[string]int64 // bytes of predicted pictures, by account
	sessions []string         // account of each session; empty: the session has ended
}

// Login implements [api.Accounts]. It rejects the remote "throttled" with a RateError.
func (p *Accounts) Login(_ context.Context, email, password, remote string) (session, account string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	account, _ = strings.CutSuffix(email, "@example.com")
	if remote == "throttled" {
		return "", "", &auth.RateError{Wait: 30 * time.Second}
	}
	if account != "anna" && account != "bert" || password != account+"'s password" {
		return "", "", auth.ErrLogin
	}
	p.sessions = append(p.sessions, account)
	return fmt.Sprintf("session-%d", len(p.sessions)), account, nil
}

// Session implements [api.Accounts].
func (p *Accounts) Session(_ context.Context, session string) (account string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, _ := strings.CutPrefix(session, "session-")
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(p.sessions) || "session-"+number != session || p.sessions[n-1] == "" {
		return "", auth.ErrSession
	}
	return p.sessions[n-1], nil
}

// CheckSession implements [api.Accounts]. The id of a session is its token.
func (p *Accounts) CheckSession(ctx context.Context, id string) error {
	_, err := p.Session(ctx, id)
	return err
}

// EndSessions ends all sessions.
func (p *Accounts) EndSessions() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.sessions)
}

// Spend implements [api.Calls].
func (p *Accounts) Spend(_ context.Context, c api.CountedCall) (left int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, limited := p.Calls[c.Account]
	switch {
	case !limited:
		left = -1
	case left == 0:
		return 0, fmt.Errorf("%w: verify your email to make more", auth.ErrQuota)
	default:
		left--
		p.Calls[c.Account] = left
	}
	p.Spent = append(p.Spent, c)
	return left, nil
}

// StorageLimits implements [api.Storage].
func (p *Accounts) StorageLimits(account string) (api.StorageLimits, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Storage[account], nil
}

// CountPicture implements [api.Storage].
func (p *Accounts) CountPicture(account string, bytes int64, _ time.Duration) (fits bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Kept == nil {
		p.Kept = map[string]int64{}
	}
	if limit := p.Storage[account].Bytes; limit > 0 && p.Kept[account]+bytes > limit {
		return false, nil
	}
	p.Kept[account] += bytes
	return true, nil
}

// Tokens issues numbered tokens, "access-token-1", that live for 15 minutes.
type Tokens struct {
	now    func() time.Time
	issued []issuedToken
}

type issuedToken struct {
	auth.Claims
	expires time.Time
}

// tokenLife is the lifetime of a token in a world.
const tokenLife = 15 * time.Minute

// Issue implements [api.Tokens].
func (m *Tokens) Issue(c auth.Claims) (token string, life time.Duration, err error) {
	m.issued = append(m.issued, issuedToken{c, m.now().Add(tokenLife)})
	return fmt.Sprintf("access-token-%d", len(m.issued)), tokenLife, nil
}

// Read implements [api.Tokens].
func (m *Tokens) Read(token string) (auth.Claims, error) {
	number, ok := strings.CutPrefix(token, "access-token-")
	n, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil || n < 1 || n > len(m.issued):
		return auth.Claims{}, auth.ErrToken
	case !m.now().Before(m.issued[n-1].expires):
		return auth.Claims{}, auth.ErrExpired
	}
	c := m.issued[n-1].Claims
	c.Expires = m.issued[n-1].expires
	return c, nil
}

// Tenant is an application in a world with its credentials.
type Tenant struct {
	App, Owner string
	Key        string // with all scopes
	Client     register.Client
}

// NewTenant creates an application of an account, or of the operator if owner is empty.
func (w *World) NewTenant(t testing.TB, owner, language string) Tenant {
	t.Helper()
	app, client, err := w.Engine.Register.CreateApp(context.Background(), register.Caller{Account: owner}, register.NewApp{Name: "test", Language: language, Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	n := Tenant{App: app.ID, Owner: owner, Client: client}
	n.Key = w.NewKey(t, n, auth.All)
	return n
}

// NewKey creates a key to a tenant's application.
func (w *World) NewKey(t testing.TB, n Tenant, scopes auth.Set) string {
	t.Helper()
	key, _, err := w.Engine.Register.CreateKey(context.Background(), register.Caller{Account: n.Owner}, register.NewKey{App: n.App, Scopes: scopes.Names(), Description: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Basic returns the Authorization header of a client.
func Basic(c register.Client) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(c.ID+":"+c.Secret))
}
