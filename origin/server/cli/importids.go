package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"unicode/utf8"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/origin/server/collection"
)

// stored is an input of the application.
type stored struct {
	Status Status
	hash   blob.Hash // of its picture; zero if it has no picture yet
}

// storedInput is an input in an answer, with show=sha256.
type storedInput struct {
	ID   string
	Data struct {
		Image struct{ SHA256 string }
	}
	Status Status
}

// listRows is the number of inputs on a page, a power of two; see [Pages].
const listRows = 512

// listTaken lists all inputs of an application if that takes fewer calls than one for each input of the source. n is their number.
func (im *importer) listTaken(ctx context.Context, n int) error {
	if n > 0 && n/listRows >= im.total {
		return nil
	}
	im.allTaken = true
	if n == 0 {
		return nil
	}
	return pages(ctx, im.session, "/v2/inputs?show=sha256&", "inputs", listRows, func(in *storedInput) error {
		s, err := im.storedOf(ctx, in)
		if isThere(s.Status) {
			im.taken[in.ID] = s
		}
		return err
	})
}

// lookUpAll adds the inputs of the application with the IDs of these inputs to taken.
func (im *importer) lookUpAll(ctx context.Context, inputs []collection.Input) error {
	if im.allTaken {
		return nil
	}
	const askers = 8 // parallel calls
	found := make([]stored, len(inputs))
	errs := make([]error, askers)
	var asking sync.WaitGroup
	for first := range askers {
		asking.Go(func() {
			for i := first; i < len(inputs) && errs[first] == nil; i += askers {
				found[i], errs[first] = im.lookUp(ctx, inputs[i].ID)
			}
		})
	}
	asking.Wait()
	for i := range inputs {
		if _, known := im.taken[inputs[i].ID]; !known && isThere(found[i].Status) {
			im.taken[inputs[i].ID] = found[i]
		}
	}
	return errors.Join(errs...)
}

// lookUp returns an input of the application. For a missing input it returns the zero value.
func (im *importer) lookUp(ctx context.Context, id string) (stored, error) {
	var answer struct{ Input storedInput }
	err := SendRequest(ctx, im.session, "GET", "/v2/inputs/"+url.PathEscape(id)+"?show=sha256", nil, &answer)
	if refusal := new(StatusError); errors.As(err, &refusal) && refusal.HTTP == http.StatusNotFound {
		return stored{}, nil
	}
	if err != nil {
		return stored{}, err
	}
	answer.Input.ID = id
	return im.storedOf(ctx, &answer.Input)
}

// storedOf returns the status and the hash of an input in an answer. Servers before show=sha256 have the hash in another answer.
func (im *importer) storedOf(ctx context.Context, in *storedInput) (s stored, err error) {
	s.Status = in.Status
	if in.Status.Code != downloaded {
		return s, nil
	}
	if in.Data.Image.SHA256 == "" {
		var answer struct{ Source inputSource }
		if err := SendRequest(ctx, im.session, "GET", "/v2/inputs/"+url.PathEscape(in.ID)+"/source", nil, &answer); err != nil {
			return s, err
		}
		in.Data.Image.SHA256 = answer.Source.SHA256
	}
	s.hash, err = blob.ParseHash(in.Data.Image.SHA256)
	return s, err
}

// place reads the picture of an input and chooses the ID of the input. If the application has the picture with this ID, isNew is false.
// If the ID belongs to another picture, place appends to it. place reports and counts inputs that exist or fail.
func (im *importer) place(ctx context.Context, in *collection.Input) (data []byte, isNew bool, err error) {
	at, known := im.taken[in.ID]
	isFile := in.Path != "" || in.Picture != nil
	if isFile && (!known || in.Hash.IsZero() || at.hash != in.Hash) {
		if data, err = im.source.Read(in); err != nil {
			im.reportFailure(in, err)
			return nil, false, nil
		}
		in.Hash = blob.Sum(data)
	}
	if known && isFile && at.hash != in.Hash {
		in.ID = otherID(in.ID, in.Hash)
		im.mu.Lock()
		im.otherIDs[in.ID] = true
		im.mu.Unlock()
		if at, known = im.taken[in.ID]; !known && !im.allTaken {
			if at, err = im.lookUp(ctx, in.ID); err != nil {
				return nil, false, err
			}
			known = isThere(at.Status)
		}
		if known && at.hash != in.Hash {
			im.reportFailure(in, fmt.Errorf("the ID %s belongs to another picture", in.ID))
			return nil, false, nil
		}
	}
	if known {
		if err := im.edit(ctx, in); err != nil {
			return nil, false, err
		}
		im.countInput(&im.sum.Existing)
		return nil, false, nil
	}
	im.taken[in.ID] = stored{hash: in.Hash}
	return data, true, nil
}

// otherID returns the ID of a picture whose ID belongs to another one.
func otherID(id string, hash blob.Hash) string {
	end := "~" + hash.String()[:8]
	return cut(id, form.MaxIDBytes-len(end)) + end
}

// cut returns the first bytes of a text, at most n, without a part of a character at the end.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// maxFileBytes is the maximum length of the path in the metadata of an input.
const maxFileBytes = 4096

// withFile returns metadata with the path of the input's file as the member "file". Metadata that have the member, are not an object, or would
// become too large stay the same.
func withFile(metadata json.RawMessage, file string) json.RawMessage {
	value, err := collection.Marshal(cut(file, maxFileBytes))
	if err != nil {
		return metadata
	}
	member := append([]byte(`{"file":`), value...)
	if metadata == nil {
		return append(member, '}')
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(metadata, &members); err != nil || members["file"] != nil {
		return metadata
	}
	if len(members) > 0 {
		member = append(member, ',')
	}
	_, rest, _ := bytes.Cut(metadata, []byte{'{'})
	with := append(member, rest...)
	if len(with) > form.MaxMetaBytes || form.CheckMetadata(with) != nil {
		return metadata
	}
	return with
}
