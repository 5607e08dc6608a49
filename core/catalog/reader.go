package catalog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// ErrNotFound is returned if the application has no record with an id.
var ErrNotFound = errors.New("not found")

// Reader reads one application's records. It is a value. It is safe for concurrent use if its kv.Reader is,
// and it is a snapshot if its kv.Reader is one.
//
// The caller owns the returned records. Methods with a yield call it with records in the documented order
// until it returns false; yield may keep the records.
type Reader struct {
	kv  kv.Reader
	app AppID
}

// Read returns a reader of app over r: a store, a snapshot or an overlay.
func Read(r kv.Reader, app AppID) Reader { return Reader{kv: r, app: app} }

// AppID returns the application that the reader reads.
func (r Reader) AppID() AppID { return r.app }

// KV returns the underlying reader.
func (r Reader) KV() kv.Reader { return r.kv }

// get returns the value of a key. For a missing key it returns an ErrNotFound whose text has kind and id.
func (r Reader) get(key []byte, kind string, id any) ([]byte, error) {
	v, err := r.kv.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, notFound(kind, id)
	}
	return v, err
}

// lookup decodes the value of a key. For a missing key it returns an ErrNotFound whose text has kind and id.
func lookup[T any](r Reader, key []byte, kind string, id any, decode func([]byte) (T, error)) (x T, err error) {
	v, err := r.get(key, kind, id)
	if err != nil {
		return x, err
	}
	return decode(v)
}

// orZero decodes the value of a key. It returns zero if the key does not exist.
func orZero[T any](r Reader, key []byte, decode func([]byte) (T, error)) (x T, err error) {
	v, err := kv.Find(r.kv, key)
	if v == nil {
		return x, err
	}
	return decode(v)
}

// missing is the error for a missing record. It formats its text only on request, because every new input checks that its id is free.
type missing struct {
	kind string
	id   any
}

func notFound(kind string, id any) error { return &missing{kind, id} }

func (m *missing) Error() string { return fmt.Sprintf("%s %v: %v", m.kind, m.id, ErrNotFound) }

func (m *missing) Unwrap() error { return ErrNotFound }

// Header returns the partition's header as of the last folded entry; zero before the first entry.
func (r Reader) Header() (Header, error) {
	return orZero(r, r.app.key(tableHeader, 0), decodeHeader)
}

// Counts returns the number of live inputs in each state.
func (r Reader) Counts() (Counts, error) {
	h, err := r.Header()
	return h.Counts, err
}

// Input returns the live input with an ordinal.
func (r Reader) Input(ord uint32) (Input, error) {
	return lookup(r, r.app.uint32Key(tableInput, ord), "input of ordinal", ord, decodeInput)
}

// Ord returns the ordinal of the live input with an id.
func (r Reader) Ord(id string) (uint32, error) {
	return lookup(r, r.app.stringKey(tableInputID, id), "input", id, number4)
}

// InputByID returns the live input with an id.
func (r Reader) InputByID(id string) (Input, error) {
	ord, err := r.Ord(id)
	if err != nil {
		return Input{}, err
	}
	return r.Input(ord)
}

// InputByDot returns the live input that an operation created.
func (r Reader) InputByDot(dot log.Dot) (Input, error) {
	ord, err := lookup(r, r.app.dotKey(tableInputDot, dot, 0), "input of operation", dot, number4)
	if err != nil {
		return Input{}, err
	}
	return r.Input(ord)
}

// Inputs yields the live inputs, starting at an ordinal, in the order of their creation.
func (r Reader) Inputs(from uint32, yield func(Input) bool) error {
	var failed error
	for _, value := range kv.Range(r.kv, r.app.uint32Key(tableInput, from), kv.PrefixEnd(r.app.key(tableInput, 0)), &failed) {
		in, err := decodeInput(bytes.Clone(value))
		if err != nil || !yield(in) {
			return err
		}
	}
	return failed
}

