package program

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/origin/server/video"
)

// picture is one picture or video named by the arguments.
type picture struct {
	name string // as the user entered it, or the path below an entered folder
	path string // of a file, to open it
	kind kind
	err  error // error while finding it
}

type kind uint8

const (
	isFile kind = iota
	isURL
	isStdin
)

// expand returns the pictures and videos that the arguments name, and the numbers of files in folders that it leaves out.
func expand(args []string, o collection.Options) (out []picture, leftOut map[collection.Reason]int) {
	leftOut = map[collection.Reason]int{}
	for _, arg := range args {
		lower := strings.ToLower(arg)
		switch {
		case arg == "-":
			out = append(out, picture{name: "-", kind: isStdin})
		case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
			out = append(out, picture{name: arg, kind: isURL})
		case system.IsDir(arg):
			listing, err := walk(arg, o)
			if err != nil {
				out = append(out, picture{name: arg, err: err})
				continue
			}
			for _, f := range listing.Found {
				out = append(out, picture{name: filepath.Join(arg, collection.PrintableName(f.Name)), path: filepath.Join(arg, f.Path), err: f.Err})
			}
			for reason, n := range listing.LeftOut {
				leftOut[reason] += n
			}
		default:
			out = append(out, picture{name: arg, path: arg})
		}
	}
	return out, leftOut
}

// walk finds the pictures and videos in a folder, as an import does.
func walk(dir string, o collection.Options) (*collection.Listing, error) {
	tree, err := system.OpenTree(dir)
	if err != nil {
		return nil, err
	}
	return collection.Walk(collection.Files{FS: tree, IsPicture: cli.IsPicture}, o), tree.Close()
}

// worker predicts one picture or video at a time.
type worker struct {
	p        *predictor
	stdin    io.Reader
	progress *cli.Progress
	analyser *predict.Analyser
	decoder  *raster.Decoder // of animations
	deadline time.Time
}

func (p *predictor) newWorker(stdin io.Reader, progress *cli.Progress) *worker {
	w := &worker{p: p, stdin: stdin, progress: progress}
	l := raster.Limits{Expired: func() bool { return system.Now().After(w.deadline) }}
	w.analyser, w.decoder = p.set.NewAnalyser(l), raster.NewDecoder(l)
	return w
}

// pictureTime is the time limit of analysing one picture, or one frame of a video. It is long because the user can wait.
const pictureTime = 30 * time.Second

// placeholder replaces a file's path in the request, since the API accepts only URLs.
const placeholder = "http://file.invalid/"

// predict sends one picture or video through the engine, as a call with one input.
func (w *worker) predict(ctx context.Context, pic picture) answer {
	a := answer{picture: pic}
	m, failed := w.read(ctx, pic)
	defer m.close()
	a.video = m.video
	request := &api.Request{
		Method: "POST",
		Path:   "/v2/models/" + w.p.model.ID + "/outputs",
		Body:   w.p.request(pic, m.video),
		App:    w.p.app,
	}
	call := w.p.engine.Begin(ctx, request)
	for !call.Done() {
		results := make([]api.Result, len(call.Jobs()))
		for i, job := range call.Jobs() {
			if a.err = failed; failed == nil {
				results[i], a.err = w.analyse(ctx, pic.name, m, &job)
			}
			results[i].Err = wireError(a.err)
		}
		call.Resume(results)
	}
	if ctx.Err() != nil {
		return a
	}
	if a.output, a.fatal = outputOf(call.Response().Body); a.fatal != nil {
		a.fatal = cmp.Or(a.err, a.fatal)
		return a
	}
	if pic.kind != isURL {
		path, err := json.Marshal(pic.name)
		if err != nil {
			a.fatal = err
			return a
		}
		a.output = bytes.Replace(a.output, []byte(strconv.Quote(placeholder)), path, 1)
	}
	if a.err == nil {
		a.err = statusError(a.output)
	}
	return a
}

// request returns the body of a call for one picture or video.
func (p *predictor) request(pic picture, video bool) []byte {
	url := placeholder
	if pic.kind == isURL {
		url = pic.name
	}
	config := cli.Object{"min_value": p.flags.minValue}
	if p.flags.language != "" {
		config["language"] = p.flags.language
	}
	switch {
	case p.flags.top > 0:
		config["max_concepts"] = p.flags.top
	case !p.flags.asJSON:
		config["max_concepts"] = 5
	}
	kind := "image"
	if video {
		kind, config["sample_ms"] = "video", p.flags.every.Milliseconds()
	}
	body, err := json.Marshal(cli.Object{
		"inputs": []cli.Object{{"data": cli.Object{kind: cli.Object{"url": url}}}},
		"model":  cli.Object{"output_info": cli.Object{"output_config": config}},
	})
	if err != nil {
		panic(err) // numbers and strings always encode
	}
	return body
}

// errRead wraps an error from before there were bytes to analyse.
type errRead struct{ error }

func (e errRead) Unwrap() error { return e.error }

// analyse analyses a picture, or the frames of a video.
func (w *worker) analyse(ctx context.Context, name string, m media, job *api.Job) (r api.Result, err error) {
	w.deadline = system.Now().Add(pictureTime)
	switch {
	case m.film != nil:
		r.Frames, err = w.frames(ctx, name, m.film, job)
	case raster.NeedsModule(m.data):
		return w.still(ctx, m, job)
	case m.video:
		w.deadline = system.Now().Add(video.DefaultTime)
		r.Frames, err = job.Video.AnalysePicture(w.analyser, w.decoder, m.data, job.Want)
	default:
		r.Analysis, err = w.analyser.Analyse(m.data, job.Crop, job.Want)
	}
	return r, err
}

// wireError returns the error that the API reports for err: a picture that cannot be read counts as a failed download.
func wireError(err error) error {
	if read := (errRead{}); errors.As(err, &read) {
		return api.ErrFetch
	}
	return err
}

// outputOf returns the only Output object of a response. If the response has no Output, it returns the response's error.
func outputOf(body []byte) ([]byte, error) {
	var response struct {
		Status  cli.Status
		Outputs []json.RawMessage
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if len(response.Outputs) != 1 {
		return nil, response.Status.Err()
	}
	return response.Outputs[0], nil
}

// statusError returns the error in an Output's status, or nil for 10000.
func statusError(output []byte) error {
	var o struct{ Status cli.Status }
	if err := json.Unmarshal(output, &o); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if o.Status.Code != 10000 {
		return o.Status.Err()
	}
	return nil
}
