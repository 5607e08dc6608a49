package apitest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/nn"
)

// The tiny network maps the mean colour of a picture, r, g and b in −1…1, to a logit 4·(x·r + y·g + z·b) for each shade (x, y, z). So a
// red picture is "red", and a test can predict every output for a picture of one colour.
const (
	tinySize = 8
	tinyHead = 2
)

type shade struct {
	word    string
	x, y, z float32
	food    bool
}

// shades are more shades than an output shows by default.
var shades = []shade{
	{"red", 1, -1, -1, true},
	{"green", -1, 1, -1, true},
	{"blue", -1, -1, 1, false},
	{"yellow", 1, 1, -1, true},
	{"magenta", 1, -1, 1, false},
	{"cyan", -1, 1, 1, false},
	{"white", 1, 1, 1, true},
	{"black", -1, -1, -1, false},
	{"reddish", 1, 0, 0, true},
	{"greenish", 0, 1, 0, false},
	{"bluish", 0, 0, 1, false},
	{"not red", -1, 0, 0, false},
	{"not green", 0, -1, 0, false},
	{"not blue", 0, 0, -1, false},
	{"orange", 1, 0, -1, true},
	{"pink", 1, 0, 1, false},
	{"lime", 0, 1, -1, true},
	{"rose", 1, -1, 0, false},
	{"azure", -1, 0, 1, false},
	{"violet", 0, -1, 1, false},
	{"mint", -1, 1, 0, true},
	{"cream", 1, 1, 0, true},
	{"sky", 0, 1, 1, false},
	{"grey", 0, 0, 0, false},
}

// Tiny loads the tiny bundles: models with the ids and dates of the released models, 24
// concepts that are colours, four of the W3C's colour names, and the names "red" and "red-de".
func Tiny(t testing.TB) *predict.Set {
	t.Helper()
	return load(t, TinyBundles(t))
}

// TinyBundles returns the files that Tiny loads.
func TinyBundles(t testing.TB) fs.FS {
	t.Helper()
	return tinyBundles(t, 4, 0, "6e739e7ce42269a6c3e0ffe2df761c13b16768c7a2ee54223550809f4eba3996")
}

// TinyNext loads bundles with another network. Its values are a little higher, and its embeddings are orthogonal to Tiny's, so a
// comparison of the two finds no similarity.
func TinyNext(t testing.TB) *predict.Set {
	t.Helper()
	return load(t, TinyNextBundles(t))
}

// TinyNextBundles returns the files that TinyNext loads.
func TinyNextBundles(t testing.TB) fs.FS {
	t.Helper()
	return tinyBundles(t, 5, 3, "3bded7f7501f779e098e9ee8fd808dbc4a55408895fd2d1e49b0fc9222edcb64")
}

