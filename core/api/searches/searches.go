// Package searches answers searches: a page of the inputs that a query finds, or a summary of all of them.
// Hosts analyse the pictures of a query before package search runs it. If the application changes its network meanwhile, they analyse
// the pictures again.
package searches

import (
	"bytes"
	"errors"
	"slices"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/api/show"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/search"
)

// Run answers with the inputs that a query finds.
func Run(x *call.Call) error {
	p, err := x.Page()
	if err != nil {
		return err
	}
	return withQuery(x, func(q *search.Query) error { return answerHits(x, q, p) })
}

// withQuery reads the query in the body, waits for the analyses of its pictures, and then calls answer.
func withQuery(x *call.Call, answer func(q *search.Query) error) error {
	options := searchOptions(x)
	var unknown unknownNames
	if x.Shows(auth.ConceptsGet) { // other keys must not read names
		options.Unknown = unknown.add
	}
	q, err := search.Parse(x.Body.Get("query"), options)
	if err == nil {
		err = unknown.notify(x)
	}
	if err != nil {
		return err
	}
	jobs, places, err := picturesOf(x, q)
	if err != nil {
		return err
	}
	return answerEmbedded(x, q, jobs, places, func() error { return answer(q) })
}

// searchOptions returns the options for parsing the application's queries.
func searchOptions(x *call.Call) search.Options {
	return search.Options{
		Names: x.Net.Models.Names(), Language: x.App.Language,
		CustomConcepts: func(name string) ([]string, error) {
			var ids []string
			err := x.View().Concepts(func(c catalog.Concept) bool {
				if c.Name == name {
					ids = append(ids, c.ID)
				}
				return true
			})
			return ids, err
		},
		Hosted: x.Host.HostedName,
	}
}

// picturesOf returns the jobs for a query's pictures, and the index in q.Pictures of each job's picture. A stored input without a crop
// whose whole picture was analysed needs no job.
func picturesOf(x *call.Call, q *search.Query) (jobs []call.Job, places []int, err error) {
	for i := range q.Pictures {
		p := &q.Pictures[i]
		job := call.Job{Crop: p.Crop, Want: predict.WantConcepts}
		switch {
		case p.URL != "":
			if err := show.CheckURL("query: image.url", p.URL); err != nil {
				return nil, nil, err
			}
			job.URL = p.URL
		case p.Base64.Kind() != jsonio.Absent:
			if job.Data, _, err = show.DecodePicture(nil, p.Base64, "query: image.base64"); err != nil {
				return nil, nil, err
			}
		case p.IsStored():
			continue
		default:
			in, err := x.View().InputByID(p.Input)
			if errors.Is(err, catalog.ErrNotFound) || err == nil && in.Code != catalog.InputReady {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			job.Blob = in.Blob
		}
		jobs, places = append(jobs, job), append(places, i)
	}
	return jobs, places, nil
}

// embed sets the embeddings of a query's pictures from the results.
func embed(q *search.Query, places []int, results []call.Result) error {
	if len(results) < len(places) {
		return call.ErrNoResult
	}
	for i, place := range places {
		r := &results[i]
		if r.Err != nil {
			return r.Err
		}
		if r.Analysis.Has&predict.WantConcepts == 0 {
			return call.ErrNoResult
		}
		q.Pictures[place].Embedding = &r.Analysis.Embedding
	}
	return nil
}

// answerEmbedded waits for the analyses of the query's pictures and then answers. If the
// application has changed its network meanwhile, the new network analyses them again.
func answerEmbedded(x *call.Call, q *search.Query, jobs []call.Job, places []int, answer func() error) error {
	return x.Ask(jobs, func(results []call.Result) error {
		if err := embed(q, places, results); err != nil {
			return err
		}
		err := answer()
		if errors.Is(err, errMoved) {
			return answerEmbedded(x, q, jobs, places, answer)
		}
		return err
	})
}

// errMoved is the error for embeddings of another network than the one that serves now.
var errMoved = errors.New("the application now uses another network")

// stay sets x.Net to the network of the application in v. If the query has embeddings of another network, the error is
// errMoved.
func stay(x *call.Call, q *search.Query, v *partition.View) (err error) {
	was := x.Net
	if x.Net, err = x.Host.NetworkOf(v.Reader); err != nil {
		return err
	}
	if x.Net != was && slices.ContainsFunc(q.Pictures, func(p search.Picture) bool { return p.Embedding != nil }) {
		return errMoved
	}
	return nil
}

// answerHits runs a query and answers with a page of its hits.
func answerHits(x *call.Call, q *search.Query, p call.Page) error {
	id, err := x.NewID()
	if err != nil {
		return err
	}
	v := x.View()
	if err := stay(x, q, v); err != nil {
		return err
	}
	found, err := search.Run(x.Ctx, v.Reader, x.App.Partition.Index(), q, search.Page{Offset: uint64((p.Number - 1) * p.Size), N: uint64(p.Size)})
	if err != nil {
		return err
	}
	inputs := make([]catalog.Input, len(found.Hits))
	lines := show.ConceptNames{}
	for i, hit := range found.Hits {
		if inputs[i], err = lines.Load(x, v, hit.Ord); err != nil {
			return err
		}
	}
	return x.OK(func(w *jsonio.Writer) {
		w.Grow(len(inputs)*show.InputBytes + x.Loaded)
		w.Text("id", id)
		w.Objects("hits", len(inputs), func(i int) {
			show.WriteFloat32(w, "score", found.Hits[i].Score)
			w.Name("input")
			show.WriteInput(x, w, &lines, &inputs[i], nil)
		})
	})
}

// Feedback stores a user's feedback on a hit of a search.
func Feedback(x *call.Call) error {
	var err error
	input := call.Read(&err, x.Body.Object, "input")
	info := call.Read(&err, input.Object, "feedback_info")
	if call.Read(&err, input.ID, "id"); err != nil {
		return call.Refuse(call.ErrFeedback, err)
	}
	if info.Value.Len() == 0 {
		return call.Refusef(call.ErrFeedback, "%s is missing.", info.Path)
	}
	if n := len(input.Value.Raw()); n > call.MaxFeedbackBytes {
		return call.Refusef(call.ErrFeedback, "input: %d bytes, but at most %d are allowed.", n, call.MaxFeedbackBytes)
	}
	return x.Done(&log.Feedback{JSON: bytes.Clone(input.Value.Raw())})
}
