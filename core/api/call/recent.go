package call

import (
	"container/list"
	"sync"
)

// recent caches values in memory, the most recently used ones up to limit bytes. The last used value stays even if it is larger. recent
// is safe for concurrent use.
type recent[K comparable, V any] struct {
	limit int // approximate maximum of all values, in bytes

	mu    sync.Mutex
	byKey map[K]*list.Element
	order *list.List // of entry, most recently used first
	bytes int
}

// entry is a value of a recent.
type entry[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, byKey: map[K]*list.Element{}, order: list.New()}
}

// Find returns the value of a key, if the cache has it.
func (r *recent[K, V]) Find(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Put adds a value of a size in bytes, unless the cache has one of the key.
func (r *recent[K, V]) Put(key K, value V, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.byKey[key]; ok {
		return
	}
	r.byKey[key] = r.order.PushFront(entry[K, V]{key, value, bytes})
	for r.bytes += bytes; r.bytes > r.limit && r.order.Len() > 1; {
		last := r.order.Remove(r.order.Back()).(entry[K, V])
		delete(r.byKey, last.key)
		r.bytes -= last.bytes
	}
}
