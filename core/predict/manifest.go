package predict

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/jsonio"
)

// Limits of bundles and their files.
const (
	maxBundles       = 64
	maxFiles         = 128
	maxManifestBytes = 64 << 10
	maxFileBytes     = 256 << 20
	maxBundleBytes   = 512 << 20
)

const manifestFile = "manifest.json"

// lastONNX is the last commit whose program reads bundles of format 1, with an ONNX file.
const lastONNX = "76626462"

// Manifest is the content of manifest.json, which models/README.md describes. The bake writes it.
type Manifest struct {
	Format           int               `json:"format"`
	MinimumEngine    int               `json:"minimum_engine"`
	Kind             string            `json:"kind"`
	ID               string            `json:"id"`
	VersionID        string            `json:"version_id"`
	Name             string            `json:"name"`
	DisplayName      string            `json:"display_name"`
	Type             Type              `json:"type"`
	TypeExt          string            `json:"type_ext"`
	CreatedAt        Stamp             `json:"created_at"`
	VersionCreatedAt Stamp             `json:"version_created_at"`
	Base             string            `json:"base,omitempty"`
	Network          *Network          `json:"network,omitempty"`
	Similarity       *Similarity       `json:"similarity,omitempty"`
	Files            map[string]string `json:"files"`
}

// Stamp is a time. In JSON it has six digits after the second.
type Stamp struct{ time.Time }

// MarshalJSON implements json.Marshaler for the bake.
func (s Stamp) MarshalJSON() ([]byte, error) {
	return s.AppendFormat(nil, `"2006-01-02T15:04:05.000000Z07:00"`), nil
}

// Similarity holds thresholds for the similarity (1 + cosine)/2 of two pictures' embeddings. The bake measures them for each network, on
// pictures that the network was not trained on. The zero value means that they were not measured.
type Similarity struct {
	Related   float64 `json:"related"`    // minimum similarity of two pictures that likely show the same kind of thing
	SameScene float64 `json:"same_scene"` // minimum similarity of two pictures that likely show one scene
	Pictures  int     `json:"pictures"`   // number of measured pictures
}

// Network describes the network of a bundle.
type Network struct {
	File     string `json:"file"`
	SHA256   string `json:"sha256"`
	Identity string `json:"identity,omitempty"` // hash that identifies the network in Base; empty: SHA256
	Input    struct {
		Name   string `json:"name"`
		Size   int    `json:"size"`
		Centre int    `json:"centre"`
	} `json:"input"`
	Embedding  string `json:"embedding"`
	Logits     string `json:"logits"`
	Dimensions int    `json:"dimensions"`
	Classes    int    `json:"classes"`
	Heads      int    `json:"heads"`
}

// identity returns the hash that identifies the network in Base. By default it is the hash of the plan file, since a network has only one
// plan file. A network that was shipped in an earlier form keeps the hash of that form, so that its derived records stay valid.
func (n *Network) identity() string {
	if n.Identity != "" {
		return n.Identity
	}
	return n.SHA256
}

// bundle is the content of a bundle's folder. Its files match the hashes in its manifest.
type bundle struct {
	folder string
	Manifest
	data       map[string][]byte // by name in the folder, without the manifest
	hostHandle int32             // the host's number for the network, whose file is then not read; 0: the host does not run it

	background func() ([]byte, error) // reads background.f16 from the folder
}

// typeOf maps the kind of a bundle to the type of its model.
var typeOf = map[string]Type{
	"general": TypeConcept, "food": TypeConcept, "color": TypeColor, "embed": TypeEmbed,
}

