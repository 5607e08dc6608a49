package instance

import (
	"bufio"
	"context"
	"errors"
	"fmt"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/blob/pack"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/hostapi"
)

// pictures are those of an instance that has its own store.
type pictures struct {
	*blob.HostedNames
	blobs blob.Blobs
	tidy  blob.Tidy // used if the engine serves one application
}

// drawnAtOnce is the number of random bytes that are drawn for names of pictures. In tests that inject both, a host recognizes them by
// this number.
const drawnAtOnce = 512

func (i *Instance) openPictures() (*pictures, error) {
	p := &pictures{blobs: blob.NewMemory(blob.Options{})}
	o := blob.HostedOptions{
		Random:     bufio.NewReaderSize(hostapi.Random{From: i.Imports}, drawnAtOnce),
		References: func(h blob.Hash) bool { return i.engine == nil || i.engine.Register.References(h) },
		Lazy:       true,
	}
	if i.settings.Store == abi.StoreFiles {
		files, err := pack.Open(pack.Options{Files: hostapi.Disk{From: i.Imports}, Pair: pictureFiles})
		if err != nil {
			return nil, fmt.Errorf("pictures: %w", err)
		}
		i.close = append(i.close, files.Close)
		if p.blobs, err = blob.OpenFolder(files, blob.Options{}); err != nil {
			return nil, fmt.Errorf("pictures: %w", err)
		}
		o.FS = files
	}
	o.Blobs = p.blobs
	var err error
	if p.HostedNames, err = blob.OpenHosted(o); err != nil {
		return nil, fmt.Errorf("pictures: %w", err)
	}
	p.tidy = blob.NewTidy(p.HostedNames)
	return p, nil
}

// inline gives a job of a picture that only the instance has its bytes. Where they cannot be read
// the host will find no such blob.
func (i *Instance) inline(j *api.Job) {
	if i.pictures == nil || j.Data != nil || j.URL != "" {
		return
	}
	if data, err := i.pictures.blobs.Get(context.Background(), j.Blob); err == nil {
		j.Data = data
	} else if i.machine == nil || !errors.Is(err, blob.ErrNotFound) { // or the host fetches it from the origin
		i.log(levelError, "blob %v: %v", j.Blob, err)
	}
}

// storePicture is a result as the engine takes it. A picture that came with it is held here.
func (i *Instance) storePicture(r *abi.Result) api.Result {
	if i.pictures == nil || r.Err != nil || r.Picture == nil {
		return r.Result
	}
	info, err := raster.Inspect(r.Picture)
	if err == nil {
		r.ContentType = "image/" + info.Format
		r.Blob, err = i.pictures.Pin(context.Background(), r.Picture)
	}
	if err != nil {
		r.Err = errors.Join(api.ErrInternal, err)
	}
	return r.Result
}
