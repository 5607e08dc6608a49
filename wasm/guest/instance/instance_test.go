package instance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestTranscripts replays the transcripts of core/api with encoded messages. All answers have the
// same bytes as without the encoding.
func TestTranscripts(t *testing.T) {
	set, bundles := apitest.Tiny(t), apitest.TinyBundles(t)
	all := apitest.WithoutAccounts(os.DirFS(filepath.Join(testkit.Root(t), "core", "api", "testdata")))
	t.Run("all applications", func(t *testing.T) {
		apitest.Run(t, transcripts(all, false, set, bundles, nil))
	})
	t.Run("one application", func(t *testing.T) {
		apitest.RunForms(t, transcripts(all, true, set, bundles, nil))
	})
}

// TestReleasedTranscripts replays the transcripts that use the released bundles.
func TestReleasedTranscripts(t *testing.T) {
	root := testkit.Root(t)
	bundles := os.DirFS(filepath.Join(root, "models"))
	set, err := predict.Load(bundles)
	if err != nil {
		t.Fatal(err)
	}
	files := os.DirFS(filepath.Join(root, "core", "api", "testdata", "released"))
	apitest.Run(t, transcripts(files, true, set, bundles, os.DirFS(filepath.Join(root, "web", "samples"))))
}
