package models_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"path"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/models"
)

// TestManifestsMatchFiles compares the hash of every file with its manifest, and checks that no other file exists.
func TestManifestsMatchFiles(t *testing.T) {
	entries, err := fs.ReadDir(models.FS, ".")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		folders = append(folders, e.Name())
	}
	if want := []string{"color", "food-items-v1.0", "general-embed", "general-v1.3"}; !slices.Equal(folders, want) {
		t.Fatalf("bundles %v, want %v", folders, want)
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			data, err := fs.ReadFile(models.FS, path.Join(folder, "manifest.json"))
			if err != nil {
				t.Fatal(err)
			}
			var m struct{ Files map[string]string }
			if err := json.Unmarshal(data, &m); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"card.md", "NOTICE"} {
				if m.Files[name] == "" {
					t.Errorf("%s is missing", name)
				}
			}
			sub, err := fs.Sub(models.FS, folder)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			err = fs.WalkDir(sub, ".", func(name string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() || name == "manifest.json" {
					return err
				}
				found++
				data, err := fs.ReadFile(sub, name)
				if err != nil {
					return err
				}
				sum := sha256.Sum256(data)
				if got := hex.EncodeToString(sum[:]); got != m.Files[name] {
					t.Errorf("%s has hash %s, the manifest says %q", name, got, m.Files[name])
				}
				return nil
			})
			if err != nil || found != len(m.Files) {
				t.Errorf("%d files, the manifest names %d; %v", found, len(m.Files), err)
			}
		})
	}
}

// TestBundlesLoad compares the public models with their documented IDs and versions.
func TestBundlesLoad(t *testing.T) {
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		id, name string
		typ      predict.Type
		concepts int
		version  string
	}{
		{"aaa03c23b3724a16a56b629203edc62c", "general-v1.3", "concept", 660, "aa9ca48295b37401f8af92ad1af0d91d"},
		{"bd367be194cf45149e75f01d59f77ba7", "food-items-v1.0", "concept", 59, "dfebc169854e429086aceb8368662641"},
		{"eeed0b6733a644cea07cf4c60f87ebb7", "color", "color", 140, "dd9458324b4b45c2be1a7ba84d27cd04"},
		{"bbb5f41425b8468d9b7a554ff10f8581", "general-v1.3", "embed", 0, "bb186755eda04f9cbb6fe32e816be104"},
	}
	got := set.Models()
	if len(got) != len(tests) {
		t.Fatalf("%d models, want %d", len(got), len(tests))
	}
	ids := map[string]string{}
	for i, tt := range tests {
		m := got[i]
		if m.ID != tt.id || m.Name != tt.name || m.Type != tt.typ || m.VersionID != tt.version || len(m.Concepts) != tt.concepts {
			t.Errorf("model %s %q %s %s with %d concepts, want %+v", m.ID, m.Name, m.Type, m.VersionID, len(m.Concepts), tt)
		}
		for _, c := range m.Concepts {
			if other, ok := ids[c.ID]; ok && other != c.Name {
				t.Errorf("%s is %q and %q", c.ID, other, c.Name)
			}
			ids[c.ID] = c.Name
		}
	}
	if g := set.General(); g.CreatedAt.Format("2006-01-02T15:04:05.000000Z") != "2016-03-09T17:11:39.608845Z" ||
		g.VersionCreatedAt.Format("2006-01-02T15:04:05.000000Z") != "2016-07-13T01:19:12.147644Z" || len(g.Languages) != 23 {
		t.Errorf("general is of %v, its version of %v, in %d languages", g.CreatedAt, g.VersionCreatedAt, len(g.Languages))
	}
}
