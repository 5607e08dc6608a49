package collection

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/sightline-dev/sightline/core/blob"
)

// maxLine is the maximum size of a line: a picture in base64 and its data.
const maxLine = 32 << 20

// lines calls yield with every non-blank line and its number, counted from 1.
func lines(r io.Reader, yield func(n int, line []byte) error) error {
	s := bufio.NewScanner(decoded(r))
	s.Buffer(nil, maxLine)
	n := 1
	for ; s.Scan(); n++ {
		if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 {
			if err := yield(n, line); err != nil {
				return err
			}
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: more than %d bytes: %w", n, maxLine, ErrFormat)
	}
	return s.Err()
}

// image locates a picture. It has the members of /v2 and two further ones, path and sha256.
type image struct {
	URL               string          `json:"url,omitempty"`
	Base64            string          `json:"base64,omitempty"`
	Path              string          `json:"path,omitempty"`
	SHA256            string          `json:"sha256,omitempty"`
	AllowDuplicateURL bool            `json:"allow_duplicate_url,omitempty"`
	Crop              json.RawMessage `json:"crop,omitempty"`
}

// annotations holds the labels and other data of a picture.
type annotations struct {
	Concepts []label         `json:"concepts,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Text     string          `json:"metadata_text,omitempty"` // the metadata as text, which preserves its spaces
	Geo      json.RawMessage `json:"geo,omitempty"`
	Edits    json.RawMessage `json:"edits,omitempty"`
}

// record is a line: an input in the form of /v2 with "data", or in the flat form that an export writes.
type record struct {
	ID string `json:"id"`
	image
	annotations
	Data *struct {
		Image *image `json:"image"`
		annotations
	} `json:"data,omitempty"`
}

// label is a concept of an input: an id, or an object with an id and a value. A missing value means 1.
type label struct{ Concept }

// labelObject is a label in the form of an object.
type labelObject struct {
	ID    string `json:"id"`
	Value any    `json:"value"`
}

// MarshalJSON implements json.Marshaler.
func (l label) MarshalJSON() ([]byte, error) {
	if l.False {
		return Marshal(labelObject{l.ID, 0})
	}
	return Marshal(labelObject{l.ID, 1})
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *label) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &l.ID)
	}
	var c labelObject
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

// readLines reads inputs from lines of JSON.
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
	if !utf8.Valid(line) {
		return Input{}, errNotUTF8
	}
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil {
		return Input{}, err
	}
	img, lab := &rec.image, &rec.annotations
	if rec.Data != nil {
		lab = &rec.Data.annotations
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

// some returns a copy of raw, or nil for null.
func some(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return bytes.Clone(raw)
}
