package kernels_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

func BenchmarkTmp(b *testing.B) {
	folder := proof.Shared(b, "photos")
	names, _ := filepath.Glob(filepath.Join(folder, "*.jpg"))
	names = names[:20]
	var pics [][]byte
	for _, n := range names {
		x, _ := os.ReadFile(n)
		pics = append(pics, x)
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("native", func(b *testing.B) {
		a := set.NewAnalyser(raster.Limits{})
		for b.Loop() {
			for _, p := range pics {
				if _, err := a.Analyse(p, raster.Crop{}, predict.WantConcepts); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	g := newGuest(b, kernels.New(kernels.Options{}), folder)
	b.Run("guest", func(b *testing.B) {
		for b.Loop() {
			for i := range pics {
				g.run(b, i, predict.WantConcepts)
			}
		}
	})
}
