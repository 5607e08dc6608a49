// Package collection reads and writes collections of inputs outside a server. The import command reads a collection and the export command
// writes one.
//
//	photos/               pictures in folders            ┐
//	inputs.jsonl          one input a line, as in /v2    ├─ Open ──▶ Source ──▶ Input, Input, …
//	inputs.csv            one input a row                │             └ Read: the picture's bytes
//	FILE.zip              any of these, packed           ┘
//
//	export/ or FILE.zip ◀── Create ◀── Writer
//	  sightline.json      format and counts, written last
//	  concepts.jsonl      own concepts          {"id","name","language"}
//	  models.jsonl        own models            {"id","name","concepts":[id…],"output_config":{…}}
//	  workflows.jsonl     own workflows         {"id","nodes":[…]}
//	  inputs.jsonl        inputs, each with "path" and "sha256" of its picture; metadata that is not
//	                      in JSON's shortest form stands in a text, "metadata_text"
//	  pictures/3f/3f9a….jpg
//
// If a folder or archive contains inputs.jsonl or inputs.csv, that file lists the inputs; other pictures are left out. Without it every
// picture is an input, and its path is the input's id. The package derives missing ids from the source alone. So reading the source again
// after an interruption gives the same ids.
//
// The package reads through [fs.FS] and writes through functions from its caller. It checks only what it needs itself. The API decides
// whether an input is valid.
package collection

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// Names of an export's files.
const (
	ManifestFile  = "sightline.json"
	InputsFile    = "inputs.jsonl"
	TableFile     = "inputs.csv"
	ConceptsFile  = "concepts.jsonl"
	ModelsFile    = "models.jsonl"
	WorkflowsFile = "workflows.jsonl"
	PicturesDir   = "pictures"
)

// ErrFormat is returned for a source in an unknown format, or malformed as a whole.
var ErrFormat = errors.New("invalid import source")

// ErrPicture is returned if a picture's bytes do not match the SHA-256 in the source.
var ErrPicture = errors.New("the picture does not match its SHA-256")

// maxPictureBytes is the API's limit for one picture of any kind. That of most kinds is lower.
const maxPictureBytes = 64_000_000

// Concept is a label of an input.
type Concept struct {
	ID    string
	False bool // the concept is absent
}

// Input is one input of a collection.
type Input struct {
	ID       string
	Name     string // name for a user: a path, or a file and line
	URL      string // URL of its picture; an input has one of URL, Path and Picture
	Path     string // file of its picture
	Picture  []byte // bytes of its picture
	Hash     blob.Hash
	Crop     json.RawMessage // Crop, Metadata, Geo: as in /v2; nil: none
	Concepts []Concept
	Metadata json.RawMessage
	Geo      json.RawMessage
	Edits    json.RawMessage // changes to its predictions: [{"id","value","removed"}…]; an extension of /v2

	AllowDuplicateURL bool

	Err error // why the input could not be read; the rest of the source may be missing
}

// Files are the files of a source.
type Files struct {
	FS fs.FS
	// ReadFile reads a picture that a manifest names, of at most limit bytes. nil: a manifest can only name files in FS.
	ReadFile func(name string, limit int64) ([]byte, error)
	// IsPicture reports whether a file that starts with these bytes, at most 1 KB, is a picture.
	IsPicture func(start []byte) bool
}

// Source is a collection to read.
type Source struct {
	files    Files
	manifest string  // the file that lists the inputs; empty: each picture is an input
	listing  Listing // the pictures, if no manifest exists
	options  Options
}

// Options are the user's options for a source.
type Options struct {
	FolderConcepts bool // the first folder below the source names a concept of the pictures in it
	Hidden         bool // hidden files are not left out
	Sidecars       bool // XMP and the JSON of Google Takeout next to a picture count
	NoPlaces       bool // sidecars give no place
}

