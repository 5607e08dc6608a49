package index

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// Links caches the pairs of inputs of one space that a search has found to belong together. Analyses never change, so a pair stays valid as
// long as both inputs live. It is safe for concurrent use.
type Links struct {
	mu    sync.Mutex
	known *roaring.Bitmap
	of    map[uint32][]Link
}

// Link is another input and the result of a search for the pair.
type Link struct {
	Ord   uint32
	Score float32
	Kind  int8 // defined by the search
}

func newLinks() *Links { return &Links{known: roaring.New(), of: map[uint32][]Link{}} }

// Links returns the links of the view's space.
func (v *View) Links() *Links {
	v.x.mu.Lock()
	defer v.x.mu.Unlock()
	l := v.space.links
	if l == nil {
		l = newLinks()
		v.space.links = l
	}
	return l
}

// RemoveKnown removes from among the inputs whose links were stored by Put.
func (l *Links) RemoveKnown(among *roaring.Bitmap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	among.AndNot(l.known)
}

// Put stores the links that were found for an input. It retains links.
func (l *Links) Put(ord uint32, links []Link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.Add(ord)
	if len(links) > 0 {
		l.of[ord] = links
	}
}

// Each calls yield with each input of among that has links, in the order of ordinals. links is borrowed.
func (l *Links) Each(among *roaring.Bitmap, yield func(ord uint32, links []Link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for it := roaring.And(l.known, among).Iterator(); it.HasNext(); {
		ord := it.Next()
		if links := l.of[ord]; len(links) > 0 {
			yield(ord, links)
		}
	}
}