func parseManifest(data []byte) (*Manifest, error) {
	var d jsonio.Doc
	if err := d.Parse(data, jsonio.Limits{}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	var m Manifest
	engine := jsonio.Var{Name: "minimum_engine", To: &m.MinimumEngine}
	if err := d.Root().Scan(engine); err == nil && m.MinimumEngine > EngineVersion {
		return nil, fmt.Errorf("the bundle needs engine %d, but this is engine %d: %w", m.MinimumEngine, EngineVersion, ErrEngine)
	}
	if err := d.Root().ScanAll(
		engine,
		jsonio.Var{Name: "format", To: &m.Format},
		jsonio.Var{Name: "kind", To: &m.Kind},
		jsonio.Var{Name: "id", To: &m.ID},
		jsonio.Var{Name: "version_id", To: &m.VersionID},
		jsonio.Var{Name: "name", To: &m.Name},
		jsonio.Var{Name: "display_name", To: &m.DisplayName},
		jsonio.Var{Name: "type", To: (*string)(&m.Type)},
		jsonio.Var{Name: "type_ext", To: &m.TypeExt},
		jsonio.Var{Name: "created_at", To: m.CreatedAt.scan},
		jsonio.Var{Name: "version_created_at", To: m.VersionCreatedAt.scan},
		jsonio.Var{Name: "base", To: &m.Base},
		jsonio.Var{Name: "network", To: func(v jsonio.Value) error {
			m.Network = new(Network)
			return m.Network.scan(v)
		}},
		jsonio.Var{Name: "similarity", To: func(v jsonio.Value) error {
			m.Similarity = new(Similarity)
			return m.Similarity.scan(v)
		}},
		jsonio.Var{Name: "files", To: m.scanFiles},
	); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	return &m, m.check()
}

func (m *Manifest) scanFiles(v jsonio.Value) error {
	if v.Kind() != jsonio.Object {
		return jsonio.ErrType
	}
	m.Files = make(map[string]string, v.Len())
	for name, sum := range v.Members() {
		text, err := sum.Str()
		if err != nil {
			return err
		}
		m.Files[name] = text
	}
	return nil
}

func (s *Stamp) scan(v jsonio.Value) error {
	text, err := v.Str()
	if err == nil {
		s.Time, err = time.Parse(time.RFC3339, text)
	}
	return err
}

func (n *Network) scan(v jsonio.Value) error {
	return v.ScanAll(
		jsonio.Var{Name: "file", To: &n.File},
		jsonio.Var{Name: "sha256", To: &n.SHA256},
		jsonio.Var{Name: "identity", To: &n.Identity},
		jsonio.Var{Name: "input", To: func(v jsonio.Value) error {
			return v.ScanAll(
				jsonio.Var{Name: "name", To: &n.Input.Name},
				jsonio.Var{Name: "size", To: &n.Input.Size},
				jsonio.Var{Name: "centre", To: &n.Input.Centre},
			)
		}},
		jsonio.Var{Name: "embedding", To: &n.Embedding},
		jsonio.Var{Name: "logits", To: &n.Logits},
		jsonio.Var{Name: "dimensions", To: &n.Dimensions},
		jsonio.Var{Name: "classes", To: &n.Classes},
		jsonio.Var{Name: "heads", To: &n.Heads},
	)
}

func (s *Similarity) scan(v jsonio.Value) error {
	return v.ScanAll(
		jsonio.Var{Name: "related", To: &s.Related},
		jsonio.Var{Name: "same_scene", To: &s.SameScene},
		jsonio.Var{Name: "pictures", To: &s.Pictures},
	)
}

func (m *Manifest) check() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, a...), ErrBundle)
	}
	switch {
	case m.Format == 1:
		return bad("format 1, which programs up to commit %s read: its network is an ONNX file", lastONNX)
	case m.Format != 2:
		return bad("format %d, want 2", m.Format)
	case m.MinimumEngine < 1:
		return bad("minimum_engine %d", m.MinimumEngine)
	case typeOf[m.Kind] == "" || m.Type != typeOf[m.Kind]:
		return bad("kind %.20q with type %.20q", m.Kind, m.Type)
	case !isHex(m.ID, 16) || !isHex(m.VersionID, 16):
		return bad("id %.40q, version_id %.40q: want 32 hex digits", m.ID, m.VersionID)
	case m.Name == "" || m.DisplayName == "" || m.TypeExt == "":
		return bad("name, display_name or type_ext is missing")
	case m.CreatedAt.IsZero() || m.VersionCreatedAt.IsZero():
		return bad("created_at or version_created_at is missing")
	case (m.Kind == "general") != (m.Network != nil):
		return bad("kind %q and network: only general has one", m.Kind)
	case (m.Kind == "food" || m.Kind == "embed") != (m.Base != ""):
		return bad("kind %q and base %.40q", m.Kind, m.Base)
	case m.Similarity != nil && (m.Kind != "general" || !m.Similarity.valid()):
		return bad("kind %q and similarity %+v", m.Kind, *m.Similarity)
	case len(m.Files) > maxFiles:
		return bad("%d files, at most %d", len(m.Files), maxFiles)
	}
	for name, sum := range m.Files {
		if !fs.ValidPath(name) || name == manifestFile || strings.Count(name, "/") > 1 || !isHex(sum, sha256.Size) {
			return bad("file %.80q with hash %.80q", name, sum)
		}
	}
	if n := m.Network; n != nil {
		switch {
		case m.Files[n.File] == "" || m.Files[n.File] != n.SHA256:
			return bad("network file %.80q is not listed in files with the same hash", n.File)
		case n.Identity != "" && !isHex(n.Identity, sha256.Size):
			return bad("network identity %.80q", n.Identity)
		case n.Input.Size < 1 || n.Input.Size > 1024 || n.Input.Centre < 1 || n.Input.Centre > 16:
			return bad("input size %d, centre %d", n.Input.Size, n.Input.Centre)
		case n.Dimensions != Dim:
			return bad("%d dimensions, want %d", n.Dimensions, Dim)
		case n.Classes < 1 || n.Classes > maxClasses || n.Heads < 0 || n.Heads > maxHeads:
			return bad("%d classes, %d heads", n.Classes, n.Heads)
		}
	}
	return nil
}

