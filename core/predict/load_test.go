package predict

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict/nn"
)

func TestLoad(t *testing.T) {
	s := tinySet(t)
	var got []string
	for _, m := range s.Models() {
		got = append(got, m.Name+" "+string(m.Type))
		if found, ok := s.Model(m.ID); !ok || found != m {
			t.Errorf("Model(%q) = %v, %v", m.ID, found, ok)
		}
	}
	if diff := cmp.Diff([]string{"general-v1.3 concept", "food-items-v1.0 concept", "color color", "general-v1.3 embed"}, got); diff != "" {
		t.Errorf("models, -want +got:\n%s", diff)
	}
	if _, ok := s.Model("general-v1.3"); ok {
		t.Error("a name is an id")
	}
	if got := s.ByName("general-v1.3"); len(got) != 2 || got[0] != s.General() || got[1].Type != TypeEmbed {
		t.Errorf("ByName(general-v1.3) = %v, want general and embed", got)
	}
	if got := s.ByName("General-v1.3"); got != nil {
		t.Errorf("ByName of another case = %v, want none", got)
	}

	general, food, color, embed := s.Models()[0], s.Models()[1], s.Models()[2], s.Models()[3]
	want := []Concept{
		{ID: "ai_red", Name: "red"},
		{ID: "ai_green", Name: "green"}, // 0.05, but of 9 positives
		{ID: "ai_blue", Name: "blue", Hidden: true},
		{ID: "ai_warm", Name: "warm"}, // never measured
		{ID: "ai_dull", Name: "dull"}, // 0.1 is not under 0.1
		{ID: "ai_both", Name: "both"},
	}
	if diff := cmp.Diff(want, general.Concepts); diff != "" {
		t.Errorf("general concepts, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Concept{want[0], want[1], want[3], want[5]}, food.Concepts); diff != "" {
		t.Errorf("food concepts, -want +got:\n%s", diff)
	}
	if len(color.Concepts) != 3 || color.Concepts[1].Name != "Red" || embed.Concepts != nil {
		t.Errorf("color has %v, embed %v", color.Concepts, embed.Concepts)
	}
	if diff := cmp.Diff(lang.Codes(), general.Languages); diff != "" {
		t.Error(diff)
	}
	for _, m := range []*Model{food, color, embed} {
		if !slices.Equal(m.Languages, []string{"en"}) {
			t.Errorf("%s speaks %v, want English alone", m.Name, m.Languages)
		}
	}
	if general.CreatedAt != time.Date(2016, 3, 9, 17, 11, 39, 608845000, time.UTC) || general.DisplayName != "GENERAL-V1.3" {
		t.Errorf("general = %+v", general)
	}
	if name, _ := s.Names().Name("ai_green", "de"); name != "de-1" {
		t.Errorf("ai_green in German is %q", name)
	}
	if bg, err := s.Background(); err != nil || len(bg) != 3 || bg[2].Q[2] != maxQ || bg[2].Q[1] != 0 {
		t.Errorf("%d background embeddings, %v, want 3 unit vectors along the axes", len(bg), err)
	}
}

func TestLoadOfGeneralModelOnly(t *testing.T) {
	files, ms := tinyParts(t), publicManifests(tinySize, 6, 2)
	for _, folder := range []string{"food-items-v1.0", "color", "general-embed"} {
		delete(ms, folder)
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, folder+"/") })
	}
	s, err := Load(bundles(t, files, ms))
	if err != nil || len(s.Models()) != 1 {
		t.Fatalf("Load of general alone = %v", err)
	}
}

// TestLoadChecksEveryFile checks that Load refuses a file that differs from the manifest, a missing file and an extra one.
func TestLoadChecksEveryFile(t *testing.T) {
	fsys := bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2))
	for name, file := range fsys {
		if !strings.Contains(name, "/") || strings.HasPrefix(name, "notes/") || strings.HasSuffix(name, manifestFile) {
			continue
		}
		for damage, data := range map[string][]byte{
			"flipped":  append([]byte{file.Data[0] ^ 1}, file.Data[1:]...),
			"longer":   append(slices.Clone(file.Data), 0),
			"cut":      file.Data[:len(file.Data)-1],
			"emptied":  {},
			"replaced": []byte("something else"),
		} {
			bad := maps.Clone(fsys)
			bad[name] = &fstest.MapFile{Data: data}
			if _, err := Load(bad); !errors.Is(err, ErrBundle) || !strings.Contains(err.Error(), name[strings.Index(name, "/")+1:]) {
				t.Errorf("%s %s: Load = %v, want ErrBundle that names it", name, damage, err)
			}
		}
		bad := maps.Clone(fsys)
		delete(bad, name)
		if _, err := Load(bad); !errors.Is(err, ErrBundle) {
			t.Errorf("%s missing: Load = %v, want ErrBundle", name, err)
		}
	}
	bad := maps.Clone(fsys)
	bad["color/extra.txt"] = &fstest.MapFile{Data: []byte("x")}
	if _, err := Load(bad); !errors.Is(err, ErrBundle) {
		t.Errorf("a file more: Load = %v, want ErrBundle", err)
	}
}