// InputsWithURL yields the ordinals of the live inputs with a URL, in the order of their creation.
func (r Reader) InputsWithURL(url string, yield func(ord uint32) bool) error {
	key := r.app.url(url)
	v, err := kv.Find(r.kv, key)
	if v == nil {
		return err
	}
	ord, err := number4(v)
	if err != nil || !yield(ord) {
		return err
	}
	return r.kv.Scan(append(key[:len(key):len(key)], 0), kv.PrefixEnd(key), func(other, _ []byte) bool { return yield(ordAt(other)) })
}

// ByBlob yields the ordinals of the live inputs with a picture and any crop. Inputs with the same
// crop come in the order of their creation.
func (r Reader) ByBlob(h blob.Hash, yield func(ord uint32) bool) error {
	return r.ords(append(r.app.key(tableBlob, len(h)), h[:]...), yield)
}

// PendingInputs yields the ordinals of the inputs at 30001, starting at an ordinal, in the order of their creation.
func (r Reader) PendingInputs(from uint32, yield func(ord uint32) bool) error {
	return r.kv.Scan(r.app.uint32Key(tablePending, from), kv.PrefixEnd(r.app.key(tablePending, 0)), func(key, _ []byte) bool { return yield(ordAt(key)) })
}

// ords yields the ordinals at the ends of the keys that begin with prefix.
func (r Reader) ords(prefix []byte, yield func(ord uint32) bool) error {
	return r.kv.Scan(prefix, kv.PrefixEnd(prefix), func(key, _ []byte) bool { return yield(ordAt(key)) })
}

// Collect returns the values that a method of Reader yields:
//
//	apps, err := catalog.Collect(r.Apps)
func Collect[T any](each func(yield func(T) bool) error) (all []T, err error) {
	err = each(func(x T) bool {
		all = append(all, x)
		return true
	})
	return all, err
}

// all decodes the values of the keys that begin with prefix and yields them.
func all[T any](r Reader, prefix []byte, decode func([]byte) (T, error), yield func(T) bool) error {
	return each(r, prefix, func(_, value []byte) (T, error) { return decode(bytes.Clone(value)) }, yield)
}

// each yields the results of get for the keys that begin with prefix.
func each[T any](r Reader, prefix []byte, get func(key, value []byte) (T, error), yield func(T) bool) error {
	var failed error
	for key, value := range kv.WithPrefix(r.kv, prefix, &failed) {
		x, err := get(key, value)
		if err != nil || !yield(x) {
			return err
		}
	}
	return failed
}

// HostedInput returns the application and the ordinal of the live input whose picture has a
// public name. It is the only read that covers all applications.
func HostedInput(r kv.Reader, name [16]byte) (AppID, uint32, error) {
	prefix := append([]byte{tableHosted}, name[:]...)
	var failed error
	for key, value := range kv.WithPrefix(r, prefix, &failed) {
		app := AppID(key[len(prefix):])
		ord, err := number4(value)
		if err != nil {
			return AppID{}, 0, err
		}
		in, err := Read(r, app).liveInput(ord)
		if errors.Is(err, ErrNotFound) {
			continue // deleted with its application; a later step deletes the name
		}
		if err != nil {
			return AppID{}, 0, err
		}
		if in.Hosted == name {
			return app, ord, nil
		}
	}
	if failed == nil {
		failed = fmt.Errorf("picture %x: %w", name, ErrNotFound)
	}
	return AppID{}, 0, failed
}

// liveInput returns the live input with an ordinal, unless its application was deleted.
func (r Reader) liveInput(ord uint32) (Input, error) {
	deleted, err := Read(r.kv, Control).AppDeleted(r.app.String())
	if err != nil {
		return Input{}, err
	}
	if deleted {
		return Input{}, notFound("application", r.app)
	}
	return r.Input(ord)
}

// wrapError adds the name of a record to an error.
func wrapError(err error, kind string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}
