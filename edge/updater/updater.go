// Package updater keeps an edge's core module the one that its origin has released.
//
//	manifest ──▶ signed by the origin, of now, no older one ──▶ fetch, piece by piece ──▶ its hash
//	                                                                                        │
//	   the one before, at once ◀── it dies ── 5 minutes ◀── switch ◀── pointer ◀── self-test
//
//	DIR/modules/HASH.wasm   the module in force, and the one before
//	DIR/modules/HASH.N      pieces of one that is on its way
//	DIR/modules.json        which is in force: the one file that is ever replaced
//
// The pointer names a module only once that is whole and durable, so a power cut at any point leaves one that
// works: the old or the new. An edge that cannot be switched, or whose origin is silent, goes on with what it has.
package updater

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/link"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/feed"
	"github.com/sightline-dev/sightline/sync/release"
)

// Times and bounds.
const (
	askEvery    = time.Hour
	lookEvery   = 15 * time.Second // at a module that has to prove itself
	looks       = 20
	maxDeaths   = 3 // of instances, while it has
	pieceBytes  = 1 << 20
	maxManifest = 1 << 16
)

// Options are an updater's settings. All are needed, but Piece.
type Options struct {
	Slots   *Slots
	Channel string
	Own     blob.Hash // of the program's own module
	ABI     uint32    // of the program
	Piece   uint64    // bytes that are fetched at once; 0 means 1 MiB

	// Key is what the origin signs with, nil where it is not known yet; Learn keeps it.
	Key   func() ed25519.PublicKey
	Learn func(ed25519.PublicKey) error

	// Get asks the origin; rangeOf is a Range header, or empty.
	Get func(ctx context.Context, path, rangeOf string) (*http.Response, error)

	Fold   func() (uint32, error)                         // the newest rules by which something here was folded
	Try    func(ctx context.Context, module []byte) error // compiles a module and has it show what it computes; release.ErrUnfit: it is no good
	Switch func(ctx context.Context) error                // goes over to the module in force
	Deaths func() int64                                   // of instances, so far
	Held   func() bool                                    // the operator has put a module there: it serves, and releases are not asked for

	Now   func() time.Time
	Pause func(ctx context.Context, d time.Duration)
	Log   *slog.Logger
}

// Updater asks for releases and goes over to them. Status may be asked at any time.
type Updater struct {
	o Options

	mu     sync.Mutex
	status Status
}

// Status is what an operator is told.
type Status struct {
	Version uint64    // of the release that serves; 0: the program's own module, which nobody released
	Program string    // that it is of
	Asked   time.Time // when the origin last answered
	Problem string    // why the newest release does not serve; empty: it does
}

// New makes an updater.
func New(o Options) *Updater {
	if o.Piece == 0 {
		o.Piece = pieceBytes
	}
	u := &Updater{o: o}
	u.tell(nil, false)
	return u
}

// Status is how things are.
func (u *Updater) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.status
}

// tell notes how things are.
func (u *Updater) tell(err error, answered bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.o.Slots
	u.status.Version, u.status.Program, u.status.Problem = 0, "", s.Refused
	switch {
	case s.Current != nil:
		u.status.Version, u.status.Program = s.Current.Version, s.Current.Program
	case s.Seen.Module == u.o.Own:
		u.status.Version, u.status.Program = s.Seen.Version, s.Seen.Program
	}
	if answered {
		u.status.Asked = u.o.Now()
	}
	if err != nil {
		u.status.Problem = err.Error()
	}
}

// Run asks at once and then every hour, until ctx ends.
func (u *Updater) Run(ctx context.Context) {
	if err := u.reconsider(); err != nil {
		u.o.Log.Error("module", "error", err)
	}
	for ctx.Err() == nil {
		if !u.o.Held() {
			if err := u.round(ctx); err != nil && ctx.Err() == nil {
				u.o.Log.Error("release", "channel", u.o.Channel, "error", err)
			}
		}
		u.o.Pause(ctx, askEvery)
	}
}

// round asks once, and watches a module that has to prove itself.
func (u *Updater) round(ctx context.Context) error {
	answered, err := u.ask(ctx)
	if ctx.Err() != nil {
		return err
	}
	u.tell(err, answered)
	if u.o.Slots.Tries == 0 {
		return err
	}
	if proved := u.prove(ctx); proved != nil {
		u.tell(proved, false)
		err = errors.Join(err, proved)
	}
	return err
}

// reconsider has what another program refused be tried again by this one.
func (u *Updater) reconsider() error {
	s := u.o.Slots
	if own := u.o.Own.String(); s.Host != own {
		next := s.state
		next.Host, next.Refused = own, ""
		return s.put(next)
	}
	return nil
}

// ask asks for the newest release, and goes over to it where it is another. It reports whether the origin has answered.
func (u *Updater) ask(ctx context.Context) (answered bool, err error) {
	signed, err := u.manifest(ctx)
	if err != nil || signed == nil {
		return signed != nil || err == nil, err
	}
	m, err := u.check(signed)
	if err != nil {
		return true, err
	}
	s := u.o.Slots
	if s.Seen.Version == m.Version && (s.Refused != "" || s.runs(m.Module, u.o.Own)) {
		return true, nil // it serves, or was no good
	}
	return true, u.take(ctx, &m)
}

// runs reports whether a module is the one in force.
func (s *state) runs(h, own blob.Hash) bool {
	if s.Current == nil {
		return h == own
	}
	return s.Current.Module == h
}

// manifest fetches the channel's; nil: the origin has none.
func (u *Updater) manifest(ctx context.Context) ([]byte, error) {
	res, err := u.o.Get(ctx, feed.Prefix+"/releases/"+u.o.Channel, "")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
		return system.ReadAll(res.Body, maxManifest)
	case http.StatusNotFound:
		return nil, nil
	}
	return nil, fmt.Errorf("manifest: %w", link.StatusError(res.StatusCode))
}

