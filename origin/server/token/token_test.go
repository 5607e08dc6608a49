package token

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// world is the environment of tokens: a folder, a clock, a random source and a log.
type world struct {
	dir    string
	files  blob.FS
	now    time.Time
	random io.Reader
	log    bytes.Buffer
}

func newWorld(t testing.TB, seed uint64) *world {
	t.Helper()
	var s [32]byte
	for i := range 8 {
		s[i] = byte(seed >> (8 * i))
	}
	w := &world{dir: t.TempDir(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), random: rand.NewChaCha8(s)}
	folder, err := system.OpenFolder(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	w.files = folder
	return w
}

func (w *world) open(t testing.TB, change func(*Options)) *Tokens {
	t.Helper()
	o := Options{
		Issuer: "https://sightline.example", FS: w.files, Random: w.random, Now: func() time.Time { return w.now },
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	tokens, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// someone is the claims of an application.
var someone = auth.Claims{
	App: "0123456789abcdef0123456789abcdef", Client: "fedcba9876543210fedcba9876543210", Generation: 1<<63 + 12345,
}

// timeless returns the claims without their expiry.
func timeless(c auth.Claims) auth.Claims {
	c.Expires = time.Time{}
	return c
}

func issue(t testing.TB, tokens *Tokens) string {
	t.Helper()
	token, _, err := tokens.Issue(someone)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestIssueAndRead(t *testing.T) {
	w := newWorld(t, 1)
	tokens := w.open(t, nil)
	token, life, err := tokens.Issue(someone)
	if err != nil || life != 15*time.Minute {
		t.Fatalf("Issue = %q, %v, %v", token, life, err)
	}
	if c, err := tokens.Read(token); timeless(c) != someone || err != nil {
		t.Errorf("Read = %+v, %v; want %+v", c, err, someone)
	} else if left := c.Expires.Sub(w.now); left < life || left > life+time.Second {
		t.Errorf("the token ends in %v, want %v", left, life)
	}
	if again := issue(t, tokens); again == token {
		t.Error("two tokens are equal")
	}
	if len(token) > 700 {
		t.Errorf("a token has %d bytes", len(token))
	}
}

// TestTimes reads a token at several times of its life. It also starts the clock between two whole seconds.
func TestTimes(t *testing.T) {
	for _, part := range []time.Duration{0, 1, 500 * time.Millisecond, time.Second - 1} {
		w := newWorld(t, 2)
		w.now = w.now.Add(part)
		tokens := w.open(t, func(o *Options) { o.Life = 10 * time.Second })
		token, start := issue(t, tokens), w.now
		for _, tt := range []struct {
			after time.Duration
			want  error
		}{
			{-skew - time.Second, auth.ErrToken},
			{-skew, nil},
			{0, nil},
			{10*time.Second - 1, nil},
			{11 * time.Second, auth.ErrExpired},
			{MaxLife, auth.ErrExpired},
			{100 * 365 * 24 * time.Hour, auth.ErrExpired},
		} {
			w.now = start.Add(tt.after)
			if _, err := tokens.Read(token); !errors.Is(err, tt.want) {
				t.Errorf("%v into a second, after %v: %v, want %v", part, tt.after, err, tt.want)
			}
		}
	}
}

func TestOpenChecksItsOptions(t *testing.T) {
	w := newWorld(t, 3)
	good := Options{Issuer: "i", FS: w.files, Random: w.random, Now: func() time.Time { return w.now }, Log: slog.New(slog.DiscardHandler)}
	for name, change := range map[string]func(*Options){
		"nothing":     func(o *Options) { *o = Options{} },
		"no issuer":   func(o *Options) { o.Issuer = "" },
		"long issuer": func(o *Options) { o.Issuer = strings.Repeat("i", maxIssuer+1) },
		"short life":  func(o *Options) { o.Life = time.Millisecond },
		"long life":   func(o *Options) { o.Life = MaxLife + 1 },
	} {
		o := good
		change(&o)
		if _, err := Open(o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	good.Issuer, good.Life = strings.Repeat("i", maxIssuer), MaxLife
	tokens, err := Open(good)
	if err != nil {
		t.Fatal(err)
	}
	if token := issue(t, tokens); len(token) > maxLength {
		t.Errorf("the longest token has %d bytes", len(token))
	} else if _, err := tokens.Read(token); err != nil {
		t.Errorf("the longest token: %v", err)
	}
}

// TestRestart reads a token with the keys of an earlier process. Without the keys' file or with another issuer, the token is invalid.
func TestRestart(t *testing.T) {
	w := newWorld(t, 4)
	token := issue(t, w.open(t, nil))
	if _, err := w.open(t, nil).Read(token); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if _, err := w.open(t, func(o *Options) { o.Issuer = "https://other.example" }).Read(token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("at another address: %v, want ErrToken", err)
	}
	info, err := os.Stat(filepath.Join(w.dir, KeysFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys: %v, %v; want mode 0600", info.Mode(), err)
	}
	if err := os.Remove(filepath.Join(w.dir, KeysFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.open(t, nil).Read(token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("without the file: %v, want ErrToken", err)
	}
}

// TestRotation simulates a year with a restart each day. Read accepts each token until it expires, and
// rejects it afterwards. The server publishes each key, signs with it and then removes it.
func TestRotation(t *testing.T) {
	w := newWorld(t, 5)
	type issued struct {
		token string
		until time.Time
	}
	var live []issued
	signers := map[string]int{}
	peak := 0
	for day := range 365 {
		tokens := w.open(t, func(o *Options) { o.Life = MaxLife })
		published := string(tokens.ring.Load().public)
		token := issue(t, tokens)
		kid := tokens.ring.Load().signing(w.now).ID
		if day > 0 && !strings.Contains(published, kid) {
			t.Fatalf("day %d: signed with a key that was not published the day before", day)
		}
		signers[kid]++
		live = append(live, issued{token, w.now.Add(MaxLife)})
		for len(live) > 0 && live[0].until.Before(w.now.Add(-72*time.Hour)) {
			live = live[1:]
		}
		for _, have := range live {
			_, err := tokens.Read(have.token)
			want := error(nil)
			if !w.now.Before(have.until) {
				want = auth.ErrExpired
			}
			if !errors.Is(err, want) && !(want != nil && errors.Is(err, auth.ErrToken)) { // the ring may have removed its key by then
				t.Fatalf("day %d: a token until %v at %v: %v, want %v", day, have.until, w.now, err, want)
			}
		}
		peak = max(peak, len(tokens.ring.Load().keys))
		w.now = w.now.Add(24 * time.Hour)
	}
	if len(signers) != 12 && len(signers) != 13 || peak > 3 {
		t.Errorf("%d keys signed in a year, %d at once; want 12 or 13, and at most 3", len(signers), peak)
	}
	for kid, days := range signers {
		if days > 31 {
			t.Errorf("key %s signed %d days", kid, days)
		}
	}
}

// TestOldKeyIsRejected signs new tokens with a key that no longer signs. They are valid as long as a token that the server signed with the
// key may be, and become invalid together with the key.
func TestOldKeyIsRejected(t *testing.T) {
	w := newWorld(t, 6)
	tokens := w.open(t, nil)
	issue(t, tokens)
	old := tokens.ring.Load().keys[0]
	signed := func() string { return sign(headerOf(old.ID), text(payloadOf(t, issue(t, tokens))), old.private) }
	if _, err := tokens.Read(signed()); err != nil {
		t.Fatalf("a token that the key has signed: %v", err)
	}
	w.now = w.now.Add(turnAfter)
	issue(t, tokens)
	w.now = w.now.Add(announce + MaxLife + time.Second)
	if _, err := tokens.Read(signed()); err != nil {
		t.Errorf("while its key may have tokens: %v", err)
	}
	w.now = w.now.Add(1)
	if _, err := tokens.Read(signed()); !errors.Is(err, auth.ErrToken) {
		t.Errorf("after its key: %v, want ErrToken", err)
	}
}

// refusing makes the n-th file operation that changes something fail.
type refusing struct {
	blob.FS
	n *int
}

var errDisk = errors.New("the disk refuses")

func (r refusing) fails() bool { *r.n--; return *r.n == -1 }

func (r refusing) Create(name string) (blob.File, error) {
	if r.fails() {
		return nil, errDisk
	}
	f, err := r.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return refusingFile{f, r}, nil
}

func (r refusing) Rename(from, to string) error {
	if r.fails() {
		return errDisk
	}
	return r.FS.Rename(from, to)
}

func (r refusing) SyncDir(name string) error {
	if r.fails() {
		return errDisk
	}
	return r.FS.SyncDir(name)
}

type refusingFile struct {
	blob.File
	r refusing
}

func (f refusingFile) Write(p []byte) (int, error) {
	if f.r.fails() {
		return 0, errDisk
	}
	return f.File.Write(p)
}

func (f refusingFile) Sync() error {
	if f.r.fails() {
		return errDisk
	}
	return f.File.Sync()
}

// TestUnstoredKeysSignNothing makes each file operation of the first key and of the second key fail. A key that is not stored durably must
// not sign tokens.
func TestUnstoredKeysSignNothing(t *testing.T) {
	for n := range 5 {
		w := newWorld(t, 7)
		left := n
		plain := w.files
		w.files = refusing{plain, &left}
		tokens := w.open(t, nil)
		if _, _, err := tokens.Issue(someone); !errors.Is(err, errDisk) {
			t.Fatalf("operation %d of the first key: %v, want the disk's error", n, err)
		}
		token := issue(t, tokens) // without any key, Issue does not wait before it tries again
		w.files = plain
		if _, err := w.open(t, nil).Read(token); err != nil {
			t.Errorf("operation %d: a token of the first key, after a restart: %v", n, err)
		}

		w.files = refusing{plain, &left}
		tokens = w.open(t, nil)
		first := tokens.ring.Load().keys[0].ID
		w.now = w.now.Add(turnAfter)
		left = n
		if issue(t, tokens); len(tokens.ring.Load().keys) != 1 {
			t.Errorf("operation %d of the second key: it counts although it is not kept", n)
		}
		issue(t, tokens)
		if got := strings.Count(w.log.String(), "level=ERROR"); got != 2 {
			t.Errorf("operation %d: %d errors are logged, want one for each key", n, got)
		}
		w.now = w.now.Add(retryDelay)
		issue(t, tokens)
		if r := tokens.ring.Load(); len(r.keys) != 2 || r.signing(w.now).ID != first {
			t.Errorf("operation %d: %d keys, want two of which the first signs", n, len(r.keys))
		}
		if strings.Contains(w.log.String(), "seed") {
			t.Error("the log tells of seeds")
		}
	}
}

func TestDamagedFileIsRefused(t *testing.T) {
	w := newWorld(t, 8)
	issue(t, w.open(t, nil))
	path := filepath.Join(w.dir, KeysFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, err := decode(bad); err != nil {
			refused++
			if !errors.Is(err, ErrKeys) {
				t.Errorf("byte %d: %v, want ErrKeys", i, err)
			}
		}
	}
	if err := os.WriteFile(path, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Issuer: "i", FS: w.files, Random: w.random, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	if _, err := Open(o); !errors.Is(err, ErrKeys) {
		t.Errorf("half a file: %v, want ErrKeys", err)
	}
	if refused < len(good)*2/3 { // a changed time can be another valid time, and white space may change without effect
		t.Errorf("%d of %d damaged files are refused", refused, len(good))
	}
}

// TestTokensAreSafeForConcurrentUse makes callers compete for each new key.
func TestTokensAreSafeForConcurrentUse(t *testing.T) {
	w := newWorld(t, 9)
	tokens := w.open(t, nil)
	var seen sync.Map
	for range 20 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20 {
					token, _, err := tokens.Issue(someone)
					if err != nil {
						t.Error(err)
					}
					if c, err := tokens.Read(token); err != nil || timeless(c) != someone {
						t.Errorf("Read = %+v, %v", c, err)
					}
					if _, twice := seen.LoadOrStore(token, true); twice {
						t.Error("two tokens are equal")
					}
				}
			})
		}
		wg.Wait()
		w.now = w.now.Add(3 * 24 * time.Hour)
	}
	if got := strings.Count(w.log.String(), "new signing key"); got != 2 {
		t.Errorf("%d keys were made, want 2", got)
	}
}

func BenchmarkIssue(b *testing.B) {
	tokens := newWorld(b, 10).open(b, nil)
	for b.Loop() {
		issue(b, tokens)
	}
}

func BenchmarkRead(b *testing.B) {
	tokens := newWorld(b, 11).open(b, nil)
	token := issue(b, tokens)
	last := byte('A')
	if token[100] == last {
		last = 'B'
	}
	for name, text := range map[string]string{
		"good": token, "forged": token[:100] + string(last) + token[101:], "foreign": "x" + token[1:], "huge": strings.Repeat("a", 8<<10),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = tokens.Read(text)
			}
		})
	}
}

func ExampleTokens() {
	dir, err := os.MkdirTemp("", "tokens")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	folder, err := system.OpenFolder(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer folder.Close()
	tokens, err := Open(Options{Issuer: "https://sightline.example", FS: folder, Now: system.Now, Random: system.Random, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, life, _ := tokens.Issue(auth.Claims{App: "app", Client: "client", Generation: 3})
	fmt.Println(life)
	claims, err := tokens.Read(token)
	fmt.Println(claims.App, claims.Client, claims.Generation, err)
	_, err = tokens.Read(token + "x")
	fmt.Println(err)
	// Output:
	// 15m0s
	// app client 3 <nil>
	// invalid token
}
