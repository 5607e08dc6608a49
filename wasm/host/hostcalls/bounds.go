package hostcalls

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
)

// errOtherApp is returned if a guest writes a key of another application, or issues a token for one.
var errOtherApp = errors.New("the key belongs to another application")

// bounds limits the writes of an instance to its application, in a store with several applications. The zero value allows all writes. An
// instance may read any key, since a public name may be that of another application's picture.
//
//	a app …       its own keys
//	h name app    its own public names
type bounds struct {
	one bool
	app catalog.AppID
}

// boundsOf returns the bounds of an instance that serves app. If app is empty, the bounds allow all writes.
func boundsOf(app string) (bounds, error) {
	if app == "" {
		return bounds{}, nil
	}
	id, err := catalog.ParseAppID(app)
	return bounds{one: true, app: id}, err
}

// hostedKeyBytes is the length of a public name's key.
const hostedKeyBytes = 1 + 16 + len(catalog.AppID{})

// mayWrite reports whether a key belongs to the application.
func (b *bounds) mayWrite(key []byte) bool {
	lo, _ := b.app.Range()
	if bytes.HasPrefix(key, lo) {
		return true
	}
	names, _ := catalog.HostedRange()
	return len(key) == hostedKeyBytes && bytes.HasPrefix(key, names) && bytes.HasSuffix(key, b.app[:])
}

// check returns errOtherApp, wrapped, if a batch writes outside the bounds.
func (b *bounds) check(batch *kv.Batch) error {
	if !b.one {
		return nil
	}
	for op := range batch.Each {
		ok := false
		if op.Kind == kv.KindDeleteRange {
			lo, hi := b.app.Range()
			ok = within(op.Key, op.Value, lo, hi)
		} else {
			ok = b.mayWrite(op.Key)
		}
		if !ok {
			return fmt.Errorf("write to %.40x: %w", op.Key, errOtherApp)
		}
	}
	return nil
}

// within reports whether the range lo ≤ key < hi is inside outerLo ≤ key < outerHi. A nil hi or outerHi means no upper bound.
func within(lo, hi, outerLo, outerHi []byte) bool {
	return bytes.Compare(lo, outerLo) >= 0 && (outerHi == nil || hi != nil && bytes.Compare(hi, outerHi) <= 0)
}

// mayIssue reports whether the instance may issue tokens for an application.
func (b *bounds) mayIssue(app string) bool { return !b.one || app == b.app.String() }
