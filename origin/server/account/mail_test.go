package account

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// smtpServer takes mails on loopback and gives each to got.
func smtpServer(t *testing.T) (address string, got <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	mails := make(chan string, 16)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serveSMTP(c, mails)
		}
	}()
	return l.Addr().String(), mails
}

func serveSMTP(c net.Conn, mails chan<- string) {
	defer c.Close()
	in := bufio.NewReader(c)
	fmt.Fprint(c, "220 test\r\n")
	var transcript strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		transcript.WriteString(line)
		switch verb := strings.ToUpper(strings.Fields(line + " x")[0]); verb {
		case "EHLO", "HELO":
			fmt.Fprint(c, "250-test\r\n250 8BITMIME\r\n")
		case "DATA":
			fmt.Fprint(c, "354 go on\r\n")
			for line != ".\r\n" {
				if line, err = in.ReadString('\n'); err != nil {
					return
				}
				transcript.WriteString(line)
			}
			mails <- transcript.String()
			transcript.Reset()
			fmt.Fprint(c, "250 taken\r\n")
		case "QUIT":
			fmt.Fprint(c, "221 bye\r\n")
			return
		default:
			fmt.Fprint(c, "250 ok\r\n")
		}
	}
}

func TestSMTP(t *testing.T) {
	address, got := smtpServer(t)
	sender, err := NewSMTP(SMTP{Address: address, From: "Sightline <noreply@pictures.example>", Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	rec := record{Account: Account{Name: "Zoë\u2028Bcc: eve@x.example", Email: "zoe@x.example"}}
	m := codeMail(&rec, "123456")
	m.At = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	if err := sender.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	mail := <-got
	for _, want := range []string{"RCPT TO:<zoe@x.example>", "From: \"Sightline\" <noreply@pictures.example>", "Subject: Your Sightline code", "123456", "Auto-Submitted: auto-generated"} {
		if !strings.Contains(mail, want) {
			t.Errorf("no %q in\n%s", want, mail)
		}
	}
	if n := strings.Count(mail, "RCPT TO"); n != 1 {
		t.Errorf("%d recipients", n)
	}
	header, _, _ := strings.Cut(mail, "\r\n\r\n")
	if strings.Contains(header, "eve@") {
		t.Errorf("a name reached the header:\n%s", header)
	}
	// Each of these addresses must fail, because it could add a recipient or a header.
	for _, to := range []string{"a@b.example\r\nRCPT TO:<eve@x.example>", "a@b.example, eve@x.example", "a@b.example\nBcc: eve@x.example"} {
		if err := sender.Send(t.Context(), Mail{To: to, Subject: "x", Text: "y"}); err == nil {
			t.Errorf("a mail was sent to %q", to)
		}
	}
	if err := sender.Send(t.Context(), Mail{To: "a@b.example", Subject: "x\r\nBcc: eve@x.example", Text: "y"}); err == nil {
		header, _, _ := strings.Cut(<-got, "\r\n\r\n")
		if strings.Contains(header, "\r\nBcc:") {
			t.Errorf("a subject made a header:\n%s", header)
		}
	}
}

func TestSMTPRequiresTLS(t *testing.T) {
	address, got := smtpServer(t)
	sender, err := NewSMTP(SMTP{Address: address, User: "u", Password: "planted-password", From: "noreply@pictures.example"})
	if err != nil {
		t.Fatal(err)
	}
	err = sender.Send(t.Context(), Mail{To: "a@b.example", Subject: "x", Text: "y"})
	if err == nil || strings.Contains(err.Error(), "planted") {
		t.Errorf("Send without TLS = %v", err)
	}
	if len(got) != 0 {
		t.Error("a mail went out in the clear")
	}
}

func TestNewSMTPChecks(t *testing.T) {
	for _, bad := range []SMTP{{}, {Address: "x"}, {Address: "x:y", From: "a@b.example"}, {Address: "x:25"}, {Address: "x:25", From: "a"}, {Address: "x:0", From: "a@b.example"}} {
		if _, err := NewSMTP(bad); err == nil {
			t.Errorf("NewSMTP(%+v) took it", bad)
		}
	}
}

func TestMailsAreRetried(t *testing.T) {
	w := open(t, nil)
	w.operator()
	w.sent.fail = mailTries - 1
	w.person("ada@x.example")
	if n := len(w.mails()); n != 1 {
		t.Errorf("%d mails after two failures", n)
	}
	w.sent.fail = mailTries
	w.person("bob@x.example")
	if n := len(w.mails()); n != 0 || !strings.Contains(w.log.String(), "mail dropped") {
		t.Errorf("%d mails after three failures, and the log says %s", n, w.log)
	}
	for range maxQueuedMails + 5 {
		w.post.send(Mail{To: "a@b.example"})
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Deliver(ctx, func(context.Context, time.Duration) {})
	}()
	for len(w.post.queue) > 0 {
		runtime.Gosched()
	}
	stop()
	<-done
}

func TestMailsAreLogged(t *testing.T) {
	w := open(t, func(o *Options) { o.Mail = nil })
	if w.MailTransport() != "log" {
		t.Errorf("MailsBy = %q", w.MailTransport())
	}
	w.operator()
	w.person("ada@x.example")
	w.mails()
	if !strings.Contains(w.log.String(), "Your Sightline code") {
		t.Errorf("the log says %s", w.log)
	}
	if len(w.Mails()) != 0 {
		t.Error("mails are kept for a page outside a demo")
	}
}
