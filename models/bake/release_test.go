package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/lang"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/nn"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/models/onnx/onnxtest"
)

// smallRelease writes a release of smallNetwork with five concepts, and labelled pictures.
func smallRelease(t *testing.T) (from, eval, photos string) {
	t.Helper()
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("from/general.onnx", string(onnxtest.Marshal(t, smallNetwork())))
	write("from/concepts.tsv", "concept_id\tname\tclasses\tmodels\tkind\thead\n"+
		"ai_a\tant\t0\tgeneral\tclass\t\nai_b\tbun\t1\tgeneral,food\tclass\t\nai_c\tcow\t2,3\tgeneral\tgroup\t1\n"+
		"ai_d\tdawn\t\tgeneral\thead\t0\nai_e\tegg\t4\tgeneral,food\tproxy\t3\n")
	write("from/calibration.tsv", "concept_id\tclass_slope\thead_slope\tintercept\taverage_precision\tpositives\tjudged_on\n"+
		"ai_a\t1.0\t0.0\t0.5\t0.9\t20\tx\nai_b\t1.0\t0.0\t0.5\t0.05\t20\tx\nai_c\t1.0\t0.5\t0.5\t\t0\t-\n"+
		"ai_d\t0.0\t1.5\t0.5\t0.9\t20\tx\nai_e\t1.0\t0.1\t0.5\t0.9\t20\tx\n")
	for _, code := range lang.Codes() {
		var b strings.Builder
		for i, name := range []string{"ant", "bun", "cow", "dawn", "egg"} {
			if code != lang.English {
				name = code + name
			}
			fmt.Fprintf(&b, "ai_%c\t%s\n", 'a'+i, name)
		}
		write("from/names/"+code+".tsv", b.String())
	}
	background := make([]byte, 2*smallDim)
	background[1] = 0x3c // 1 in half precision
	write("from/background.f16", string(background))
	write("from/calibration/sources.tsv", "file\tsource and licence\toriginal\na.jpg\tours, CC0\t-\nb.jpg\tours, CC0\t-\nc.jpg\tours, CC0\t-\n")
	write("from/expected.tsv", "photo\tfirst ten concepts with values\tfirst eight of the unit embedding\na.jpg\tant 0.9, cow 0.8\t0.1 0.2\n")
	for _, path := range pictures(t, 3) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		write("from/calibration/"+name, string(data))
		write("eval/pictures/"+name, string(data))
		write("photos/"+name, string(data))
	}
	write("eval/labels.tsv", "file\tclass\tconcepts\na.jpg\t0\tant\nb.jpg\t0\tant|cow\nc.jpg\t1\tant|bun\n")
	write("photos/labels.tsv", "file\tlabels\na.jpg\tant\nb.jpg\tbun\nc.jpg\tcow|egg\n")
	return filepath.Join(root, "from"), filepath.Join(root, "eval"), filepath.Join(root, "photos")
}

