package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/origin/server/collection"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Limits of one call that adds inputs.
const (
	batchInputs = 128
	batchBytes  = 24 << 20 // bytes of pictures, before base64
	batchSlow   = 4        // pictures that take seconds to decode: HEIC, AVIF and JPEG XL
)

// importer adds a source's inputs to an application.
//
//	source ─▶ batches ─▶ read pictures ─▶ existing ones? ─▶ POST /v2/inputs ─▶ results
//	          one goroutine, one batch ahead                parallel senders
//
// The importer asks the application for its existing inputs, so it stores nothing between runs.
type importer struct {
	session    Session
	source     *collection.Source
	parallel   int
	total      int               // number of inputs in the source
	keepPaths  bool              // metadata get the paths of files
	readPlaces bool              // inputs get the places of their files
	taken      map[string]stored // known inputs of the application and of this import, by ID
	allTaken   bool              // taken had all inputs of the application at the start

	mu       sync.Mutex // guards the fields below
	progress *Progress
	sum      importSummary
	otherIDs map[string]bool // IDs that place changed
	waiting  []string        // ids of added inputs whose pictures are being downloaded
}

// newImporter returns an importer of a source with a number of inputs.
func newImporter(s Session, source *collection.Source, total int) *importer {
	im := &importer{session: s, source: source, parallel: 2, total: total, taken: map[string]stored{}, otherIDs: map[string]bool{}}
	im.sum.LeftOut = source.LeftOut()
	return im
}

// batch is a call that is ready to send.
type batch struct {
	inputs []collection.Input
	slow   int // pictures that take seconds to decode
	body   []byte
}

// run imports everything. Its error is the reason why the import stopped. Failures of single inputs are reported separately.
func (im *importer) run(ctx context.Context, wait bool) error {
	if err := im.concepts(ctx); err != nil {
		return err
	}
	n, err := countInputs(ctx, im.session)
	if err != nil {
		return err
	}
	if err := im.listTaken(ctx, n.Processed+n.ToProcess+n.Errors); err != nil {
		return err
	}
	if err := im.inputs(ctx); err != nil {
		return err
	}
	if err := im.models(ctx); err != nil {
		return err
	}
	if err := im.workflows(ctx); err != nil {
		return err
	}
	if wait && len(im.waiting) > 0 {
		return im.downloads(ctx)
	}
	im.sum.Pending = len(im.waiting)
	return nil
}

// counts are the numbers of an application's inputs by state.
type counts struct {
	Processed int `json:"processed"`
	ToProcess int `json:"to_process"`
	Errors    int `json:"errors"`
}

func countInputs(ctx context.Context, s Session) (counts, error) {
	var answer struct{ Counts counts }
	err := SendRequest(ctx, s, "GET", "/v2/inputs/status", nil, &answer)
	return answer.Counts, err
}

