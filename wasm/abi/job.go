package abi

import (
	"encoding/binary"
	"math"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Fields of a job.
const (
	jobURL = 1 + iota
	jobData
	jobBlob
	jobCrop
	jobWant
	jobBase
	jobKeep
	jobVideo
	jobPlanes
)

// Job is a job for analyse. With Planes its data is the samples of a frame of a video, which Planes describes.
type Job struct {
	api.Job
	Planes *raster.Planes // without Pix
}

func putJob(e *field.Encoder, j *api.Job) {
	e.Text(jobURL, j.URL)
	e.Raw(jobData, j.Data)
	putJobRest(e, j)
}

// putJobRest writes the fields behind the data.
func putJobRest(e *field.Encoder, j *api.Job) {
	e.Hash(jobBlob, j.Blob[:])
	if j.Crop != (raster.Crop{}) {
		e.Raw(jobCrop, appendCrop(nil, j.Crop))
	}
	e.Uint(jobWant, uint64(j.Want))
	e.Hash(jobBase, j.Base[:])
	e.Bool(jobKeep, j.Keep)
	putVideo(e, jobVideo, j.Video)
}

func putVideo(e *field.Encoder, number int, v api.Video) {
	if v != (api.Video{}) {
		at := e.Open(number)
		e.Uint(1, uint64(v.SampleMS))
		e.Uint(2, uint64(v.MaxFrames))
		e.Close(at)
	}
}

func putPlanes(e *field.Encoder, number int, p *raster.Planes) {
	if p == nil {
		return
	}
	at := e.Open(number)
	for i, v := range [...]int{p.Width, p.Height, p.SubX, p.SubY, p.Depth, int(p.Matrix)} {
		e.Uint(1+i, uint64(v))
	}
	e.Bool(7, p.Full)
	e.Uint(8, uint64(p.Rotation))
	e.Close(at)
}

func appendCrop(b []byte, c raster.Crop) []byte {
	for _, edge := range [...]float64{c.Top, c.Left, c.Bottom, c.Right} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(edge))
	}
	return b
}

