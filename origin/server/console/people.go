package console

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// person is the signed-in account as pages see it.
type person struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Email    string `json:"email"`
	Verified bool   `json:"verified"`
	Operator bool   `json:"operator"`
	Plan     string `json:"plan"`
	Left     *int64 `json:"calls_left"`  // null: unlimited
	Limit    *int64 `json:"calls_limit"` // null: unlimited

	Inputs      *int64 `json:"inputs"`       // stored inputs; null: neither inputs nor bytes are limited
	InputsLimit *int64 `json:"inputs_limit"` // null: unlimited
	Bytes       *int64 `json:"bytes"`        // stored bytes; null: neither inputs nor bytes are limited
	BytesLimit  *int64 `json:"bytes_limit"`  // null: unlimited
}

// session describes the server and the signed-in account to a page.
type session struct {
	Account   *person  `json:"account"`
	CSRF      string   `json:"csrf"`
	Demo      bool     `json:"demo"`
	SignUp    string   `json:"sign_up"`
	Mail      string   `json:"mail"`
	Version   string   `json:"version"`
	PublicURL string   `json:"public_url"`
	Languages []string `json:"languages"`
}

// session returns the current session.
func (c *call) session() (any, error) {
	signUp, err := c.o.Accounts.SignUpPolicy()
	if err != nil {
		return nil, err
	}
	s := session{
		CSRF: c.csrf(), Demo: c.o.Demo, SignUp: signUp, Mail: c.o.Accounts.MailTransport(),
		Version: c.o.Version, PublicURL: c.o.PublicURL, Languages: lang.Codes(),
	}
	if a := &c.account; a.ID != "" {
		left, limit, err := c.o.Accounts.Allowance(a.ID)
		if err != nil {
			return nil, err
		}
		s.Account = &person{ID: a.ID, Name: a.Name, Email: a.Email, Verified: a.Verified, Operator: a.Operator, Plan: a.Plan}
		if limit >= 0 {
			s.Account.Left, s.Account.Limit = &left, &limit
		}
		if err := c.storage(s.Account); err != nil {
			return nil, err
		}
	}
	return map[string]any{"session": s}, nil
}

// storage sets the storage use and limits of the account, if the storage is limited.
func (c *call) storage(p *person) error {
	if c.o.Stored == nil {
		return nil
	}
	limits, err := c.o.Accounts.StorageLimits(p.ID)
	if err != nil || limits.Inputs == 0 && limits.Bytes == 0 {
		return err
	}
	stored, err := c.o.Stored(p.ID)
	if err != nil {
		return err
	}
	p.Inputs, p.Bytes = &stored.Inputs, &stored.Bytes
	if limits.Inputs > 0 {
		p.InputsLimit = &limits.Inputs
	}
	if limits.Bytes > 0 {
		p.BytesLimit = &limits.Bytes
	}
	return nil
}

func (c *call) getSession() (any, error) {
	if err := c.openCookie(); err != nil {
		return nil, err
	}
	return c.session()
}

// replaceSession returns the session with the given new token. It ends the previous session.
func (c *call) replaceSession(token string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if before := c.account.ID; before != "" {
		if err := c.o.Accounts.SignOut(c.token, c.r.Remote); err != nil {
			return nil, err
		}
	}
	if err := c.adopt(token, nil); err != nil {
		return nil, err
	}
	return c.session()
}

func (c *call) signIn(in struct{ Email, Password string }) (any, error) {
	token, _, err := c.o.Accounts.SignIn(c.ctx, in.Email, in.Password, c.r.Remote)
	return c.replaceSession(token, err)
}

func (c *call) signOut() (any, error) {
	if c.account.ID != "" {
		if err := c.o.Accounts.SignOut(c.token, c.r.Remote); err != nil {
			return nil, err
		}
	}
	return c.nobody()
}

// nobody replaces the cookie and returns a session without an account.
func (c *call) nobody() (any, error) {
	token, err := c.o.Accounts.NewToken()
	if err != nil {
		return nil, err
	}
	c.give(token)
	c.account = account.Account{}
	return c.session()
}

func (c *call) signUp(in account.SignUpForm) (any, error) {
	token, _, err := c.o.Accounts.Create(c.ctx, in, c.r.Remote)
	return c.replaceSession(token, err)
}

// accountChange is a change of the name, the email address or the password; exactly one of them is set.
type accountChange struct {
	Name, Email *string
	Confirm     string // the password, to change the email address
	Password    *struct{ Old, New string }
}

func (c *call) changeAccount(in accountChange) (any, error) {
	var err error
	switch {
	case in.Name != nil && in.Email == nil && in.Password == nil:
		c.account, err = c.o.Accounts.Rename(c.ctx, c.account.ID, *in.Name, c.r.Remote)
	case in.Email != nil && in.Name == nil && in.Password == nil:
		c.account, err = c.o.Accounts.ChangeEmail(c.ctx, c.account.ID, *in.Email, in.Confirm, c.r.Remote)
	case in.Password != nil && in.Name == nil && in.Email == nil:
		var token string
		token, _, err = c.o.Accounts.ChangePassword(c.ctx, c.account.ID, in.Password.Old, in.Password.New, c.r.Remote)
		err = c.adopt(token, err)
	default:
		err = errBody
	}
	if err != nil {
		return nil, err
	}
	return c.session()
}

