package instance

import (
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// analysts creates and stores one analyser for each network that a job names.
type analysts struct {
	set      *predict.Set
	older    func(base [32]byte) (*predict.Set, error)
	now      func() time.Time
	time     time.Duration // maximum time of one picture; 0: no limit
	deadline time.Time
	byBase   map[[32]byte]*predict.Analyser
}

// Analyse executes a job that has data. The answer is a Result. For a job with Keep, the Result has the content type, and the host stores
// the picture. As videos, Analyse accepts GIF and WebP files and still pictures. The host decodes other videos, and passes each frame as a
// job with planes. The host also decodes HEIC, AVIF and JPEG XL, as the Result says, and passes the job again with the outputs.
func (i *Instance) Analyse(data []byte) []byte {
	var r abi.Result
	j, err := abi.ParseJob(data)
	if err == nil && i.analysts == nil {
		err = errNoAnalyser
	}
	if err == nil {
		i.guard("analysis", func() { r, err = i.analysts.do(&j) }, func() {
			i.analysts.byBase = nil // the panic may have left an analyser in an invalid state
			err = api.ErrInternal
		})
	}
	if err != nil {
		r = abi.Result{Result: api.Result{Err: err}}
	}
	i.answer = abi.AppendResult(i.answer, &r)
	return i.answer
}

func (a *analysts) do(j *abi.Job) (r abi.Result, err error) {
	analyser, err := a.of(j.Base)
	if err != nil {
		return r, err
	}
	if a.time > 0 {
		a.deadline = a.now().Add(a.time)
	}
	if j.Planes != nil {
		j.Planes.Pix = j.Data
		r.Analysis, err = analyser.AnalysePlanes(*j.Planes, j.Crop, j.Want)
		return r, err
	}
	var s *raster.Still
	if j.Want.NeedsPixels() {
		s, err = raster.ReadStill(j.Data, raster.Limits{})
	}
	switch {
	case err != nil:
	case s != nil:
		r, err = still(analyser, s, j)
	case j.Video.SampleMS > 0:
		r.Frames, err = j.Video.AnalysePicture(analyser, raster.NewDecoder(raster.Limits{}), j.Data, j.Want)
	default:
		r.Analysis, err = analyser.Analyse(j.Data, j.Crop, j.Want)
	}
	if err != nil || !j.Keep || j.Video.SampleMS > 0 || len(r.Decoding.Runs) > 0 {
		return r, err
	}
	t, err := raster.InspectPicture(j.Data)
	if err != nil {
		return r, err
	}
	r.ContentType = t.MediaType
	return r, nil
}

// of returns the analyser of the network whose base is base. For a zero base it returns that of the newest network.
func (a *analysts) of(base [32]byte) (*predict.Analyser, error) {
	if base == [32]byte{} {
		base = a.set.Base()
	}
	if got, ok := a.byBase[base]; ok {
		return got, nil
	}
	set := a.set
	if base != set.Base() {
		var err error
		if set, err = a.older(base); err != nil {
			return nil, err
		}
	}
	var l raster.Limits
	if a.time > 0 {
		l.Expired = func() bool { return a.now().After(a.deadline) }
	}
	if a.byBase == nil {
		a.byBase = map[[32]byte]*predict.Analyser{}
	}
	a.byBase[base] = set.NewAnalyser(l)
	return a.byBase[base], nil
}
