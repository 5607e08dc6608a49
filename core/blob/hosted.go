package blob

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// ErrContentType is returned for a content type that no header line may hold.
var ErrContentType = errors.New("invalid content type")

// ErrRandom is returned when the random source fails or repeats itself.
var ErrRandom = errors.New("random source returned no unused name")

const (
	namesDir   = "names"
	namesSpool = "names.new"
	nameBytes  = 16
)

// HostedNames gives blobs public names: 32 hex digits from 128 random bits, which nobody can guess. It is safe for concurrent use, and
// counts names, so that a blob is deleted with its last name.
//
//	names/a1/a1b2…   one record a name (record.go); absent without a file system
//	names.new/4      being written
//
// A blob is stored before its name, and a name removed before its blob, each synced, so after a crash every name has its blob. A crash
// can leave a blob without a name; [HostedNames.Collect] finds those.
//
// The names are in memory too: about 200 bytes each.
type HostedNames struct {
	blobs      Blobs
	random     io.Reader
	references func(Hash) bool
	lazy       lazyBlobs // nil: all is synced
	fsys       FS        // nil: names end with the program
	spool      *spool

	mu        sync.Mutex
	names     map[[nameBytes]byte]Picture
	pins      map[Hash]int // names of a blob, and calls of Add under way
	deadBlobs map[Hash]bool
	damaged   []string // files of names that cannot be read
}

// HostedOptions are the stores of names and blobs.
type HostedOptions struct {
	FS     FS        // where the names are kept; nil keeps them in memory alone
	Blobs  Blobs     // where the bytes are
	Random io.Reader // names come from it: a source fit for secrets

	// References reports whether something else than a name needs a blob in the same store; such
	// blobs are never deleted. nil: nothing does. It must not call the Hosted.
	References func(Hash) bool

	// Lazy leaves out the syncs of blobs whose names end, where Blobs can: such a copy may be
	// lost or damaged when the machine loses power, which saves several syncs each.
	Lazy bool
}

// OpenHosted reads the existing names. It ignores a damaged record; [HostedNames.Collect] deletes it.
func OpenHosted(o HostedOptions) (*HostedNames, error) {
	h := &HostedNames{
		blobs: o.Blobs, random: o.Random, references: o.References, fsys: o.FS,
		names: map[[nameBytes]byte]Picture{}, pins: map[Hash]int{}, deadBlobs: map[Hash]bool{},
	}
	if l, ok := o.Blobs.(lazyBlobs); ok && o.Lazy {
		h.lazy = l
	}
	if h.references == nil {
		h.references = func(Hash) bool { return false }
	}
	fsys := o.FS
	if fsys == nil {
		return h, nil
	}
	if err := fsys.MkdirAll(namesDir); err != nil {
		return nil, fmt.Errorf("hosted names: %w", err)
	}
	var err error
	if h.spool, err = openSpool(fsys, namesSpool); err != nil {
		return nil, fmt.Errorf("hosted names: %w", err)
	}
	if err := list(fsys, namesDir, nameBytes, "", h.load); err != nil {
		return nil, fmt.Errorf("hosted names: %w", err)
	}
	return h, nil
}

func (h *HostedNames) load(name string) error {
	data, err := readFile(h.fsys, place(namesDir, name), maxRecord)
	var p Picture
	if err == nil {
		p, err = parseRecord(data)
	}
	switch {
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrContentType):
		h.damaged = append(h.damaged, name)
		return nil
	case err != nil:
		return err
	}
	key, _ := parseName(name)
	h.names[key] = p
	h.pins[p.Hash]++
	return nil
}

// parseName reads a name as requests carry it.
func parseName(s string) (key [nameBytes]byte, ok bool) {
	if !isHex(s, nameBytes) {
		return key, false
	}
	_, err := hex.Decode(key[:], []byte(s))
	return key, err == nil
}

// Add keeps data and gives it a new name, until expires (rounded down to milliseconds) or, when
// that is zero, until it is removed. The same bytes added twice have two names and one blob.
// When it returns an error there is no new name; only if the program crashes before a Sweep
// could tidy up, one that nobody knows may be left.
func (h *HostedNames) Add(ctx context.Context, data []byte, contentType string, expires time.Time) (name string, hash Hash, err error) {
	if err := checkContentType(contentType); err != nil {
		return "", Hash{}, err
	}
	hash = Sum(data)
	h.pinLocked(hash)
	if err := h.put(ctx, data, hash, expires); err != nil {
		return "", Hash{}, errors.Join(err, h.Unpin(ctx, hash))
	}
	name, err = h.name(ctx, hash, contentType, expires)
	if err != nil {
		return "", Hash{}, err
	}
	return name, hash, nil
}

