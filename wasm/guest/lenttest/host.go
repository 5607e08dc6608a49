// Package lenttest is a host in plain Go: it lends what its fields are through the functions of
// module sightline, as wasm/README.md says them, and so runs package instance without a module.
package lenttest

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal"
	"github.com/sightline-dev/sightline/core/register"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/lent"
)

// Host lends what its fields are; what is nil is not there. Lines that a guest logs are kept.
type Host struct {
	Store    kv.Store
	Hosted   register.Pictures
	Bundles  fs.FS
	OlderOf  func(base [32]byte) fs.FS
	Tokens   api.Tokens
	Counts   func() (refused string) // counts a call; nil: none are counted
	Blobs    replica.Blobs
	Register replica.Register
	Disk     journal.Files
	Clock    func() time.Time
	Rand     io.Reader

	mu        sync.Mutex
	number    uint32
	snapshots map[uint32]kv.Snapshot
	scans     map[uint32]*scan
	lines     []string
	calls     map[string]int // by name
}

var _ lent.Imports = (*Host)(nil)

type scan struct {
	next       func() (key, value []byte, ok bool)
	stop       func()
	key, value []byte
	more       bool
	err        error
}

// Open counts the snapshots and scans that are open.
func (h *Host) Open() (snapshots, scans int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.snapshots), len(h.scans)
}

// Lines returns what was logged, and forgets it.
func (h *Host) Lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}

// Calls counts how often a function was called.
func (h *Host) Calls(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[name]
}

// count counts a call; mu is held.
func (h *Host) count(name string) {
	if h.calls == nil {
		h.calls, h.snapshots, h.scans = map[string]int{}, map[uint32]kv.Snapshot{}, map[uint32]*scan{}
	}
	h.calls[name]++
}

func (h *Host) enter(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(name)
}

var errNotLent = errors.New("host function is not available")

func put(dst, data []byte, err error) int64 {
	if err != nil {
		return -int64(abi.ErrnoOf(err))
	}
	if len(data) <= len(dst) {
		copy(dst, data)
	}
	return int64(len(data))
}

func did(err error) int32 { return int32(abi.ErrnoOf(err)) }

// Now implements [lent.Imports].
func (h *Host) Now() int64 {
	h.enter("now")
	return h.Clock().UnixNano()
}

// Random implements [lent.Imports].
func (h *Host) Random(dst []byte) {
	h.enter("random")
	if _, err := io.ReadFull(h.Rand, dst); err != nil {
		panic(err)
	}
}

// Log implements [lent.Imports].
func (h *Host) Log(level int32, line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count("log")
	h.lines = append(h.lines, fmt.Sprint(level, " ", line))
}

// Bundle implements [lent.Imports].
func (h *Host) Bundle(name string, dst []byte) int64 {
	h.enter("bundle")
	if h.Bundles == nil {
		return put(dst, nil, errNotLent)
	}
	data, err := fs.ReadFile(h.Bundles, name)
	return put(dst, data, err)
}

// Older implements [lent.Imports].
func (h *Host) Older(base *[32]byte, name string, dst []byte) int64 {
	h.enter("older")
	var files fs.FS
	if h.OlderOf != nil {
		files = h.OlderOf(*base)
	}
	if files == nil {
		return put(dst, nil, errNotLent)
	}
	if name == "" {
		return put(dst, []byte(strings.Join(Names(files), "\n")), nil)
	}
	data, err := fs.ReadFile(files, name)
	return put(dst, data, err)
}

// Names lists the files of a file system.
func Names(files fs.FS) (names []string) {
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		panic(err) // of files in memory
	}
	return names
}

func (h *Host) reader(snapshot uint32) (kv.Reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch s, ok := h.snapshots[snapshot]; {
	case h.Store == nil:
		return nil, errNotLent
	case snapshot == 0:
		return h.Store, nil
	case !ok:
		return nil, kv.ErrClosed
	default:
		return s, nil
	}
}

