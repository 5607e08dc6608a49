package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"time"
)

// Sizes of the model that is trained while the server answers predict calls.
const (
	trainedConcepts = 20
	trainedCopies   = 8 // number of copies of each photo of the test data
	trainedModel    = "beside"
)

// trainer is a server that trains a model continuously while it answers predict calls.
type trainer struct {
	*bench
	general string
	bodies  [][]byte
	server  *server // nil until it is needed
}

// duringTraining compares the 99th percentile of a predict call with base64 over HTTP during continuous training with
// that of the same server without training. The times are wall time, because the case measures waiting.
func (b *bench) duringTraining() comparison {
	t := &trainer{bench: b}
	return comparison{
		work: "p99 of a prediction during continuous training", rival: "without training", bar: both(1.25), ours: t.training, peer: t.alone,
	}
}

func (b *trainer) alone(n int) (float64, error) {
	if err := b.open(); err != nil {
		return 0, err
	}
	return b.percentile(n)
}

// training trains until the predict calls have ended. If no training has started by then, it returns an error.
func (b *trainer) training(n int) (float64, error) {
	if err := b.open(); err != nil {
		return 0, err
	}
	over, begun, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.train(over, begun) }()
	select {
	case <-begun:
	case err := <-ended:
		return 0, errors.Join(err, errors.New("no training started"))
	}
	ms, err := b.percentile(n)
	close(over)
	return ms, errors.Join(err, <-ended)
}

// train trains one version after the other until over is closed. It closes begun when the first training starts.
func (b *trainer) train(over, begun chan struct{}) error {
	const (
		trained = 21100
		queued  = 21103
		under   = 21101
	)
	path := "/v2/models/" + trainedModel + "/versions"
	for first := true; ; first = false {
		var reply struct {
			Model struct {
				Version struct{ ID string } `json:"model_version"`
			}
		}
		if err := b.server.call(http.MethodPost, path, nil, &reply); err != nil {
			return err
		}
		if first {
			close(begun)
		}
		for code := queued; code != trained; {
			var now struct {
				Version struct{ Status struct{ Code int } } `json:"model_version"`
			}
			time.Sleep(20 * time.Millisecond)
			if err := b.server.call(http.MethodGet, path+"/"+reply.Model.Version.ID, nil, &now); err != nil {
				return err
			}
			if code = now.Version.Status.Code; code != trained && code != queued && code != under {
				return fmt.Errorf("a training ended with %d", code)
			}
		}
		select {
		case <-over:
			return nil
		default:
		}
	}
}

// percentile returns the 99th percentile of the times of 10·n predict calls, in milliseconds.
func (b *trainer) percentile(n int) (float64, error) {
	var took []time.Duration
	for i := -warmUps; i < 10*n; i++ {
		start := time.Now()
		if err := b.server.ask(b.general, b.bodies[max(i, 0)%len(b.bodies)]); err != nil {
			return 0, err
		}
		if i >= 0 {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	return float64(took[len(took)*99/100]) / float64(time.Millisecond), nil
}

// open starts the server, adds several copies of each photo with a concept, and creates the model.
func (b *trainer) open() (err error) {
	if b.server != nil {
		return nil
	}
	if b.general, err = generalID(); err != nil {
		return err
	}
	if b.bodies, err = photoBodies(filepath.Join(b.shared, "photos")); err != nil {
		return err
	}
	if b.server, err = b.serve("bin/sightline", "training"); err != nil {
		return err
	}
	for i := range trainedCopies {
		var inputs []any
		for k, body := range b.bodies {
			var photo struct {
				Inputs []struct {
					Data struct{ Image struct{ Base64 string } }
				}
			}
			if err := json.Unmarshal(body, &photo); err != nil {
				return err
			}
			inputs = append(inputs, map[string]any{"data": map[string]any{
				"image":    map[string]any{"base64": photo.Inputs[0].Data.Image.Base64, "allow_duplicate_url": true},
				"concepts": []any{map[string]any{"id": fmt.Sprint("c", (k+i)%trainedConcepts), "value": true}},
			}})
		}
		if err := b.server.call(http.MethodPost, "/v2/inputs", map[string]any{"inputs": inputs}, nil); err != nil {
			return err
		}
	}
	var concepts []any
	for i := range trainedConcepts {
		concepts = append(concepts, map[string]any{"id": fmt.Sprint("c", i)})
	}
	return b.server.call(http.MethodPost, "/v2/models", map[string]any{"model": map[string]any{
		"id": trainedModel, "output_info": map[string]any{"data": map[string]any{"concepts": concepts}},
	}}, nil)
}

// call sends a request and decodes the answer into into. body and into may be nil.
func (s *server) call(method, path string, body, into any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return err
		}
	}
	answer, err := s.send(method, path, sent)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(answer, into)
}
