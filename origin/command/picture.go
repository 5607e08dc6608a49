package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/fetch"
	"github.com/sightline-dev/sightline/origin/system"
)

// picture is one picture that the arguments stand for.
type picture struct {
	name string // as given, or the path below a folder that was given
	kind kind
	err  error // it could not even be found
}

type kind uint8

const (
	isFile kind = iota
	isURL
	isStdin
)

// expand finds the pictures of the arguments. A folder's files are pictures when their
// first bytes say so.
func expand(args []string) []picture {
	var out []picture
	for _, arg := range args {
		lower := strings.ToLower(arg)
		switch {
		case arg == "-":
			out = append(out, picture{name: "-", kind: isStdin})
		case strings.HasPrefix(lower, "http://"), strings.HasPrefix(lower, "https://"):
			out = append(out, picture{name: arg, kind: isURL})
		case system.IsDir(arg):
			system.Files(arg, func(name string, start []byte) {
				if isPicture(start) {
					out = append(out, picture{name: name})
				}
			}, func(err error) { out = append(out, picture{name: arg, err: err}) })
		default:
			out = append(out, picture{name: arg})
		}
	}
	return out
}

// isPicture reports whether a file that begins with b is a picture, supported or not.
func isPicture(b []byte) bool { return raster.Recognise(b).Kind&raster.Picture != 0 }

// worker predicts one picture at a time.
type worker struct {
	p        *predictor
	stdin    io.Reader
	analyser *predict.Analyser
	deadline time.Time
}

func (p *predictor) newWorker(stdin io.Reader) *worker {
	w := &worker{p: p, stdin: stdin}
	w.analyser = p.set.NewAnalyser(limits(func() bool { return system.Now().After(w.deadline) }))
	return w
}

// pictureTime is how long one picture may take. A person who waits can wait.
const pictureTime = 30 * time.Second

// placeholder stands for a file's path in the request: the interface takes addresses alone.
const placeholder = "http://file.invalid/"

// predict sends one picture through the engine, as a call of one input.
func (w *worker) predict(ctx context.Context, pic picture) answer {
	a := answer{picture: pic}
	request := &api.Request{
		Method: "POST",
		Path:   "/v2/models/" + w.p.model.ID + "/outputs",
		Body:   w.p.request(pic),
		App:    w.p.app,
	}
	call := w.p.engine.Begin(ctx, request)
	for !call.Done() {
		results := make([]api.Result, len(call.Jobs()))
		for i, job := range call.Jobs() {
			results[i].Analysis, a.err = w.analyse(ctx, pic, job.Crop, job.Want)
			results[i].Err = wireError(a.err)
		}
		call.Resume(results)
	}
	a.output, a.fatal = outputOf(call.Response().Body)
	if a.fatal != nil {
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

// request is the body of a call for one picture.
func (p *predictor) request(pic picture) []byte {
	url := placeholder
	if pic.kind == isURL {
		url = pic.name
	}
	config := object{"min_value": p.flags.minValue}
	if p.flags.language != "" {
		config["language"] = p.flags.language
	}
	switch {
	case p.flags.top > 0:
		config["max_concepts"] = p.flags.top
	case !p.flags.asJSON:
		config["max_concepts"] = 5
	}
	body, err := json.Marshal(object{
		"inputs": []object{{"data": object{"image": object{"url": url}}}},
		"model":  object{"output_info": object{"output_config": config}},
	})
	if err != nil {
		panic(err) // numbers and strings always encode
	}
	return body
}

// errRead wraps what went wrong before there were bytes to analyse.
type errRead struct{ error }

func (e errRead) Unwrap() error { return e.error }

// analyse reads the picture and analyses it.
func (w *worker) analyse(ctx context.Context, pic picture, crop raster.Crop, want predict.Want) (predict.Analysis, error) {
	data, err := w.read(ctx, pic)
	if err != nil {
		return predict.Analysis{}, errRead{err}
	}
	w.deadline = system.Now().Add(pictureTime)
	return w.analyser.Analyse(data, crop, want)
}

func (w *worker) read(ctx context.Context, pic picture) ([]byte, error) {
	switch {
	case pic.err != nil:
		return nil, pic.err
	case pic.kind == isURL:
		data, err := w.p.fetcher.Fetch(ctx, pic.name)
		if failure := new(fetch.Failure); errors.As(err, &failure) {
			return nil, fmt.Errorf("%w: %w", err, failure.Cause()) // the person who asked may know
		}
		return data, err
	case pic.kind == isStdin:
		return system.ReadAll(w.stdin, maxPictureBytes)
	}
	return system.ReadFile(pic.name, maxPictureBytes)
}

// wireError is how the interface says an error: what could not be read is a failed download.
func wireError(err error) error {
	if read := (errRead{}); errors.As(err, &read) {
		return api.ErrFetch
	}
	return err
}

// outputOf cuts the one Output object out of a response. A response without one says why
// nothing can work.
func outputOf(body []byte) ([]byte, error) {
	var response struct {
		Status  status
		Outputs []json.RawMessage
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if len(response.Outputs) != 1 {
		return nil, response.Status.err()
	}
	return response.Outputs[0], nil
}

type status struct {
	Code        int
	Description string
	Details     string
}

func (s status) err() error {
	if s.Details == "" {
		return fmt.Errorf("%s (%d)", s.Description, s.Code)
	}
	return fmt.Errorf("%s (%d): %s", s.Description, s.Code, s.Details)
}

// statusError is the error that an Output's status says, nil for 10000.
func statusError(output []byte) error {
	var o struct{ Status status }
	if err := json.Unmarshal(output, &o); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if o.Status.Code != 10000 {
		return o.Status.err()
	}
	return nil
}
