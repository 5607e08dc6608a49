package instance_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/proof"
)

// TestTranscripts replays those of core/api through envelopes: all answer byte for byte as
// without a boundary.
func TestTranscripts(t *testing.T) {
	set, bundles := apitest.Tiny(t), apitest.TinyBundles(t)
	all := os.DirFS(filepath.Join(proof.Root(t), "core", "api", "testdata"))
	t.Run("all applications", func(t *testing.T) {
		apitest.Run(t, transcripts(all, false, set, bundles, nil))
	})
	// Applications and keys are made elsewhere.
	t.Run("one application", func(t *testing.T) {
		apitest.Run(t, transcripts(without{all, "sessions.txt"}, true, set, bundles, nil))
	})
}

// without is a folder without one of its files.
type without struct {
	fs.FS
	name string
}

func (w without) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() == w.name }), err
}

// TestReleasedTranscripts replays those of the released bundles.
func TestReleasedTranscripts(t *testing.T) {
	root := proof.Root(t)
	bundles := os.DirFS(filepath.Join(root, "models"))
	set, err := predict.Load(bundles)
	if err != nil {
		t.Fatal(err)
	}
	files := os.DirFS(filepath.Join(root, "core", "api", "testdata", "released"))
	apitest.Run(t, transcripts(files, true, set, bundles, os.DirFS(filepath.Join(root, "web", "samples"))))
}