func (s *Similarity) valid() bool {
	return s.Related > 0 && s.Related <= s.SameScene && s.SameScene <= 1 && s.Pictures > 0
}

func isHex(s string, n int) bool {
	if len(s) != 2*n || s != strings.ToLower(s) {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// readBundles reads the folders of fsys that have a manifest, in the order of their names. of selects the files to read. checked means that
// the caller has already verified the hashes.
func readBundles(fsys fs.FS, of extent, checked bool) ([]*bundle, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("bundles: %w", err)
	}
	var out []*bundle
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		folder := entry.Name()
		data, err := readFile(fsys, path.Join(folder, manifestFile), maxManifestBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && len(out) == maxBundles {
			err = fmt.Errorf("more than %d bundles: %w", maxBundles, ErrBundle)
		}
		var b *bundle
		if err == nil {
			b, err = readBundle(fsys, folder, data, of, checked)
		}
		if err != nil {
			return nil, fmt.Errorf("bundle %s: %w", folder, err)
		}
		out = append(out, b)
	}
	return out, nil
}

func readBundle(fsys fs.FS, folder string, data []byte, of extent, checked bool) (*bundle, error) {
	m, err := parseManifest(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	b := &bundle{folder: folder, Manifest: *m, data: map[string][]byte{}}
	if m.Network != nil && of != tables {
		b.hostHandle = networkAtHost(baseOf(b))
	}
	left := func(name string) bool {
		return m.Network != nil && (of.leaves(m.Network, name) || b.hostHandle != 0 && name == m.Network.File)
	}
	want := m.Files[backgroundFile]
	b.background = func() ([]byte, error) { return readHashed(fsys, folder, backgroundFile, want, checked) }
	total := 0
	err = fs.WalkDir(fsys, folder, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(p, folder+"/")
		if name == manifestFile || left(name) {
			return nil
		}
		want, ok := m.Files[name]
		if !ok {
			return fmt.Errorf("%s is not in the manifest: %w", name, ErrBundle)
		}
		data, err := readHashed(fsys, folder, name, want, checked)
		if err != nil {
			return err
		}
		if total += len(data); total > maxBundleBytes {
			return fmt.Errorf("more than %d bytes: %w", maxBundleBytes, ErrBundle)
		}
		b.data[name] = data
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name := range m.Files {
		if _, ok := b.data[name]; !ok && !left(name) {
			return nil, fmt.Errorf("%s is missing: %w", name, ErrBundle)
		}
	}
	return b, nil
}

// readHashed reads a file of a bundle. Unless checked is set, it compares the SHA-256 of the file with want.
func readHashed(fsys fs.FS, folder, name, want string, checked bool) ([]byte, error) {
	data, err := readFile(fsys, path.Join(folder, name), maxFileBytes)
	if err != nil || checked {
		return data, err
	}
	if sum := blob.Sum(data); sum.String() != want {
		return nil, fmt.Errorf("%s: %d bytes with SHA-256 %v, want %s: %w", name, len(data), sum, want, ErrBundle)
	}
	return data, nil
}

// readFile reads a file. It returns ErrBundle if the file has more than limit bytes.
func readFile(fsys fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: %d bytes, at most %d: %w", name, info.Size(), limit, ErrBundle)
	}
	return fs.ReadFile(fsys, name)
}
