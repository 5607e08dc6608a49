package fold

import "github.com/sightline-dev/sightline/core/kv"

// A fold that starts at the beginning of a log has seen every id and URL of its inputs. A new input usually has others. Then the fold need
// not ask the store, which is slowest for missing keys.
const (
	knownID  = 'i'
	knownURL = 'u'
)

// know begins to record ids and URLs if there is no input yet.
func (f *Fold) know() {
	if f.nameFilter == nil && !f.pending && f.h.Next == 0 {
		f.nameFilter = &kv.Filter{}
	}
}

// note records the id or the URL of a new input.
func (f *Fold) note(kind byte, name string) {
	if f.nameFilter != nil && name != "" {
		f.nameFilter.Add(f.nameKey(kind, name))
	}
}

// mayExist reports whether an existing input may have an id or a URL.
func (f *Fold) mayExist(kind byte, name string) bool {
	return f.nameFilter == nil || f.nameFilter.Has(f.nameKey(kind, name))
}

func (f *Fold) nameKey(kind byte, name string) []byte {
	f.scratch = append(append(f.scratch[:0], kind), name...)
	return f.scratch
}