// TestBake bakes a small release twice: the bytes are equal, the bundles load, and they analyse a picture.
func TestBake(t *testing.T) {
	from, eval, photos := smallRelease(t)
	first, second := t.TempDir(), t.TempDir()
	for _, to := range []string{first, second} {
		if err := bake(from, eval, photos, to); err != nil {
			t.Fatal(err)
		}
	}
	compareFolders(t, first, second)
	set, err := predict.Load(os.DirFS(first))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(set.Models()); n != 4 {
		t.Fatalf("%d models, want 4", n)
	}
	if food := set.Models()[1]; len(food.Concepts) != 2 || food.Concepts[1].Name != "egg" {
		t.Errorf("food concepts %v, want bun and egg", food.Concepts)
	}
	data, err := os.ReadFile(filepath.Join(photos, "a.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := set.NewAnalyser(raster.Limits{}).Analyse(data, raster.Crop{}, predict.WantConcepts)
	if err != nil || len(a.General) != 5 {
		t.Fatalf("analysis with %d values, %v", len(a.General), err)
	}
	// The engine and the bake's measurement compute values with the same formula.
	r, err := readRelease(from)
	if err != nil {
		t.Fatal(err)
	}
	network, err := os.ReadFile(filepath.Join(first, general, networkFile))
	if err != nil {
		t.Fatal(err)
	}
	n, err := nn.Read(network)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(n)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := r.answers(e, []labelledPicture{{path: filepath.Join(photos, "a.jpg")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range answers[0].values {
		if d := float64(a.General[i]) - want; d > 1e-4 || d < -1e-4 {
			t.Errorf("%s has value %v, the bake says %v", r.concepts[i].name, a.General[i], want)
		}
	}
	card, err := os.ReadFile(filepath.Join(first, general, "card.md"))
	if err != nil || !bytes.Contains(card, []byte("3 of ours, CC0")) || bytes.Contains(card, []byte("no value")) {
		t.Errorf("the card lacks the calibration's sources, or a value: %v\n%s", err, card)
	}
}

func compareFolders(t *testing.T, first, second string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(first, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		a, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(second + strings.TrimPrefix(path, first))
		if err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs the second time (%v)", path, err)
		}
		return nil
	})
	if err != nil || files < 40 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestReleaseRefuses damages one file of a release at a time.
func TestReleaseRefuses(t *testing.T) {
	tests := []struct{ file, old, new, want string }{
		{"concepts.tsv", "concept_id", "id", "header"},
		{"concepts.tsv", "ai_e", "ai_f", "ai_f"},
		{"concepts.tsv", "group\t1", "group\t9", "head"},
		{"concepts.tsv", "2,3", "2,x", "concept ai_c"},
		{"calibration.tsv", "1.5", "much", "concept ai_d"},
		{"calibration.tsv", "ai_e\t1.0\t0.1\t0.5\t0.9\t20\tx\n", "", "calibrations"},
		{"names/de.tsv", "dedawn", "decow", "duplicate"},
		{"names/de.tsv", "ai_a\tdeant\n", "", "names for"},
		{"calibration/sources.tsv", "original", "", "header"},
		{"expected.tsv", "0.2", "x", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.file+" "+tt.want, func(t *testing.T) {
			from, _, _ := smallRelease(t)
			path := filepath.Join(from, tt.file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(strings.Replace(string(data), tt.old, tt.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := readRelease(from); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("readRelease = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestBundleMatchesRelease checks that the embedded tables are equal to the files of the release.
func TestBundleMatchesRelease(t *testing.T) {
	r, err := readRelease(testkit.DataPath(t, "model-next"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range r.files {
		got, err := models.FS.ReadFile(general + "/" + name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not the release's (%v)", name, err)
		}
	}
}

// TestQualityBars measures the embedded network against float32 on the labelled pictures. It may lose at most 0.01 of top-1 and of concept
// mAP, and its mean cosine is at least 0.995. A true concept is among the first five on 91 % of the labelled pictures, and a true label on
// 51 of 60 photos.
func TestQualityBars(t *testing.T) {
	if testing.Short() {
		t.Skip("measures 460 pictures twice")
	}
	r, err := readRelease(testkit.DataPath(t, "model-next"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := models.FS.ReadFile(general + "/" + networkFile)
	if err != nil {
		t.Fatal(err)
	}
	n, err := nn.Read(data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := measure(r, n, testkit.DataPath(t, "eval"), testkit.DataPath(t, "photos"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", f)
	if f.Baked.FirstFive < max(0.91, f.Float.FirstFive-0.01) {
		t.Errorf("a true concept among the first five on %v of the pictures, float32 has %v: want 0.91, and at most 0.01 lost", f.Baked.FirstFive, f.Float.FirstFive)
	}
	if f.Baked.Top1 < f.Float.Top1-0.01 || f.Baked.MAP < f.Float.MAP-0.01 {
		t.Errorf("top-1 %v and mAP %v, float32 has %v and %v: want at most 0.01 lost", f.Baked.Top1, f.Baked.MAP, f.Float.Top1, f.Float.MAP)
	}
	if f.Cosine < 0.995 || f.Worst < 0.97 {
		t.Errorf("cosine %v, at worst %v, want at least 0.995 and 0.97", f.Cosine, f.Worst)
	}
	if f.Float.Hits < 51 || f.Baked.Hits < 51 || f.Photos != 60 {
		t.Errorf("a true label among the first five on %d of %d photos, on %d by the float32 network: want 51 of 60", f.Baked.Hits, f.Photos, f.Float.Hits)
	}
	// The reference decodes and resizes differently. Our results must still be close to its results.
	if f.Expected.Top < 51 || f.Expected.Ten < 0.9 {
		t.Errorf("the reference's first concept on %d photos, %v of its first ten: want 51 and 0.9", f.Expected.Top, f.Expected.Ten)
	}
}
