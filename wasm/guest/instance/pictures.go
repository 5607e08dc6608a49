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

// pictures stores the pictures of an instance that has its own store.
type pictures struct {
	*blob.HostedNames
	blobs blob.Blobs
	tidy  blob.Cleaner // used if the engine serves one application
}

// drawnAtOnce is the number of random bytes that the instance requests at once for names of pictures. Hosts in tests recognise requests
// for names by this number, see wasm/README.md.
const drawnAtOnce = 512

func (i *Instance) openPictures() (*pictures, error) {
	p := &pictures{blobs: blob.NewMemory(blob.Options{})}
	o := blob.HostedOptions{
		Random:     bufio.NewReaderSize(hostapi.Random{From: i.Imports}, drawnAtOnce),
		References: func(h blob.Hash) bool { return i.engine == nil || i.engine.Register.References(h) },
		AppDeleted: func(app blob.AppID) (bool, error) {
			if i.engine == nil {
				return false, nil
			}
			return i.engine.Register.HostedAppDeleted(app)
		},
		Lazy: true,
	}
	if i.settings.Store == abi.StoreFiles {
		packed := pack.Options{Files: hostapi.Disk{From: i.Imports}, Pair: pictureFiles}
		if i.settings.Salvage {
			packed.Salvage = &i.salvaged[1]
			packed.Salvage.Any = true // pictures do not depend on each other
		}
		files, err := pack.Open(packed)
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
	p.tidy = blob.NewCleaner(p.HostedNames)
	return p, nil
}

// inline adds the picture's bytes to a job if the instance stores the picture. If it cannot read them, the job stays as it is, and the host
// reports that the blob does not exist.
func (i *Instance) inline(j *api.Job) {
	if i.pictures == nil || j.Data != nil || j.URL != "" {
		return
	}
	if data, err := i.pictures.blobs.Get(context.Background(), j.Blob); err == nil {
		j.Data = data
	} else if i.machine == nil || !errors.Is(err, blob.ErrNotFound) { // for a replica, the host fetches a missing blob from the origin
		i.log(levelError, "blob %v: %v", j.Blob, err)
	}
}

// storePicture returns a result in the form that the engine accepts. If the result contains a picture and the instance stores pictures,
// storePicture stores and pins it.
func (i *Instance) storePicture(r *abi.Result) api.Result {
	if i.pictures == nil || r.Err != nil || r.Picture == nil {
		return r.Result
	}
	t, err := raster.InspectPicture(r.Picture)
	if err == nil {
		r.ContentType = t.MediaType
		r.Blob, err = i.pictures.Pin(context.Background(), r.Picture)
	}
	if err != nil {
		r.Err = errors.Join(api.ErrInternal, err)
	}
	return r.Result
}
