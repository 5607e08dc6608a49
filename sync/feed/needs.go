package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sightline-dev/sightline/core"
	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
	"github.com/sightline-dev/sightline/core/training"
)

// needs collects what the operations of one push refer to: pictures that the origin has and the application can read, their derived
// records, and manifests. The origin derives the records itself from bytes whose hash it checked, because it trusts no replica's results.
type needs struct {
	c *call
	p *partition.Origin

	again bool // the log had the operations before it was restored, perhaps before the rules for their form

	app     catalog.AppID
	base    [32]byte    // network that serves
	lacks   []blob.Hash // blobs that the first operation that cannot be accepted needs
	wants   []want      // pictures to be analysed
	derived []pushedDerived
	objects map[blob.Hash]*pushedObject
	bytes   int64       // size of objects
	pinned  []blob.Hash // pictures pinned by analyses until release
}

// want is a picture that the operation at index at needs.
type want struct {
	at          int
	picture     blob.Hash
	contentType string
	crop        raster.Crop
}

// pushedDerived is a derived record that is stored together with a push.
type pushedDerived struct {
	want
	derived catalog.DerivedData
	thumb   []byte
}

// pushedObject is an object that operations of a push name as a manifest. It is read and decoded once.
type pushedObject struct {
	data    []byte
	version string // version in the manifest
	valid   bool   // the object is a manifest
	named   bool   // an operation with the right version names it, so it is stored
}

// view returns the current state, and notes its application and the network that serves.
func (n *needs) view() (v *partition.View, err error) {
	v = n.p.View()
	n.app = v.AppID()
	if n.base, err = n.c.f.o.Engine.ServingBase(v.Reader); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// resolve returns the operations that can be accepted, the first ones of ops. It refuses those that name an invalid picture or manifest.
func (n *needs) resolve(ops []log.Op) ([]log.Op, error) {
	v, err := n.view()
	if err != nil {
		return nil, err
	}
	defer v.Close()
	for i := range ops {
		if partition.Admit(&ops[i]) != "" {
			continue // the log refuses it in any case
		}
		available, err := n.resolveOne(v.Reader, ops, i)
		if err != nil {
			return nil, err
		}
		if !available || len(n.wants) > n.c.f.o.Limits.Pictures {
			ops = ops[:i]
			n.cut(i)
			break
		}
	}
	return ops, n.analyse(ops)
}

// resolveOne finds the picture or object that operation i names. It returns false if the origin lacks it.
func (n *needs) resolveOne(r catalog.Reader, ops []log.Op, i int) (bool, error) {
	op := &ops[i]
	if b, ok := op.Body.(*log.VersionResult); ok && !b.Manifest.IsZero() {
		return n.manifest(r, op, b.Version, b.Manifest)
	}
	w, err := n.wantOf(r, ops, i)
	if err != nil || w.picture.IsZero() {
		return true, err
	}
	if !form.IsCrop(w.crop) || !form.IsPicture(w.contentType) { // Admit has checked the content type of a pushed operation
		partition.Refuse(op, "schema: invalid crop")
		return true, nil
	}
	if available, err := n.c.f.canRead(n.c.ctx, n.c.app, r, w.picture); err != nil || !available {
		n.lacks = append(n.lacks, w.picture)
		return false, err
	}
	d, err := r.DerivedOf(n.base, w.picture, w.crop)
	if err == nil && len(d.Fingerprint) > 0 && (d.Read >= exif.Version || n.c.f.o.Run == nil) {
		var thumb []byte
		if thumb, err = r.Thumb(w.picture, w.crop); err == nil {
			n.derived = append(n.derived, pushedDerived{w, d, thumb})
			return true, nil
		}
	}
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		return false, err
	}
	if n.c.f.o.Run != nil {
		n.wants = append(n.wants, w)
	}
	return true, nil
}

// wantOf returns the picture of operation i. It is zero if the operation has none, if its input was deleted, or if the fold ignores the
// picture: the operation is the result of a download that has ended, unless as unread, or has the code of a failure. Results do not count as
// calls, so they must cost little: an input becomes ready once.
func (n *needs) wantOf(r catalog.Reader, ops []log.Op, i int) (want, error) {
	switch b := ops[i].Body.(type) {
	case *log.InputCreate:
		return want{i, b.Blob, b.ContentType, b.Crop}, nil
	case *log.InputFetched:
		if b.Code != catalog.InputReady {
			return want{}, nil
		}
		crop, isPushed := cropIn(ops[:i], b.Input)
		if !isPushed {
			in, err := r.InputByDot(b.Input)
			if errors.Is(err, catalog.ErrNotFound) {
				return want{}, nil
			}
			if err != nil || !n.again && in.Code != catalog.InputPending && !in.IsUnreadable() {
				return want{}, err
			}
			crop = in.Crop
		}
		return want{i, b.Blob, b.ContentType, crop}, nil
	}
	return want{}, nil
}