// leave erases the account permanently. It fails while the account has applications.
func (c *call) leave(in struct{ Password string }) (any, error) {
	apps, err := c.ownedApps()
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(apps, func(a catalog.App) bool { return a.Owner == c.account.ID }) {
		return nil, errOwner
	}
	if err := c.o.Accounts.EraseWithPassword(c.ctx, c.account.ID, in.Password, c.r.Remote); err != nil {
		return nil, err
	}
	return c.nobody()
}

func (c *call) verify(in struct{ Code string }) (any, error) {
	var err error
	if c.account, err = c.o.Accounts.Verify(c.ctx, c.account.ID, in.Code, c.r.Remote); err != nil {
		return nil, err
	}
	return c.session()
}

func (c *call) sendCode() (any, error) {
	return nil, c.o.Accounts.SendCode(c.ctx, c.account.ID)
}

func (c *call) mailReset(in struct{ Email string }) (any, error) {
	return nil, c.o.Accounts.SendResetLink(c.ctx, in.Email, c.r.Remote)
}

func (c *call) reset(in struct{ Token, Password string }) (any, error) {
	token, _, err := c.o.Accounts.Reset(c.ctx, in.Token, in.Password, c.r.Remote, c.revokeAll)
	return c.replaceSession(token, err)
}

// revokeAll deletes the keys of an account's applications. It also replaces the secrets of their clients, which ends their access tokens.
func (c *call) revokeAll(ctx context.Context, id string) error {
	apps, err := c.o.Register.Apps()
	if err != nil {
		return err
	}
	by := register.Caller{Account: id, Remote: c.r.Remote}
	for i := range apps {
		a := &apps[i]
		if a.Owner != id {
			continue
		}
		keys, err := c.o.Register.Keys(a.ID)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if err := c.o.Register.DeleteKey(ctx, by, a.ID, k.Hash); err != nil && !errors.Is(err, register.ErrNoKey) {
				return err
			}
		}
		if _, err := c.o.Register.ReplaceSecret(ctx, by, a.ID); err != nil && !errors.Is(err, register.ErrApplication) {
			return err
		}
	}
	return nil
}

// mails returns a demo's emails to everyone who can reach it.
func (c *call) mails() (any, error) {
	if c.o.Accounts.MailTransport() != "page" {
		return nil, errMissing
	}
	type mail struct {
		To      string `json:"to"`
		Subject string `json:"subject"`
		Text    string `json:"text"`
		At      string `json:"at"`
	}
	mails := []mail{}
	for _, m := range c.o.Accounts.Mails() {
		mails = append(mails, mail{m.To, m.Subject, m.Text, timestamp(m.At)})
	}
	return map[string]any{"mails": mails}, nil
}

// sessions lists the account's open sessions.
func (c *call) sessions() (any, error) {
	type open struct {
		ID      string `json:"id"`
		Created string `json:"created_at"`
		Seen    string `json:"last_used_at"`
		Remote  string `json:"remote"`
		This    bool   `json:"this"` // the session of this request
	}
	list, err := c.o.Accounts.Sessions(c.account.ID)
	sessions := []open{}
	for _, s := range list {
		sessions = append(sessions, open{s.ID(), timestamp(s.Created), timestamp(s.Seen), s.Remote, s.HasToken(c.token)})
	}
	return map[string]any{"sessions": sessions}, err
}

func (c *call) endSession() (any, error) {
	return nil, c.o.Accounts.EndSession(c.account.ID, c.id, c.r.Remote)
}

// eventsShown is the number of audit records on a page.
const eventsShown = 100

// audit returns the account's audit records, newest first; ?before=seq returns the next page. The operator's account also gets the records
// of the command line.
func (c *call) audit() (any, error) {
	var before uint64
	query, err := url.ParseQuery(c.r.Query)
	if text := query.Get("before"); err == nil && text != "" {
		before, err = strconv.ParseUint(text, 10, 64)
	}
	if err != nil {
		return nil, errBody
	}
	type event struct {
		Seq    uint64 `json:"seq"`
		At     string `json:"at"`
		Action string `json:"action"`
		Target string `json:"target"`
		Remote string `json:"remote"`
		Hash   string `json:"hash"`
	}
	list, err := c.o.Accounts.Events(c.account.ID, before, eventsShown)
	if c.account.Operator && err == nil {
		var others []account.Event
		others, err = c.o.Accounts.Events(account.ByOperator, before, eventsShown)
		list = append(list, others...)
		slices.SortFunc(list, func(a, b account.Event) int { return cmp.Compare(b.Seq, a.Seq) })
		list = list[:min(len(list), eventsShown)]
	}
	events := []event{}
	for _, e := range list {
		events = append(events, event{e.Seq, timestamp(e.At), string(e.Action), e.Target, e.Remote, e.Hash})
	}
	return map[string]any{"events": events}, err
}
