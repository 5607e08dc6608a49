package predict

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict/nn"
)

// parts are the files of bundles by path, before manifests are written.
type parts map[string][]byte

// manifests are the fields of each bundle's manifest, by folder.
type manifests map[string]map[string]any

// bundles puts a folder together: files, and manifests with the files' hashes.
func bundles(t testing.TB, files parts, ms manifests) fstest.MapFS {
	t.Helper()
	fsys := fstest.MapFS{"README.md": {Data: []byte("no bundle")}, "notes/x.txt": {Data: []byte("nor this")}}
	hashes := map[string]map[string]string{}
	for folder := range ms {
		hashes[folder] = map[string]string{}
	}
	for name, data := range files {
		fsys[name] = &fstest.MapFile{Data: data}
		folder, rest, _ := strings.Cut(name, "/")
		sum := sha256.Sum256(data)
		hashes[folder][rest] = hex.EncodeToString(sum[:])
	}
	for folder, m := range ms {
		if n, ok := m["network"].(map[string]any); ok {
			n["sha256"] = hashes[folder]["network.plan"]
		}
		if m["files"] == nil {
			m["files"] = hashes[folder]
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		fsys[path.Join(folder, manifestFile)] = &fstest.MapFile{Data: data}
	}
	return fsys
}

// publicManifests returns the manifests of the public models around a network.
func publicManifests(size, classes, heads int) manifests {
	m := func(kind, id, name string, typ Type, more map[string]any) map[string]any {
		out := map[string]any{
			"format": 2, "minimum_engine": 1, "kind": kind, "id": id, "name": name,
			"version_id": strings.Repeat("0", 31) + id[:1], "display_name": strings.ToUpper(name),
			"type": typ, "type_ext": typ,
			"created_at": "2016-03-09T17:11:39.608845Z", "version_created_at": "2016-07-13T01:19:12.147644Z",
		}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	return manifests{
		"general-v1.3": m("general", "aaa03c23b3724a16a56b629203edc62c", "general-v1.3", TypeConcept, map[string]any{
			"network": map[string]any{
				"file": "network.plan", "embedding": "embedding", "logits": "logits",
				"input":      map[string]any{"name": "image", "size": size, "centre": 15},
				"dimensions": Dim, "classes": classes, "heads": heads,
			},
		}),
		"food-items-v1.0": m("food", "bd367be194cf45149e75f01d59f77ba7", "food-items-v1.0", TypeConcept, map[string]any{"base": "general-v1.3"}),
		"color":           m("color", "eeed0b6733a644cea07cf4c60f87ebb7", "color", TypeColor, nil),
		"general-embed":   m("embed", "bbb5f41425b8468d9b7a554ff10f8581", "general-v1.3", TypeEmbed, map[string]any{"base": "general-v1.3"}),
	}
}

// with sets a field of the network of the general bundle.
func with(ms manifests, key string, value any) manifests {
	ms["general-v1.3"]["network"].(map[string]any)[key] = value
	return ms
}

const tinySize = 8

// tinyNetwork takes the mean colour of a picture (r, g, b in −1…1) to an embedding of
// (r, g, b, 0, …) and logits 8·(r, g, b, −r, −g, −b).
func tinyNetwork(t testing.TB) []byte {
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
	product := func(name string, rows int, at func(i int) (col int, v float32)) {
		t.Helper()
		inf := float32(math.Inf(1))
		node := nn.Node{Kind: nn.Gemm, Of: mean, Shape: [4]int{rows, 3, 1, 1}, Weights: make([]float32, rows*3), Bias: make([]float32, rows), Lo: -inf, Hi: inf}
		for i := range rows {
			if col, v := at(i); v != 0 {
				node.Weights[i*3+col] = v
			}
		}
		if err := n.AddOutput(name, add(node)); err != nil {
			t.Fatal(err)
		}
	}
	product("logits", 6, func(i int) (int, float32) { return i % 3, float32(8 - 16*(i/3)) })
	product("embedding", Dim, func(i int) (int, float32) {
		if i < 3 {
			return i, 1
		}
		return 0, 0
	})
	return n.Marshal()
}

func floats(v []float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// tinyConcepts: each class a colour seen or missing; warm is a group, dull a head (less red
// than it has green), the food model has red, green and warm.
const (
	tinyConcepts = conceptsHeader + `
ai_red	red	0	general,food	class	
ai_green	green	1	general,food	class	
ai_blue	blue	2	general	class	
ai_warm	warm	0,1	general,food	group	
ai_dull	dull		general	head	0
ai_both	both	2	general,food	proxy	1
`
	tinyCalibration = calibrationHeader + `
ai_red	1.0	0.0	0.0	0.9	20	photos
ai_green	0.5	0.0	-0.25	0.05	9	photos
ai_blue	1.0	0.0	0.0	0.05	10	photos
ai_warm	2.0	0.0	1.0		0	-
ai_dull	0.0	3.0	0.5	0.1	50	photos
ai_both	1.0	-1.0	0.0	0.0	0	photos
`
	tinyColors = colorsHeader + `
ai_w3c000	Black	#000000
ai_w3c001	Red	#ff0000
ai_w3c002	White	#ffffff
`
)

// tinyParts are the files of a set of small bundles.
func tinyParts(t testing.TB) parts {
	t.Helper()
	heads := make([]float32, 2*Dim+2)
	heads[0], heads[1] = -1, 1 // dull: green − red
	heads[Dim+2] = 2           // both: 2·blue
	heads[2*Dim], heads[2*Dim+1] = 0.25, -0.5
	background := make([]byte, 3*2*Dim)
	for i := range 3 {
		binary.LittleEndian.PutUint16(background[i*2*Dim+2*i:], 0x3c00) // 1
	}
	files := parts{
		"general-v1.3/network.plan":    tinyNetwork(t),
		"general-v1.3/concepts.tsv":    []byte(tinyConcepts),
		"general-v1.3/calibration.tsv": []byte(tinyCalibration),
		"general-v1.3/heads.f32":       floats(heads),
		"general-v1.3/background.f16":  background,
		"general-v1.3/card.md":         []byte("# a card"),
		"food-items-v1.0/card.md":      []byte("# a card"),
		"color/colors.tsv":             []byte(tinyColors),
		"general-embed/card.md":        []byte("# a card"),
	}
	for _, code := range lang.Codes() {
		var b strings.Builder
		for i, id := range []string{"red", "green", "blue", "warm", "dull", "both"} {
			name := id
			if code != lang.English {
				name = fmt.Sprintf("%s-%d", code, i)
			}
			fmt.Fprintf(&b, "ai_%s\t%s\n", id, name)
		}
		files["general-v1.3/names/"+code+".tsv"] = []byte(b.String())
	}
	return files
}

func tinySet(t testing.TB) *Set {
	t.Helper()
	s, err := Load(bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
