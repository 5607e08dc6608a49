package predict

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// order lists the kinds of bundles in the order of Set.Models.
var order = []string{"general", "food", "color", "embed"}

// Load reads the bundles under fsys and compiles their network. Each bundle is a folder, as models/README.md describes. Load skips folders
// without a manifest. It needs one bundle of the kind general and accepts at most one of each other kind.
//
// Load compares every file with its SHA-256 before it uses the file, unless fsys is a [VerifiedFS]. Errors: ErrBundle, ErrEngine, those of
// fsys, and with ErrBundle also those of package nn for the network.
func Load(fsys fs.FS) (*Set, error) { return load(fsys, allFiles) }

// LoadTables loads everything but the network. It uses only the hash of the network's file in the manifest, so the file may be absent, and
// it accepts networks that Load rejects. The set is the same as after Load, except that NewAnalyser and NewRecogniser panic. LoadTables is
// for programs whose pictures are analysed elsewhere. The first call of Background reads its file from fsys, so that file may come later.
func LoadTables(fsys fs.FS) (*Set, error) { return load(fsys, tables) }

// LoadNetwork loads only the files that an [Analyser] needs. It does not read the folder names or the background, so these files may be
// absent. Base and every analysis are the same as after Load, but Names and Background return nil. LoadNetwork is for programs that only
// analyse pictures.
func LoadNetwork(fsys fs.FS) (*Set, error) { return load(fsys, seeing) }

// extent selects the parts of a set to load.
type extent uint8

const (
	allFiles extent = iota
	tables          // all but the network; the background is read later, see LoadTables
	seeing          // only what an Analyser needs
)

// leaves reports whether the load skips a file of the general bundle.
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

// VerifiedFS is a file system of bundles whose files the caller has already compared with their hashes. Load does not hash them again. For
// example, the script of a page compares them with the browser's hash function.
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

// loadGeneral loads the tables and the network of the general bundle, which all models share.
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
		if of == allFiles {
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
		if b.hostHandle != 0 {
			s.backbone = &backbone{hostHandle: b.hostHandle, size: n.Input.Size, centre: n.Input.Centre, classes: n.Classes, heads: n.Heads}
			return c, nil
		}
		s.backbone, err = compile(b.data[n.File], n)
	}
	return c, err
}

// loadNames loads the names of the concepts in all languages. The English names must equal those in concepts.tsv.
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

// baseOf returns the hash of everything that determines derived records: the identity of the network and the hash of each table. See
// [Set.Base].
func baseOf(b *bundle) [sha256.Size]byte {
	n := b.Network
	h := sha256.New()
	fmt.Fprintf(h, "base 1\nengine %d\ninput %s %d %d\noutputs %s %s\n", EngineVersion, n.Input.Name, n.Input.Size, n.Input.Centre, n.Embedding, n.Logits)
	fmt.Fprintf(h, "%s\n", n.identity())
	for _, name := range []string{"concepts.tsv", "calibration.tsv", "heads.f32"} {
		fmt.Fprintf(h, "%s\n", b.Files[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// add adds the model of bundle b to the set.
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

// backbone is the compiled network with the format of its input and outputs.
type backbone struct {
	hostHandle        int32 // the host's number for the network, if the host runs it; 0: the network runs here
	plan              *nn.Plan
	input             nn.Value // (1, size, size, 3), bytes or floats
	size, centre      int
	classes, heads    int
	embedding, logits int // indices in the plan's outputs
}

// pixels are the required levels of a network whose input is bytes: byte p means (p − 128)/127.5.
var pixels = nn.Quantisation{Scale: 1 / 127.5, Zero: 128}

// detail returns the [raster.View.Detail] with which a view keeps the pixels that the network needs: the smallest short side whose centred
// square has the pixels of the network's input.
func (b *backbone) detail() int { return min((16*b.size+b.centre-1)/b.centre, raster.MaxResultSide) }

// compile decodes and compiles a network. The network must have one input of (1, 3, size, size), in bytes or in floats of the value
// pixel/127.5 − 1, and the two outputs that n names.
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
	if in.Name != n.Input.Name || !slices.Equal(in.Shape, []int{1, size, size, 3}) || in.Type == nn.Uint8 && in.Quantisation != pixels {
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
