package updater

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/release"
)

// Folder is where modules are kept; *system.Folder is one.
type Folder interface {
	Create(name string) (blob.File, error)
	Open(name string) (io.ReadCloser, error)
	Size(name string) (int64, error)
	Rename(from, to string) error
	Remove(name string) error
	MkdirAll(name string) error
	ReadDir(name string) ([]string, error)
	SyncDir(name string) error
}

var _ Folder = (*system.Folder)(nil)

// Names in the folder.
const (
	stateFile = "modules.json"
	slotsDir  = "modules"
)

const maxState = 1 << 16

// Release is a module that the origin has released.
type Release struct {
	Version uint64    `json:"version"`
	Module  blob.Hash `json:"-"`
	SHA256  string    `json:"sha256"`
	Program string    `json:"program,omitempty"`
}

// state is what the one file says. A module is the program's own where its release is nil.
type state struct {
	Seen     Release  `json:"seen"` // the newest that was looked at; none before it is taken
	Current  *Release `json:"current,omitempty"`
	Previous *Release `json:"previous,omitempty"` // which served before, and does again when Current is no good
	Tries    int      `json:"tries,omitempty"`    // starts of Current that it has not outlived; 0: it has proved itself
	Refused  string   `json:"refused,omitempty"`  // why Seen is not Current
	Host     string   `json:"host,omitempty"`     // hash of the own module of the program that was last here
}

// Slots are the modules of a folder: the one in force, and the one before.
type Slots struct {
	dir Folder
	state
}

// OpenSlots reads what a folder has. A file that is damaged counts as none: the program's own module serves.
func OpenSlots(dir Folder) (*Slots, error) {
	s := &Slots{dir: dir}
	data, err := readAll(dir, stateFile, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.decode(data); err != nil {
		s.state = state{}
		return s, fmt.Errorf("%s: %w", stateFile, err)
	}
	return s, nil
}

func (s *Slots) decode(data []byte) error {
	if err := json.Unmarshal(data, &s.state); err != nil {
		return err
	}
	for _, r := range []*Release{&s.Seen, s.Current, s.Previous} {
		if r == nil || r.SHA256 == "" && r == &s.Seen {
			continue
		}
		h, err := blob.ParseHash(r.SHA256)
		if err != nil {
			return err
		}
		r.Module = h
	}
	return nil
}

// put makes a state the folder's, durably: after a crash it is that or the one before.
func (s *Slots) put(next state) error {
	data, err := json.MarshalIndent(&next, "", "  ")
	if err != nil {
		return err
	}
	if err := replace(s.dir, ".", stateFile, append(data, '\n')); err != nil {
		return err
	}
	s.state = next
	return nil
}

// InForce is the release whose module is to serve; nil: the program's own.
func (s *Slots) InForce() *Release { return s.Current }

// Kept are the modules that the folder keeps: the one in force, and the one before.
func (s *Slots) Kept() (kept []blob.Hash) {
	for _, r := range []*Release{s.Current, s.Previous} {
		if r != nil {
			kept = append(kept, r.Module)
		}
	}
	return kept
}

// Module is the bytes of the module in force: of the one before where those are damaged. nil: the program's own is.
func (s *Slots) Module() ([]byte, error) {
	var failed error
	for _, r := range []*Release{s.Current, s.Previous} {
		if r == nil {
			break
		}
		data, err := s.read(r.Module)
		if err == nil {
			return data, failed
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// read reads a module, and checks that it is.
func (s *Slots) read(h blob.Hash) ([]byte, error) {
	data, err := readAll(s.dir, fileOf(h), release.MaxModule)
	if err == nil && blob.Sum(data) != h {
		err = errors.New("its bytes have another hash")
	}
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", h, err)
	}
	return data, nil
}

// maxTries is how often a process may end before a module has proved itself.
const maxTries = 3

// Start is told of a start that serves. A module with which too many starts have ended at once is left for the one
// before; the error that says so comes with what is to serve.
func (s *Slots) Start() error {
	if s.Tries == 0 {
		return nil
	}
	if s.Tries >= maxTries {
		return s.back(fmt.Errorf("%d starts have ended with it", s.Tries))
	}
	next := s.state
	next.Tries++
	return s.put(next)
}

// ErrBack is returned when a module was left for the one before.
var ErrBack = errors.New("module is left for the one before")

// back makes the one before the one in force. The error says what became of it: ErrBack when it is done.
func (s *Slots) back(why error) error {
	next := s.state
	next.Current, next.Previous, next.Tries, next.Refused = s.Previous, nil, 0, why.Error()
	if err := s.put(next); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrBack, why)
}

// tidy removes what no release needs.
func (s *Slots) tidy() error {
	names, err := s.dir.ReadDir(slotsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var keep []string
	for _, h := range s.Kept() {
		keep = append(keep, strings.TrimPrefix(fileOf(h), slotsDir+"/"))
	}
	for _, name := range names {
		if !slices.Contains(keep, name) {
			err = errors.Join(err, s.dir.Remove(slotsDir+"/"+name))
		}
	}
	return err
}

func fileOf(h blob.Hash) string { return slotsDir + "/" + h.String() + ".wasm" }

func readAll(dir Folder, name string, most int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := system.ReadAll(f, most)
	return data, errors.Join(err, f.Close())
}

// replace has a file of a folder below hold bytes, or after a crash what it held before.
func replace(dir Folder, below, name string, data []byte) error {
	unfinished := name + ".new"
	if err := dir.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := dir.Create(unfinished)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(unfinished, name); err != nil {
		return err
	}
	return dir.SyncDir(below)
}
