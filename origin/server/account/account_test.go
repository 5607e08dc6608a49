package account

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

// TestMain makes password hashing cheap. TestCost checks the cost that the program uses.
func TestMain(m *testing.M) {
	cost = &argon2id.Params{Memory: 8, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}
	os.Exit(m.Run())
}

var shipped = *cost

const (
	password = "a lantern in the fog"
	home     = "192.0.2.1"
	away     = "198.51.100.7"
)

// clock is a clock that tests advance.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// outbox stores the sent mails.
type outbox struct {
	mu    sync.Mutex
	mails []Mail
	fail  int // number of next sends that fail
}

func (o *outbox) Send(_ context.Context, m Mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail > 0 {
		o.fail--
		return errors.New("421 later")
	}
	o.mails = append(o.mails, m)
	return nil
}

// world is a registry with its clock, mail sender, store and log.
type world struct {
	*Registry
	t     *testing.T
	clock *clock
	sent  *outbox
	store kv.Store
	log   *bytes.Buffer
}

func open(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, clock: &clock{t: time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)}, sent: &outbox{}, store: kvtest.OrLate(t, memkv.New()), log: &bytes.Buffer{}}
	o := Options{
		Store: w.store, Now: w.clock.now, Random: rand.Reader, Mail: w.sent, PublicURL: "https://pictures.example",
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&o)
	}
	var err error
	if w.Registry, err = Open(o); err != nil {
		t.Fatal(err)
	}
	return w
}

// mails returns the mails that were sent since the last call.
func (w *world) mails() []Mail {
	for len(w.post.queue) > 0 {
		w.post.deliver(w.t.Context(), <-w.post.queue, func(context.Context, time.Duration) {})
	}
	mails := w.sent.mails
	w.sent.mails = nil
	return mails
}

var (
	sixDigits = regexp.MustCompile(`\b[0-9]{6}\b`)
	aToken    = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
)

// code returns the code in the newest mail.
func (w *world) code() string {
	w.t.Helper()
	mails := w.mails()
	if len(mails) == 0 {
		w.t.Fatal("no mail was sent")
	}
	return sixDigits.FindString(mails[len(mails)-1].Text)
}

// link returns the link for creating the first account.
func (w *world) link() string {
	w.t.Helper()
	link, err := w.SetupLink()
	if err != nil {
		w.t.Fatal(err)
	}
	return link
}