// KVGet implements [lent.Imports].
func (h *Host) KVGet(snapshot uint32, key, dst []byte) int64 {
	h.enter("kv_get")
	r, err := h.reader(snapshot)
	var value []byte
	if err == nil {
		value, err = r.Get(key)
	}
	return put(dst, value, err)
}

// KVScan implements [lent.Imports].
func (h *Host) KVScan(snapshot uint32, lo, hi []byte, back bool) int64 {
	h.enter("kv_scan")
	r, err := h.reader(snapshot)
	if err != nil {
		return put(nil, nil, err)
	}
	lo, hi = bytes.Clone(lo), bytes.Clone(hi)
	s := &scan{}
	walk := r.Scan
	if back {
		walk = r.ScanBack
	}
	s.next, s.stop = iter.Pull2(func(yield func(key, value []byte) bool) { s.err = walk(lo, hi, yield) })
	s.key, s.value, s.more = s.next()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	h.scans[h.number] = s
	return int64(h.number)
}

// KVNext implements [lent.Imports].
func (h *Host) KVNext(number uint32, dst []byte) int64 {
	h.enter("kv_next")
	h.mu.Lock()
	s, ok := h.scans[number]
	h.mu.Unlock()
	if !ok {
		return put(nil, nil, kv.ErrClosed)
	}
	out := dst[:0]
	for s.more {
		n := len(out) + 8 + len(s.key) + len(s.value)
		if n > len(dst) {
			if len(out) == 0 {
				return int64(n)
			}
			break
		}
		out = abi.AppendRecord(out, s.key, s.value)
		s.key, s.value, s.more = s.next()
	}
	if len(out) == 0 && s.err != nil {
		return put(nil, nil, s.err)
	}
	return int64(len(out))
}

// KVEnd implements [lent.Imports].
func (h *Host) KVEnd(number uint32) {
	h.enter("kv_end")
	h.mu.Lock()
	s := h.scans[number]
	delete(h.scans, number)
	h.mu.Unlock()
	s.stop()
}

// KVSnapshot implements [lent.Imports].
func (h *Host) KVSnapshot() uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count("kv_snapshot")
	h.number++
	h.snapshots[h.number] = h.Store.Snapshot()
	return h.number
}

// KVRelease implements [lent.Imports].
func (h *Host) KVRelease(number uint32) {
	h.enter("kv_release")
	h.mu.Lock()
	s := h.snapshots[number]
	delete(h.snapshots, number)
	h.mu.Unlock()
	if err := s.Close(); err != nil {
		panic(err) // of a store in memory
	}
}

// KVApply implements [lent.Imports].
func (h *Host) KVApply(batch []byte) int32 {
	h.enter("kv_apply")
	b, err := kv.ParseBatch(batch)
	if err == nil {
		err = h.Store.Apply(b)
	}
	return did(err)
}

// KVCommit implements [lent.Imports].
func (h *Host) KVCommit(batch []byte) int32 {
	h.enter("kv_commit")
	b, err := kv.ParseBatch(batch)
	var wait func() error
	if err == nil {
		wait, err = h.Store.Commit(b)
	}
	if err == nil {
		err = wait()
	}
	return did(err)
}

// KVRoom implements [lent.Imports].
func (h *Host) KVRoom() int32 {
	h.enter("kv_room")
	return did(h.Store.Room())
}

// KVCompact implements [lent.Imports].
func (h *Host) KVCompact(lo, hi []byte) int32 {
	h.enter("kv_compact")
	if c, ok := h.Store.(interface {
		Compact(ctx context.Context, lo, hi []byte) error
	}); ok {
		return did(c.Compact(context.Background(), lo, hi))
	}
	return 0
}

// FileSize implements [lent.Imports].
func (h *Host) FileSize(file uint32) int64 {
	h.enter("file_size")
	n, err := h.Disk.Size(int(file))
	if err != nil {
		return put(nil, nil, err)
	}
	return n
}

// FileRead implements [lent.Imports].
func (h *Host) FileRead(file uint32, offset int64, dst []byte) int32 {
	h.enter("file_read")
	return did(h.Disk.Read(int(file), offset, dst))
}

