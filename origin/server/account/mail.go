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

// Mail is an email in plain text.
type Mail struct {
	To, Subject, Text string
	At                time.Time // time when it was queued
}

// Sender sends emails.
type Sender interface {
	// Send returns once the mail server has accepted or refused the email. Its error contains no secret.
	Send(ctx context.Context, m Mail) error
}

// SMTP holds the settings of a mail server.
type SMTP struct {
	Address        string // host and port; with port 465 TLS from the start, otherwise STARTTLS
	User, Password string // empty: no authentication
	From           string // "Sightline <noreply@example.org>"
	TLS            *tls.Config

	// Plain allows sending without TLS if the server offers none, for a server on the same machine.
	Plain bool
}

// NewSMTP returns a sender that uses a mail server. It connects for each email. NewSMTP returns an error for invalid settings.
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
	// A client serves one connection at a time, so Send makes one for each email. This call only checks the settings.
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

// mailTimeout is the time limit for sending one email.
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

// logSender writes emails to the log. The operator forwards them.
type logSender struct{ log *slog.Logger }

// Send implements [Sender].
func (l logSender) Send(_ context.Context, m Mail) error {
	l.log.Info("email not sent: no SMTP server configured", "to", m.To, "subject", m.Subject, "text", m.Text)
	return nil
}

const (
	maxQueuedMails = 256 // maximum number of queued emails
	maxRecentMails = 50  // number of emails stored for the page
	mailTries      = 3
	mailPause      = 5 * time.Second // after the first failure; doubles after each further one
)

// mailQueue sends the registry's emails in the background. So a slow mail server delays no answer, and the time of an answer does not
// reveal whether an account exists. If the process ends, queued emails are lost. A user who misses one requests another.
type mailQueue struct {
	queue  chan Mail
	sender Sender
	log    *slog.Logger
	now    func() time.Time

	storeRecent bool
	mu          sync.Mutex
	recent      []Mail // newest last
}

// send queues an email. It ignores the zero Mail. If the queue is full, send drops the email and logs that.
func (p *mailQueue) send(m Mail) {
	if m.To == "" {
		return
	}
	m.At = p.now().UTC()
	if p.storeRecent {
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

// Mails returns the recent emails of a demo, newest first. For other servers it returns none.
func (r *Registry) Mails() []Mail {
	r.post.mu.Lock()
	defer r.post.mu.Unlock()
	mails := slices.Clone(r.post.recent)
	slices.Reverse(mails)
	return mails
}

// MailTransport returns the way of sending emails: "page" in a demo, "smtp", or "log".
func (r *Registry) MailTransport() string {
	_, logged := r.o.Mail.(logSender)
	switch {
	case r.o.Demo:
		return "page"
	case logged:
		return "log"
	}
	return "smtp"
}

// Deliver sends queued emails until ctx ends. It retries an email that fails, up to mailTries attempts, and then drops and logs it.
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