// Open detects the format of files. name is the path of a manifest in files. If name is empty, Open looks for one.
func Open(files Files, name string, o Options) (*Source, error) {
	s := &Source{files: files, manifest: name, options: o}
	if name != "" {
		if !slices.Contains(listEndings, strings.ToLower(path.Ext(name))) {
			return nil, fmt.Errorf("%s: %w: expected a folder, or a .jsonl, .csv or .zip file", name, ErrFormat)
		}
		return s, nil
	}
	for _, name := range []string{InputsFile, TableFile} {
		info, err := fs.Stat(files.FS, name)
		if err == nil && info.Mode().IsRegular() {
			s.manifest = name
			return s, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the list, its labels would be missing
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	s.listing = *Walk(files, o)
	return s, nil
}

// LeftOut returns the numbers of files that were left out on purpose, by reason.
func (s *Source) LeftOut() map[Reason]int { return s.listing.LeftOut }

// Inputs calls yield with every input in the source's order. If yield returns an error, Inputs stops and returns it. A malformed input has
// Err set.
func (s *Source) Inputs(yield func(Input) error) error {
	if s.manifest == "" {
		return s.folder(yield)
	}
	names := namer{}
	yieldNamed := func(in Input) error {
		if in.ID == "" && in.Err == nil {
			in.ID = names.name(&in)
		}
		return yield(in)
	}
	f, err := s.files.FS.Open(s.manifest)
	if err != nil {
		return err
	}
	read := readLines
	if isTable(s.manifest) {
		read = readTable
	}
	return errors.Join(read(f, path.Base(s.manifest), yieldNamed), f.Close())
}

// Count returns the number of inputs in the source.
func (s *Source) Count() (n int, err error) {
	if s.manifest == "" {
		return len(s.listing.Found), nil
	}
	err = s.Inputs(func(Input) error { n++; return nil })
	return n, err
}

func (s *Source) folder(yield func(Input) error) error {
	for _, found := range s.listing.Found {
		in := Input{Name: PrintableName(found.Name), Err: found.Err}
		if found.Err == nil {
			in.ID, in.Path = pathID(found.Name), found.Path
		}
		if first, _, ok := strings.Cut(in.Name, "/"); ok && s.options.FolderConcepts {
			in.Concepts = []Concept{{ID: first}}
		}
		if said := s.listing.Sidecars[found.Name]; said != nil && found.Err == nil {
			in.Err = said.fill(&in, s.options)
		}
		if err := yield(in); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the bytes of an input's picture. It returns nil if the input has a URL and no file.
func (s *Source) Read(in *Input) ([]byte, error) {
	data := in.Picture
	if data == nil && in.Path != "" {
		var err error
		if data, err = s.readFile(in.Path); err != nil {
			return nil, err
		}
	}
	if data != nil && !in.Hash.IsZero() && blob.Sum(data) != in.Hash {
		return nil, fmt.Errorf("%s: %w", in.Path, ErrPicture)
	}
	return data, nil
}

func (s *Source) readFile(name string) ([]byte, error) {
	data, err := s.readAll(name)
	if limit := raster.SizeLimit(data); err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return data, err
}

func (s *Source) readAll(name string) ([]byte, error) {
	if s.manifest != "" && s.files.ReadFile != nil {
		return s.files.ReadFile(name, maxPictureBytes)
	}
	if s.manifest != "" {
		name = path.Clean(name)
	}
	f, err := s.files.FS.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPictureBytes+1))
	return data, errors.Join(err, f.Close())
}

// Lines calls yield with each line of another file of an export, such as ModelsFile. If the source lacks the file, Lines does nothing.
func (s *Source) Lines(name string, yield func(line json.RawMessage) error) error {
	if s.manifest != InputsFile {
		return nil
	}
	f, err := s.files.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(lines(f, func(n int, line []byte) error {
		if !json.Valid(line) {
			return fmt.Errorf("%s, line %d: %w", name, n, ErrFormat)
		}
		return yield(line)
	}), f.Close())
}
