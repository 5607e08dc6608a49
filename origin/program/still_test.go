package program

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server/video"
	targets "github.com/sightline-dev/sightline/web/process"
)

// TestPredictJPEGXL predicts a JPEG XL as a picture, and with --every as a video. Without the module, the error names its file.
func TestPredictJPEGXL(t *testing.T) {
	testkit.SkipRace(t)
	targets.Make(t, "bin/jpegxl.wasm.gz")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(testkit.Root(t), ".cache", "tests"))
	module := filepath.Join(testkit.Root(t), "bin", video.ModuleFile)
	pictures := filepath.Join(testkit.Root(t), "core", "predict", "raster", "testdata", "jxl")
	animation := filepath.Join(pictures, "anim.jxl")
	missing := filepath.Join(t.TempDir(), video.ModuleFile)
	cut := filepath.Join(t.TempDir(), "cut.jxl")
	content, err := os.ReadFile(filepath.Join(pictures, "rgba.jxl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		want []string // in the order of the output
	}{
		"picture":        {[]string{"--video-module", module, animation}, 0, []string{"Red"}},
		"animation":      {[]string{"--video-module", module, "--every", "1050ms", animation}, 0, []string{"0:00", "Red", "0:01", "Blue"}},
		"video, still":   {[]string{"--video-module", module, "--every", "1s", filepath.Join(pictures, "rgba.jxl")}, 0, []string{"0:00"}},
		"without module": {[]string{"--video-module", missing, animation}, 1, []string{filepath.Join(filepath.Dir(missing), video.JXLFile) + " is missing"}},
		"damaged":        {[]string{"--video-module", module, cut}, 1, []string{"picture damaged: it cannot be decoded"}},
	} {
		code, stdout, stderr := run(t, nil, append([]string{"predict", "--model", "color", "--top", "1"}, tt.args...)...)
		rest, found := stdout+stderr, true
		for _, want := range tt.want {
			_, after, has := strings.Cut(rest, want)
			rest, found = after, found && has
		}
		if code != tt.code || !found {
			t.Errorf("%s: %d, want %d, %q\n%s%s", name, code, tt.code, tt.want, stdout, stderr)
		}
	}
}
