package predict

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict/nn"
)

// order is the order in which a set lists its models.
var order = []string{"general", "food", "color", "embed"}

// Load reads the bundles under fsys, one folder each as models/README.md describes them, and
// compiles their network once. Folders without a manifest are passed over. There must be one
// bundle of the kind general, and at most one of each other kind.
//
// Every file is checked against its SHA-256 before anything is made of it, unless fsys is [VerifiedFS]. Load returns
// ErrBundle or ErrEngine, or the errors of package nn for a network that it refuses.
func Load(fsys fs.FS) (*Set, error) { return load(fsys, whole) }

// LoadTables is Load without the network: of its file only the hash that the manifest names is
// read, so it may be absent. The set is the same in all but NewAnalyser, which panics: for a
// program whose pictures are analysed elsewhere. It does not notice a network that Load refuses.
// Background reads its file from fsys at the first need, so that file may come later.
func LoadTables(fsys fs.FS) (*Set, error) { return load(fsys, tables) }

// LoadNetwork loads only the files that an [Analyser] needs. It does not read names in other languages or the background, so these files
// may be absent. Base and every analysis are the same as after Load, but Names returns nil. It is for programs that only analyse
// pictures.
func LoadNetwork(fsys fs.FS) (*Set, error) { return load(fsys, seeing) }

// extent selects the parts of a set to load.
type extent uint8

const (
	whole  extent = iota
	tables        // all but the network, and the background at its first need
	seeing        // what analysing needs
)

// leaves reports whether a file of the general bundle is left out.
func (of extent) leaves(n *Network, name string) bool {
	switch of {
	case tables:
		return name == n.File || name == backgroundFile
	case seeing:
		return name == backgroundFile || strings.HasPrefix(name, namesFolder)
	}
	return false
}

// Files of the general bundle that analysing does not need.
const (
	backgroundFile = "background.f16"
	namesFolder    = "names/"
)

// VerifiedFS is a file system of bundles whose files its caller has compared with their hashes, such as a page's script, which
// uses the browser's hash function. They are not hashed again.
type VerifiedFS struct{ fs.FS }

func load(fsys fs.FS, of extent) (*Set, error) {
	trusted, checked := fsys.(VerifiedFS)
	if checked {
		fsys = trusted.FS
	}
	found, err := readBundles(fsys, of, checked)
	if err != nil {
		return nil, err
	}
	byKind := map[string]*bundle{}
	for _, b := range found {
		if byKind[b.Kind] != nil {
			return nil, fmt.Errorf("bundles %s and %s are both of kind %s: %w", byKind[b.Kind].folder, b.folder, b.Kind, ErrBundle)
		}
		byKind[b.Kind] = b
	}
	general := byKind["general"]
	if general == nil {
		return nil, fmt.Errorf("no bundle of kind general: %w", ErrBundle)
	}
	s := &Set{byID: map[string]*Model{}}
	c, err := s.loadGeneral(general, of)
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", general.folder, err)
	}
	for _, kind := range order {
		b := byKind[kind]
		if b == nil {
			continue
		}
		if b.Base != "" && b.Base != general.folder {
			return nil, fmt.Errorf("bundle %s: base %q, want %q: %w", b.folder, b.Base, general.folder, ErrBundle)
		}
		if err := s.add(b, c); err != nil {
			return nil, fmt.Errorf("bundle %s: %w", b.folder, err)
		}
	}
	return s, nil
}

// loadGeneral reads the tables, and the network, that all models share.
func (s *Set) loadGeneral(b *bundle, of extent) (*concepts, error) {
	n := b.Network
	c, err := parseConcepts(b.data["concepts.tsv"], b.data["calibration.tsv"], n.Classes, n.Heads)
	if err != nil {
		return nil, err
	}
	weights, intercepts, err := parseHeads(b.data["heads.f32"], n.Heads)
	if err != nil {
		return nil, err
	}
	if of != seeing {
		if err := s.loadNames(b, c); err != nil {
			return nil, err
		}
		s.background = &background{read: b.background}
		if of == whole {
			if err := checkBackground(b.data[backgroundFile]); err != nil {
				return nil, err
			}
			data := b.data[backgroundFile]
			s.background.read = func() ([]byte, error) { return data, nil }
		}
	}
	s.base = baseOf(b)
	if b.Similarity != nil {
		s.similarity = *b.Similarity
	}
	s.evaluator, s.classes = newEvaluator(c, weights, intercepts), n.Classes
	if of != tables {
		if b.elsewhere != 0 {
			s.backbone = &backbone{elsewhere: b.elsewhere, size: n.Input.Size, centre: n.Input.Centre, classes: n.Classes, heads: n.Heads}
			return c, nil
		}
		s.backbone, err = compile(b.data[n.File], n)
	}
	return c, err
}