// FileWrite implements [lent.Imports].
func (h *Host) FileWrite(file uint32, offset int64, src []byte) int32 {
	h.enter("file_write")
	return did(h.Disk.Write(int(file), offset, src))
}

// FileTruncate implements [lent.Imports].
func (h *Host) FileTruncate(file uint32, size int64) int32 {
	h.enter("file_truncate")
	return did(h.Disk.Truncate(int(file), size))
}

// FileSync implements [lent.Imports].
func (h *Host) FileSync(file uint32) int32 {
	h.enter("file_sync")
	return did(h.Disk.Sync(int(file)))
}

// PictureAdd implements [lent.Imports].
func (h *Host) PictureAdd(data []byte, contentType string, expires int64, dst *[abi.PictureNameBytes + 32]byte) int32 {
	h.enter("picture_add")
	name, hash, err := h.Hosted.Add(context.Background(), data, contentType, abi.FromNanos(expires))
	if err == nil {
		_, err = hex.Decode(dst[:], []byte(name))
		copy(dst[abi.PictureNameBytes:], hash[:])
	}
	return did(err)
}

// PictureRelease implements [lent.Imports].
func (h *Host) PictureRelease(hash *[32]byte) int32 {
	h.enter("picture_release")
	return did(h.Hosted.Release(context.Background(), *hash))
}

// PictureDrop implements [lent.Imports].
func (h *Host) PictureDrop(hash *[32]byte) int32 {
	h.enter("picture_drop")
	return did(h.Hosted.Drop(context.Background(), *hash))
}

// PictureLookup implements [lent.Imports].
func (h *Host) PictureLookup(name *[abi.PictureNameBytes]byte, dst []byte) int64 {
	h.enter("picture_lookup")
	p, err := h.Hosted.Lookup(hex.EncodeToString(name[:]), h.Clock())
	return put(dst, abi.AppendPicture(nil, &p), err)
}

// PictureHas implements [lent.Imports].
func (h *Host) PictureHas(hash *[32]byte) int32 {
	h.enter("picture_has")
	has, err := h.Blobs.Has(context.Background(), *hash)
	if err == nil && !has {
		err = blob.ErrNotFound
	}
	return did(err)
}

// PictureGet implements [lent.Imports].
func (h *Host) PictureGet(hash *[32]byte, dst []byte) int64 {
	h.enter("picture_get")
	data, err := h.Blobs.Get(context.Background(), *hash)
	return put(dst, data, err)
}

// PicturePut implements [lent.Imports].
func (h *Host) PicturePut(hash *[32]byte, data []byte) int32 {
	h.enter("picture_put")
	_, err := h.Blobs.Put(context.Background(), bytes.NewReader(data), *hash)
	return did(err)
}

// RegisterSeq implements [lent.Imports].
func (h *Host) RegisterSeq() int64 {
	h.enter("register_seq")
	return int64(h.Register.Seq())
}

// RegisterTake implements [lent.Imports].
func (h *Host) RegisterTake(seq int64, data []byte) int32 {
	h.enter("register_take")
	_, err := h.Register.Take(uint64(seq), bytes.Clone(data))
	return did(err)
}

// TokenIssue implements [lent.Imports].
func (h *Host) TokenIssue(claims, dst []byte) int64 {
	h.enter("token_issue")
	c, err := abi.ParseClaims(claims)
	if err != nil {
		return put(dst, nil, err)
	}
	token, life, err := h.Tokens.Issue(c)
	return put(dst, abi.AppendToken(nil, token, life), err)
}

// TokenRead implements [lent.Imports].
func (h *Host) TokenRead(token string, dst []byte) int64 {
	h.enter("token_read")
	c, err := h.Tokens.Read(token)
	return put(dst, abi.MarshalClaims(c), err)
}

// Count implements [lent.Imports].
func (h *Host) Count(dst []byte) int64 {
	h.enter("count")
	if h.Counts == nil {
		return put(dst, nil, errNotLent)
	}
	return put(dst, []byte(h.Counts()), nil)
}
