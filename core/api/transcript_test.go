package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/testkit"
)

var update = flag.Bool("update", false, "write the transcripts' answers instead of comparing them")

// TestTranscripts replays testdata with the tiny bundles, in each form of app_id.
func TestTranscripts(t *testing.T) {
	set := apitest.Tiny(t)
	h := apitest.Host{
		Files: os.DirFS("testdata"),
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			return apitest.NewServer(t, set, nil, settings)
		},
	}
	if *update {
		h.Write = writeTranscript("testdata")
		apitest.Run(t, h)
		return
	}
	apitest.RunForms(t, h)
}

// TestTranscriptsAtCopy replays testdata at the replica of an enrolled edge.
func TestTranscriptsAtCopy(t *testing.T) {
	set := apitest.Tiny(t)
	apitest.RunForms(t, apitest.Host{
		Files: apitest.AtCopy(os.DirFS("testdata")),
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			return apitest.NewCopyServer(t, set, settings)
		},
	})
}

func writeTranscript(dir string) func(testing.TB, string, string) {
	return func(t testing.TB, name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReleasedTranscripts replays testdata/released with the released bundles and the demonstration's photographs. The test reads these
// files of the project like a host.
func TestReleasedTranscripts(t *testing.T) {
	root := testkit.Root(t)
	set, err := predict.Load(os.DirFS(filepath.Join(root, "models")))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("testdata", "released")
	h := apitest.Host{
		Files: os.DirFS(dir),
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			return apitest.NewServer(t, set, os.DirFS(filepath.Join(root, "web", "samples")), settings)
		},
	}
	if *update {
		h.Write = writeTranscript(dir)
		apitest.Run(t, h)
		return
	}
	apitest.RunForms(t, h)
}
