package account

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/wneessen/go-mail"
)

// Mail is one mail, in plain text.
type Mail struct {
	To, Subject, Text string
	At                time.Time // when it was written
}

// Sender sends mails.
type Sender interface {
	// Send returns when the mail was taken or refused. Its error holds no secret.
	Send(ctx context.Context, m Mail) error
}

// SMTP is how mails are sent to a server.
type SMTP struct {
	Address        string // host and port; TLS from the start at port 465, STARTTLS else
	User, Password string // empty: no authentication
	From           string // "Sightline <noreply@example.org>"
	TLS            *tls.Config

	// Plain lets mails go out without TLS where the server offers none: for one on the same machine.
	Plain bool
}

// NewSMTP returns a sender that gives each mail to a server. It connects when there is a mail.
func NewSMTP(s SMTP) (Sender, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return nil, fmt.Errorf("smtp: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("smtp: %q is not a port", port)
	}
	options := []mail.Option{mail.WithPort(int(n)), mail.WithTimeout(mailTimeout), mail.WithTLSPolicy(mail.TLSMandatory)}
	switch {
	case n == 465:
		options = append(options, mail.WithSSL())
	case s.Plain:
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	}
	if s.TLS != nil {
		options = append(options, mail.WithTLSConfig(s.TLS))
	}
	if s.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(s.User), mail.WithPassword(s.Password))
	}
	if err := mail.NewMsg().From(s.From); err != nil {
		return nil, fmt.Errorf("smtp: sender %q: %w", s.From, err)
	}
	// A client serves one connection at a time; the settings are checked here once.
	if _, err := mail.NewClient(host, options...); err != nil {
		return nil, fmt.Errorf("smtp: %w", err)
	}
	return &smtpSender{host, options, s.From}, nil
}

type smtpSender struct {
	host    string
	options []mail.Option
	from    string
}

// mailTimeout is that of one mail.
const mailTimeout = 20 * time.Second

// Send implements [Sender].
func (s *smtpSender) Send(ctx context.Context, m Mail) error {
	msg := mail.NewMsg()
	if err := msg.From(s.from); err != nil {
		return err
	}
	if err := msg.To(m.To); err != nil {
		return err
	}
	msg.Subject(m.Subject)
	msg.SetDateWithValue(m.At)
	msg.SetMessageID()
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	client, err := mail.NewClient(s.host, s.options...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, mailTimeout)
	defer cancel()
	return client.DialAndSendWithContext(ctx, msg)
}

// logSender writes mails to the log. The operator passes them on.
type logSender struct{ log *slog.Logger }

// Send implements [Sender].
func (l logSender) Send(_ context.Context, m Mail) error {
	l.log.Info("email not sent: no SMTP server configured", "to", m.To, "subject", m.Subject, "text", m.Text)
	return nil
}

const (
	mostPosted     = 256 // mails that wait
	maxRecentMails = 50  // mails for the page
	mailTries      = 3
	mailPause      = 5 * time.Second // after the first failure; each further one doubles it
)

// mailQueue sends the registry's mails in the background. So a slow mail server delays no answer, and the time of an answer does not reveal
// whether an account exists. Waiting mails are lost with the process; a person who misses one asks again.
type mailQueue struct {
	queue  chan Mail
	sender Sender
	log    *slog.Logger
	now    func() time.Time

	keep   bool
	mu     sync.Mutex
	recent []Mail // the newest last
}

// send queues a mail; the zero Mail is none.
func (p *mailQueue) send(m Mail) {
	if m.To == "" {
		return
	}
	m.At = p.now().UTC()
	if p.keep {
		p.mu.Lock()
		p.recent = append(p.recent, m)
		p.recent = p.recent[max(0, len(p.recent)-maxRecentMails):]
		p.mu.Unlock()
	}
	select {
	case p.queue <- m:
	default:
		p.log.Error("email dropped: queue is full", "subject", m.Subject)
	}
}

// Mails are the newest mails of a demo, newest first; there are none elsewhere.
func (r *Registry) Mails() []Mail {
	r.post.mu.Lock()
	defer r.post.mu.Unlock()
	mails := slices.Clone(r.post.recent)
	slices.Reverse(mails)
	return mails
}

// MailsBy is how mails go out: "page" in a demo, "smtp", or "log".
func (r *Registry) MailsBy() string {
	_, logged := r.o.Mail.(logSender)
	switch {
	case r.o.Demo:
		return "page"
	case logged:
		return "log"
	}
	return "smtp"
}

// Deliver sends mails until ctx ends. A mail that cannot be sent is tried again, and then dropped with a line in the log.
func (r *Registry) Deliver(ctx context.Context, pause func(context.Context, time.Duration)) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-r.post.queue:
			r.post.deliver(ctx, m, pause)
		}
	}
}

func (p *mailQueue) deliver(ctx context.Context, m Mail, pause func(context.Context, time.Duration)) {
	for try := range mailTries {
		err := p.sender.Send(ctx, m)
		if err == nil || ctx.Err() != nil {
			return
		}
		p.log.Warn("cannot send email", "subject", m.Subject, "try", try+1, "error", err)
		if try < mailTries-1 {
			pause(ctx, mailPause<<try)
		}
	}
	p.log.Error("email dropped: all attempts failed", "subject", m.Subject)
}
