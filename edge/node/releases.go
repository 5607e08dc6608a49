package node

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/edge/updater"
	"github.com/sightline-dev/sightline/origin/control"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/release"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/host"
)

// releasesOff is the channel of an edge that runs its program's own module, whatever its origin does.
const releasesOff = "off"

// follower follows the releases of an edge's origin.
type follower struct {
	mu sync.Mutex
	u  *updater.Updater // nil: it does not, or has not begun
}

// slots are the released modules of a folder. What is damaged there keeps nobody from being served.
func slots(dir *system.Folder, log *slog.Logger) (*updater.Slots, error) {
	s, err := updater.OpenSlots(dir)
	if s != nil && err != nil {
		log.Error("the folder's released modules are not known: the program's own serves", "error", err)
		err = nil
	}
	return s, err
}

// begin counts a start that serves.
func (e *engine) begin() error {
	s, err := slots(e.dir, e.log)
	if err == nil {
		err = s.Start()
	}
	if errors.Is(err, updater.ErrBack) {
		e.log.Error("release", "error", err)
		return nil
	}
	return err
}

// fetchPiece is how long a piece of a module may take.
const fetchPiece = 5 * time.Minute

// follow follows the origin's releases until ctx ends. The edge is enrolled.
func (e *engine) follow(ctx context.Context) {
	channel := e.node.releases
	if channel == releasesOff {
		return
	}
	_, own, err := builtIn()
	if err != nil {
		return // a program without a module has a folder's
	}
	s, err := slots(e.dir, e.log)
	if err != nil {
		e.log.Error("release", "error", err)
		return
	}
	client := &http.Client{
		Timeout: fetchPiece, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	who := e.copies.who
	u := updater.New(updater.Options{
		Slots: s, Channel: channel, Own: own, ABI: abi.Version,
		Key: who.releases, Learn: func(key ed25519.PublicKey) error { return who.learn(e.dir, key) },
		Get: func(ctx context.Context, path, rangeOf string) (*http.Response, error) {
			return who.get(ctx, client, path, rangeOf)
		},
		Fold: e.rules, Try: e.try, Switch: e.reload, Deaths: e.deaths, Held: e.held,
		Now: system.Now, Pause: system.Pause, Log: e.log,
	})
	e.follower.mu.Lock()
	e.follower.u = u
	e.follower.mu.Unlock()
	u.Run(ctx)
}

// held reports whether the operator has put a module into the folder, which then serves.
func (e *engine) held() bool {
	_, err := e.dir.Size(moduleFile)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

// rules are the newest by which an application here was folded.
func (e *engine) rules() (rules uint32, err error) {
	apps, err := e.Apps()
	for _, app := range apps {
		id, failed := catalog.ParseAppID(app.ID)
		if failed != nil {
			return 0, failed
		}
		h, failed := catalog.Read(e.copies.store, id).Header()
		if failed != nil {
			return 0, failed
		}
		rules = max(rules, h.Fold)
	}
	return rules, err
}

// try compiles a module and has it show what it computes.
func (e *engine) try(ctx context.Context, module []byte) error {
	f, err := e.fleet()
	if err != nil {
		return err
	}
	rt, err := e.node.compile(ctx, e.dir, module, e.log)
	if err == nil {
		err = errors.Join(f.Test(ctx, rt), rt.Close(context.WithoutCancel(ctx)))
	}
	for _, unfit := range []error{host.ErrModule, host.ErrSelfTest, host.ErrDead, abi.ErrVersion} {
		if errors.Is(err, unfit) && ctx.Err() == nil {
			return fmt.Errorf("%w: %w", release.ErrUnfit, err)
		}
	}
	return err
}

// deaths is how many instances have died.
func (e *engine) deaths() int64 {
	if f := e.started.Load(); f != nil {
		return f.Deaths()
	}
	return 0
}

// release is what the operator is told of the origin's releases; nil: they are not followed.
func (e *engine) release() *control.Release {
	e.follower.mu.Lock()
	u := e.follower.u
	e.follower.mu.Unlock()
	if u == nil {
		return nil
	}
	s := u.Status()
	return &control.Release{Channel: e.node.releases, Version: s.Version, Program: s.Program, Asked: s.Asked, Problem: s.Problem}
}

// releases is the key that the origin signs releases with; nil: it has not said so yet.
func (i *identity) releases() ed25519.PublicKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.ReleaseKey)
}

// learn keeps the key that the origin signs releases with.
func (i *identity) learn(dir *system.Folder, key ed25519.PublicKey) error {
	i.mu.Lock()
	i.ReleaseKey = slices.Clone(key)
	i.mu.Unlock()
	return i.write(dir)
}

// told takes a release's key from what enrolment has told, 64 hex digits or nothing.
func (i *identity) told(key string) error {
	b, err := hex.DecodeString(key)
	if err != nil || len(b) != 0 && len(b) != ed25519.PublicKeySize {
		return fmt.Errorf("release_key: %q is no key", key)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(b) > 0 {
		i.ReleaseKey = b
	}
	return nil
}

// get asks the origin.
func (i *identity) get(ctx context.Context, client *http.Client, path, rangeOf string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.Origin+path, nil)
	if err != nil {
		return nil, err
	}
	authorization, err := i.authorize(http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", authorization)
	if rangeOf != "" {
		req.Header.Set("Range", rangeOf)
	}
	return client.Do(req)
}