// put stores a blob.
func (h *HostedNames) put(ctx context.Context, data []byte, hash Hash, expires time.Time) error {
	if h.lazy != nil && !expires.IsZero() {
		return h.lazy.PutLazy(ctx, data, hash)
	}
	_, err := h.blobs.Put(ctx, bytes.NewReader(data), hash)
	return err
}

// lazyBlobs is a store that can keep what may be lost; *Folder is one.
type lazyBlobs interface {
	PutLazy(ctx context.Context, data []byte, h Hash) error
}

// Pin keeps data without a name until Unpin has been called as often: for a blob on its way
// into a record that References will claim. With an error nothing is held.
func (h *HostedNames) Pin(ctx context.Context, data []byte) (Hash, error) {
	hash := Sum(data)
	h.pinLocked(hash)
	if _, err := h.blobs.Put(ctx, bytes.NewReader(data), hash); err != nil {
		return Hash{}, errors.Join(err, h.Unpin(ctx, hash))
	}
	return hash, nil
}

// Unpin ends one Pin. The blob stays only if a name, another Pin or References claims it. If it cannot be deleted, Unpin returns the
// error, and Sweep tries again.
func (h *HostedNames) Unpin(ctx context.Context, hash Hash) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unpinLocked(ctx, hash)
}

// Drop deletes a blob that References has claimed and perhaps no longer does, under Unpin's rules.
func (h *HostedNames) Drop(ctx context.Context, hash Hash) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pins[hash] > 0 {
		return nil // the last of them will ask Keep
	}
	h.deadBlobs[hash] = true
	return h.drop(ctx, hash)
}

