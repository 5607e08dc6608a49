// Package release is how an edge knows that a core module is its origin's newest: a manifest that the origin
// signs, and the module's hash in it.
//
//	origin: key ──sign──▶ Signed{manifest, key, signature} ──HTTP──▶ edge: Open
//	                        channel, version, module, ABI,             the key is the origin's that it knows
//	                        fold, not before, expires                  the channel, the time are right
//	                                                                   the version is none before the last
//
// The publisher is one: the origin, to which an edge entrusts all it has; so one key signs, and there are no roles that
// watch over each other. A version number only rises, so nobody can bring an old module back; and a manifest
// expires, so nobody can hold a new one back for long unseen.
package release

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
)

// ErrSignature is returned for a manifest that the key has not signed.
var ErrSignature = errors.New("release is not signed by the origin's key")

// ErrChannel is returned for a manifest of another channel.
var ErrChannel = errors.New("release is of another channel")

// ErrTime is returned for a manifest that has expired, or is of the future.
var ErrTime = errors.New("release is not of now")

// ErrOlder is returned for a release before one that was seen.
var ErrOlder = errors.New("release is older than one that was seen")

// ErrUnfit is returned for a module that this program, or what it holds, has no use for.
var ErrUnfit = errors.New("release does not fit")

// Stable is the channel of the module that an origin's own pages run.
const Stable = "stable"

// MaxModule bounds a module, in bytes.
const MaxModule = 256 << 20

// Skew is how far two clocks may differ.
const Skew = 5 * time.Minute

// signedAs begins what is signed.
const signedAs = "sightline release 1\n"

// Manifest says which module a channel has.
type Manifest struct {
	Channel   string
	Version   uint64    // rises with every release of the channel
	Module    blob.Hash // of its bytes
	Size      uint64    // bytes
	ABI       uint32    // version of the contract between module and host
	Fold      uint32    // newest rules that it folds by
	NotBefore time.Time // when it was released; milliseconds
	Expires   time.Time // when another manifest is to be asked for
	Program   string    // version of the program that the module is of, for people
	Extra     []byte    // fields that are not known
}

// Encode returns the message.
func (m *Manifest) Encode() []byte {
	var e field.Encoder
	e.Reset(nil)
	e.Text(1, m.Channel)
	e.Uint(2, m.Version)
	e.Hash(3, m.Module[:])
	e.Uint(4, m.Size)
	e.Uint(5, uint64(m.ABI))
	e.Uint(6, uint64(m.Fold))
	e.Uint(7, millis(m.NotBefore))
	e.Uint(8, millis(m.Expires))
	e.Text(9, m.Program)
	return e.Bytes(m.Extra)
}

// Decode reads the message, and copies what it keeps of it.
func Decode(data []byte) (m Manifest, err error) {
	d := field.Decode(bytes.Clone(data))
	for d.Next() {
		switch d.Number {
		case 1:
			m.Channel = d.Text()
		case 2:
			m.Version = d.Uint()
		case 3:
			d.Hash(m.Module[:])
		case 4:
			m.Size = d.Uint()
		case 5:
			m.ABI = d.Uint32()
		case 6:
			m.Fold = d.Uint32()
		case 7:
			m.NotBefore = ofMillis(d.Uint())
		case 8:
			m.Expires = ofMillis(d.Uint())
		case 9:
			m.Program = d.Text()
		default:
			d.Keep()
		}
	}
	m.Extra = d.Extra()
	return m, d.Err()
}

func millis(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli())
}

func ofMillis(n uint64) time.Time {
	if n == 0 || n > 1<<62 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n)).UTC()
}

// Sign returns a manifest with a signature: what GET /v2/sync/releases answers.
func Sign(key ed25519.PrivateKey, m *Manifest) []byte {
	data := m.Encode()
	var e field.Encoder
	e.Reset(nil)
	e.Raw(1, data)
	e.Raw(2, key.Public().(ed25519.PublicKey))
	e.Raw(3, ed25519.Sign(key, append([]byte(signedAs), data...)))
	return e.Bytes(nil)
}

// Open reads a signed manifest of a channel, as of now: nothing of it is believed before its signature was
// checked with the key that is known. Errors: ErrSignature, ErrChannel, ErrTime, and field.ErrFormat for what is none.
func Open(signed []byte, key ed25519.PublicKey, channel string, now time.Time) (Manifest, error) {
	var data, by, signature []byte
	d := field.Decode(signed)
	for d.Next() {
		switch d.Number {
		case 1:
			data = d.Raw()
		case 2:
			by = d.Raw()
		case 3:
			signature = d.Raw()
		}
	}
	switch err := d.Err(); {
	case err != nil:
		return Manifest{}, err
	case len(key) != ed25519.PublicKeySize || !bytes.Equal(by, key):
		return Manifest{}, fmt.Errorf("%w: it is signed by %.8x, and the origin's is %.8x", ErrSignature, by, []byte(key))
	case !ed25519.Verify(key, append([]byte(signedAs), data...), signature):
		return Manifest{}, ErrSignature
	}
	m, err := Decode(data)
	switch {
	case err != nil:
		return Manifest{}, err
	case m.Channel != channel:
		return Manifest{}, fmt.Errorf("%w: %q, want %q", ErrChannel, m.Channel, channel)
	case now.Add(Skew).Before(m.NotBefore):
		return Manifest{}, fmt.Errorf("%w: it begins at %v", ErrTime, m.NotBefore)
	case !now.Add(-Skew).Before(m.Expires):
		return Manifest{}, fmt.Errorf("%w: it ended at %v", ErrTime, m.Expires)
	}
	return m, nil
}

// Host is what a manifest has to fit.
type Host struct {
	ABI  uint32 // of the program
	Fold uint32 // rules by which what is here was folded
	Seen Seen   // the newest release of the channel that was seen
}

// Seen is a release that was seen; zero: none was.
type Seen struct {
	Version uint64
	Module  blob.Hash
}

// Fits reports, as an error, why a release is none for a host: ErrOlder where it is before the one that was seen, or
// another with the same number; ErrUnfit.
func (m *Manifest) Fits(h Host) error {
	switch {
	case m.Version == 0, m.Version < h.Seen.Version:
		return fmt.Errorf("%w: %d, and %d was", ErrOlder, m.Version, h.Seen.Version)
	case m.Version == h.Seen.Version && m.Module != h.Seen.Module:
		return fmt.Errorf("%w: there are two of number %d", ErrOlder, m.Version)
	case m.ABI != h.ABI:
		return fmt.Errorf("%w: its contract with the host is version %d, and this program's %d", ErrUnfit, m.ABI, h.ABI)
	case m.Fold < h.Fold:
		return fmt.Errorf("%w: it folds by rules up to version %d, and applications here are at %d", ErrUnfit, m.Fold, h.Fold)
	case m.Size == 0, m.Size > MaxModule, m.Module.IsZero():
		return fmt.Errorf("%w: %d bytes", ErrUnfit, m.Size)
	}
	return nil
}