// inputs sends all inputs in batches.
func (im *importer) inputs(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan batch)
	var senders sync.WaitGroup
	for range im.parallel {
		senders.Go(func() {
			for b := range batches {
				if err := im.send(ctx, &b); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := im.batches(ctx, func(b batch) error {
		select {
		case batches <- b:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(batches)
	senders.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// batches reads the source, and calls yield with each batch of inputs that the application lacks.
func (im *importer) batches(ctx context.Context, yield func(batch) error) error {
	var todo []collection.Input
	var b batch
	var elements [][]byte
	size := 0
	flush := func() error {
		if len(b.inputs) == 0 {
			return nil
		}
		b.body = append([]byte(`{"inputs":[`), bytes.Join(elements, []byte{','})...)
		b.body = append(b.body, "]}"...)
		full := b
		b, elements, size = batch{}, nil, 0
		return yield(full)
	}
	add := func(in *collection.Input) error {
		data, isNew, err := im.place(ctx, in)
		if err != nil || !isNew {
			return err
		}
		if size+len(data) > batchBytes || b.slow+countSlow(data) > batchSlow {
			if err := flush(); err != nil {
				return err
			}
		}
		element, err := im.inputJSON(in, data)
		if err != nil {
			im.reportFailure(in, err)
			return nil
		}
		in.Picture = nil
		b.inputs, elements, size, b.slow = append(b.inputs, *in), append(elements, element), size+len(data), b.slow+countSlow(data)
		if len(b.inputs) == batchInputs {
			return flush()
		}
		return nil
	}
	some := func() error {
		if err := im.lookUpAll(ctx, todo); err != nil {
			return err
		}
		for i := range todo {
			if err := add(&todo[i]); err != nil {
				return err
			}
		}
		todo = todo[:0]
		return nil
	}
	err := im.source.Inputs(func(in collection.Input) error {
		if in.Err != nil {
			im.reportFailure(&in, in.Err)
			return ctx.Err()
		}
		if todo = append(todo, in); len(todo) < batchInputs {
			return nil
		}
		return some()
	})
	if err == nil {
		err = some()
	}
	if err == nil {
		err = flush()
	}
	return err
}

// countSlow returns 1 for a picture that takes seconds to decode, and 0 for others.
func countSlow(picture []byte) int {
	if raster.NeedsModule(picture) {
		return 1
	}
	return 0
}

// inputJSON returns an input in the form that POST /v2/inputs accepts.
func (im *importer) inputJSON(in *collection.Input, data []byte) ([]byte, error) {
	image := Object{}
	if in.URL != "" {
		image["url"] = in.URL
		image["allow_duplicate_url"] = in.AllowDuplicateURL
		image["downloaded"] = data != nil // the picture was downloaded from the URL
	}
	if data != nil {
		image["base64"] = base64.StdEncoding.EncodeToString(data)
	}
	if in.Crop != nil {
		image["crop"] = in.Crop
	}
	d := Object{"image": image}
	if len(in.Concepts) > 0 {
		var labels []Object
		for _, c := range in.Concepts {
			labels = append(labels, Object{"id": c.ID, "value": !c.False})
		}
		d["concepts"] = labels
	}
	if in.Geo != nil {
		d["geo"] = in.Geo
	} else if im.readPlaces {
		image["read_exif"] = true
	}
	metadata := in.Metadata
	if im.keepPaths && in.Path != "" {
		metadata = withFile(metadata, in.Name)
	}
	b, err := collection.Marshal(Object{"data": d, "id": in.ID})
	if err != nil || metadata == nil {
		return b, err
	}
	// Send the metadata byte for byte: an encoder would remove its spaces.
	rest := bytes.TrimPrefix(b, []byte(`{"data":{`))
	return slices.Concat([]byte(`{"data":{"metadata":`), metadata, []byte{','}, rest), nil
}

// Statuses of existing inputs.
const (
	downloaded      = 30000
	downloadPending = 30001
	downloading     = 30003
)

// isThere reports whether the application already has an input with this status. An input whose download failed is sent again.
func isThere(s Status) bool {
	return s.Code == downloaded || s.Code == downloadPending || s.Code == downloading
}

// countInput counts an input in *counter, a field of im.sum.
func (im *importer) countInput(counter *int) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.sum.Inputs++
	*counter++
	im.progress.Step(nil)
}

// reportFailure reports and counts an input that failed.
func (im *importer) reportFailure(in *collection.Input, err error) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.sum.Inputs++
	im.sum.Failed++
	im.progress.Failure(in.Name, err)
	im.progress.Step(err)
}

// send makes one call and handles the result of each input.
func (im *importer) send(ctx context.Context, b *batch) error {
	got, err := persist(ctx, im.session, "POST", "/v2/inputs", b.body)
	if err != nil {
		return err
	}
	var answer struct {
		Status Status
		Inputs []struct{ Status Status }
	}
	if err := json.Unmarshal(got.body, &answer); err != nil {
		return fmt.Errorf("POST /v2/inputs: unexpected response (HTTP %d); is this a Sightline server?", got.status)
	}
	if len(answer.Inputs) != len(b.inputs) {
		return &StatusError{got.status, answer.Status} // the answer concerns the whole call
	}
	for i := range b.inputs {
		in, got := &b.inputs[i], answer.Inputs[i].Status
		if isThere(got) {
			if err := im.edit(ctx, in); err != nil {
				return err
			}
		}
		switch {
		case isThere(got):
			im.countInput(&im.sum.Added)
			im.mu.Lock()
			if got.Code != downloaded {
				im.waiting = append(im.waiting, in.ID)
			}
			if im.otherIDs[in.ID] {
				im.sum.OtherIDs++
			}
			im.mu.Unlock()
		default:
			// The input may exist: an earlier attempt may have succeeded although its answer was lost.
			now, err := im.lookUp(ctx, in.ID)
			switch {
			case err != nil:
				return err
			case isThere(now.Status) && (in.Hash.IsZero() || now.hash == in.Hash):
				im.countInput(&im.sum.Existing)
			default:
				im.reportFailure(in, got.Err())
			}
		}
	}
	return nil
}

// edit applies the source's changes to an input's predictions. Applying them twice has no further effect.
func (im *importer) edit(ctx context.Context, in *collection.Input) error {
	if in.Edits == nil {
		return nil
	}
	var edits []struct {
		ID      string
		Value   json.RawMessage
		Removed bool
	}
	if err := json.Unmarshal(in.Edits, &edits); err != nil {
		return fmt.Errorf("%s: edits: %w", in.Name, err)
	}
	by := map[string][]Object{}
	for _, e := range edits {
		action := "merge"
		if e.Removed {
			action = "remove"
		}
		by[action] = append(by[action], Object{"id": e.ID, "value": e.Value})
	}
	for action, concepts := range by {
		err := SendRequest(ctx, im.session, "PATCH", "/v2/inputs/"+url.PathEscape(in.ID)+"/outputs",
			Object{"action": action, "outputs": []Object{{"data": Object{"concepts": concepts}}}}, nil)
		if err != nil {
			return fmt.Errorf("%s: edits: %w", in.Name, err)
		}
	}
	return nil
}

// downloads waits until the server has downloaded the added pictures, and reports failures.
func (im *importer) downloads(ctx context.Context) error {
	total := len(im.waiting)
	im.progress.describe(fmt.Sprintf("waiting for %d downloads", total))
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		n, err := countInputs(ctx, im.session)
		if err != nil {
			return err
		}
		if n.ToProcess == 0 {
			break
		}
		im.progress.describe(fmt.Sprintf("waiting for %d downloads", min(n.ToProcess, total)))
		if system.Pause(ctx, wait); ctx.Err() != nil {
			im.sum.Pending = min(n.ToProcess, total)
			return ctx.Err()
		}
	}
	for _, id := range im.waiting {
		got, err := im.lookUp(ctx, id)
		if err != nil {
			return err
		}
		if got.Status.Code != downloaded {
			im.sum.Added--
			im.sum.Failed++
			im.progress.errors++
			im.progress.Failure(id, got.Status.Err())
		}
	}
	return nil
}
