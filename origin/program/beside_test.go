package program

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// otherWork trains models and adds pictures while a server answers predictions.
type otherWork struct {
	client   *http.Client
	base     string
	pictures [][]byte
	n        atomic.Uint64 // number of added pictures
	failed   atomic.Pointer[string]
}

// send sends a request and returns the answer.
func (w *otherWork) send(method, path string, content any) (answer []byte) {
	var body []byte
	if content != nil {
		body, _ = json.Marshal(content)
	}
	req, err := http.NewRequest(method, w.base+path, bytes.NewReader(body))
	if err == nil {
		var res *http.Response
		if res, err = w.client.Do(req); err == nil {
			answer, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err == nil && res.StatusCode != 200 {
				err = fmt.Errorf("%d %.300s", res.StatusCode, answer)
			}
		}
	}
	if err != nil {
		text := fmt.Sprintf("%s %s: %v", method, path, err)
		w.failed.Store(&text)
	}
	return answer
}

// inputs returns a body that adds n new pictures with a concept each.
func (w *otherWork) inputs(n int) cli.Object {
	var inputs []any
	for range n {
		i := w.n.Add(1)
		picture := binary.LittleEndian.AppendUint64(slices.Clone(w.pictures[i%uint64(len(w.pictures))]), i)
		inputs = append(inputs, cli.Object{"data": cli.Object{
			"image":    cli.Object{"base64": base64.StdEncoding.EncodeToString(picture)},
			"concepts": []any{cli.Object{"id": fmt.Sprint("c", i%20), "value": true}},
		}})
	}
	return cli.Object{"inputs": inputs}
}

// train creates versions, each after the previous one is trained, until ctx ends.
func (w *otherWork) train(ctx context.Context) {
	const versions, trained = "/v2/models/beside/versions", 21100
	for ctx.Err() == nil && w.failed.Load() == nil {
		var reply struct {
			Model struct {
				Version struct{ ID string } `json:"model_version"`
			}
		}
		_ = json.Unmarshal(w.send("POST", versions, cli.Object{}), &reply)
		for code := 0; code != trained && w.failed.Load() == nil; system.Pause(context.Background(), 20*time.Millisecond) {
			var now struct {
				Version struct{ Status struct{ Code int } } `json:"model_version"`
			}
			_ = json.Unmarshal(w.send("GET", versions+"/"+reply.Model.Version.ID, nil), &now)
			code = now.Version.Status.Code
		}
	}
}

// add adds pictures in two concurrent calls of 32, as the program's import does, until ctx ends.
func (w *otherWork) add(ctx context.Context) {
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			for ctx.Err() == nil && w.failed.Load() == nil {
				w.send("POST", "/v2/inputs", w.inputs(32))
			}
		})
	}
	calls.Wait()
}

// BenchmarkPredictionsDuringOtherWork measures the 99th percentile of a prediction by base64 while the server trains one version after
// another, or adds pictures, or does both. It divides this by the 99th percentile while the server does nothing else. Each iteration is a
// round of all four, and the benchmark reports the medians of the ratios. Run it with -benchtime 5x.
func BenchmarkPredictionsDuringOtherWork(b *testing.B) {
	const (
		rate   = 50 // predictions a second
		length = 6 * time.Second
	)
	p := startProcess(b)
	client := own(b)
	o := &otherWork{client: client, base: p.base}
	for i := range 6 {
		o.pictures = append(o.pictures, phonePhoto(b, 600+40*i, 480))
	}
	for range 20 {
		o.send("POST", "/v2/inputs", o.inputs(24))
	}
	var concepts []any
	for i := range 20 {
		concepts = append(concepts, cli.Object{"id": fmt.Sprint("c", i)})
	}
	o.send("POST", "/v2/models", cli.Object{"model": cli.Object{"id": "beside", "output_info": cli.Object{"data": cli.Object{"concepts": concepts}}}})
	url, body := p.base+"/v2/models/"+generalID+"/outputs", byBase64(phonePhoto(b, 1152, 864))
	openLoop(client, url, body, rate, time.Second)

	works := []struct {
		name string
		do   []func(context.Context)
	}{
		{"alone", nil},
		{"trainings", []func(context.Context){o.train}},
		{"import", []func(context.Context){o.add}},
		{"both", []func(context.Context){o.train, o.add}},
	}
	ratios := make([][]float64, len(works))
	for b.Loop() {
		var alone time.Duration
		for i, w := range works {
			ctx, stop := context.WithCancel(b.Context())
			var other sync.WaitGroup
			for _, do := range w.do {
				other.Go(func() { do(ctx) })
			}
			l := openLoop(client, url, body, rate, length)
			stop()
			other.Wait()
			if i == 0 {
				alone = l.good.p(99)
			}
			ratios[i] = append(ratios[i], float64(l.good.p(99))/float64(alone))
			if n := l.refused.n() + int(l.other.Load()); n > 0 {
				b.Errorf("%s: %d predictions failed", w.name, n)
			}
		}
	}
	if failed := o.failed.Load(); failed != nil {
		b.Error(*failed)
	}
	for i, w := range works[1:] {
		slices.Sort(ratios[i+1])
		b.ReportMetric(ratios[i+1][len(ratios[i+1])/2], "p99-"+w.name+"/alone")
	}
}
