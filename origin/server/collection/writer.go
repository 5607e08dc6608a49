package collection

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
)

// Target is the target of an export: a folder or an archive. The writer writes one file at a time.
type Target interface {
	// Create creates a file. The caller must close it before the next Create.
	Create(name string) (io.WriteCloser, error)
	// Close ends the export. If it returns nil, the export is complete.
	Close() error
}

// Manifest is the content of an export's sightline.json.
type Manifest struct {
	Format  string         `json:"format"` // formatName
	Version int            `json:"version"`
	Counts  map[string]int `json:"counts"` // number of lines of each file, and of pictures
}

const (
	formatName    = "sightline-export"
	formatVersion = 1
)

// Writer writes an export. Call Line and Input in any order, then Close.
type Writer struct {
	to       Target
	spool    func() (*os.File, error)
	spools   map[string]*os.File
	counts   map[string]int
	pictures map[blob.Hash]string // paths of the written pictures
}

// Create starts an export. spool returns a temporary file for lines, which Close copies to the export. Closing a temporary file must delete
// it.
func Create(to Target, spool func() (*os.File, error)) *Writer {
	return &Writer{to: to, spool: spool, spools: map[string]*os.File{}, counts: map[string]int{}, pictures: map[blob.Hash]string{}}
}

// Abandon closes the files of a failed export.
func (w *Writer) Abandon() {
	for _, spool := range w.spools {
		_ = spool.Close() // earlier calls returned the errors
	}
	_ = w.to.Close()
}

// Line writes an element to a file of lines, such as ConceptsFile.
func (w *Writer) Line(file string, element any) error {
	spool, ok := w.spools[file]
	if !ok {
		var err error
		if spool, err = w.spool(); err != nil {
			return err
		}
		w.spools[file] = spool
	}
	b, err := Marshal(element)
	if err != nil {
		return err
	}
	if _, err := spool.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	w.counts[file]++
	return nil
}

// Marshal works like json.Marshal, but leaves <, > and & unchanged.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// Input writes an input and its picture. picture is nil if it was never downloaded.
func (w *Writer) Input(in *Input, picture []byte, contentType string) error {
	line := record{
		ID: in.ID, image: image{URL: in.URL, AllowDuplicateURL: in.AllowDuplicateURL, Crop: in.Crop},
		annotations: annotations{Metadata: in.Metadata, Geo: in.Geo, Edits: in.Edits},
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, in.Metadata); in.Metadata != nil && (err != nil || !bytes.Equal(compact.Bytes(), in.Metadata)) {
		line.Metadata, line.Text = nil, string(in.Metadata) // a line cannot contain its spaces and line ends
	}
	for _, c := range in.Concepts {
		line.Concepts = append(line.Concepts, label{c})
	}
	if picture != nil {
		h := blob.Sum(picture)
		if !in.Hash.IsZero() && h != in.Hash {
			return fmt.Errorf("%s: %w", in.ID, ErrPicture)
		}
		var err error
		if line.Path, err = w.picture(h, picture, contentType); err != nil {
			return err
		}
		line.SHA256 = h.String()
	}
	return w.Line(InputsFile, line)
}

// picture writes a picture unless it was written before, and returns its path.
func (w *Writer) picture(h blob.Hash, data []byte, contentType string) (string, error) {
	if name, ok := w.pictures[h]; ok {
		return name, nil
	}
	hex := h.String()
	name := path.Join(PicturesDir, hex[:2], hex+extension(contentType))
	f, err := w.to.Create(name)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	w.pictures[h] = name
	return name, nil
}

func extension(contentType string) string {
	contentType, _, _ = strings.Cut(contentType, ";")
	switch strings.TrimSpace(contentType) {
	case "image/jpeg":
		return ".jpg"
	case "image/png", "image/gif", "image/webp", "image/bmp", "image/tiff":
		return "." + strings.TrimPrefix(contentType, "image/")
	}
	if _, name, isRaw := strings.Cut(contentType, "image/x-"); isRaw { // for example image/x-nikon-nef
		if _, name, ok := strings.Cut(name, "-"); ok {
			return "." + name
		}
	}
	return ""
}

// Close writes the files of lines, and the manifest last: an export without a manifest is incomplete.
func (w *Writer) Close() error {
	for _, name := range []string{ConceptsFile, ModelsFile, WorkflowsFile, InputsFile} {
		if err := w.unspool(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	w.counts[PicturesDir] = len(w.pictures)
	b, err := json.MarshalIndent(Manifest{formatName, formatVersion, w.counts}, "", "  ")
	if err != nil {
		return err
	}
	f, err := w.to.Create(ManifestFile)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close(), w.to.Close())
}

func (w *Writer) unspool(name string) error {
	f, err := w.to.Create(name)
	if err != nil {
		return err
	}
	if spool, ok := w.spools[name]; ok {
		if _, err = spool.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(f, spool)
		}
		err = errors.Join(err, spool.Close())
		delete(w.spools, name)
	}
	return errors.Join(err, f.Close())
}
