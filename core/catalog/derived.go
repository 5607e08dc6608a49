package catalog

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// DerivedOfInput returns the result of the network base for an input's picture and crop.
func (r Reader) DerivedOfInput(base [32]byte, in *Input) (DerivedData, error) {
	return r.DerivedOf(base, in.Blob, in.Crop)
}

// DerivedOf returns the result of the network base for a picture and a crop.
func (r Reader) DerivedOf(base [32]byte, picture blob.Hash, crop raster.Crop) (DerivedData, error) {
	return lookup(r, derivedKey(r.app, base, picture, crop), "derived record of picture", picture, decodeDerivedData)
}

// Fingerprint returns the fingerprint of an input's picture and crop. It is empty if the record has none.
func (r Reader) Fingerprint(base [32]byte, in *Input) ([]byte, error) {
	v, err := r.DerivedRecord(base, in.Blob, in.Crop)
	if err != nil {
		return nil, err
	}
	x, err := decodeMade(v)
	return x.Fingerprint, err
}

// Taken returns the time that the file of an input's picture has. isDue reports whether an older release made the derived record, which did
// not read it.
func (r Reader) Taken(base [32]byte, in *Input) (t exif.Time, isDue bool, err error) {
	v, err := r.DerivedRecord(base, in.Blob, in.Crop)
	if errors.Is(err, ErrNotFound) {
		return exif.Time{}, false, nil
	}
	if err != nil {
		return exif.Time{}, false, err
	}
	x, err := decodeMade(v)
	return x.Taken, x.Read < exif.Version, err
}

// DerivedNameBytes is the length of the name of a derived record in its application: picture, crop and base.
const DerivedNameBytes = pictureBytes + len([32]byte{})

// UndatedDerived returns the names of the derived records of older releases, whose dates are not read, among the next reads records. from
// is nil or the result next of the last call. next is nil at the end.
func (r Reader) UndatedDerived(from []byte, reads int) (names [][]byte, next []byte, err error) {
	table := r.app.key(tableDerived, 0)
	for key, value := range kv.Range(r.kv, append(bytes.Clone(table), from...), kv.PrefixEnd(table), &err) {
		if name := key[len(table):]; reads == 0 {
			next = bytes.Clone(name)
			break
		} else if x, err := decodeMade(value); err != nil {
			return nil, nil, err
		} else if x.Read < exif.Version && len(name) == DerivedNameBytes {
			names = append(names, bytes.Clone(name))
		}
		reads--
	}
	return names, next, err
}

// TakenOf returns the time in the derived record with a name, and the exif.Version that has read it. It returns 0 without such a record.
func (r Reader) TakenOf(name []byte) (t exif.Time, read uint32, err error) {
	v, err := kv.Find(r.kv, append(r.app.key(tableDerived, len(name)), name...))
	if v == nil || err != nil {
		return exif.Time{}, 0, err
	}
	x, err := decodeMade(v)
	return x.Taken, x.Read, err
}

// CarryTaken adds the time that another replica has read to the derived record with a name. It changes nothing if the record does not
// exist, or has a date of the same or a later exif.Version.
func CarryTaken(r kv.Reader, w kv.Writer, app AppID, name []byte, t exif.Time, read uint32) error {
	key := append(app.key(tableDerived, len(name)), name...)
	v, err := kv.Find(r, key)
	if v == nil || err != nil {
		return err
	}
	d, err := decodeDerivedData(bytes.Clone(v))
	if err == nil && d.Read < read {
		d.Read, d.Taken = read, t
		w.Put(key, encodeDerivedData(nil, &d))
	}
	return err
}

// PutTaken adds the time that a picture's file has to the derived record of an input. It changes nothing if the record does not exist.
func PutTaken(tx *kv.Overlay, app AppID, base [32]byte, in *Input, t exif.Time) error {
	d, err := Read(tx, app).DerivedOfInput(base, in)
	if errors.Is(err, ErrNotFound) || err == nil && d.Read >= exif.Version {
		return nil
	}
	if err == nil {
		d.Read, d.Taken = exif.Version, t
		PutDerived(tx, app, base, in.Blob, in.Crop, d)
	}
	return err
}

