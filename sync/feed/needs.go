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
	"github.com/sightline-dev/sightline/sync/wire"
)

// needs collects what the operations of one push refer to: pictures that the origin has and the application can read, their derived
// records, and manifests. The origin derives the records itself from bytes whose hash it checked, because it trusts no replica's results.
type needs struct {
	c   *call
	p   *partition.Origin
	had uint64

	again bool // the log had the operations before it was restored, perhaps before the rules for their form

	lacks   []blob.Hash // blobs that the first operation that cannot be accepted needs
	derived []pushedDerived
	objects map[blob.Hash]*pushedObject
	bytes   int64       // size of objects
	pinned  []blob.Hash // pictures pinned by analyses until release
}

// pushedDerived is a derived record that is stored together with a push.
type pushedDerived struct {
	at      int // index of the operation
	base    [32]byte
	picture blob.Hash
	crop    raster.Crop
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

// want is a picture to be analysed for the operation at index at.
type want struct {
	at   int
	job  api.Job
	pic  picture
	crop raster.Crop
}

// meet returns the operations that can be accepted, the first ones of ops. It refuses those that name an invalid picture or manifest.
func (n *needs) meet(ops []log.Op) ([]log.Op, error) {
	v := n.p.View()
	defer v.Close()
	base, err := n.c.f.o.Engine.Serving(v.Reader)
	if err != nil {
		return nil, err
	}
	var wants []want
	for i := range ops {
		if partition.Admit(&ops[i]) != "" {
			continue // the log refuses it in any case
		}
		available, err := n.meetOne(v.Reader, base, ops, i, &wants)
		if err != nil {
			return nil, err
		}
		if !available || len(wants) > n.c.f.o.Limits.Pictures {
			if len(wants) > 0 && wants[len(wants)-1].at == i {
				wants = wants[:len(wants)-1]
			}
			ops = ops[:i]
			break
		}
	}
	return ops, n.analyse(base, ops, wants)
}

// meetOne finds the picture or object that operation i names. It returns false if the origin lacks it.
func (n *needs) meetOne(r catalog.Reader, base [32]byte, ops []log.Op, i int, wants *[]want) (bool, error) {
	op := &ops[i]
	if b, ok := op.Body.(*log.VersionResult); ok && !b.Manifest.IsZero() {
		return n.manifest(r, op, b)
	}
	pic, ok := pictureOf(op.Body)
	if !ok {
		return true, nil
	}
	if !form.IsPicture(pic.contentType) {
		partition.Refuse(op, "schema: unsupported content type")
		return true, nil
	}
	crop, isNeeded, err := n.cropOf(r, ops, i)
	if err != nil || !isNeeded {
		return true, err
	}
	if !form.IsCrop(crop) {
		partition.Refuse(op, "schema: invalid crop")
		return true, nil
	}
	if available, err := n.c.f.canRead(n.c.ctx, n.c.app, r, pic.hash); err != nil || !available {
		n.lacks = append(n.lacks, pic.hash)
		return false, err
	}
	d, err := r.DerivedOf(base, pic.hash, crop)
	switch {
	case err == nil && len(d.Print) > 0 && (d.Read >= exif.Version || n.c.f.o.Run == nil):
		thumb, err := r.Thumb(pic.hash, crop)
		if err == nil {
			n.derived = append(n.derived, pushedDerived{i, base, pic.hash, crop, d, thumb})
			return true, nil
		}
		if !errors.Is(err, catalog.ErrNotFound) {
			return false, err
		}
	case err != nil && !errors.Is(err, catalog.ErrNotFound):
		return false, err
	}
	if n.c.f.o.Run != nil {
		*wants = append(*wants, want{i, core.ReceivedJob(pic.hash, crop, base), pic, crop})
	}
	return true, nil
}

// cropOf returns the crop of the picture in operation i. ok is false if its input was deleted, or if the fold ignores the picture: the
// operation is the result of a download that has ended, unless as unread, or has the code of a failure. Results do not count as calls, so they
// must cost little: an input becomes ready once.
func (n *needs) cropOf(r catalog.Reader, ops []log.Op, i int) (crop raster.Crop, ok bool, err error) {
	switch b := ops[i].Body.(type) {
	case *log.InputCreate:
		return b.Crop, true, nil
	case *log.InputFetched:
		if b.Code != catalog.InputReady {
			return raster.Crop{}, false, nil
		}
		for j := range ops[:i] { // first, because after a rollback the state may have another input of that name
			if create, ok := ops[j].Body.(*log.InputCreate); ok && ops[j].Dot == b.Input {
				return create.Crop, true, nil
			}
		}
		in, err := r.InputByDot(b.Input)
		if errors.Is(err, catalog.ErrNotFound) {
			return raster.Crop{}, false, nil
		}
		return in.Crop, err == nil && (n.again || in.Code == catalog.InputPending || in.IsUnread()), err
	}
	return raster.Crop{}, false, nil
}

// manifest finds a version's manifest among the objects and the uploads.
func (n *needs) manifest(r catalog.Reader, op *log.Op, b *log.VersionResult) (bool, error) {
	o := n.objects[b.Manifest]
	if o == nil {
		data, err := n.object(r, b.Manifest)
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
		n.objects[b.Manifest] = o
		n.bytes += int64(len(data))
	}
	if !o.valid || o.version != b.Version {
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

// analyse analyses the pictures in wants, and refuses the operations of invalid ones.
func (n *needs) analyse(base [32]byte, ops []log.Op, wants []want) error {
	return n.each(base, wants, func(w *want, o *ingest.Outcome) {
		switch {
		case o.Code != catalog.InputReady:
			partition.Refuse(&ops[w.at], "schema: picture: "+o.Detail)
		case o.ContentType != w.pic.contentType:
			partition.Refuse(&ops[w.at], "schema: content type is "+o.ContentType)
		default:
			n.keep(base, w, o)
		}
	})
}

// each analyses pictures and calls done with each outcome. If an outcome can change on a retry, it returns an error.
func (n *needs) each(base [32]byte, wants []want, done func(*want, *ingest.Outcome)) error {
	if len(wants) == 0 {
		return nil
	}
	jobs := make([]api.Job, len(wants))
	for i := range wants {
		jobs[i] = wants[i].job
		jobs[i].Caller = n.c.caller()
	}
	results, err := n.c.f.o.Run(n.c.ctx, jobs)
	if err != nil {
		return err
	}
	for i := range wants {
		r := &results[i]
		if !r.Blob.IsZero() {
			n.pinned = append(n.pinned, r.Blob)
		}
		o := n.c.f.o.Engine.ReceivedOutcome(base, r)
		if o.Code != catalog.InputReady && o.Retry != ingest.Never {
			return fmt.Errorf("%w: %s", api.ErrBusy, o.Detail)
		}
		done(&wants[i], &o)
	}
	return nil
}

// keep adds the derived record of an analysed picture.
func (n *needs) keep(base [32]byte, w *want, o *ingest.Outcome) {
	n.derived = append(n.derived, pushedDerived{w.at, base, w.pic.hash, w.crop, *o.Derived, o.Thumb})
}

// cut drops the derived records of all but the first operations.
func (n *needs) cut(ops int) {
	n.derived = slices.DeleteFunc(n.derived, func(d pushedDerived) bool { return d.at >= ops })
}

// also adds the records to the batch of the operations.
func (n *needs) also(b *kv.Batch) { n.put(b) }

func (n *needs) put(b kv.Writer) {
	app, err := catalog.ParseAppID(n.c.app)
	if err != nil {
		panic(err) // the application is open, so its id is valid
	}
	for i := range n.derived {
		m := &n.derived[i]
		catalog.PutDerived(b, app, m.base, m.picture, m.crop, m.derived)
		catalog.PutThumb(b, app, m.picture, m.crop, m.thumb)
	}
	for _, o := range n.objects {
		if o.named {
			catalog.PutObject(b, app, o.data)
		}
	}
}

// missing returns the refusal of a push whose first operation names a missing picture or object.
func (n *needs) missing() error {
	return &wire.Refusal{
		Code: wire.RefusedBlobs, Detail: "send the pictures that the operations refer to first", Blobs: n.lacks, Accepted: n.had,
	}
}

// release unpins the pictures of the analyses.
func (n *needs) release() {
	for _, h := range n.pinned {
		if err := n.c.f.o.Pinner.Unpin(context.WithoutCancel(n.c.ctx), h); err != nil {
			n.c.f.o.Log.Debug("sync", "error", err) // the next sweep tries again
		}
	}
}
