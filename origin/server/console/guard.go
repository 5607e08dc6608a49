package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"mime"
	"strconv"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// checkOrigin refuses requests that another site made a browser send. The Host header must be one of the server's, so that a foreign name
// that resolves to this server is refused. Pages of other sites are refused too. strict requires proof that the page is the server's.
func (c *call) checkOrigin(strict bool) error {
	if !c.hosts[strings.ToLower(c.header("Host"))] {
		return errHost
	}
	origin, site := c.header("Origin"), c.header("Sec-Fetch-Site")
	switch {
	case origin != "" && !c.own[strings.ToLower(origin)],
		site == "cross-site", site == "same-site",
		strict && origin == "" && site != "same-origin":
		return errOrigin
	}
	return nil
}

func (c *call) header(name string) string {
	if c.r.Header == nil {
		return ""
	}
	return c.r.Header(name)
}

// enter loads the account of the request's cookie. Without a valid session the call has no account, and enter returns nil.
func (c *call) enter() error {
	c.token = c.requestCookie()
	if c.token == "" {
		return nil
	}
	err := c.signedIn()
	if errors.Is(err, auth.ErrSession) || errors.Is(err, account.ErrUnknown) {
		return nil
	}
	return err
}

// signedIn loads the account of the session with the call's token.
func (c *call) signedIn() error {
	id, err := c.o.Accounts.Session(c.ctx, c.token)
	if err == nil {
		c.account, err = c.o.Accounts.Account(id)
	}
	return err
}

// give makes the answer set the cookie to token.
func (c *call) give(token string) { c.token, c.set = token, true }

// openCookie gives a page without a session a new cookie. In a demo it signs in the demo's account.
func (c *call) openCookie() error {
	if c.account.ID != "" {
		return nil
	}
	if c.o.Demo {
		a, err := c.o.Accounts.Demo()
		if err != nil {
			return err
		}
		return c.adopt(c.o.Accounts.OpenSession(a.ID, c.r.Remote))
	}
	if c.token != "" {
		return nil
	}
	token, err := c.o.Accounts.NewToken()
	if err == nil {
		c.give(token)
	}
	return err
}

// adopt switches the call to a session that was just opened.
func (c *call) adopt(token string, err error) error {
	if err != nil {
		return err
	}
	c.give(token)
	return c.signedIn()
}

// tokenDigits is the length of a cookie's value.
const tokenDigits = 64

// requestCookie returns the value of the request's cookie, or "" if it is missing or malformed.
func (c *call) requestCookie() string {
	for part := range strings.SplitSeq(c.header("Cookie"), ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if ok && name == c.cookie && len(value) == tokenDigits && strings.Trim(value, "0123456789abcdef") == "" {
			return value
		}
	}
	return ""
}

// setCookie returns the header that sets the cookie.
func (c *call) setCookie() api.Field {
	value := c.cookie + "=" + c.token + "; Path=/; Max-Age=" + strconv.Itoa(int(account.SessionLife.Seconds())) + "; HttpOnly; SameSite=Lax"
	if c.secure {
		value += "; Secure"
	}
	return api.Field{Name: "Set-Cookie", Value: value}
}

// csrf returns the token that a page must send with each change. A page of another site does not know it, because it cannot read the
// answers to this cookie.
func (c *call) csrf() string {
	sum := sha256.Sum256([]byte("sightline csrf\x00" + c.token))
	return hex.EncodeToString(sum[:])
}

// checkChange refuses a change that is not JSON or, at an origin, lacks the page's CSRF token. An edge sets no cookie that another site
// could use.
func (c *call) checkChange() error {
	kind, _, err := mime.ParseMediaType(c.header("Content-Type"))
	if err != nil || kind != "application/json" {
		return errContentType
	}
	if c.o.Edge == nil && (c.token == "" || subtle.ConstantTimeCompare([]byte(c.header("X-Sightline-CSRF")), []byte(c.csrf())) != 1) {
		return errCSRF
	}
	return nil
}
