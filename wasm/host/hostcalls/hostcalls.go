// Package hostcalls implements the functions of module sightline that wasm/README.md lists, with slices for addresses and lengths.
//
//	guest in wazero ──▶ package host: ranges of the guest's memory ──▶ Host ──▶ Services: store, pictures, files, clock, …
//	package instance, run natively by tests ─────────────────────────▶ Host
//
// A function that fills dst returns the length of the data. If dst is too small, the function writes nothing. A result below 0 is a negated
// [abi.Errno].
package hostcalls

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// ErrNotProvided is the error of a function whose capability this host does not have.
var ErrNotProvided = errors.New("not provided by the host")

// ErrTooLong is returned if an answer does not fit into the guest's buffer and the guest may not request it again.
var ErrTooLong = errors.New("answer is too long")

// Pictures stores the pictures of calls. *blob.HostedNames implements it.
type Pictures interface {
	Add(ctx context.Context, app blob.AppID, data []byte, contentType string, expires time.Time) (name string, h blob.Hash, err error)
	Unpin(ctx context.Context, h blob.Hash) error
	Drop(ctx context.Context, h blob.Hash) error
	Lookup(name string, now time.Time) (blob.Picture, error)
}

var _ Pictures = (*blob.HostedNames)(nil)

// Files are the files in which a guest stores its data. They have the numbers 0 to 3. A new file is empty.
type Files interface {
	Size(file int) (int64, error)
	Read(file int, offset int64, dst []byte) error // fills dst or returns an error
	Write(file int, offset int64, src []byte) error
	Truncate(file int, size int64) error
	Sync(file int) error // makes earlier writes durable
}

// AppRecords stores the records of applications that are replicas.
type AppRecords interface {
	// AppRecordSeq returns the position of an application's record in the origin's control log; 0: there is no record.
	AppRecordSeq(app string) (uint64, error)
	// ApplyAppRecord stores a newer record. It is called while the application's guest runs. If the record ends the guest, that happens
	// after the call. The callee owns data.
	ApplyAppRecord(app string, seq uint64, data []byte) error
}

// Services are the services of an instance. Clock and Rand are required; a nil service is unavailable.
type Services struct {
	Store      kv.Store
	Hosted     Pictures
	Bundles    fs.FS                              // the files of Settings.Bundles
	Older      func(base [32]byte) (fs.FS, error) // returns the files of an older network
	Tokens     api.Tokens
	Count      func(app string) (refused string) // counts a call of an application, or returns why it is refused; nil: calls are not counted
	Blobs      replica.Blobs                     // pictures of replicas, by hash; nil: pictures of replicas are neither sent nor fetched
	AppRecords AppRecords                        // records of replicas; nil: there are no replicas
	Files      Files
	Clock      func() time.Time
	Rand       io.Reader    // source of ids; must be cryptographically secure
	Log        *slog.Logger // log of the guest; nil: its lines are discarded
}

// Host serves one instance. Its functions are safe for concurrent use if the services are.
type Host struct {
	Services
	Context context.Context // context of the guest's running call
	bounds  bounds

	mu        sync.Mutex
	last      uint32 // the newest number of a snapshot or a scan
	snapshots map[uint32]kv.Snapshot
	scans     map[uint32]*scan
}

// New returns the host of an instance that serves app. If app is empty, the instance serves all applications.
func New(services Services, app string) (*Host, error) {
	if services.Log == nil {
		services.Log = slog.New(slog.DiscardHandler)
	}
	b, err := boundsOf(app)
	return &Host{Services: services, Context: context.Background(), bounds: b, snapshots: map[uint32]kv.Snapshot{}, scans: map[uint32]*scan{}}, err
}

// put copies data to dst if it fits, and returns its length. If err is not nil, it returns the error's number, negated.
func put(dst, data []byte, err error) int64 {
	if err != nil {
		return -int64(abi.ErrnoOf(err))
	}
	if len(data) <= len(dst) {
		copy(dst, data)
	}
	return int64(len(data))
}

// putOnce is put for data that the guest must not request twice. If data does not fit, the guest has broken the contract.
func putOnce(dst, data []byte, err error) int64 {
	if err == nil && len(data) > len(dst) {
		err = ErrTooLong
	}
	return put(dst, data, err)
}

// did returns an error's number; 0 for nil.
func did(err error) int32 { return int32(abi.ErrnoOf(err)) }

// Now returns the time in nanoseconds since 1970.
func (h *Host) Now() int64 { return h.Clock().UnixNano() }

// Random fills dst. If the source fails, it panics, because ids made of zeros would not be secret.
func (h *Host) Random(dst []byte) {
	if _, err := io.ReadFull(h.Rand, dst); err != nil {
		panic(err)
	}
}

// Log logs a line of the guest.
func (h *Host) Log(level int32, line string) {
	h.Services.Log.Log(h.Context, max(slog.LevelDebug, min(slog.Level(level), slog.LevelError)), "guest", "line", line)
}

// Bundle reads a file of the bundles.
func (h *Host) Bundle(name string, dst []byte) int64 { return file(dst, h.Bundles, name) }

// Older reads a file of an older network. For an empty name it returns the names of all files, one per line.
func (h *Host) Older(base *[32]byte, name string, dst []byte) int64 {
	if h.Services.Older == nil {
		return put(dst, nil, fs.ErrNotExist)
	}
	files, err := h.Services.Older(*base)
	if err != nil {
		return put(dst, nil, err)
	}
	if name == "" {
		list, err := Names(files)
		return put(dst, []byte(strings.Join(list, "\n")), err)
	}
	return file(dst, files, name)
}

// file copies a file's content to dst, with the results of put. It does not read a file that does not fit.
func file(dst []byte, files fs.FS, name string) int64 {
	if files == nil {
		return put(dst, nil, ErrNotProvided)
	}
	info, err := fs.Stat(files, name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > math.MaxInt32) {
		err = fs.ErrInvalid
	}
	if err == nil && info.Size() > int64(len(dst)) {
		return info.Size()
	}
	var data []byte
	if err == nil {
		data, err = fs.ReadFile(files, name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = kv.ErrNotFound // has a number
	}
	return put(dst, data, err)
}

// Names returns the names of all files in bundles.
func Names(bundles fs.FS) (names []string, err error) {
	if bundles == nil {
		return nil, nil
	}
	err = fs.WalkDir(bundles, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}
