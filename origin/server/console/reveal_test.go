package console

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/account"
)

// letters is a mail sender that passes each mail to a channel.
type letters chan account.Mail

func (l letters) Send(ctx context.Context, m account.Mail) error {
	select {
	case l <- m:
	case <-ctx.Done():
	}
	return nil
}

// varying matches identifiers, secrets and sequence numbers of the audit log. They differ between two answers with the same content.
var varying = regexp.MustCompile(`[0-9a-f]{16,}|"seq":[0-9]+`)

// TestAnswersRevealNoAddress makes a stranger use an address that is free, claimed by another account, or verified by another account. All
// answers to the stranger are the same, including their headers.
func TestAnswersRevealNoAddress(t *testing.T) {
	free := stranger(t, "free")
	for _, state := range []string{"claimed", "verified"} {
		got := stranger(t, state)
		for i := range free {
			if got[i] != free[i] {
				t.Errorf("a %s address: %s\nwant, as for a free one: %s", state, got[i], free[i])
			}
		}
	}
}

// stranger makes every call about ada@x.example that needs no access to its mailbox, and returns the answers.
func stranger(t *testing.T, state string) (answers []string) {
	mails := make(letters, 64)
	s := newSite(t, func(_ *Options, people *account.Options) { people.Mail = mails })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go s.accounts.Deliver(ctx, func(context.Context, time.Duration) {})
	s.operator()
	if state != "free" {
		ada := s.person("ada")
		if code := regexp.MustCompile(`\b[0-9]{6}\b`).FindString((<-mails).Text); state == "verified" {
			ada.ok("POST", "/verification", `{"code":"`+code+`"}`, nil)
		}
	}
	eve := s.browser()
	eve.network = "198.51.100.7"
	do := func(method, path, body string) {
		t.Helper()
		res := eve.do(method, path, body)
		answer := fmt.Sprint(method, " ", path, " ", body, ": ", res.Status, " ", res.ContentType, " ", res.Header, " ", string(res.Body))
		answers = append(answers, varying.ReplaceAllString(answer, "#"))
	}
	const (
		signIn     = `{"email":"ada@x.example","password":"the stranger's own"}`
		signInNext = `{"email":"ada@x.example","password":"the stranger's next"}`
	)
	do("POST", "/accounts", `{"name":"Ada","email":"Ada@x.example","password":"the stranger's own"}`)
	do("GET", "/session", "")
	do("POST", "/verification", `{"code":"x"}`)
	do("POST", "/verification/mail", "{}")
	s.pass(time.Minute)
	do("POST", "/verification/mail", "{}")
	do("POST", "/verification", `{"code":"x"}`)
	do("POST", "/password/mail", `{"email":"ada@x.example"}`)
	do("POST", "/session", `{"email":"ada@x.example","password":"anything else at all"}`)
	do("GET", "/audit", "")
	do("DELETE", "/session", "{}")
	do("POST", "/session", signIn)
	s.pass(time.Minute)
	do("PATCH", "/account", `{"email":"eve@y.example","confirm":"the stranger's own"}`)
	do("POST", "/session", signIn) // no account of the stranger has this address now
	s.pass(time.Minute)
	do("PATCH", "/account", `{"email":"ada@x.example","confirm":"the stranger's own"}`)
	do("PATCH", "/account", `{"password":{"old":"the stranger's own","new":"the stranger's next"}}`)
	do("DELETE", "/session", "{}")
	do("POST", "/session", signIn)
	do("POST", "/session", signInNext)
	do("GET", "/audit", "")
	do("GET", "/sessions", "")
	do("DELETE", "/account", `{"password":"the stranger's next"}`)
	do("POST", "/session", signInNext)
	return answers
}
