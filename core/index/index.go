package index

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// ErrCorrupt is returned if the index contradicts itself or the records. [Index.Rebuild] makes it again from the records.
var ErrCorrupt = errors.New("index is damaged")

// format is the version of the layout.
const format = 1

// Options are an index's settings.
type Options struct {
	Space        // space of the serving base model
	Next  *Space // space of the base model that is being re-embedded; nil if there is none

	// NoColumns reads values only from the derived records, and deletes existing columns. They contain the records' values a second time,
	// for which a store in memory has no space.
	NoColumns bool
}

// Index is the index of one application. Searches may run at any time. Only the application's one writer may call Stage, ConfirmStage and
// Discard. One Step or Rebuild may run at the same time as the writer.
type Index struct {
	app    catalog.AppID
	store  kv.Store
	prefix []byte
	bare   bool // without columns

	// commit is held from Stage to ConfirmStage or Discard, and while a step writes, so that their batches do not overlap.
	commit sync.Mutex
	staged bool // commit is held by a Stage
	reset  bool // the staged batch deletes everything
	later  bool // data of base models waits for IndexDerived; only the writer uses it
	newest fresh

	touched map[*space]*roaring.Bitmap // blocks whose analysed inputs the staged batch changes; guarded by commit

	step sync.Mutex // held by the running Step

	mu     sync.RWMutex
	epoch  uint64 // counts deletions of everything
	spaces []*space
	heads  *heads
	dates  *dates
}

// Open opens the index of an application. Its data stay in the store; the first Step that needs a graph reads it. The next Steps rebuild an
// index of another format.
func Open(store kv.Store, app catalog.AppID, o Options) (*Index, error) {
	x := &Index{app: app, store: store, prefix: app.IndexPrefix(), bare: o.NoColumns, heads: newHeads(), dates: newColumnCache[uint32](), touched: map[*space]*roaring.Bitmap{}}
	for _, s := range []*Space{&o.Space, o.Next} {
		if s == nil {
			continue
		}
		sp, err := x.newSpace(*s)
		if err != nil {
			return nil, err
		}
		x.spaces = append(x.spaces, sp)
	}
	value, err := kv.Find(store, x.section(sectionFormat))
	switch {
	case err != nil:
		return nil, err
	case value == nil:
		return x, x.begin()
	case len(value) != 1 || value[0] > format:
		return nil, fmt.Errorf("index of format %x: %w", value, kv.ErrNewer)
	}
	return x, nil
}

// begin builds the index of an application that has inputs and no index, or half of one.
func (x *Index) begin() error {
	some := false
	err := x.now().Inputs(0, func(catalog.Input) bool {
		some = true
		return false
	})
	if err != nil || !some {
		return err
	}
	return x.Rebuild(context.Background())
}

// serving returns the space that answers searches.
func (x *Index) serving() *space {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.spaces[0]
}

func (x *Index) all() []*space {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.spaces
}

func (x *Index) now() catalog.Reader { return catalog.Read(x.store, x.app) }
