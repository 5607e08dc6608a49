package program

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/account"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/console"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// peopleSettings are the settings of accounts.
type peopleSettings struct {
	closed       bool      // sign-up is disabled
	demo         bool      // visitors are signed in to a demo account
	calls        int64     // monthly calls of each account; 0: unlimited
	signUps      int       // sign-ups per hour and client address; 0: unlimited
	rate         auth.Rate // limit of all calls of an account
	unverified   account.Storage
	verified     account.Storage
	smtp         string
	smtpUser     string
	smtpPassword string // path of the file with the password
	mailFrom     string
}

func peopleFlags(f *pflag.FlagSet) {
	f.String("sign-up", "open", "who can sign up: `open|closed`; open means anyone. The first account uses the link printed at the start")
	f.Int64("plan-calls", 0, "monthly `calls` of a verified account; 0 means unlimited. Unverified accounts get 100 in total")
	f.Float64("account-rate", 100, "rate limit in `calls` per second for all keys, tokens and sessions of an account together, besides --rate; 0 means unlimited")
	f.Int("account-burst", 1000, "burst size of --account-rate, in `calls`")
	f.Int("sign-ups", 5, "`sign-ups` per hour and client address, an IPv6 /64 network counting as one; 0 means unlimited")
	f.Int64("unverified-inputs", 10_000, "stored `inputs` of an unverified account, over all its applications; 0 means unlimited")
	f.String("unverified-storage", "500MB", "`size` of an unverified account's pictures and records, such as 500MB; 0 means unlimited")
	f.Int64("verified-inputs", 0, "stored `inputs` of a verified account, over all its applications; 0 means unlimited")
	f.String("verified-storage", "0", "`size` of a verified account's pictures and records, such as 20GB; 0 means unlimited")
	f.String("smtp", "", "SMTP server as `host:port`; without it, emails are written to the log")
	f.String("smtp-user", "", "SMTP user `name`")
	f.String("smtp-password-file", "", "`file` with the SMTP password")
	f.String("mail-from", "", "sender `address` of emails, such as \"Sightline <noreply@example.org>\"")
	f.Bool("demo", false, "demo mode, loopback only: sign every visitor in to a demo account and show emails on the page")
}

// parsePeople reads the flags of accounts.
func parsePeople(k *koanf.Koanf, serve *server.Settings) (s peopleSettings, err error) {
	s = peopleSettings{
		calls: k.Int64("plan-calls"), smtp: k.String("smtp"), smtpUser: k.String("smtp-user"),
		smtpPassword: k.String("smtp-password-file"), mailFrom: k.String("mail-from"),
	}
	switch text := k.String("sign-up"); text {
	case "open":
	case "closed":
		s.closed = true
	default:
		return s, server.Usagef("sign-up: %q is not open or closed", text)
	}
	if _, err := strconv.ParseInt(fmt.Sprint(k.Get("plan-calls")), 10, 64); err != nil || s.calls < 0 {
		return s, server.Usagef("plan-calls: %q is not a number of calls", k.String("plan-calls"))
	}
	if err := s.parseLimits(k); err != nil {
		return s, err
	}
	if s.demo, err = server.ParseDemo(k, serve); err != nil {
		return s, err
	}
	switch {
	case s.smtp == "" && (s.smtpUser != "" || s.smtpPassword != "" || s.mailFrom != ""):
		return s, server.Usagef("smtp-user, smtp-password-file and mail-from: --smtp is required")
	case s.smtp != "" && s.mailFrom == "":
		return s, server.Usagef("smtp: --mail-from is required")
	case (s.smtpUser == "") != (s.smtpPassword == ""):
		return s, server.Usagef("smtp-user and smtp-password-file must be set together")
	}
	return s, nil
}

