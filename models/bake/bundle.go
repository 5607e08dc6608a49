package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the cards are templates
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/template"
	"time"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/nn"
)

const general = "general-v1.3"

// The network's file in the bundle, and its outputs.
const (
	networkFile = "network.plan"
	embedding   = "embedding"
	logits      = "logits"
)

// Identities of the public models. IDs and names are the documented ones. So are the times of the general model and
// the version IDs of general and food. We chose the other times and version IDs.
var identities = map[string]predict.Manifest{
	general: {
		Kind: "general", ID: "aaa03c23b3724a16a56b629203edc62c", VersionID: "aa9ca48295b37401f8af92ad1af0d91d",
		Name: "general-v1.3", DisplayName: "General", Type: predict.TypeConcept, TypeExt: "concept",
		CreatedAt: at("2016-03-09T17:11:39.608845Z"), VersionCreatedAt: at("2016-07-13T01:19:12.147644Z"),
	},
	"food-items-v1.0": {
		Kind: "food", ID: "bd367be194cf45149e75f01d59f77ba7", VersionID: "dfebc169854e429086aceb8368662641",
		Name: "food-items-v1.0", DisplayName: "Food", Type: predict.TypeConcept, TypeExt: "concept", Base: general,
		CreatedAt: at("2016-09-17T12:00:00.000000Z"), VersionCreatedAt: at("2016-09-17T12:00:00.000000Z"),
	},
	"color": {
		Kind: "color", ID: "eeed0b6733a644cea07cf4c60f87ebb7", VersionID: "dd9458324b4b45c2be1a7ba84d27cd04",
		Name: "color", DisplayName: "Color", Type: predict.TypeColor, TypeExt: "color",
		CreatedAt: at("2016-05-11T12:00:00.000000Z"), VersionCreatedAt: at("2016-07-13T12:00:00.000000Z"),
	},
	"general-embed": {
		Kind: "embed", ID: "bbb5f41425b8468d9b7a554ff10f8581", VersionID: "bb186755eda04f9cbb6fe32e816be104",
		Name: "general-v1.3", DisplayName: "General Embedding", Type: predict.TypeEmbed, TypeExt: "embed", Base: general,
		CreatedAt: at("2016-06-17T12:00:00.000000Z"), VersionCreatedAt: at("2016-07-13T12:00:00.000000Z"),
	},
}

// at parses a time of the table above. It panics if the time is invalid.
func at(text string) predict.Stamp {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return predict.Stamp{Time: t}
}

//go:embed cards.tmpl
var cards string

// writeBundles replaces the four bundles in folder to.
func writeBundles(to string, r *release, n *nn.Network, f figures) error {
	t, err := template.New("cards").Parse(cards)
	if err != nil {
		return err
	}
	food := slices.DeleteFunc(slices.Clone(r.concepts), func(c concept) bool { return !c.food })
	facts := map[string]any{
		"F": f, "Concepts": len(r.concepts), "Sources": r.sources, "Heads": r.heads.count, "Dim": r.heads.dim,
		"Food": len(food), "Background": len(r.files["background.f16"]) / 2 / r.heads.dim,
	}
	for name, m := range identities {
		files := map[string][]byte{}
		switch m.Kind {
		case "general":
			maps.Copy(files, r.files)
			files[networkFile] = n.Marshal()
			m.Network = r.network(n, files[networkFile])
		case "color":
			files["colors.tsv"] = colorTable()
		}
		for _, part := range []string{"card.md", "NOTICE"} {
			var b bytes.Buffer
			if err := t.ExecuteTemplate(&b, m.Kind+"/"+part, facts); err != nil {
				return err
			}
			files[part] = append(bytes.TrimSpace(b.Bytes()), '\n')
		}
		if err := write(filepath.Join(to, name), m, files); err != nil {
			return err
		}
	}
	return nil
}

// released has the identities of networks that were shipped in another form, by the SHA-256 of their plan file.
var released = map[string]string{
	"8f6722950108ab0bd01b0bf404f76810b077e4ce7ec598e74c1ed6b05070be4c": "5cb9c9feca76a7c32f73ff15f479855f06bd82f9e5bedf78a22e0068abae5b50", // general-v1.3 as ONNX
}

func (r *release) network(n *nn.Network, file []byte) *predict.Network {
	network := &predict.Network{
		File: networkFile, SHA256: digest(file), Identity: released[digest(file)],
		Embedding: embedding, Logits: logits, Dimensions: r.heads.dim, Heads: r.heads.count,
	}
	network.Input.Name, network.Input.Size, network.Input.Centre = inputName, inputSize, centre
	for _, o := range n.Outputs() {
		if v, ok := n.Value(o.Of); ok && o.Name == logits {
			network.Classes = v.Shape[1]
		}
	}
	return network
}

// write replaces the folder dir by a bundle with the manifest m and the files.
func write(dir string, m predict.Manifest, files map[string][]byte) error {
	m.Format, m.MinimumEngine, m.Files = 2, 1, map[string]string{}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, data := range files {
		m.Files[name] = digest(data)
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return writeManifest(filepath.Join(dir, "manifest.json"), &m)
}

func writeManifest(path string, m *predict.Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func digest(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
