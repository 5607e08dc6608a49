package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster/exif/exiftest"
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

// TestDatesInZones replays the transcripts with dates at servers in three zones. The date of each photo is the one that its camera showed.
func TestDatesInZones(t *testing.T) {
	set := apitest.Tiny(t)
	files := fstest.MapFS{}
	for _, name := range []string{"photos.txt", "taken.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	local := time.Local
	defer func() { time.Local = local }()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.FixedZone("west", -12*3600)} {
		time.Local = zone
		apitest.Run(t, apitest.Host{Files: files, Open: func(t testing.TB, settings map[string]string) apitest.Server {
			return apitest.NewServer(t, set, nil, settings)
		}})
	}
	for _, p := range exiftest.Photos() {
		want := `photos/` + p.Name + `"}`
		switch {
		case p.Local == "":
			want += `},"created_at":"2026-11-21T18:00:00.000000Z","status":{"code":30000,`
		case p.Offset == exiftest.NoOffset:
			want += `,"taken":{"local":"` + p.Local + `","source":"exif"}}`
		default:
			want += fmt.Sprintf(`,"taken":{"local":"%s","offset":%d,"source":"exif"}}`, p.Local, p.Offset)
		}
		if !bytes.Contains(files["photos.txt"].Data, []byte(want)) {
			t.Errorf("the transcript lacks %s", want)
		}
	}
}

// TestTranscriptsAtReplica replays testdata at the replica of an enrolled edge.
func TestTranscriptsAtReplica(t *testing.T) {
	defer func() {
		if t.Failed() {
			t.Log("A replica answers these calls differently. If it should, such as for a history, test them in history_test.go.")
		}
	}()
	set := apitest.Tiny(t)
	apitest.RunForms(t, apitest.Host{
		Files: apitest.ReplicaTranscripts(os.DirFS("testdata")),
		Open: func(t testing.TB, settings map[string]string) apitest.Server {
			return apitest.NewReplicaServer(t, set, settings)
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