func load(t testing.TB, bundles fs.FS) *predict.Set {
	t.Helper()
	set, err := predict.Load(bundles)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// tinyBundles returns bundles whose logits are multiplied by scale. The mean colour is in the embedding's dimensions starting at from.
// identity is the network's identity, which the digests in testdata depend on.
func tinyBundles(t testing.TB, scale float32, from int, identity string) fs.FS {
	t.Helper()
	files := map[string][]byte{
		"general-v1.3/network.plan":   tinyNetwork(t, scale, from),
		"general-v1.3/heads.f32":      make([]byte, 4*tinyHead*(predict.Dim+1)),
		"general-v1.3/background.f16": make([]byte, 2*predict.Dim),
		"general-v1.3/card.md":        []byte("# tiny\n"),
		"food-items-v1.0/card.md":     []byte("# tiny\n"),
		"general-embed/card.md":       []byte("# tiny\n"),
		"color/colors.tsv": []byte("concept_id\tname\thex\nai_w3c0\tBlack\t#000000\nai_w3c1\tBlue\t#0000ff\n" +
			"ai_w3c2\tRed\t#ff0000\nai_w3c3\tWhite\t#ffffff\n"),
	}
	binary.LittleEndian.PutUint16(files["general-v1.3/background.f16"], 0x3c00) // 1 in half precision
	var concepts, calibration strings.Builder
	concepts.WriteString("concept_id\tname\tclasses\tmodels\tkind\thead\n")
	calibration.WriteString("concept_id\tclass_slope\thead_slope\tintercept\taverage_precision\tpositives\tjudged_on\n")
	for i, s := range shades {
		models := "general"
		if s.food {
			models = "general,food"
		}
		fmt.Fprintf(&concepts, "%s\t%s\t%d\t%s\tclass\t\n", s.id(), s.word, i, models)
		fmt.Fprintf(&calibration, "%s\t1.0\t0.0\t0.0\t1.0\t20\ttiny\n", s.id())
	}
	files["general-v1.3/concepts.tsv"] = []byte(concepts.String())
	files["general-v1.3/calibration.tsv"] = []byte(calibration.String())
	for _, code := range lang.Codes() {
		var names strings.Builder
		for _, s := range shades {
			name := s.word
			if code != lang.English {
				name += "-" + code
			}
			fmt.Fprintf(&names, "%s\t%s\n", s.id(), name)
		}
		files["general-v1.3/names/"+code+".tsv"] = []byte(names.String())
	}
	return withManifests(t, files, identity)
}

func (s shade) id() string { return "ai_" + strings.ReplaceAll(s.word, " ", "") }

func tinyNetwork(t testing.TB, scale float32, from int) []byte {
	t.Helper()
	n, err := nn.NewNetwork(nn.Value{Name: "image", Type: nn.Float32, Shape: []int{1, 3, tinySize, tinySize}})
	if err != nil {
		t.Fatal(err)
	}
	add := func(node nn.Node) int {
		t.Helper()
		number, err := n.Append(node)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	mean := add(nn.Node{Kind: nn.Flatten, Of: add(nn.Node{Kind: nn.Pool, Of: 1})})
	product := func(name string, rows [][3]float32) {
		t.Helper()
		inf := float32(math.Inf(1))
		node := nn.Node{
			Kind: nn.Gemm, Of: mean, Shape: [4]int{len(rows), 3, 1, 1}, Bias: make([]float32, len(rows)), Lo: -inf, Hi: inf,
		}
		for _, row := range rows {
			node.Weights = append(node.Weights, row[:]...)
		}
		if err := n.AddOutput(name, add(node)); err != nil {
			t.Fatal(err)
		}
	}
	embedding := make([][3]float32, predict.Dim)
	embedding[from][0], embedding[from+1][1], embedding[from+2][2] = 1, 1, 1
	product("embedding", embedding)
	logits := make([][3]float32, 0, len(shades))
	for _, s := range shades {
		logits = append(logits, [3]float32{scale * s.x, scale * s.y, scale * s.z})
	}
	product("logits", logits)
	return n.Marshal()
}

// withManifests adds the manifests of the released models, with the files' hashes and the network's identity.
func withManifests(t testing.TB, files map[string][]byte, identity string) fs.FS {
	t.Helper()
	fsys := fstest.MapFS{}
	hashes := map[string]map[string]string{}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: data}
		folder, rest, _ := strings.Cut(name, "/")
		if hashes[folder] == nil {
			hashes[folder] = map[string]string{}
		}
		sum := sha256.Sum256(data)
		hashes[folder][rest] = hex.EncodeToString(sum[:])
	}
	general := map[string]any{
		"file": "network.plan", "sha256": hashes["general-v1.3"]["network.plan"], "identity": identity,
		"input":     map[string]any{"name": "image", "size": tinySize, "centre": 15},
		"embedding": "embedding", "logits": "logits",
		"dimensions": predict.Dim, "classes": len(shades), "heads": tinyHead,
	}
	for folder, m := range map[string]map[string]any{
		"general-v1.3": {
			"kind": "general", "type": "concept", "name": "general-v1.3", "display_name": "General", "network": general,
			"similarity": map[string]any{"related": 0.7, "same_scene": 0.75, "pictures": len(shades)},
			"id":         "aaa03c23b3724a16a56b629203edc62c", "version_id": "aa9ca48295b37401f8af92ad1af0d91d",
		},
		"food-items-v1.0": {
			"kind": "food", "type": "concept", "name": "food-items-v1.0", "display_name": "Food", "base": "general-v1.3",
			"id": "bd367be194cf45149e75f01d59f77ba7", "version_id": "dfebc169854e429086aceb8368662641",
		},
		"color": {
			"kind": "color", "type": "color", "name": "color", "display_name": "Color",
			"id": "eeed0b6733a644cea07cf4c60f87ebb7", "version_id": "dd9458324b4b45c2be1a7ba84d27cd04",
		},
		"general-embed": {
			"kind": "embed", "type": "embed", "name": "general-v1.3", "display_name": "General", "base": "general-v1.3",
			"id": "bbb5f41425b8468d9b7a554ff10f8581", "version_id": "bb186755eda04f9cbb6fe32e816be104",
		},
	} {
		m["format"], m["minimum_engine"], m["type_ext"], m["files"] = 2, 1, m["type"], hashes[folder]
		m["created_at"], m["version_created_at"] = "2016-03-09T17:11:39.608845Z", "2016-07-13T01:19:12.147644Z"
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		fsys[folder+"/manifest.json"] = &fstest.MapFile{Data: data}
	}
	return fsys
}