// check reads a manifest that this edge may follow.
func (u *Updater) check(signed []byte) (release.Manifest, error) {
	key := u.o.Key()
	if key == nil {
		var err error
		if key, err = release.By(signed); err != nil {
			return release.Manifest{}, err
		}
	}
	m, err := release.Open(signed, key, u.o.Channel, u.o.Now())
	if err != nil {
		return m, err
	}
	if u.o.Key() == nil {
		if err := u.o.Learn(key); err != nil {
			return m, err
		}
	}
	rules, err := u.o.Fold()
	if err != nil {
		return m, err
	}
	seen := u.o.Slots.Seen
	return m, m.Fits(release.Host{ABI: u.o.ABI, Fold: rules, Seen: release.Seen{Version: seen.Version, Module: seen.Module}})
}

// take goes over to a release: fetched, tried, pointed at, switched to, watched. From the pointer on it is the
// one that a start takes.
func (u *Updater) take(ctx context.Context, m *release.Manifest) error {
	s := u.o.Slots
	seen := Release{Version: m.Version, Module: m.Module, SHA256: m.Module.String(), Program: m.Program}
	next := s.state
	next.Seen, next.Refused = seen, ""
	if s.runs(m.Module, u.o.Own) { // under another number
		if next.Current != nil {
			next.Current = &seen
		}
		return s.put(next)
	}
	if s.Tries == 0 { // else Current has proved nothing
		next.Previous = s.Current
	}
	next.Current, next.Tries = nil, 1
	if m.Module != u.o.Own {
		next.Current = &seen
		module, err := u.fetch(ctx, m)
		if err != nil {
			return err
		}
		if err := u.o.Try(ctx, module); err != nil {
			if !errors.Is(err, release.ErrUnfit) {
				return fmt.Errorf("release %d: %w", m.Version, err) // another time
			}
			refused := s.state
			refused.Seen, refused.Refused = seen, err.Error()
			return errors.Join(fmt.Errorf("release %d: %w", m.Version, err), s.put(refused), s.tidy())
		}
	} else {
		next.Tries = 0 // it came with the program, which works
	}
	if err := s.put(next); err != nil {
		return err
	}
	if err := u.o.Switch(ctx); err != nil {
		return u.back(ctx, err)
	}
	u.o.Log.Info("release", "channel", u.o.Channel, "version", m.Version, "sha256", seen.SHA256, "program", m.Program)
	u.tell(nil, true)
	if err := s.tidy(); err != nil {
		u.o.Log.Warn("modules", "error", err)
	}
	return nil
}

// back returns to the module before, at once.
func (u *Updater) back(ctx context.Context, why error) error {
	err := u.o.Slots.back(why)
	if errors.Is(err, ErrBack) {
		err = errors.Join(err, u.o.Switch(ctx))
	}
	return err
}

// prove watches a module that is new, and returns to the one before where its instances die.
func (u *Updater) prove(ctx context.Context) error {
	s := u.o.Slots
	before := u.o.Deaths()
	for range looks {
		u.o.Pause(ctx, lookEvery)
		if n := u.o.Deaths() - before; n >= maxDeaths {
			return u.back(context.WithoutCancel(ctx), fmt.Errorf("%d of its instances have died", n))
		}
		if ctx.Err() != nil {
			return nil // the next start counts
		}
	}
	next := s.state
	next.Tries = 0
	return s.put(next)
}

// fetch has a module be here, whole and durable. Pieces that came before a cut are not asked for again.
func (u *Updater) fetch(ctx context.Context, m *release.Manifest) ([]byte, error) {
	s := u.o.Slots
	if data, err := s.read(m.Module); err == nil {
		return data, nil
	}
	if err := s.dir.MkdirAll(slotsDir); err != nil {
		return nil, err
	}
	module := make([]byte, 0, min(m.Size, 64<<20))
	var pieces []string
	for uint64(len(module)) < m.Size {
		name := fmt.Sprintf("%s/%s.%d", slotsDir, m.Module, len(pieces))
		data, err := u.piece(ctx, m, name, uint64(len(module)))
		if err != nil {
			return nil, err
		}
		module, pieces = append(module, data...), append(pieces, name)
	}
	right := blob.Sum(module) == m.Module
	if right {
		if err := replace(s.dir, slotsDir, fileOf(m.Module), module); err != nil {
			return nil, err
		}
	}
	var err error
	for _, name := range pieces {
		err = errors.Join(err, s.dir.Remove(name))
	}
	if !right {
		return nil, errors.Join(fmt.Errorf("module %s: what came has another hash", m.Module), err)
	}
	return module, err
}

// piece is the bytes of a module from one on: a piece that is here, or is fetched.
func (u *Updater) piece(ctx context.Context, m *release.Manifest, name string, from uint64) ([]byte, error) {
	want := min(m.Size-from, u.o.Piece)
	if data, err := readAll(u.o.Slots.dir, name, int64(want)); err == nil && uint64(len(data)) == want {
		return data, nil
	}
	res, err := u.o.Get(ctx, feed.Prefix+"/modules/"+m.Module.String(), fmt.Sprintf("bytes=%d-%d", from, from+want-1))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusPartialContent {
		return nil, fmt.Errorf("module %s: %w", m.Module, link.StatusError(res.StatusCode))
	}
	data := make([]byte, want)
	if _, err := io.ReadFull(res.Body, data); err != nil {
		return nil, fmt.Errorf("module %s: %w", m.Module, err)
	}
	return data, replace(u.o.Slots.dir, slotsDir, name, data)
}