// loadNames reads the names of the concepts in all languages.
func (s *Set) loadNames(b *bundle, c *concepts) (err error) {
	ids := make([]string, len(c.list))
	for i := range c.list {
		ids[i] = c.list[i].ID
	}
	names := map[string][]byte{}
	for _, code := range lang.Codes() {
		names[code] = b.data[namesFolder+code+".tsv"]
	}
	if s.names, err = lang.Parse(names, ids); err != nil {
		return fmt.Errorf("%w: %w", ErrBundle, err)
	}
	for i := range c.list {
		if name, _ := s.names.Name(ids[i], lang.English); name != c.list[i].Name {
			return fmt.Errorf("concept %q is %q in concepts.tsv and %q in names/en.tsv: %w", ids[i], c.list[i].Name, name, ErrBundle)
		}
	}
	return nil
}

// baseOf hashes the sources of derived records: the network by its identity, each table by its own hash.
func baseOf(b *bundle) [sha256.Size]byte {
	n := b.Network
	h := sha256.New()
	fmt.Fprintf(h, "base 1\nengine %d\ninput %s %d %d\noutputs %s %s\n", Engine, n.Input.Name, n.Input.Size, n.Input.Centre, n.Embedding, n.Logits)
	fmt.Fprintf(h, "%s\n", n.identity())
	for _, name := range []string{"concepts.tsv", "calibration.tsv", "heads.f32"} {
		fmt.Fprintf(h, "%s\n", b.Files[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// add makes the model of a bundle.
func (s *Set) add(b *bundle, c *concepts) error {
	m := &Model{
		ID: b.ID, Name: b.Name, DisplayName: b.DisplayName, Type: b.Type, TypeExt: b.TypeExt,
		CreatedAt: b.CreatedAt.UTC(), VersionID: b.VersionID, VersionCreatedAt: b.VersionCreatedAt.UTC(),
		Languages: []string{lang.English},
	}
	switch b.Kind {
	case "general":
		m.Concepts, m.Languages = c.list, lang.Codes()
		m.values = func(a *Analysis) []float32 { return a.General }
		s.general = m
	case "food":
		for _, place := range c.food {
			m.Concepts = append(m.Concepts, c.list[place])
		}
		m.values = func(a *Analysis) []float32 { return a.Food }
	case "color":
		colors, err := parseColors(b.data["colors.tsv"])
		if err != nil {
			return err
		}
		for _, color := range colors {
			m.Concepts = append(m.Concepts, Concept{ID: color.ID, Name: color.Name})
		}
		s.palette = newPalette(colors)
	}
	for _, other := range s.models {
		if other.ID == m.ID || other.Name == m.Name && other.Type == m.Type {
			return fmt.Errorf("name %s and its type are already used by model %s: %w", m.Name, other.ID, ErrBundle)
		}
	}
	s.models = append(s.models, m)
	s.byID[m.ID] = m
	return nil
}

// backbone is the compiled network and how it is fed.
type backbone struct {
	elsewhere         int32 // the number by which the host, which runs the network, knows it; 0: the network runs here
	plan              *nn.Plan
	input             nn.Value // (1, size, size, 3), bytes or floats
	size, centre      int
	classes, heads    int
	embedding, logits int // places in the plan's outputs
}

// pixels are the levels of a network's input in bytes.
var pixels = nn.Levels{Scale: 1 / 127.5, Zero: 128}

// compile reads and compiles a network: one input of (1, 3, size, size) in bytes, or in floats
// that are pixel/127.5 − 1, and the two outputs that n names.
func compile(data []byte, n *Network) (*backbone, error) {
	network, err := nn.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", n.File, ErrBundle, err)
	}
	plan, err := nn.Compile(network, nn.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", n.File, ErrBundle, err)
	}
	in, size := plan.Input(), n.Input.Size
	if in.Name != n.Input.Name || !slices.Equal(in.Shape, []int{1, size, size, 3}) || in.Type == nn.Uint8 && in.Levels != pixels {
		return nil, fmt.Errorf("%s: input %v, want %q of one RGB picture of side %d: %w", n.File, in, n.Input.Name, size, ErrBundle)
	}
	bb := &backbone{
		plan: plan, input: in, size: size, centre: n.Input.Centre,
		classes: n.Classes, heads: n.Heads, embedding: -1, logits: -1,
	}
	for i, v := range plan.Outputs() {
		switch {
		case v.Name == n.Embedding && v.Type == nn.Float32 && slices.Equal(v.Shape, []int{1, Dim}):
			bb.embedding = i
		case v.Name == n.Logits && v.Type == nn.Float32 && slices.Equal(v.Shape, []int{1, n.Classes}):
			bb.logits = i
		}
	}
	if bb.embedding < 0 || bb.logits < 0 {
		return nil, fmt.Errorf("%s: outputs %v, want %q of %d and %q of %d floats: %w",
			n.File, plan.Outputs(), n.Embedding, Dim, n.Logits, n.Classes, ErrBundle)
	}
	return bb, nil
}
