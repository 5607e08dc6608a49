package blob

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

// HostedNames gives blobs public names: 32 hex digits from 128 random bits, which nobody can guess. It counts the names of each blob, and
// deletes a blob with its last name. It is safe for concurrent use.
//
//	names/a1/a1b2…   one record for each name (record.go); absent without a file system
//	names.new/4      a record that is being written
//
// Add stores a blob before its name. Remove deletes a name before its blob. Each step is synced, so after a crash every name has its
// blob. A crash can leave a blob without a name, which [HostedNames.Collect] finds.
//
// The names are in memory too: about 200 bytes each.
type HostedNames struct {
	blobs      Blobs
	random     io.Reader
	references func(Hash) bool
	ended      func(AppID) (bool, error)
	delay      time.Duration
	each       func(ctx context.Context, from Hash, yield func(Hash) error) error
	lazy       lazyBlobs // nil if every blob is synced
	fsys       FS        // nil if names exist in memory only
	spool      *spool

	mu        sync.Mutex
	names     map[[nameBytes]byte]Picture
	pins      map[Hash]int       // number of names, Pins and running Adds of each blob
	deadBlobs map[Hash]time.Time // blobs to delete, since the Sweep that saw them first; zero: none has
	deleting  map[Hash]bool      // blobs that the store is deleting
	deleted   *sync.Cond         // signals that the store has deleted a blob
	damaged   []string           // paths of name records that cannot be read
}

// HostedOptions are the settings of HostedNames.
type HostedOptions struct {
	FS     FS        // stores the names; nil: names exist in memory only
	Blobs  Blobs     // stores the bytes
	Random io.Reader // source of the names; it must be fit for secrets

	// References reports whether something other than a name needs a blob of the same store. Such
	// blobs are never deleted. nil: nothing does. References must not call the HostedNames.
	References func(Hash) bool

	// AppDeleted reports whether an application was deleted. The names of its pictures then end too. nil: names end by their time only.
	// AppDeleted must not call the HostedNames.
	AppDeleted func(app AppID) (bool, error)

	// Delay is the time for which a blob stays that nothing needs any longer. Sweep checks References again after it. 0: the blob is deleted
	// at once.
	Delay time.Duration

	// Each lists the blobs that Collect may delete, as Blobs.Each does. It can leave out new blobs. nil: all blobs.
	Each func(ctx context.Context, from Hash, yield func(Hash) error) error

	// Lazy omits the syncs of blobs whose names expire, if Blobs supports that. It saves several syncs for
	// each blob, but a power failure may lose or damage such a blob.
	Lazy bool
}

