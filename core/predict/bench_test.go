package predict

import (
	"image/color"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
)

func BenchmarkLoad(b *testing.B) {
	dir := os.DirFS(filepath.Join(testkit.Root(b), "models"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(dir); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNewAnalyser(b *testing.B) {
	s := loadModels(b)
	b.ReportAllocs()
	for b.Loop() {
		s.NewAnalyser(raster.Limits{})
	}
}

// BenchmarkConcepts measures everything after decoding: the network and the values.
func BenchmarkConcepts(b *testing.B) {
	a := loadModels(b).NewAnalyser(raster.Limits{})
	data := picture(b, 300, 300, func(x, y int) color.Color { return rgb(byte(x), byte(y), byte(x*y)) })
	img, err := a.decoder.Decode(data, raster.View{Centre: 15, Box: true, Width: 224, Height: 224})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var out Analysis
		if err := a.concepts(img, &out); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkValues measures the work after the network: softmax, heads, 660 + 59 values.
func BenchmarkValues(b *testing.B) {
	s := loadModels(b)
	ev := s.evaluator
	rng := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, s.backbone.classes)
	for i := range logits {
		logits[i] = float32(math.Abs(rng.NormFloat64()) * 3)
	}
	e := mustEmbed(b, randomVector(rng, 1))
	general, food := make([]float32, len(ev.rules)), make([]float32, len(ev.food))
	var tmp scratch
	b.ReportAllocs()
	for b.Loop() {
		if err := ev.values(general, food, logits, &e, &tmp); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnalyse(b *testing.B) {
	photo, err := os.ReadFile(filepath.Join(testkit.DataPath(b, "photos"), "055_dog.jpg"))
	if err != nil {
		b.Fatal(err)
	}
	a := loadModels(b).NewAnalyser(raster.Limits{})
	for _, bb := range []struct {
		name string
		want Want
	}{{"concepts", WantConcepts}, {"colors", WantColors}} {
		b.Run("photo=480x403/want="+bb.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := a.Analyse(photo, raster.Crop{}, bb.want); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkImport compares the processor time of an analysis for an import, which also makes a thumbnail, with that for a prediction. The
// photographs have about 100 kB. It reports medians, because other work on the machine slows some of the runs down.
func BenchmarkImport(b *testing.B) {
	for _, name := range []string{"portrait-orientation-6.jpg", "tanners_ridge.jpg"} {
		b.Run(name, func(b *testing.B) {
			photo, err := os.ReadFile(testkit.DataPath(b, "photos", "formats", name))
			if err != nil {
				b.Fatal(err)
			}
			a := loadModels(b).NewAnalyser(raster.Limits{})
			wants := []Want{WantConcepts, WantConcepts | WantThumb | WantExif, WantThumb}
			times := make([][]time.Duration, len(wants))
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				for i, w := range wants {
					from := threadTime(b)
					if _, err := a.Analyse(photo, raster.Crop{}, w); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], threadTime(b)-from)
				}
			}
			var median [3]float64
			for i, t := range times {
				slices.Sort(t)
				median[i] = float64(t[len(t)/2].Microseconds())
			}
			b.ReportMetric(median[0], "prediction-µs")
			b.ReportMetric(median[1], "import-µs")
			b.ReportMetric(median[2], "thumbnail-µs")
			b.ReportMetric(median[1]/median[0], "import/prediction")
		})
	}
}
