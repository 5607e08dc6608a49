package token

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Life of a signing key.
//
//	made      signs                                  next key signs        its tokens have expired
//	├── 24 h ──┤ ─ ─ ─ ─ ─ ─ ─ 30 d after made, + 24 h ─┤──── MaxLife ────────┤ forgotten
//	└──────────────── published and verified ──────────────────────────────────┘
//
// The very first key signs at once. The ring deletes a forgotten key, and stops publishing it, when it creates the next key.
const (
	turnAfter  = 30 * 24 * time.Hour // age of the newest key at which the next one is created
	announce   = 24 * time.Hour      // so that servers that cache the published keys get it in time
	retryDelay = time.Minute         // wait after a new key could not be stored
)

// KeysFile is the name of the file of signing keys. Anyone who can read it can create tokens for every application.
const KeysFile = "token-keys.json"

// ErrKeys is returned for an invalid file of signing keys.
var ErrKeys = errors.New("damaged signing keys; deleting the file creates new ones and invalidates all access tokens")

// key is a signing key.
type key struct {
	ID   string    `json:"kid"` // 16 hex digits: start of the SHA-256 of its public half
	Made time.Time `json:"made_at"`
	From time.Time `json:"from"` // time at which it starts to sign
	Seed []byte    `json:"seed"`

	private ed25519.PrivateKey
	header  string // header of its tokens, in base64
}

func newKey(seed []byte, created, from time.Time) (key, error) {
	k := key{Made: created.UTC(), From: from.UTC(), Seed: seed, private: ed25519.NewKeyFromSeed(seed)}
	sum := sha256.Sum256(k.private.Public().(ed25519.PublicKey))
	k.ID = hex.EncodeToString(sum[:8])
	header, err := json.Marshal(map[string]any{"alg": "EdDSA", "kid": k.ID, "typ": "JWT"})
	k.header = base64.RawURLEncoding.EncodeToString(header)
	return k, err
}

// ring has all keys, the oldest first. It is immutable: a new key makes a new ring.
type ring struct {
	keys   []key
	public []byte // the published set, as JSON
}

// signing returns the key that signs now. r must have a key.
func (r *ring) signing(now time.Time) *key {
	for i := len(r.keys) - 1; i > 0; i-- {
		if !now.Before(r.keys[i].From) {
			return &r.keys[i]
		}
	}
	return &r.keys[0] // even if the clock was set back before the start of every key
}

// find returns the key with this token header, or nil if r has none or all of the key's tokens have expired.
func (r *ring) find(header string, now time.Time) *key {
	for i := range r.keys {
		if r.keys[i].header == header {
			if r.expired(i, now) {
				return nil
			}
			return &r.keys[i]
		}
	}
	return nil
}

// expired reports whether every token of key i has expired.
func (r *ring) expired(i int, now time.Time) bool {
	return i+1 < len(r.keys) && now.After(r.keys[i+1].From.Add(MaxLife+time.Second))
}

// turn returns the current ring. If a new key is due, turn creates and stores it, and deletes the keys
// whose tokens have expired. If it cannot store the new key, the previous key continues to sign, and
// turn tries again after a minute. It returns an error only if the ring has no key.
func (t *Tokens) turn(now time.Time) (*ring, error) {
	if r := t.ring.Load(); !r.due(now) {
		return r, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.ring.Load()
	if !r.due(now) || len(r.keys) > 0 && now.Before(t.retry) {
		return r, nil
	}
	next, err := r.next(now, t.o.Random)
	if err == nil {
		err = next.save(t.o.FS)
	}
	if err != nil {
		t.retry = now.Add(retryDelay)
		t.o.Log.Error("cannot create a signing key", "error", err)
		if len(r.keys) == 0 {
			return nil, fmt.Errorf("signing key: %w", err)
		}
		return r, nil
	}
	t.ring.Store(next)
	newest := &next.keys[len(next.keys)-1]
	t.o.Log.Info("new signing key", "key", newest.ID, "from", newest.From.Format(time.RFC3339), "keys", len(next.keys))
	return next, nil
}

// due reports whether it is time to create a key.
func (r *ring) due(now time.Time) bool {
	return len(r.keys) == 0 || !now.Before(r.keys[len(r.keys)-1].Made.Add(turnAfter))
}

// next returns a ring with a new key and without the keys whose tokens have expired.
func (r *ring) next(now time.Time, random io.Reader) (*ring, error) {
	var seed [ed25519.SeedSize]byte
	if _, err := io.ReadFull(random, seed[:]); err != nil {
		return nil, fmt.Errorf("random source: %w", err)
	}
	from := now
	if len(r.keys) > 0 {
		from = now.Add(announce)
	}
	k, err := newKey(seed[:], now, from)
	if err != nil {
		return nil, err
	}
	out := &ring{}
	for i := range r.keys {
		if !r.expired(i, now) {
			out.keys = append(out.keys, r.keys[i])
		}
	}
	out.keys = append(out.keys, k)
	return out, out.publish()
}

// ringFile is the content of [KeysFile].
type ringFile struct {
	Version int   `json:"version"`
	Keys    []key `json:"keys"`
}

const (
	ringVersion = 1
	maxKeys     = 64
	maxFile     = 64 << 10
)

// load reads [KeysFile]. If it does not exist, load returns an empty ring.
func load(files blob.FS) (_ *ring, err error) {
	f, err := files.Open(KeysFile)
	if errors.Is(err, fs.ErrNotExist) {
		r := &ring{}
		return r, r.publish()
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	r, err := decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", KeysFile, err)
	}
	return r, r.publish()
}

// decode parses the output of [ring.encode]. The error is ErrKeys.
func decode(b []byte) (*ring, error) {
	var k ringFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if len(b) > maxFile || d.Decode(&k) != nil || k.Version != ringVersion || len(k.Keys) == 0 || len(k.Keys) > maxKeys {
		return nil, ErrKeys
	}
	r := &ring{}
	for _, have := range k.Keys {
		if len(have.Seed) != ed25519.SeedSize {
			return nil, ErrKeys
		}
		one, err := newKey(have.Seed, have.Made, have.From)
		if err != nil || one.ID != have.ID || slices.ContainsFunc(r.keys, func(k key) bool { return k.ID == one.ID }) {
			return nil, ErrKeys
		}
		r.keys = append(r.keys, one)
	}
	return r, nil
}

func (r *ring) encode() ([]byte, error) {
	return json.MarshalIndent(ringFile{ringVersion, r.keys}, "", "  ")
}

// save replaces [KeysFile] atomically.
func (r *ring) save(files blob.FS) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	return system.ReplaceIn(files, KeysFile, append(b, '\n'))
}
