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

	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// otherWork trains models and adds pictures while a server answers predictions.
type otherWork struct {
	client   *http.Client
	base     string
	pictures [][]byte
	n        atomic.Uint64 // of the next picture that is added
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

// inputs is a body that adds so many pictures, none of which was added before, each with a concept.
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

// train makes versions, each when the last is trained, until ctx ends.
func (w *otherWork) train(ctx context.Context) {
	const versions, trained = "/v2/models/beside/versions", 21100
	for ctx.Err() == nil && w.failed.Load() == nil {
		var made struct {
			Model struct {
				Version struct{ ID string } `json:"model_version"`
			}
		}
		_ = json.Unmarshal(w.send("POST", versions, cli.Object{}), &made)
		for code := 0; code != trained && w.failed.Load() == nil; system.Pause(context.Background(), 20*time.Millisecond) {
			var now struct {
				Version struct{ Status struct{ Code int } } `json:"model_version"`
			}
			_ = json.Unmarshal(w.send("GET", versions+"/"+made.Model.Version.ID, nil), &now)
			code = now.Version.Status.Code
		}
	}
}

// add adds pictures, two calls of 32 at a time as the program's import sends them, until ctx ends.
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

// TestPredictionsBesideOtherWork compares the 99th percentile of a prediction by base64 while the server trains one version after the other, or
// adds pictures, or does both, with the same server's while it does nothing else. The rounds take turns, and the median of their ratios counts.
func TestPredictionsBesideOtherWork(t *testing.T) {
	proof.Timed(t)
	const (
		rounds = 5
		most   = 1.25
		rate   = 50 // predictions a second
		length = 6 * time.Second
	)
	p := startProcess(t)
	client := own(t)
	b := &otherWork{client: client, base: p.base}
	for i := range 6 {
		b.pictures = append(b.pictures, phonePhoto(t, 600+40*i, 480))
	}
	for range 20 {
		b.send("POST", "/v2/inputs", b.inputs(24))
	}
	var concepts []any
	for i := range 20 {
		concepts = append(concepts, cli.Object{"id": fmt.Sprint("c", i)})
	}
	b.send("POST", "/v2/models", cli.Object{"model": cli.Object{"id": "beside", "output_info": cli.Object{"data": cli.Object{"concepts": concepts}}}})
	url, body := p.base+"/v2/models/"+generalID+"/outputs", byBase64(phonePhoto(t, 1152, 864))
	openLoop(client, url, body, rate, time.Second)

	works := []struct {
		name string
		do   []func(context.Context)
	}{
		{"alone", nil},
		{"beside trainings", []func(context.Context){b.train}},
		{"beside an import", []func(context.Context){b.add}},
		{"beside both", []func(context.Context){b.train, b.add}},
	}
	ratios := make([][]float64, len(works))
	for range rounds {
		var alone time.Duration
		for i, w := range works {
			ctx, stop := context.WithCancel(t.Context())
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
			t.Logf("%-16s p50 %v p95 %v p99 %v max %v of %d", w.name, l.good.p(50), l.good.p(95), l.good.p(99), l.good.p(100), l.good.n())
			if n := l.refused.n() + int(l.other.Load()); n > 0 {
				t.Errorf("%s: %d predictions failed", w.name, n)
			}
		}
	}
	if failed := b.failed.Load(); failed != nil {
		t.Error(*failed)
	}
	for i, w := range works[1:] {
		slices.Sort(ratios[i+1])
		t.Logf("%s: p99 %.2f times that alone, %.2f", w.name, ratios[i+1][rounds/2], ratios[i+1])
		if got := ratios[i+1][rounds/2]; got > most {
			t.Errorf("%s: the p99 is %.2f times that alone, want at most %v", w.name, got, most)
		}
	}
}
