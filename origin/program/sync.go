package program

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

type syncFlags struct {
	data, origin, key, app string
	pictures, name         string
	once, watch, dismiss   bool
	timeout                time.Duration
	asJSON, quiet          bool
}

func newSync(env *server.Env) *cobra.Command {
	var f syncFlags
	cmd := &cobra.Command{
		Use:   "sync --data DIR --origin URL",
		Short: "Replicate an application into a local folder for offline work",
		Long: `Replicates an application of the server at --origin into a data folder, and sends local changes
back. The first run needs --app and creates the folder if it does not exist; later runs read the
application from the folder. The commands import, search, train and export work on the replica
with --data, without the server.

Local changes are durable at once. A change is queued until the server receives it, and confirmed
once it comes back in the server's log. Conflicts (for example, the input was deleted meanwhile)
are listed with their content until you pass --dismiss. Contradictions (for example, two people
labelled a picture differently without knowing of each other) are listed until somebody decides,
on the Sync page or by PATCH /v2/sync/conflicts/ID.

--once (default) exits when both sides are in sync. --watch keeps syncing until stopped and
reconnects automatically. An interrupted run resumes the next time.

Exit codes: 0 in sync; 1 failed; 2 usage error; 3 there are new conflicts.`,
		Example: `  {prog} sync --data ./replica --origin https://sightline.example.org --app 0123456789abcdef0123456789abcdef
  {prog} sync --data ./replica --origin https://sightline.example.org --watch`,
		Args: server.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(env); err != nil {
				return err
			}
			return runSync(cmd.Context(), &f, env)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "data `folder` of the replica; created if missing")
	flags.StringVar(&f.origin, "origin", "", "`URL` of the server (default: SIGHTLINE_ORIGIN)")
	flags.StringVar(&f.key, "key", "", "API `key` of the application, with scope All (default: SIGHTLINE_KEY)")
	flags.StringVar(&f.app, "app", "", "`ID` of the application; needed the first time, or if the folder has several")
	flags.StringVar(&f.pictures, "pictures", "all", "pictures to store locally: `all|own`; own means only pictures added here")
	flags.StringVar(&f.name, "name", "", "`name` of this replica shown at the server (default: the host name)")
	flags.BoolVar(&f.once, "once", false, "exit when both sides are in sync (default)")
	flags.BoolVar(&f.watch, "watch", false, "keep syncing until stopped")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "with --once: give up after this `duration` without progress")
	flags.BoolVar(&f.dismiss, "dismiss", false, "clear the list of conflicts")
	flags.BoolVar(&f.asJSON, "json", false, "print the result as a JSON object")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress; errors only")
	return cmd
}

// check completes the flags from the environment and returns a usage error for invalid ones.
func (f *syncFlags) check(env *server.Env) error {
	f.origin = cmp.Or(f.origin, env.Lookup(server.EnvPrefix+"ORIGIN"))
	f.key = cmp.Or(f.key, env.Lookup(server.EnvPrefix+"KEY"))
	switch {
	case f.data == "":
		return server.Usagef("--data is required: the folder of the replica")
	case f.origin == "":
		return server.Usagef("--origin is required: the URL of the server")
	case f.key == "":
		return server.Usagef("--key (or SIGHTLINE_KEY) is required: an API key of the application")
	case f.once && f.watch:
		return server.Usagef("--once and --watch cannot be combined")
	case f.pictures != "all" && f.pictures != "own":
		return server.Usagef("--pictures %q: must be all or own", f.pictures)
	case f.timeout <= 0:
		return server.Usagef("--timeout must be positive")
	}
	if _, err := synclink.ParseAddress(f.origin); err != nil {
		return server.Usagef("--origin: %w", err)
	}
	if f.name == "" {
		f.name, _ = os.Hostname() // a replica needs no name
	}
	return nil
}