// operator creates the first account.
func (w *world) operator() Account {
	w.t.Helper()
	_, setup, _ := strings.Cut(w.link(), "setup=")
	_, a, err := w.Create(w.t.Context(), SignUpForm{"Operator", "op@pictures.example", password, setup}, home)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// person creates an account that is not verified.
func (w *world) person(email string) (token string, a Account) {
	w.t.Helper()
	token, a, err := w.Create(w.t.Context(), SignUpForm{"Ada", email, password, ""}, home)
	if err != nil {
		w.t.Fatal(err)
	}
	return token, a
}

func TestFirstAccountNeedsTheLink(t *testing.T) {
	w := open(t, nil)
	base, setup, ok := strings.Cut(w.link(), "?setup=")
	if !ok || base != "https://pictures.example/sign-up" || !aToken.MatchString(setup) {
		t.Fatalf("SetupLink = %s?setup=%s", base, setup)
	}
	for _, wrong := range []string{"", setup[1:], strings.Repeat("0", 64)} {
		if _, _, err := w.Create(t.Context(), SignUpForm{"Eve", "eve@x.example", password, wrong}, away); !errors.Is(err, ErrSignUp) {
			t.Errorf("Create with the link %q: %v, want %v", wrong, err, ErrSignUp)
		}
	}
	if s, err := w.SignUpPolicy(); s != "first" || err != nil {
		t.Errorf("SignUp = %q, %v", s, err)
	}
	token, a, err := w.Create(t.Context(), SignUpForm{" Op ", "Op@Pictures.Example", password, setup}, home)
	if err != nil || !a.Verified || !a.Operator || a.Name != "Op" || a.Email != "op@pictures.example" || !isID(a.ID) {
		t.Fatalf("Create = %+v, %v", a, err)
	}
	if id, err := w.Session(t.Context(), token); id != a.ID || err != nil {
		t.Errorf("Session = %q, %v", id, err)
	}
	if len(w.mails()) != 0 {
		t.Error("the first account was sent a code")
	}
	_, b, err := w.Create(t.Context(), SignUpForm{"Eve", "eve@x.example", password, setup}, away)
	if err != nil || b.Operator || b.Verified {
		t.Errorf("the second account with the link: %+v, %v", b, err)
	}
}

func TestSetupLinkExpiresAndIsRenewed(t *testing.T) {
	w := open(t, nil)
	_, first, _ := strings.Cut(w.link(), "setup=")
	_, second, _ := strings.Cut(w.link(), "setup=")
	if w.opens(first) {
		t.Error("the link before the last is open")
	}
	w.clock.pass(SetupLife - time.Second)
	if !w.opens(second) {
		t.Error("the link ended early")
	}
	w.clock.pass(time.Second)
	if w.opens(second) {
		t.Error("the link never ends")
	}
	w.operator()
	if link := w.link(); link != "" {
		t.Errorf("a link beside an account: %s", link)
	}
	reopened, err := Open(w.o)
	if err != nil {
		t.Fatal(err)
	}
	w.Registry = reopened
	if link := w.link(); link != "" {
		t.Errorf("a link beside an account, after a restart: %s", link)
	}
}

func TestDemoFolderIsServedLater(t *testing.T) {
	w := open(t, func(o *Options) { o.Demo = true })
	a, err := w.Demo()
	if err != nil || !a.Verified || !a.Operator {
		t.Fatalf("Demo = %+v, %v", a, err)
	}
	if b, err := w.Demo(); b.ID != a.ID || err != nil {
		t.Errorf("a second Demo = %+v, %v", b, err)
	}
	if _, _, err := w.SignIn(t.Context(), DemoEmail, "", home); !errors.Is(err, auth.ErrLogin) {
		t.Errorf("the demo's account signs in without a password: %v", err)
	}
	if err := w.SendResetLink(t.Context(), DemoEmail, home); err != nil || len(w.mails()) != 0 {
		t.Errorf("a link to the demo's account was mailed: %v", err)
	}
	_, p := w.person("ada@x.example")
	if p.Operator {
		t.Error("a demo's visitor is the operator")
	}
	if got := w.Mails(); len(got) != 1 || got[0].To != "ada@x.example" {
		t.Errorf("Mails = %v", got)
	}
	visit, err := w.OpenSession(a.ID, home)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Open(w.o); err != nil {
		t.Fatal(err)
	} else if id, err := again.Session(t.Context(), visit); id != a.ID || err != nil {
		t.Errorf("a visitor's session after a restart of the demo = %q, %v", id, err)
	}
	w.o.Demo = false
	served, err := Open(w.o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := served.Session(t.Context(), visit); !errors.Is(err, auth.ErrSession) {
		t.Errorf("a visitor's session after the demo = %v, want %v", err, auth.ErrSession)
	}
	w.Registry = served
	if s, _ := w.SignUpPolicy(); s != "first" {
		t.Errorf("SignUp = %q in a folder that was a demo's", s)
	}
	if !w.operator().Operator {
		t.Error("no operator in a folder that was a demo's")
	}
}

// scanHookStore is a store that calls hook once, after the next scan of accounts.
type scanHookStore struct {
	kv.Store
	hook func()
}

func (s *scanHookStore) Scan(lo, hi []byte, yield func(key, value []byte) bool) error {
	err := s.Store.Scan(lo, hi, yield)
	if hook := s.hook; hook != nil && bytes.Equal(lo, key(tableAccount)) {
		s.hook = nil
		hook()
	}
	return err
}

// TestEraseDuringSignUp erases an account while SignUp looks for the operator's account. If it erases another account, the operator still
// exists, and a stranger must not become operator. If it erases the operator's, the next account needs the link.
func TestEraseDuringSignUp(t *testing.T) {
	store := &scanHookStore{Store: kvtest.OrLate(t, memkv.New())}
	w := open(t, func(o *Options) { o.Store = store })
	op := w.operator()
	_, ada := w.person("ada@x.example")
	for _, tt := range []struct{ erased, during, after string }{{ada.ID, "open", "open"}, {op.ID, "open", "first"}} {
		if _, bob := w.person("bob@x.example"); w.Erase(bob.ID, bob.ID, home) != nil { // the next call scans again
			t.Fatal("bob stays")
		}
		store.hook = func() {
			if err := w.Erase(tt.erased, tt.erased, home); err != nil {
				t.Error(err)
			}
		}
		if got, err := w.SignUpPolicy(); got != tt.during || err != nil {
			t.Errorf("SignUp = %q, %v, want %q", got, err, tt.during)
		}
		if got, err := w.SignUpPolicy(); got != tt.after || err != nil {
			t.Errorf("SignUp after it = %q, %v, want %q", got, err, tt.after)
		}
	}
}

func TestClosed(t *testing.T) {
	w := open(t, func(o *Options) { o.Closed = true })
	w.operator()
	if _, _, err := w.Create(t.Context(), SignUpForm{"Eve", "eve@x.example", password, ""}, away); !errors.Is(err, ErrSignUp) {
		t.Errorf("Create = %v, want %v", err, ErrSignUp)
	}
}

func TestErase(t *testing.T) {
	w := open(t, nil)
	w.operator()
	token, a := w.person("ada@erased.example")
	if err := w.SendResetLink(t.Context(), a.Email, home); err != nil {
		t.Fatal(err)
	}
	if err := w.EraseWithPassword(t.Context(), a.ID, password+"?", home); !errors.Is(err, ErrWrongPassword) {
		t.Errorf("leaving with a wrong password: %v", err)
	}
	if err := w.EraseWithPassword(t.Context(), a.ID, password, home); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Session(t.Context(), token); !errors.Is(err, auth.ErrSession) {
		t.Errorf("the session of an erased account: %v", err)
	}
	dump := contents(t, w.store)
	for _, marker := range []string{"erased.example", "Ada"} {
		if strings.Contains(dump, marker) {
			t.Errorf("the store still holds %q", marker)
		}
	}
	if _, err := w.VerifyAudit(); err != nil {
		t.Error(err)
	}
}

// contents returns all keys and values of a store.
func contents(t *testing.T, store kv.Store) string {
	t.Helper()
	var b strings.Builder
	err := store.Scan(nil, nil, func(k, v []byte) bool {
		b.Write(k)
		b.Write(v)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSecretsAreNotInClear creates every kind of secret and searches for it in the store, the log and the errors.
func TestSecretsAreNotInClear(t *testing.T) {
	w := open(t, nil)
	_, setup, _ := strings.Cut(w.link(), "setup=")
	token, _, err := w.Create(t.Context(), SignUpForm{"Operator", "op@pictures.example", password, setup}, home)
	if err != nil {
		t.Fatal(err)
	}
	_, a := w.person("ada@x.example")
	code := w.code()
	if err := w.SendResetLink(t.Context(), a.Email, home); err != nil {
		t.Fatal(err)
	}
	reset := aToken.FindString(w.mails()[0].Text)
	const second = "another lantern in it"
	var messages []string
	note := func(err error) {
		if err != nil {
			messages = append(messages, err.Error())
		}
	}
	_, err = w.Verify(t.Context(), a.ID, code+"0", home)
	note(err)
	_, _, err = w.SignIn(t.Context(), a.Email, second, home)
	note(err)
	_, _, err = w.ChangePassword(t.Context(), a.ID, second, "short", home)
	note(err)
	session, _, err := w.Reset(t.Context(), reset, second, home, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = w.Reset(t.Context(), reset, second, home, nil)
	note(err)
	places := contents(t, w.store) + w.log.String() + strings.Join(messages, "\n")
	for name, secret := range map[string]string{
		"setup": setup, "session": token, "new session": session, "reset": reset, "password": password, "second password": second, "code": code,
	} {
		if secret == "" || strings.Contains(places, secret) {
			t.Errorf("the %s can be read", name)
		}
	}
	if len(messages) != 4 {
		t.Errorf("%d of 4 mistakes were told", len(messages))
	}
}
