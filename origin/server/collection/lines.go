package collection

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sightline-dev/sightline/core/blob"
)

// maxLine bounds a line: a picture in base64 and what is said of it.
const maxLine = 32 << 20

// lines calls yield with every line that is not blank and its number, from 1.
func lines(r io.Reader, yield func(n int, line []byte) error) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for n, more := 1, true; more; n++ {
		line = line[:0]
		for {
			part, err := b.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > maxLine {
				return fmt.Errorf("line %d: more than %d bytes: %w", n, maxLine, ErrFormat)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			more = err == nil
			break
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if err := yield(n, trimmed); err != nil {
				return err
			}
		}
	}
	return nil
}

// image is where a picture is; the members of /v2 and two of ours.
type image struct {
	URL               string          `json:"url"`
	Base64            string          `json:"base64"`
	Path              string          `json:"path"`
	SHA256            string          `json:"sha256"`
	Crop              json.RawMessage `json:"crop"`
	AllowDuplicateURL bool            `json:"allow_duplicate_url"`
}

// labelled is what is said of a picture.
type labelled struct {
	Concepts []label         `json:"concepts"`
	Metadata json.RawMessage `json:"metadata"`
	Text     string          `json:"metadata_text"` // the same in a text, where its spaces are to be kept
	Geo      json.RawMessage `json:"geo"`
	Edits    json.RawMessage `json:"edits"`
}

// record is a line: an input as in /v2, or the same without its folds.
type record struct {
	ID string `json:"id"`
	image
	labelled
	Data *struct {
		Image *image `json:"image"`
		labelled
	} `json:"data"`
}

// label is a concept of an input: an id, or an object with a value that is 1 when absent.
type label struct{ Concept }

// UnmarshalJSON implements json.Unmarshaler.
func (l *label) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &l.ID)
	}
	var c struct {
		ID    string `json:"id"`
		Value any    `json:"value"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	l.ID = c.ID
	switch v := c.Value.(type) {
	case nil:
	case bool:
		l.False = !v
	case float64:
		if v != 0 && v != 1 {
			return fmt.Errorf("value %v of concept %q: expected 0, 1, true or false", v, c.ID)
		}
		l.False = v == 0
	default:
		return fmt.Errorf("value of concept %q: expected 0, 1, true or false", c.ID)
	}
	if l.ID == "" {
		return errors.New("a concept has no id")
	}
	return nil
}

// readLines reads inputs that stand one a line.
func readLines(r io.Reader, name string, yield func(Input) error) error {
	return lines(r, func(n int, line []byte) error {
		in, err := parseLine(line)
		in.Err = err
		in.Name = fmt.Sprintf("%s:%d", name, n)
		if in.Path != "" {
			in.Name = in.Path
		}
		return yield(in)
	})
}

func parseLine(line []byte) (Input, error) {
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil {
		return Input{}, err
	}
	img, lab := &rec.image, &rec.labelled
	if rec.Data != nil {
		lab = &rec.Data.labelled
		if img = rec.Data.Image; img == nil {
			return Input{ID: rec.ID}, errors.New("data.image is missing")
		}
	}
	in := Input{
		ID: rec.ID, URL: img.URL, Path: img.Path, AllowDuplicateURL: img.AllowDuplicateURL,
		Crop: some(img.Crop), Metadata: some(lab.Metadata), Geo: some(lab.Geo), Edits: some(lab.Edits),
	}
	if lab.Text != "" {
		if in.Metadata = json.RawMessage(lab.Text); !json.Valid(in.Metadata) {
			return in, errors.New("metadata_text is not valid JSON")
		}
	}
	for _, l := range lab.Concepts {
		in.Concepts = append(in.Concepts, l.Concept)
	}
	var err error
	if img.Base64 != "" {
		if in.Picture, err = base64.StdEncoding.DecodeString(img.Base64); err != nil {
			return in, fmt.Errorf("base64: %w", err)
		}
	}
	if img.SHA256 != "" {
		if in.Hash, err = blob.ParseHash(img.SHA256); err != nil {
			return in, err
		}
	}
	if in.URL == "" && in.Path == "" && in.Picture == nil {
		return in, errors.New("url, path or base64 is required")
	}
	return in, nil
}

// some is a copy of raw, nil for null.
func some(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return bytes.Clone(raw)
}