// cropIn returns the crop of an input that one of the operations makes. ok is false if none does.
func cropIn(ops []log.Op, input log.Dot) (crop raster.Crop, ok bool) {
	for i := range ops {
		if create, isCreate := ops[i].Body.(*log.InputCreate); isCreate && ops[i].Dot == input {
			return create.Crop, true
		}
	}
	return crop, false
}

// manifest finds a version's manifest among the objects and the uploads.
func (n *needs) manifest(r catalog.Reader, op *log.Op, version string, h blob.Hash) (bool, error) {
	o := n.objects[h]
	if o == nil {
		data, err := n.object(r, h)
		if data == nil || err != nil {
			return false, err
		}
		m, err := catalog.UnmarshalManifest(data)
		if err == nil && !n.again {
			err = training.CheckManifest(&m)
		}
		o = &pushedObject{data: data, version: m.Version, valid: err == nil}
		if n.objects == nil {
			n.objects = map[blob.Hash]*pushedObject{}
		}
		n.objects[h] = o
		n.bytes += int64(len(data))
	}
	if !o.valid || o.version != version {
		partition.Refuse(op, "schema: invalid manifest of a model version")
		return true, nil
	}
	o.named = true
	return true, nil
}

// maxObjects is the maximum number of bytes of the objects of one push, if there are several.
const maxObjects = 32 << 20

// object reads an object, within the caller's memory. It returns nil if the object does not fit with those of earlier operations, or if the
// origin lacks it, which it notes.
func (n *needs) object(r catalog.Reader, h blob.Hash) ([]byte, error) {
	size, err := r.ObjectSize(h)
	isStored := !errors.Is(err, catalog.ErrNotFound)
	if !isStored {
		if !n.c.f.uploads.has(n.c.app, h, n.c.now) {
			n.lacks = append(n.lacks, h)
			return nil, nil
		}
		size, err = n.c.f.o.Blobs.Len(n.c.ctx, h)
	}
	switch {
	case err != nil:
		return nil, err
	case n.bytes > 0 && n.bytes+size > maxObjects:
		return nil, nil
	}
	if err := n.c.reserve(n.bytes + size); err != nil {
		return nil, err
	}
	if isStored {
		return r.Object(h)
	}
	return n.c.f.o.Blobs.Get(n.c.ctx, h)
}

// analyse analyses the pictures in wants, and refuses the operations of invalid ones. The log accepts operations that it had in any case. If
// an outcome can change on a retry, analyse returns an error.
func (n *needs) analyse(ops []log.Op) error {
	if len(n.wants) == 0 {
		return nil
	}
	jobs := make([]api.Job, len(n.wants))
	for i, w := range n.wants {
		jobs[i] = core.ReceivedJob(w.picture, w.crop, n.base)
		jobs[i].Caller = n.c.caller()
	}
	results, err := n.c.f.o.Run(n.c.ctx, jobs)
	if err != nil {
		return err
	}
	for i, w := range n.wants {
		r := &results[i]
		if !r.Blob.IsZero() {
			n.pinned = append(n.pinned, r.Blob)
		}
		o := n.c.f.o.Engine.ReceivedOutcome(n.base, r)
		isReady := o.Code == catalog.InputReady
		switch {
		case !isReady && o.Retry != ingest.Never:
			return fmt.Errorf("%w: %s", api.ErrBusy, o.Detail)
		case isReady && (n.again || o.ContentType == w.contentType):
			n.derived = append(n.derived, pushedDerived{w, *o.Derived, o.Thumb})
		case n.again:
		case isReady:
			partition.Refuse(&ops[w.at], "schema: content type is "+o.ContentType)
		default:
			partition.Refuse(&ops[w.at], "schema: picture: "+o.Detail)
		}
	}
	n.wants = n.wants[:0]
	return nil
}

// cut drops what all but the first operations need.
func (n *needs) cut(ops int) {
	n.wants = slices.DeleteFunc(n.wants, func(w want) bool { return w.at >= ops })
	n.derived = slices.DeleteFunc(n.derived, func(d pushedDerived) bool { return d.at >= ops })
}

// also adds the records to the batch of the operations.
func (n *needs) also(b *kv.Batch) { n.put(b) }

func (n *needs) put(b kv.Writer) {
	for i := range n.derived {
		d := &n.derived[i]
		catalog.PutDerived(b, n.app, n.base, d.picture, d.crop, d.derived)
		catalog.PutThumb(b, n.app, d.picture, d.crop, d.thumb)
	}
	for _, o := range n.objects {
		if o.named {
			catalog.PutObject(b, n.app, o.data)
		}
	}
}

// release unpins the pictures of the analyses.
func (n *needs) release() {
	for _, h := range n.pinned {
		if err := n.c.f.o.Pinner.Unpin(context.WithoutCancel(n.c.ctx), h); err != nil {
			n.c.logFailure(err) // the next sweep tries again
		}
	}
}