// name gives a held blob a new name, which takes over the hold; without one the hold is given up.
func (h *HostedNames) name(ctx context.Context, hash Hash, contentType string, expires time.Time) (string, error) {
	p := Picture{Hash: hash, ContentType: contentType}
	if !expires.IsZero() {
		p.Expires = time.UnixMilli(expires.UnixMilli()).UTC()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key, err := h.fresh()
	if err != nil {
		return "", errors.Join(err, h.unpinLocked(ctx, hash))
	}
	name := hex.EncodeToString(key[:])
	h.names[key] = p
	if h.fsys != nil {
		err := h.spool.write(synced, func(w io.Writer) (string, error) {
			_, err := w.Write(appendRecord(nil, &p))
			return place(namesDir, name), err
		})
		if err != nil {
			// The record may be there all the same. Until it has surely gone the name is
			// kept, long expired, and with it the blob: Sweep tries again.
			h.names[key] = Picture{Hash: hash, Expires: time.UnixMilli(1).UTC()}
			return "", errors.Join(fmt.Errorf("hosted name: %w", err), h.unname(ctx, key))
		}
	}
	return name, nil
}

// fresh draws a name that is not taken.
func (h *HostedNames) fresh() ([nameBytes]byte, error) {
	for range 4 {
		var key [nameBytes]byte
		if _, err := io.ReadFull(h.random, key[:]); err != nil {
			return key, fmt.Errorf("%w: %w", ErrRandom, err)
		}
		if _, taken := h.names[key]; !taken {
			return key, nil
		}
	}
	return [nameBytes]byte{}, ErrRandom
}

// Lookup returns the picture with a name at the time now. It returns ErrNotFound for a name that is unknown, malformed or expired, so
// that a stranger cannot distinguish the three cases.
func (h *HostedNames) Lookup(name string, now time.Time) (Picture, error) {
	key, ok := parseName(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	p, held := h.names[key]
	if !ok || !held || p.isExpired(now) {
		return Picture{}, ErrNotFound
	}
	return p, nil
}

// Remove takes a name away, and its blob when that was the last. A name that is not held is
// no error.
func (h *HostedNames) Remove(ctx context.Context, name string) error {
	key, ok := parseName(name)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unname(ctx, key)
}

// Sweep deletes the names that have expired at the time now, and every blob with its last name, and returns the number of deleted names.
// After an error it deletes the others nevertheless, and the next Sweep tries again.
func (h *HostedNames) Sweep(ctx context.Context, now time.Time) (int, error) {
	h.mu.Lock()
	var over [][nameBytes]byte
	for key, p := range h.names {
		if p.isExpired(now) {
			over = append(over, key)
		}
	}
	dead := slices.Collect(maps.Keys(h.deadBlobs))
	h.mu.Unlock()
	slices.SortFunc(over, func(a, b [nameBytes]byte) int { return bytes.Compare(a[:], b[:]) })
	slices.SortFunc(dead, compareHashes)

	n := 0
	var failed []error
	for _, key := range over {
		if err := ctx.Err(); err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		h.mu.Lock()
		err := h.unname(ctx, key)
		if _, held := h.names[key]; !held {
			n++
		}
		h.mu.Unlock()
		if err != nil {
			failed = append(failed, err)
		}
	}
	for _, hash := range dead {
		h.mu.Lock()
		err := h.drop(ctx, hash)
		h.mu.Unlock()
		if err != nil {
			failed = append(failed, err)
		}
	}
	return n, errors.Join(failed...)
}

// unname removes a name; mu is held.
func (h *HostedNames) unname(ctx context.Context, key [nameBytes]byte) error {
	p, held := h.names[key]
	if !held {
		return nil
	}
	if h.fsys != nil {
		file := place(namesDir, hex.EncodeToString(key[:]))
		if err := remove(h.fsys, file); err != nil {
			return fmt.Errorf("remove hosted name: %w", err)
		}
		if err := h.fsys.SyncDir(file[:len(namesDir)+3]); err != nil {
			return fmt.Errorf("remove hosted name: %w", err)
		}
	}
	delete(h.names, key)
	return h.unpinLocked(ctx, p.Hash)
}

func (h *HostedNames) pinLocked(hash Hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pins[hash]++
}

// unpinLocked gives up one hold and deletes the blob with the last; mu is held.
func (h *HostedNames) unpinLocked(ctx context.Context, hash Hash) error {
	if h.pins[hash]--; h.pins[hash] > 0 {
		return nil
	}
	delete(h.pins, hash)
	h.deadBlobs[hash] = true
	return h.drop(ctx, hash)
}

// drop deletes a blob that has lost its last name, unless it has a new one; mu is held.
// The request that caused it may be over, the deletion is wanted all the same.
func (h *HostedNames) drop(ctx context.Context, hash Hash) error {
	if h.pins[hash] == 0 && !h.references(hash) {
		if err := h.blobs.Delete(context.WithoutCancel(ctx), hash); err != nil {
			return err
		}
	}
	delete(h.deadBlobs, hash)
	return nil
}

// Collect deletes the blobs that nothing claims, no name, Pin or References, and the files of
// damaged names; it returns how many blobs went. A crash leaves such blobs, and so does what
// deletes many records at once. Nothing may put blobs into the same store but h.
func (h *HostedNames) Collect(ctx context.Context) (int, error) {
	deleted := 0
	for from := (Hash{}); ; {
		next, n, err := h.CollectSome(ctx, from, 1000)
		if deleted += n; err != nil || next.IsZero() {
			return deleted, err
		}
		from = next
	}
}

// CollectSome is Collect of the next n blobs, starting at the hash from. It returns the hash at which to continue, zero after the last,
// and the number of deleted blobs. After an error next is from.
func (h *HostedNames) CollectSome(ctx context.Context, from Hash, n int) (next Hash, deleted int, err error) {
	if err := h.removeDamaged(); err != nil {
		return from, 0, err
	}
	err = h.blobs.Each(ctx, from, func(hash Hash) error {
		if n--; n < 0 {
			next = hash
			return errEnough
		}
		gone, err := h.collect(ctx, hash)
		if gone {
			deleted++
		}
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return from, deleted, err
	}
	return next, deleted, nil
}

// errEnough ends a walk over the blobs.
var errEnough = errors.New("enough")

func (h *HostedNames) collect(ctx context.Context, hash Hash) (gone bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pins[hash] > 0 || h.references(hash) {
		return false, nil
	}
	err = h.blobs.Delete(ctx, hash)
	return err == nil, err
}

func (h *HostedNames) removeDamaged() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.damaged) > 0 {
		if err := remove(h.fsys, place(namesDir, h.damaged[0])); err != nil {
			return fmt.Errorf("remove hosted name: %w", err)
		}
		h.damaged = h.damaged[1:]
	}
	return nil
}

// Len returns the number of names, expired ones that Sweep has not met among them.
func (h *HostedNames) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.names)
}

// CountDamaged returns the number of unreadable name records that still exist.
func (h *HostedNames) CountDamaged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.damaged)
}