// OpenHosted reads the existing names. It ignores a damaged record; [HostedNames.Collect] deletes it.
func OpenHosted(o HostedOptions) (*HostedNames, error) {
	h := &HostedNames{
		blobs: o.Blobs, random: o.Random, references: o.References, ended: o.AppDeleted, fsys: o.FS,
		names: map[[nameBytes]byte]Picture{}, pins: map[Hash]int{}, deadBlobs: map[Hash]time.Time{}, deleting: map[Hash]bool{},
		delay: o.Delay, each: o.Each,
	}
	h.deleted = sync.NewCond(&h.mu)
	if h.each == nil {
		h.each = h.blobs.Each
	}
	if l, ok := o.Blobs.(lazyBlobs); ok && o.Lazy {
		h.lazy = l
	}
	if h.references == nil {
		h.references = func(Hash) bool { return false }
	}
	if h.ended == nil {
		h.ended = func(AppID) (bool, error) { return false, nil }
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

// parseName decodes a public name of 32 hex digits.
func parseName(s string) (key [nameBytes]byte, ok bool) {
	if !isHex(s, nameBytes) {
		return key, false
	}
	_, err := hex.Decode(key[:], []byte(s))
	return key, err == nil
}

// Add stores data and gives it a new name. The name ends at expires, rounded down to milliseconds; a name with a zero expires lasts
// until it is removed. It also ends with the application app, unless app is zero. The same bytes added twice have two names and one blob.
// If Add returns an error, there is no new name. But if the program crashes before the next Sweep, an unused name may remain.
func (h *HostedNames) Add(ctx context.Context, app AppID, data []byte, contentType string, expires time.Time) (name string, hash Hash, err error) {
	if err := checkContentType(contentType); err != nil {
		return "", Hash{}, err
	}
	hash = Sum(data)
	h.pinLocked(hash)
	if err := h.put(ctx, data, hash, expires); err != nil {
		return "", Hash{}, errors.Join(err, h.Unpin(ctx, hash))
	}
	name, err = h.name(ctx, Picture{Hash: hash, App: app, ContentType: contentType}, expires)
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

// lazyBlobs is a store that can write a blob without syncing it, such as *Folder.
type lazyBlobs interface {
	PutLazy(ctx context.Context, data []byte, h Hash) error
}

// Pin stores data without a name until the same number of calls of Unpin. It protects a blob until a record
// exists that References reports. If Pin returns an error, nothing is pinned.
func (h *HostedNames) Pin(ctx context.Context, data []byte) (Hash, error) {
	hash := Sum(data)
	h.pinLocked(hash)
	if _, err := h.blobs.Put(ctx, bytes.NewReader(data), hash); err != nil {
		return Hash{}, errors.Join(err, h.Unpin(ctx, hash))
	}
	return hash, nil
}

// Unpin ends one Pin. The blob stays only if a name, another Pin or References needs it. If it cannot be deleted, Unpin returns the
// error, and Sweep tries again.
func (h *HostedNames) Unpin(ctx context.Context, hash Hash) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unpinLocked(ctx, hash)
}

// Drop deletes a blob whose record may have been deleted, unless a name, a Pin or References needs it.
func (h *HostedNames) Drop(ctx context.Context, hash Hash) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pins[hash] > 0 {
		return nil // the last Unpin checks References
	}
	return h.discard(ctx, hash)
}

// name gives a pinned blob a new name until expires, which takes over the pin. If it fails, it removes the pin.
func (h *HostedNames) name(ctx context.Context, p Picture, expires time.Time) (string, error) {
	if !expires.IsZero() {
		p.Expires = time.UnixMilli(expires.UnixMilli()).UTC()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key, err := h.fresh()
	if err != nil {
		return "", errors.Join(err, h.unpinLocked(ctx, p.Hash))
	}
	name := hex.EncodeToString(key[:])
	h.names[key] = p
	if h.fsys != nil {
		err := h.spool.write(synced, func(w io.Writer) (string, error) {
			_, err := w.Write(appendRecord(nil, &p))
			return place(namesDir, name), err
		})
		if err != nil {
			// The record may exist in spite of the error. Until its deletion is certain, an
			// expired name stays in memory and protects the blob: Sweep tries again.
			h.names[key] = Picture{Hash: p.Hash, Expires: time.UnixMilli(1).UTC()}
			return "", errors.Join(fmt.Errorf("hosted name: %w", err), h.unname(ctx, key))
		}
	}
	return name, nil
}

// fresh returns a random name that is not in use; mu is held.
func (h *HostedNames) fresh() ([nameBytes]byte, error) {
	for range 4 {
		var key [nameBytes]byte
		if _, err := io.ReadFull(h.random, key[:]); err != nil {
			return key, fmt.Errorf("%w: %w", ErrRandom, err)
		}
		if _, exists := h.names[key]; !exists {
			return key, nil
		}
	}
	return [nameBytes]byte{}, ErrRandom
}

// Lookup returns the picture that has a name at the time now. It returns ErrNotFound for a name that is unknown, malformed or expired, or
// belongs to a deleted application, so that a stranger cannot distinguish these cases.
func (h *HostedNames) Lookup(name string, now time.Time) (Picture, error) {
	key, ok := parseName(name)
	h.mu.Lock()
	p, exists := h.names[key]
	h.mu.Unlock()
	if !ok || !exists || p.isExpired(now) {
		return Picture{}, ErrNotFound
	}
	ended, err := h.hasEnded(p.App)
	if err == nil && ended {
		err = ErrNotFound
	}
	if err != nil {
		return Picture{}, err
	}
	return p, nil
}

// hasEnded reports whether an application was deleted.
func (h *HostedNames) hasEnded(app AppID) (bool, error) {
	if app == (AppID{}) {
		return false, nil
	}
	ended, err := h.ended(app)
	if err != nil {
		err = fmt.Errorf("application of a hosted name: %w", err)
	}
	return ended, err
}

// Remove deletes a name, and its blob if that was its last name. An unknown name is not an
// error.
func (h *HostedNames) Remove(ctx context.Context, name string) error {
	key, ok := parseName(name)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unname(ctx, key)
}

// Sweep deletes the names that have expired at the time now or whose application was deleted, and each blob that loses its last name. It
// returns the number of deleted names. It deletes blobs that had no name for the Delay. After an error it continues with the other names, and
// the next Sweep tries again.
func (h *HostedNames) Sweep(ctx context.Context, now time.Time) (int, error) {
	h.mu.Lock()
	var over [][nameBytes]byte
	current := map[AppID][][nameBytes]byte{}
	for key, p := range h.names {
		if p.isExpired(now) {
			over = append(over, key)
		} else {
			current[p.App] = append(current[p.App], key)
		}
	}
	var dead []Hash
	for hash, since := range h.deadBlobs {
		if since.IsZero() && h.delay > 0 {
			h.deadBlobs[hash] = now
		} else if now.Sub(since) >= h.delay {
			dead = append(dead, hash)
		}
	}
	h.mu.Unlock()
	var failed []error
	for app, names := range current {
		ended, err := h.hasEnded(app)
		if err != nil {
			failed = append(failed, err)
		} else if ended {
			over = append(over, names...)
		}
	}
	slices.SortFunc(over, func(a, b [nameBytes]byte) int { return bytes.Compare(a[:], b[:]) })
	slices.SortFunc(dead, compareHashes)

	n := 0
	for _, key := range over {
		if err := ctx.Err(); err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		h.mu.Lock()
		err := h.unname(ctx, key)
		if _, exists := h.names[key]; !exists {
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
		if errors.Is(err, ErrUnavailable) { // so are the others
			break
		}
	}
	return n, errors.Join(failed...)
}

// unname deletes a name, and its blob if that was its last name; mu is held.
func (h *HostedNames) unname(ctx context.Context, key [nameBytes]byte) error {
	p, exists := h.names[key]
	if !exists {
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

// pinLocked adds a pin. It waits for a deletion of the blob, which would delete the bytes that the caller stores.
func (h *HostedNames) pinLocked(hash Hash) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaitDeletion(hash)
	h.pins[hash]++
}

// awaitDeletion waits until no deletion of the blob is in progress; mu is held.
func (h *HostedNames) awaitDeletion(hash Hash) {
	for h.deleting[hash] {
		h.deleted.Wait()
	}
}

// deleteBlob deletes a blob; mu is held. It gives mu back meanwhile, because the store may be on another machine.
func (h *HostedNames) deleteBlob(ctx context.Context, hash Hash) error {
	h.deleting[hash] = true
	h.mu.Unlock()
	err := h.blobs.Delete(ctx, hash)
	h.mu.Lock()
	delete(h.deleting, hash)
	h.deleted.Broadcast()
	return err
}

// unpinLocked removes one pin and deletes the blob with its last pin; mu is held.
func (h *HostedNames) unpinLocked(ctx context.Context, hash Hash) error {
	if h.pins[hash]--; h.pins[hash] > 0 {
		return nil
	}
	delete(h.pins, hash)
	return h.discard(ctx, hash)
}

// discard deletes a blob that has no pin, or leaves that to a later Sweep; mu is held.
func (h *HostedNames) discard(ctx context.Context, hash Hash) error {
	h.deadBlobs[hash] = time.Time{}
	if h.delay > 0 {
		return nil
	}
	return h.drop(ctx, hash)
}

// drop deletes a blob that has no pin, unless References needs it; mu is held. It ignores
// cancellation of ctx, since the blob must be deleted even if the request has ended.
func (h *HostedNames) drop(ctx context.Context, hash Hash) error {
	h.awaitDeletion(hash)
	if h.pins[hash] == 0 && !h.references(hash) {
		if err := h.deleteBlob(context.WithoutCancel(ctx), hash); err != nil {
			return err
		}
	}
	delete(h.deadBlobs, hash)
	return nil
}

// Collect deletes the blobs that no name, Pin or References needs, and the files of damaged
// names. It returns the number of deleted blobs. A crash leaves such blobs, and so does a
// deletion of many records at once. Only h may write blobs to its store.
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

// CollectSome does Collect for the next n blobs, starting at the hash from. It returns the hash at which to continue, zero after the last,
// and the number of deleted blobs. After an error next is from.
func (h *HostedNames) CollectSome(ctx context.Context, from Hash, n int) (next Hash, deleted int, err error) {
	if err := h.removeDamaged(); err != nil {
		return from, 0, err
	}
	err = h.each(ctx, from, func(hash Hash) error {
		if n--; n < 0 {
			next = hash
			return errEnough
		}
		collected, err := h.collect(ctx, hash)
		if collected {
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

func (h *HostedNames) collect(ctx context.Context, hash Hash) (collected bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.awaitDeletion(hash)
	if _, waits := h.deadBlobs[hash]; waits && h.delay > 0 || h.pins[hash] > 0 || h.references(hash) {
		return false, nil
	}
	err = h.deleteBlob(ctx, hash)
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

// Len returns the number of names, including expired ones that Sweep has not deleted yet.
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
