package catalog

import (
	"bytes"

	"github.com/sightline-dev/sightline/core/kv"
)

// ReplaceState adds to b the changes that replace an application's state by the state in from. A caller that has folded the log into from
// uses it to repair a store. The changes also add the hosted names of the application in from. They do not affect derived records,
// objects and the index. The error is that of from.
func ReplaceState(b kv.Writer, from kv.Reader, app AppID) (err error) {
	prefix := app.key(0, 0)
	prefix = prefix[:len(prefix)-1]
	for _, t := range stateTables {
		lo := append(bytes.Clone(prefix), t)
		kv.DeletePrefix(b, lo)
		for key, value := range kv.WithPrefix(from, lo, &err) {
			b.Put(key, value)
		}
		if err != nil {
			return err
		}
	}
	for key, value := range kv.WithPrefix(from, []byte{tableHosted}, &err) {
		if bytes.HasSuffix(key, app[:]) {
			b.Put(key, value)
		}
	}
	return err
}