// parseLimits reads the storage limits and the rate of accounts, and the limit of sign-ups per client address.
func (s *peopleSettings) parseLimits(k *koanf.Koanf) error {
	signUps, err := count(k, "sign-ups")
	if err != nil {
		return err
	}
	if s.rate, err = server.ParseRate(k, "account-rate", "account-burst"); err != nil {
		return err
	}
	s.signUps = int(signUps)
	for name, to := range map[string]*account.Storage{"unverified": &s.unverified, "verified": &s.verified} {
		if to.Inputs, err = count(k, name+"-inputs"); err != nil {
			return err
		}
		size := k.String(name + "-storage")
		if size == "0" {
			continue
		}
		if to.Bytes, err = server.ParseSize(size); err != nil {
			return server.Usagef("%s-storage: %w, nor 0", name, err)
		}
	}
	return nil
}

// count reads a number from 0 to MaxInt32.
func count(k *koanf.Koanf, name string) (int64, error) {
	n, err := strconv.ParseInt(fmt.Sprint(k.Get(name)), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, server.Usagef("%s: %q is not a number from 0 to %d", name, k.String(name), math.MaxInt32)
	}
	return n, nil
}

// sender returns the sender of emails, or nil if no SMTP server is set.
func (s *peopleSettings) sender() (account.Sender, error) {
	if s.smtp == "" {
		return nil, nil
	}
	m := account.SMTP{Address: s.smtp, User: s.smtpUser, From: s.mailFrom}
	if host, _, err := net.SplitHostPort(s.smtp); err == nil {
		m.Plain = system.IsLoopback(host)
	}
	if s.smtpPassword != "" {
		password, err := system.ReadFile(s.smtpPassword, 4096)
		if err != nil {
			return nil, fmt.Errorf("smtp-password-file: %w", err)
		}
		m.Password = strings.TrimRight(string(password), "\r\n")
	}
	return account.NewSMTP(m)
}

// accounts sets the options of accounts.
func (o *origin) accounts(a *account.Options) (err error) {
	a.Mail, err = o.people.sender()
	a.Plan = account.Plan{Name: "standard", Calls: o.people.calls}
	a.Closed, a.Demo = o.people.closed, o.people.demo
	a.SignUps, a.Storage.Unverified, a.Storage.Verified = o.people.signUps, o.people.unverified, o.people.verified
	return err
}

// console returns the handler of the pages' own interface, with accounts.
func (o *origin) console(srv *server.Server) (*console.Handler, error) {
	models := []console.Model{} // models that an application can begin with
	for _, m := range o.set.Models() {
		if m.Type == predict.TypeEmbed {
			continue
		}
		models = append(models, console.Model{ID: m.ID, Name: m.Name})
	}
	engine := srv.Engine.(native) // as open returned it
	return srv.Console(console.Options{
		Stored: engine.StorageUsage, Accounts: srv.Accounts, Models: models, Demo: o.people.demo,
		Export: func(ctx context.Context, app string, w io.Writer) error { return cli.ExportApp(ctx, srv.Node, app, w) },
		// One picture, but for the largest of camera raw. The memory of all answers is 8 × MaxAnswer, so a server with a small MaxAnswer still has room for an export.
		ExportMemory: min(cli.MaxPictureBytes, 2*srv.Settings.MaxAnswer),
	})
}

// printSetup prints the link to create the first account, as long as no account exists.
func (o *origin) printSetup(srv *server.Server, w io.Writer) error {
	if o.people.demo {
		if srv.Fresh {
			if err := markDemo(srv.Node); err != nil {
				return err
			}
		}
		srv.Begin(func(ctx context.Context) {
			if err := fillDemo(ctx, srv.Node); err != nil && ctx.Err() == nil {
				srv.Log.Error("cannot add the sample pictures", "error", err)
			}
		})
		fmt.Fprintf(w, "\nDemo mode: anyone who opens this page on this machine is signed in.\n\n    %s\n\n", srv.Settings.PublicURL)
		return nil
	}
	link, err := srv.Accounts.SetupLink()
	if err != nil || link == "" {
		return err
	}
	_, err = fmt.Fprintf(w, `
No account yet. Open this link to create the operator account:

    %s

The link works once. It expires after 24 hours or at the next start.

`, link)
	return err
}
