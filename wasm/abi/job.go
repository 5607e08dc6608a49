package abi

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Job is a job for analyse. If Planes is not nil, the job's data is the samples of a frame of a video, in the format of Planes.
//
//field:message envelope of job
//field:pages put
type Job struct {
	api.Job `wire:"+0"`
	Planes  *raster.Planes `wire:"9,opaque"`            // format of a frame of a video, whose samples are the data; see raster.Planes; without Pix
	Outputs [][]byte       `wire:"11"`                  // outputs of the runs that earlier results of this job have named, in order
	Failure Failure        `wire:"12,max=FailedMemory"` // why the last run failed, as for a video; 0: it did not
}

// putCrop writes four float64, little-endian, unless the crop is the whole picture.
func putCrop(e *field.Encoder, number int, c *raster.Crop) {
	if *c != (raster.Crop{}) {
		putBox(e, number, c)
	}
}

func putBox(e *field.Encoder, number int, c *raster.Crop) {
	b := make([]byte, 0, 32)
	for _, edge := range [...]float64{c.Top, c.Left, c.Bottom, c.Right} {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(edge))
	}
	e.Raw(number, b)
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

func getBox(d *field.Decoder) raster.Crop { return getCrop(d) }

// AppendJob returns a job as a separate envelope, the argument of analyse. The envelope reuses buf's memory.
func AppendJob(buf []byte, j *api.Job) []byte { return encodeJob(buf, &Job{Job: *j}) }

// AppendFrame is AppendJob for a job with Planes.
func AppendFrame(buf []byte, j *Job) []byte { return encodeJob(buf, j) }

// ParseJob reads a job in a separate envelope. Its data shares the envelope's memory.
func ParseJob(data []byte) (Job, error) { return decodeJob(data) }

// Result is the result of a job.
type Result struct {
	api.Result `wire:"+0"`
	Picture    []byte   `wire:"7"` // picture of a job with Keep, if the guest stores the pictures
	Decoding   Decoding `wire:"9"` // runs after which the host calls analyse again; see *Jobs and Results*
}

// Decoding is the part of a picture's analysis that the host does by decoding modules.
//
//field:pages put get
type Decoding struct {
	Runs   []Run         `wire:"1"`
	Memory uint64        `wire:"2"`    // maximum memory of each run in bytes
	Time   time.Duration `wire:"3,ms"` // maximum time of all runs of the picture together, in milliseconds
}

// Names of the decoding modules, as in the manifest of the pages' runtime.
const (
	FFmpegModule = "ffmpreg.wasm" // a WASI command
	JPEGXLModule = "jpegxl.wasm"  // a WASI reactor
)

// Run is a run of a decoding module in a fresh instance.
//
//field:pages put get
type Run struct {
	Module string   `wire:"1"` // ffmpreg.wasm or jpegxl.wasm
	Args   []string `wire:"2"` // the command line, in which the input is a file with the name FilmName; for jpegxl.wasm the output: first, times or frames
	Input  []byte   `wire:"3"`
	Bytes  uint64   `wire:"4"` // size of the output, which is an error if it has another one
}

// result is the encoded form of a Result, with its error.
//
//field:message envelope of result
//field:pages put get
type result struct {
	Error  Code   `wire:"1"` // 0 well, or a code below
	Text   string `wire:"2"` // text of the error
	Result Result `wire:"+0"`
}

// frame is a frame of a video in a result.
//
//field:pages put
type frame struct {
	api.Frame `wire:"+0"`
}

func resultOf(r *Result) result {
	code, text := CodeOf(r.Err)
	return result{code, text, *r}
}

// of returns the Result with its error.
func (x *result) of() Result {
	x.Result.Err = x.Error.Err(x.Text)
	return x.Result
}

func putAnalysisBytes(e *field.Encoder, number int, a *predict.Analysis) {
	if a.Has != 0 {
		putSeen(e, number, a)
	}
}

func putSeen(e *field.Encoder, number int, a *predict.Analysis) {
	e.Raw(number, AppendAnalysis(nil, a))
}

func getAnalysisBytes(d *field.Decoder) predict.Analysis {
	a, err := ParseAnalysis(d.Raw())
	if err != nil {
		d.Malformed("analysis")
	}
	return a
}

func getSeen(d *field.Decoder) predict.Analysis { return getAnalysisBytes(d) }

// AppendResult returns a result as a separate envelope, the answer of analyse. The envelope reuses buf's memory.
func AppendResult(buf []byte, r *Result) []byte {
	x := resultOf(r)
	return encodeResult(buf, &x)
}

// ParseResult reads a result in a separate envelope. Its picture shares the envelope's memory.
func ParseResult(data []byte) (Result, error) {
	x, err := decodeResult(data)
	return x.of(), err
}

// results are the results of a call's jobs.
//
//field:message envelope of results
//field:pages put
type results struct {
	Call    uint64   `wire:"8"` // number of the call
	Results []result `wire:"9"` // results in the order of the jobs
}

// AppendResults returns the argument of resume: the results of a call's jobs, in the order of the jobs. It reuses buf's memory.
func AppendResults(buf []byte, call uint64, list []Result) []byte {
	x := results{call, make([]result, len(list))}
	for i := range list {
		x.Results[i] = resultOf(&list[i])
	}
	return encodeResults(buf, &x)
}

// ParseResults reads the results of a call. Pictures share data's memory.
func ParseResults(data []byte) (call uint64, list []Result, err error) {
	x, err := decodeResults(data)
	for i := range x.Results {
		list = append(list, x.Results[i].of())
	}
	return x.Call, list, err
}
