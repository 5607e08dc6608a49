package predict

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// TestLoadTables compares a set without its network with the set that has it. The network's file is present, replaced by another, or
// absent.
func TestLoadTables(t *testing.T) {
	const network = "general-v1.3/network.plan"
	fsys := bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2))
	want, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"whole", "other", "absent"} {
		switch state {
		case "other":
			fsys[network].Data = []byte("something else")
		case "absent":
			delete(fsys, network)
		}
		got, err := LoadTables(fsys)
		if err != nil {
			t.Fatalf("LoadTables, network %s: %v", state, err)
		}
		if got.Base() != want.Base() {
			t.Errorf("network %s: base %x, want %x", state, got.Base(), want.Base())
		}
		diff := cmp.Diff(want.Models(), got.Models(), cmpopts.IgnoreUnexported(Model{})) + cmp.Diff(backgroundOf(t, want), backgroundOf(t, got))
		if diff != "" {
			t.Errorf("network %s, -want +got:\n%s", state, diff)
		}
		if name, ok := got.Names().Name("ai_green", "de"); name != "de-1" || !ok {
			t.Errorf("network %s: ai_green in German is %q", state, name)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("network %s: an analyser was made", state)
				}
			}()
			got.NewAnalyser(raster.Limits{})
		}()
	}
	if _, err := Load(fsys); !errors.Is(err, ErrBundle) {
		t.Errorf("Load without the network = %v, want %v", err, ErrBundle)
	}
	fsys["general-v1.3/concepts.tsv"].Data[0] ^= 1
	if _, err := LoadTables(fsys); !errors.Is(err, ErrBundle) {
		t.Errorf("LoadTables of a damaged table = %v, want %v", err, ErrBundle)
	}
}

func backgroundOf(t *testing.T, s *Set) []Embedding {
	t.Helper()
	b, err := s.Background()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBackgroundArrivesLater loads the tables of a bundle whose background is missing or damaged at first. The next call after the file
// arrived reads it.
func TestBackgroundArrivesLater(t *testing.T) {
	const name = "general-v1.3/background.f16"
	fsys := bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2))
	full, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	good := fsys[name]
	delete(fsys, name)
	if _, err := Load(fsys); !errors.Is(err, ErrBundle) {
		t.Errorf("Load without the background = %v, want %v", err, ErrBundle)
	}
	set, err := LoadTables(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Background(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Background without its file = %v, want %v", err, fs.ErrNotExist)
	}
	fsys[name] = &fstest.MapFile{Data: []byte("other bytes!")}
	if _, err := set.Background(); !errors.Is(err, ErrBundle) {
		t.Errorf("a damaged Background = %v, want %v", err, ErrBundle)
	}
	fsys[name] = good
	if diff := cmp.Diff(backgroundOf(t, full), backgroundOf(t, set)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLoadNetwork compares the set that only analyses with the complete one, with and without the files that LoadNetwork does not read.
func TestLoadNetwork(t *testing.T) {
	fsys := bundles(t, tinyParts(t), publicManifests(tinySize, 6, 2))
	full, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	picture := gradient(t, 40, 30)
	const everything = WantConcepts | WantColors | WantThumb
	want, err := full.NewAnalyser(raster.Limits{}).Analyse(picture, raster.Crop{}, everything)
	if err != nil {
		t.Fatal(err)
	}
	for _, hasNames := range []bool{true, false} {
		if !hasNames {
			delete(fsys, "general-v1.3/background.f16")
			for _, code := range lang.Codes() {
				delete(fsys, "general-v1.3/names/"+code+".tsv")
			}
		}
		set, err := LoadNetwork(fsys)
		if err != nil {
			t.Fatalf("LoadNetwork, names there %v: %v", hasNames, err)
		}
		got, err := set.NewAnalyser(raster.Limits{}).Analyse(picture, raster.Crop{}, everything)
		if err != nil || cmp.Diff(want, got) != "" || set.Base() != full.Base() {
			t.Errorf("names there %v: %v, -want +got:\n%s", hasNames, err, cmp.Diff(want, got))
		}
		if set.Names() != nil || backgroundOf(t, set) != nil {
			t.Errorf("names there %v: they were read", hasNames)
		}
	}
	if _, err := LoadTables(fsys); !errors.Is(err, ErrBundle) {
		t.Errorf("LoadTables without names = %v, want %v", err, ErrBundle)
	}
	set, err := LoadNetwork(VerifiedFS{fsys})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := set.NewAnalyser(raster.Limits{}).Analyse(picture, raster.Crop{}, everything); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("of checked files: %v, -want +got:\n%s", err, cmp.Diff(want, got))
	}
	fsys["general-v1.3/card.md"].Data[0] ^= 1
	if _, err := LoadNetwork(VerifiedFS{fsys}); err != nil {
		t.Errorf("a file of a checked bundle was checked: %v", err)
	}
	if _, err := LoadNetwork(fsys); !errors.Is(err, ErrBundle) {
		t.Errorf("LoadNetwork of a damaged card = %v, want %v", err, ErrBundle)
	}
	fsys["general-v1.3/network.plan"].Data[0] ^= 1
	if _, err := LoadNetwork(fsys); !errors.Is(err, ErrBundle) {
		t.Errorf("LoadNetwork of a damaged network = %v, want %v", err, ErrBundle)
	}
}