func derivedKey(app AppID, base [32]byte, picture blob.Hash, crop raster.Crop) []byte {
	return append(app.picture(tableDerived, picture, crop, len(base)), base[:]...)
}

// PutDerived adds a derived record to a batch. The caller must always add it to the batch of the operation
// that needs it, even if the record exists: cleanup may be about to delete the existing record
// with the last input that had the picture.
func PutDerived(b kv.Writer, app AppID, base [32]byte, picture blob.Hash, crop raster.Crop, x DerivedData) {
	b.Put(derivedKey(app, base, picture, crop), encodeDerivedData(nil, &x))
}

// Object returns the object with a hash, such as a manifest. It checks the hash.
func (r Reader) Object(hash blob.Hash) ([]byte, error) {
	data, err := r.get(append(r.app.key(tableObject, len(hash)), hash[:]...), "object", hash)
	if err != nil {
		return nil, err
	}
	if blob.Sum(data) != hash {
		return nil, fmt.Errorf("object %v: %w", hash, kv.ErrCorrupt)
	}
	return data, nil
}

// HasObject reports whether the store has the object with a hash. It does not check the bytes.
func (r Reader) HasObject(hash blob.Hash) (bool, error) {
	return kv.AnyWithPrefix(r.kv, append(r.app.key(tableObject, len(hash)), hash[:]...))
}

// ObjectSize returns the number of bytes of the object with a hash. It does not check the bytes.
func (r Reader) ObjectSize(hash blob.Hash) (size int64, err error) {
	for _, value := range kv.WithPrefix(r.kv, append(r.app.key(tableObject, len(hash)), hash[:]...), &err) {
		return int64(len(value)), nil
	}
	if err == nil {
		err = fmt.Errorf("object %v: %w", hash, ErrNotFound)
	}
	return 0, err
}

// PutObject adds an object to a batch and returns its hash. The caller must add it to the batch of the
// version result that refers to it, because cleanup deletes unreferenced objects.
func PutObject(b kv.Writer, app AppID, data []byte) blob.Hash {
	hash := blob.Sum(data)
	b.Put(append(app.key(tableObject, len(hash)), hash[:]...), data)
	return hash
}

// Manifest returns the manifest of a version at 21100.
func (r Reader) Manifest(v *Version) (Manifest, error) {
	data, err := r.Object(v.Manifest)
	if err != nil {
		return Manifest{}, err
	}
	return UnmarshalManifest(data)
}

// TrainingDigest returns the digest in a version's manifest and skips the rest. It is zero if the version is not trained, if an
// older program trained it, and if its manifest is not stored here.
func (r Reader) TrainingDigest(v *Version) (digest [32]byte, err error) {
	if v.Manifest.IsZero() {
		return digest, nil
	}
	data, err := r.Object(v.Manifest)
	if errors.Is(err, ErrNotFound) {
		return digest, nil
	}
	if err != nil {
		return digest, err
	}
	return manifestDigest(data)
}

func (a AppID) version(model log.Dot, seq uint64) []byte {
	return appendUint64(a.dotKey(tableVersion, model, 8), seq)
}

// Objects yields the hashes and the sizes in bytes of the objects that versions refer to, each
// once, by hash.
func (r Reader) Objects(yield func(h blob.Hash, size int) bool) error {
	references, err := r.namedObjects()
	if err != nil {
		return err
	}
	table := r.app.key(tableObject, 0)
	for key, value := range kv.WithPrefix(r.kv, table, &err) {
		if h := blob.Hash(key[len(table):]); references[h] && !yield(h, len(value)) {
			return nil
		}
	}
	return err
}

// namedObjects returns the hashes of the objects that versions refer to.
func (r Reader) namedObjects() (map[blob.Hash]bool, error) {
	references := map[blob.Hash]bool{}
	err := all(r, r.app.key(tableVersion, 0), decodeVersion, func(v Version) bool {
		references[v.Manifest] = true
		return true
	})
	return references, err
}