func getCrop(d *field.Decoder) (c raster.Crop) {
	b := d.Raw()
	if len(b) != 32 {
		d.Malformed("crop")
		return c
	}
	for i, edge := range [...]*float64{&c.Top, &c.Left, &c.Bottom, &c.Right} {
		*edge = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return c
}

func getJob(d *field.Decoder) (j Job) {
	for d.Next() {
		switch d.Number {
		case jobURL:
			j.URL = d.Text()
		case jobData:
			j.Data = d.Raw()
		case jobBlob:
			d.Hash(j.Blob[:])
		case jobCrop:
			j.Crop = getCrop(d)
		case jobWant:
			j.Want = getWant(d)
		case jobBase:
			d.Hash(j.Base[:])
		case jobKeep:
			j.Keep = d.Bool()
		case jobVideo:
			j.Video = getVideo(d.Message())
		case jobPlanes:
			j.Planes = getPlanes(d.Message())
		}
	}
	return j
}

func getPlanes(d *field.Decoder) *raster.Planes {
	var p raster.Planes
	numbers := [...]*int{1: &p.Width, 2: &p.Height, 3: &p.SubX, 4: &p.SubY, 5: &p.Depth, 8: &p.Rotation}
	for d.Next() {
		switch n := d.Number; {
		case n == 6:
			v := d.Uint()
			if v > math.MaxUint8 {
				d.Malformed("matrix")
			}
			p.Matrix = raster.Matrix(v)
		case n == 7:
			p.Full = d.Bool()
		case n < len(numbers) && numbers[n] != nil:
			*numbers[n] = d.Int()
		}
	}
	return &p
}

func getVideo(d *field.Decoder) (v api.Video) {
	for d.Next() {
		switch d.Number {
		case 1:
			v.SampleMS = d.Int()
		case 2:
			v.MaxFrames = d.Int()
		}
	}
	return v
}

func getWant(d *field.Decoder) predict.Want {
	v := d.Uint()
	if v > math.MaxUint8 {
		d.Malformed("want")
	}
	return predict.Want(v)
}

// AppendJob writes a job in an envelope of its own, as analyse takes it.
func AppendJob(buf []byte, j *api.Job) []byte {
	e := encoder(buf)
	putJob(e, j)
	return e.Bytes(nil)
}

// AppendFrame writes such an envelope of a frame of a video.
func AppendFrame(buf []byte, j *Job) []byte {
	e := encoder(buf)
	putJob(e, &j.Job)
	putPlanes(e, jobPlanes, j.Planes)
	return e.Bytes(nil)
}

// JobAround writes such an envelope but for the bytes of the job's data, which stand between
// before and after.
func JobAround(j *api.Job) (before, after []byte) {
	e := encoder(nil)
	e.Text(jobURL, j.URL)
	before = last(e.Bytes(nil), jobData, len(j.Data))
	rest := encoder(nil)
	putJobRest(rest, j)
	return before, inner(rest)
}

// ParseJob reads a job in an envelope of its own. Its data is borrowed.
func ParseJob(data []byte) (Job, error) {
	d := field.Decode(data)
	j := getJob(d)
	return j, envelope("job", d)
}

// Result is what became of a job.
type Result struct {
	api.Result
	Picture []byte // of a job with Keep, for a guest that holds the picture itself
}

// Fields of a result.
const (
	resultError = 1 + iota
	resultText
	resultAnalysis
	resultPassing
	resultBlob
	resultType
	resultPicture
	resultFrame
)

func putResult(e *field.Encoder, r *Result) {
	putResultHead(e, r)
	e.Raw(resultPicture, r.Picture)
}

func putResultHead(e *field.Encoder, r *Result) {
	code, text := CodeOf(r.Err)
	e.Uint(resultError, uint64(code))
	e.Text(resultText, text)
	if r.Analysis.Has != 0 {
		e.Raw(resultAnalysis, AppendAnalysis(nil, &r.Analysis))
	}
	e.Bool(resultPassing, r.Passing)
	e.Hash(resultBlob, r.Blob[:])
	e.Text(resultType, r.ContentType)
	for i := range r.Frames {
		at := e.Open(resultFrame)
		e.Uint(1, uint64(r.Frames[i].TimeMS))
		e.Raw(2, AppendAnalysis(nil, &r.Frames[i].Analysis))
		e.Close(at)
	}
}

func getResult(d *field.Decoder) (r Result) {
	var code Code
	var text string
	for d.Next() {
		switch d.Number {
		case resultError:
			code = Code(d.Uint32())
		case resultText:
			text = d.Text()
		case resultAnalysis:
			r.Analysis = getAnalysis(d)
		case resultPassing:
			r.Passing = d.Bool()
		case resultBlob:
			d.Hash(r.Blob[:])
		case resultType:
			r.ContentType = d.Text()
		case resultPicture:
			r.Picture = d.Raw()
		case resultFrame:
			r.Frames = append(r.Frames, getFrame(d.Message()))
		}
	}
	r.Err = code.Err(text)
	return r
}

func getAnalysis(d *field.Decoder) predict.Analysis {
	a, err := ParseAnalysis(d.Raw())
	if err != nil {
		d.Malformed("analysis")
	}
	return a
}

func getFrame(d *field.Decoder) (f api.Frame) {
	for d.Next() {
		switch d.Number {
		case 1:
			f.TimeMS = int64(d.Uint())
		case 2:
			f.Analysis = getAnalysis(d)
		}
	}
	return f
}

// AppendResult writes a result in an envelope of its own, as analyse answers it.
func AppendResult(buf []byte, r *Result) []byte {
	e := encoder(buf)
	putResult(e, r)
	return e.Bytes(nil)
}

// ParseResult reads a result in an envelope of its own. Its picture is borrowed.
func ParseResult(data []byte) (Result, error) {
	d := field.Decode(data)
	r := getResult(d)
	return r, envelope("result", d)
}

// AppendResults writes the results of a call's jobs, in their order, as resume takes them.
func AppendResults(buf []byte, call uint64, results []Result) []byte {
	e := encoder(buf)
	e.Uint(8, call)
	for i := range results {
		at := e.Open(9)
		putResult(e, &results[i])
		e.Close(at)
	}
	return e.Bytes(nil)
}

// ParseResults reads the results of a call. Pictures are borrowed.
func ParseResults(data []byte) (call uint64, results []Result, err error) {
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 8:
			call = d.Uint()
		case 9:
			results = append(results, getResult(d.Message()))
		}
	}
	return call, results, envelope("results", d)
}