// TestBase checks that a base depends on the sources of derived records, and on nothing else.
func TestBase(t *testing.T) {
	base := func(edit func(parts)) [32]byte {
		t.Helper()
		p := tinyParts(t)
		edit(p)
		s, err := Load(bundles(t, p, publicManifests(tinySize, 6, 2)))
		if err != nil {
			t.Fatal(err)
		}
		return s.Base()
	}
	plain := base(func(parts) {})
	if again := base(func(parts) {}); again != plain {
		t.Errorf("the same bundles have bases %x and %x", plain, again)
	}
	if got, err := Load(bundles(t, tinyParts(t), with(publicManifests(tinySize, 6, 2), "identity", strings.Repeat("01", 32)))); err != nil || got.Base() == plain {
		t.Errorf("another identity of the network gives the same base, or %v", err)
	}
	const general = "general-v1.3/"
	same := map[string]func(parts){
		"card": func(p parts) { p[general+"card.md"] = []byte("# another\n") },
	}
	other := map[string]func(parts){
		"calibration": func(p parts) {
			table := p[general+"calibration.tsv"]
			p[general+"calibration.tsv"] = bytes.Replace(table, []byte("\t1"), []byte("\t2"), 1)
		},
		"heads": func(p parts) { p[general+"heads.f32"][3] ^= 1 },
	}
	for name, edit := range same {
		if got := base(edit); got != plain {
			t.Errorf("another %s gives another base", name)
		}
	}
	for name, edit := range other {
		if got := base(edit); got == plain {
			t.Errorf("other %s give the same base", name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	const general = "general-v1.3"
	replace := func(file, old, new string) func(parts, manifests) {
		return func(p parts, _ manifests) {
			if !strings.Contains(string(p[file]), old) {
				panic(file + " has no " + old)
			}
			p[file] = []byte(strings.Replace(string(p[file]), old, new, 1))
		}
	}
	field := func(folder, key string, value any) func(parts, manifests) {
		return func(_ parts, m manifests) { m[folder][key] = value }
	}
	network := func(key string, value any) func(parts, manifests) {
		return func(_ parts, m manifests) { with(m, key, value) }
	}
	drop := func(folder, key string) func(parts, manifests) {
		return func(_ parts, m manifests) { delete(m[folder], key) }
	}
	const concepts, calibration = general + "/concepts.tsv", general + "/calibration.tsv"
	tests := []struct {
		name string
		edit func(parts, manifests)
		want error
	}{
		{"nothing wrong", func(parts, manifests) {}, nil},
		{"no general", func(p parts, m manifests) { delete(m, general) }, ErrBundle},
		{"two of a kind", field("color", "kind", "food"), ErrBundle},
		{"a newer engine", field("color", "minimum_engine", EngineVersion+1), ErrEngine},
		{"a newer engine with fields unknown here", func(_ parts, m manifests) {
			m["color"]["minimum_engine"], m["color"]["novelty"] = EngineVersion+1, true
		}, ErrEngine},
		{"an unknown field", field("color", "novelty", true), ErrBundle},
		{"the format of ONNX files", field("color", "format", 1), ErrBundle},
		{"another format", field("color", "format", 3), ErrBundle},
		{"an identity that is none", network("identity", "x"), ErrBundle},
		{"no engine", field("color", "minimum_engine", 0), ErrBundle},
		{"an unknown kind", field("color", "kind", "cluster"), ErrBundle},
		{"a type that is not the kind's", field("color", "type", "concept"), ErrBundle},
		{"upper case id", field("color", "id", strings.Repeat("A", 32)), ErrBundle},
		{"short version id", field("color", "version_id", "a"), ErrBundle},
		{"no name", field("color", "name", ""), ErrBundle},
		{"no time", drop("color", "created_at"), ErrBundle},
		{"no number", field("color", "format", "1"), ErrBundle},
		{"the same id", field("color", "id", "aaa03c23b3724a16a56b629203edc62c"), ErrBundle},
		{"the same name and type", field("food-items-v1.0", "name", general), ErrBundle},
		{"another base", field("general-embed", "base", "color"), ErrBundle},
		{"no base", drop("general-embed", "base"), ErrBundle},
		{"a base for colours", field("color", "base", general), ErrBundle},
		{"no network", drop(general, "network"), ErrBundle},
		{"a similarity for colours", field("color", "similarity", map[string]any{"related": 0.5, "same_scene": 0.9, "pictures": 10}), ErrBundle},
		{"a similarity of no pictures", field(general, "similarity", map[string]any{"related": 0.5, "same_scene": 0.9}), ErrBundle},
		{"a similarity of one scene below that of a kind", field(general, "similarity", map[string]any{"related": 0.9, "same_scene": 0.5, "pictures": 10}), ErrBundle},
		{"a network for colours", field("color", "network", map[string]any{"file": "network.plan"}), ErrBundle},
		{"a path out of the folder", field("color", "files", map[string]string{"../x": strings.Repeat("0", 64)}), ErrBundle},
		{"a hash that is none", field("color", "files", map[string]string{"colors.tsv": "x"}), ErrBundle},
		{"other dimensions", network("dimensions", 128), ErrBundle},
		{"no classes", network("classes", 0), ErrBundle},
		{"other classes than the network", network("classes", 7), ErrBundle},
		{"many heads", network("heads", maxHeads+1), ErrBundle},
		{"other heads than heads.f32", network("heads", 3), ErrBundle},
		{"a centre beyond the square", network("input", map[string]any{"name": "image", "size": tinySize, "centre": 17}), ErrBundle},
		{"another size than the network", network("input", map[string]any{"name": "image", "size": 9, "centre": 15}), ErrBundle},
		{"another input", network("input", map[string]any{"name": "picture", "size": tinySize, "centre": 15}), ErrBundle},
		{"another output", network("logits", "heads"), ErrBundle},
		{"damaged plan", replace(general+"/network.plan", "image", "image\x00"), nn.ErrFormat},
		{"cut plan", func(p parts, _ manifests) {
			p[general+"/network.plan"] = p[general+"/network.plan"][:100]
		}, nn.ErrFormat},
		{"another header", replace(concepts, "kind", "sort"), ErrBundle},
		{"a column less", replace(concepts, "\t\n", "\n"), ErrBundle},
		{"the same concept twice", replace(concepts, "ai_green", "ai_red"), ErrBundle},
		{"an id without ai_", replace(concepts, "ai_green", "green"), ErrBundle},
		{"an id with a slash", replace(concepts, "ai_green", "ai_gr/en"), ErrBundle},
		{"a class too many", replace(concepts, "0,1", "0,6"), ErrBundle},
		{"classes out of order", replace(concepts, "0,1", "1,0"), ErrBundle},
		{"a class twice", replace(concepts, "0,1", "1,1"), ErrBundle},
		{"a signed class", replace(concepts, "0,1", "0,+1"), ErrBundle},
		{"a padded class", replace(concepts, "0,1", "0,01"), ErrBundle},
		{"a head too many", replace(concepts, "head\t0", "head\t2"), ErrBundle},
		{"neither class nor head", replace(concepts, "head\t0", "head\t"), ErrBundle},
		{"an unknown sort of concept", replace(concepts, "proxy", "guess"), ErrBundle},
		{"an unknown model", replace(concepts, "general,food", "food"), ErrBundle},
		{"another name than names/en.tsv", replace(concepts, "ai_green\tgreen", "ai_green\tgrün"), ErrBundle},
		{"another order", replace(calibration, "ai_green", "ai_blue"), ErrBundle},
		{"a calibration less", replace(calibration, "ai_both\t1.0\t-1.0\t0.0\t0.0\t0\tphotos\n", ""), ErrBundle},
		{"a slope that is none", replace(calibration, "0.5", "x"), ErrBundle},
		{"an infinite slope", replace(calibration, "0.5", "Inf"), ErrBundle},
		{"a NaN slope", replace(calibration, "0.5", "NaN"), ErrBundle},
		{"a head slope without a head", replace(calibration, "0.5\t0.0", "0.5\t1.0"), ErrBundle},
		{"a precision over 1", replace(calibration, "0.9", "1.9"), ErrBundle},
		{"negative positives", replace(calibration, "20", "-20"), ErrBundle},
		{"heads too short", func(p parts, _ manifests) {
			p[general+"/heads.f32"] = p[general+"/heads.f32"][4:]
		}, ErrBundle},
		{"a head that is NaN", func(p parts, _ manifests) { copy(p[general+"/heads.f32"], "\xff\xff\xff\xff") }, ErrBundle},
		{"half a background row", func(p parts, _ manifests) {
			p[general+"/background.f16"] = p[general+"/background.f16"][:700]
		}, ErrBundle},
		{"an infinite background", func(p parts, _ manifests) { copy(p[general+"/background.f16"], "\x00\x7c") }, ErrBundle},
		{"a language less", func(p parts, _ manifests) { delete(p, general+"/names/zh-TW.tsv") }, ErrBundle},
		{"a name less", func(p parts, _ manifests) { p[general+"/names/fi.tsv"] = p[general+"/names/fi.tsv"][9:] }, ErrBundle},
		{"a colour twice", replace("color/colors.tsv", "Red", "Black"), ErrBundle},
		{"a colour that is none", replace("color/colors.tsv", "#ff0000", "#FF0000"), ErrBundle},
		{"no colours", func(p parts, _ manifests) { p["color/colors.tsv"] = []byte(colorsHeader + "\n") }, ErrBundle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files, ms := tinyParts(t), publicManifests(tinySize, 6, 2)
			tt.edit(files, ms)
			for name := range files {
				if folder, _, _ := strings.Cut(name, "/"); ms[folder] == nil {
					delete(files, name)
				}
			}
			s, err := Load(bundles(t, files, ms))
			if !errors.Is(err, tt.want) || (s == nil) != (tt.want != nil) {
				t.Errorf("Load = %v, want %v", err, tt.want)
			}
		})
	}
}

func TestHalf(t *testing.T) {
	tests := []struct {
		bits uint16
		want float32
	}{
		{0x0000, 0},
		{0x3c00, 1},
		{0xbc00, -1},
		{0x3555, 0.333251953125},
		{0x7bff, 65504},
		{0x0400, 0x1p-14},
		{0x0001, 0x1p-24},
		{0x83ff, -1023 * 0x1p-24},
	}
	for _, tt := range tests {
		if got := half(tt.bits); got != tt.want {
			t.Errorf("half(%#04x) = %v, want %v", tt.bits, got, tt.want)
		}
	}
	if inf, nan := half(0x7c00), half(0x7c01); inf <= 65504 || nan == nan { //nolint:staticcheck // NaN differs from itself
		t.Errorf("half of infinity and NaN = %v, %v", inf, nan)
	}
}

func FuzzManifest(f *testing.F) {
	fsys := bundles(f, tinyParts(f), publicManifests(tinySize, 6, 2))
	for name, file := range fsys {
		if strings.HasSuffix(name, manifestFile) {
			f.Add(file.Data)
		}
	}
	f.Add([]byte(`{"minimum_engine":2}`))
	f.Add([]byte(`{"files":null}x`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest(data)
		if err != nil {
			if !errors.Is(err, ErrBundle) && !errors.Is(err, ErrEngine) {
				t.Errorf("parseManifest = %v, want ErrBundle or ErrEngine", err)
			}
			return
		}
		if typeOf[m.Kind] != m.Type || len(m.ID) != 32 || m.MinimumEngine > EngineVersion || m.Network != nil && m.Network.Dimensions != Dim {
			t.Errorf("accepted %+v", m)
		}
	})
}

func FuzzConcepts(f *testing.F) {
	f.Add([]byte(tinyConcepts), []byte(tinyCalibration))
	f.Add([]byte(conceptsHeader+"\n"), []byte(calibrationHeader+"\n"))
	f.Add([]byte(tinyConcepts), []byte(strings.Replace(tinyCalibration, "0.5", "1e400", 1)))
	f.Fuzz(func(t *testing.T, table, calibration []byte) {
		const classes, heads = 6, 2
		c, err := parseConcepts(table, calibration, classes, heads)
		if err != nil {
			if !errors.Is(err, ErrBundle) {
				t.Errorf("parseConcepts = %v, want ErrBundle", err)
			}
			return
		}
		ev := newEvaluator(c, make([]float32, heads*Dim), make([]float32, heads))
		general, food := make([]float32, len(c.list)), make([]float32, len(c.food))
		var tmp scratch
		if err := ev.values(general, food, make([]float32, classes), &Embedding{}, &tmp); err != nil {
			t.Error(err)
		}
		for _, v := range append(general, food...) {
			if !(v >= 0 && v <= 1) {
				t.Errorf("a value of %v", v)
			}
		}
	})
}

func FuzzColorsTable(f *testing.F) {
	f.Add([]byte(tinyColors))
	f.Fuzz(func(t *testing.T, data []byte) {
		colors, err := parseColors(data)
		if err == nil {
			newPalette(colors).shares([]byte{1, 2, 3}, make([]tally, len(colors)))
		} else if !errors.Is(err, ErrBundle) {
			t.Errorf("parseColors = %v, want ErrBundle", err)
		}
	})
}