func runSync(ctx context.Context, f *syncFlags, env *server.Env) (err error) {
	s := &syncer{f: f, out: env.Stderr, terminal: server.IsTerminal(env.Stderr)}
	settings := server.FolderSettings(f.data, env)
	settings.SyncStatus = s.syncStatus
	n, err := server.OpenNode(ctx, settings, slog.New(slog.DiscardHandler), server.Use{Background: true})
	if errors.Is(err, system.ErrLocked) {
		return fmt.Errorf("%w: stop it first, since only one process can sync a folder", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	s.node, s.engine = n, n.Engine.(native) // as open returned it
	if err := s.open(ctx); err != nil {
		return err
	}
	err = s.run(ctx)
	return errors.Join(s.printResult(context.WithoutCancel(ctx), env.Stdout), err)
}

// syncer synchronizes one application of a data folder with its origin.
type syncer struct {
	f        *syncFlags
	node     *server.Node
	engine   native
	out      io.Writer // writer of progress
	terminal bool

	app          catalog.AppID
	partition    *partition.Replica
	machine      *replica.Machine
	link         *synclink.Link
	local        chan struct{}  // holds a token after a write to the partition
	first        replica.Status // status at the start
	purge        *replica.Purge
	lastLine     string          // the last line of progress
	when         time.Time       // time at which it was shown
	oldConflicts int             // number of conflicts at the start
	end          func(why error) // ends a --once

	mu     sync.Mutex // guards what follows
	last   replica.Status
	stored string      // ID of the application; empty: it is not stored yet
	moving *time.Timer // fires without progress; nil with --watch
}

// syncStatus returns the replica's status, for API calls to the replica while it syncs.
func (s *syncer) syncStatus(app string) (api.SyncStatus, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.last.APIStatus(s.f.origin)
	out.Name = s.f.name
	return out, app == s.stored && app != ""
}

// authorize returns the credential of requests: the API key.
func (s *syncer) authorize(string, string, string, []byte) ([]api.Field, error) {
	return []api.Field{{Name: "Authorization", Value: "Key " + s.f.key}}, nil
}

// open opens the replica, or creates it.
func (s *syncer) open(ctx context.Context) error {
	id, err := s.choose(ctx)
	if err != nil {
		return err
	}
	if s.app, err = catalog.ParseAppID(id); err != nil {
		return server.Usagef("--app: %w", err)
	}
	_, seq, err := s.engine.Register.AppRecordSeq(id)
	if err != nil {
		return err
	}
	device, err := deviceOf(s.f.data)
	if err != nil {
		return err
	}
	o := synclink.Options{Origin: s.f.origin, Device: device, Authorize: s.authorize, Effect: s.effect, Now: system.Now}
	if seq == 0 {
		if err := s.join(ctx, o, id); err != nil {
			return err
		}
	}
	if s.partition, err = s.engine.Replica(id); err != nil {
		return err
	}
	options := replica.Options{
		App: s.app, Partition: s.partition, Store: s.node.Folder.Store, Blobs: s.node.Folder.Blobs,
		AppRecords: register.AppRecords{Of: s.engine.Register, App: id}, Live: replica.Once, Name: s.f.name, Rand: system.Random,
		Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull},
	}
	if s.f.pictures == "own" {
		options.Wants.Blobs = wire.BlobsLazy
	}
	if s.f.watch {
		options.Live = replica.Stream
	}
	if s.machine, err = replica.New(options); err != nil {
		return err
	}
	s.first = s.machine.Status()
	s.mu.Lock()
	s.last, s.stored = s.first, id
	s.mu.Unlock()
	if s.oldConflicts, err = s.partition.CountConflicts(); err != nil {
		return err
	}
	h, err := s.partition.Header()
	if err != nil {
		return err
	}
	s.oldConflicts += int(h.Contradictions)
	s.local = make(chan struct{}, 1)
	o.Machine, o.Local = s.machine, s.local
	s.link, err = synclink.New(o)
	return err
}

// deviceOf returns the name under which the origin remembers the contacts of a folder: the same for each run with the folder at its place.
func deviceOf(folder string) (string, error) {
	path, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	host, _ := os.Hostname() // folders at the same place of computers without a name look like one
	sum := sha256.Sum256([]byte(host + "\x00" + path))
	return "folder-" + hex.EncodeToString(sum[:16]), nil
}

// choose returns the ID of the application to sync.
func (s *syncer) choose(ctx context.Context) (string, error) {
	if s.f.app != "" {
		return s.f.app, nil
	}
	apps, err := control.Apps.Do(ctx, s.node, control.Nothing{})
	if err != nil {
		return "", err
	}
	var found []string
	for _, a := range apps {
		_, seq, err := s.engine.Register.AppRecordSeq(a.ID)
		if err != nil {
			return "", err
		}
		if seq > 0 {
			found = append(found, a.ID)
		}
	}
	switch len(found) {
	case 0:
		return "", server.Usagef("--app is required the first time: the ID of the application")
	case 1:
		return found[0], nil
	}
	return "", server.Usagef("--app is required: the folder has replicas of %s", strings.Join(found, ", "))
}

// join creates the replica.
func (s *syncer) join(ctx context.Context, o synclink.Options, id string) error {
	apps, err := control.Apps.Do(ctx, s.node, control.Nothing{})
	if err != nil {
		return err
	}
	for _, a := range apps {
		if a.ID == id {
			return fmt.Errorf("application %s belongs to this folder; it is not a replica", id)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.f.timeout)
	defer cancel()
	seq, data, err := synclink.Join(ctx, o, id)
	if err != nil {
		return fmt.Errorf("%s: %w", s.f.origin, err)
	}
	return s.engine.Register.ApplyAppRecord(ctx, id, seq, data)
}

// errNoProgress ends a --once that has made no progress for the timeout.
var errNoProgress = errors.New("no progress")

// errEnough ends a --once that is in sync.
var errEnough = errors.New("in sync")

// run syncs until both sides have everything, or until ctx ends.
func (s *syncer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !s.f.watch {
		s.moving = system.AfterFunc(s.f.timeout, func() { cancel(errNoProgress) })
		defer s.moving.Stop()
	}
	defer s.partition.Log().WatchHead(func() {
		select {
		case s.local <- struct{}{}:
		default: // a token is waiting already
		}
	})()
	s.end = cancel
	err := s.link.Run(ctx)
	s.line("")
	switch {
	case errors.Is(err, synclink.ErrPurged):
		return s.applyPurge(err)
	case err != nil:
		return err
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errEnough):
	case errors.Is(cause, errNoProgress):
		why := s.last.Problem
		if why == "" {
			why = s.last.Phase.String()
		}
		return fmt.Errorf("no progress for %v: %s", s.f.timeout, why)
	case errors.Is(cause, context.Canceled) && s.f.watch:
	case errors.Is(cause, context.Canceled):
		return errors.New("interrupted; run the same command to resume")
	default:
		return cause
	}
	return nil
}

// applyPurge deletes the local data of an application that the origin has deleted. If the origin only refuses the application
// to this key, which may be the wrong key, the data stays.
func (s *syncer) applyPurge(err error) error {
	if s.purge == nil || s.purge.KeepOutbox {
		return fmt.Errorf("%w; no local data was deleted", err)
	}
	record := catalog.AppRecord{App: s.app.String(), Revoked: catalog.ReasonDeleted} // no place in a log: a later run may join again
	return errors.Join(err, s.engine.Register.ApplyAppRecord(context.Background(), s.app.String(), 0, record.Encode()))
}

// effect handles an effect of the state machine.
func (s *syncer) effect(x replica.Effect) {
	switch x := x.(type) {
	case replica.Purge:
		s.purge = &x
	case replica.StatusChange:
		now := s.machine.Status()
		s.mu.Lock()
		before := s.last
		s.last = now
		s.mu.Unlock()
		if s.moving != nil && forward(&before, &now) {
			s.moving.Reset(s.f.timeout)
		}
		s.progress(&now)
		switch {
		case s.f.watch:
		case now.IsSettled():
			s.end(errEnough)
		case now.Denied != "":
			s.end(fmt.Errorf("%s: %s", s.f.origin, server.Printable(now.Denied)))
		}
	}
}

// forward reports whether is shows progress since was.
func forward(was, is *replica.Status) bool {
	return is.Cursor > was.Cursor || is.Accepted > was.Accepted || is.Folded > was.Folded || is.ChunksDone > was.ChunksDone ||
		is.BlobsGot > was.BlobsGot || is.BlobsSent > was.BlobsSent || is.Phase != was.Phase && is.Problem == ""
}
