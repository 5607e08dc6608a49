package catalog

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// ReplaceState adds to a batch the changes that replace an application's state by that in from, to repair a store from its log. Derived
// records, objects and the index do not change.
func ReplaceState(b kv.Writer, from kv.Reader, app AppID) (err error) {
	prefix := app.key(0, 0)
	prefix = prefix[:len(prefix)-1]
	for _, t := range stateTables {
		lo := append(bytes.Clone(prefix), t)
		b.DeleteRange(lo, kv.After(lo))
		for key, value := range kv.All(from, lo, &err) {
			b.Put(key, value)
		}
		if err != nil {
			return err
		}
	}
	for key, value := range kv.All(from, []byte{tableHosted}, &err) {
		if bytes.HasSuffix(key, app[:]) {
			b.Put(key, value)
		}
	}
	return err
}
