package host

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// TestOwnPictures has the program's own module's pictures analysed natively, without an instance, and another's by
// instances: the same bytes, and the same errors.
func TestOwnPictures(t *testing.T) {
	photo, err := os.ReadFile(filepath.Join(proof.Root(t), "web", "samples", "01-canal-in-venice.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	pictures := map[string][]byte{
		"photo": photo, "cut photo": photo[:len(photo)/2], "head of a photo": photo[:200], "png": apitest.Picture("red.png"),
		"half": apitest.Picture("half.png"), "none": []byte("no picture"), "empty": nil,
	}
	own, other := newNode(t, ownRuntime(t), nil), newNode(t, anotherRuntime(t), nil)
	late := func() bool { return true }
	tests := []struct {
		name string
		crop raster.Crop
		want predict.Want
		l    raster.Limits
	}{
		{name: "concepts", want: predict.WantConcepts},
		{name: "all", want: predict.WantConcepts | predict.WantColors | predict.WantThumb},
		{name: "part", want: predict.WantConcepts | predict.WantCells, crop: raster.Crop{Top: 0.25, Left: 0.1, Bottom: 0.75, Right: 0.5}},
		{name: "crop of nothing", want: predict.WantConcepts, crop: raster.Crop{Top: 2, Bottom: 1}},
		{name: "late", want: predict.WantConcepts, l: raster.Limits{Expired: late}},
	}
	for _, tt := range tests {
		natively, byInstance := own.fleet.NewAnalyser([32]byte{}, tt.l), other.fleet.NewAnalyser(own.fleet.o.Models.Base(), tt.l)
		for name, picture := range pictures {
			a, err := natively.Analyse(picture, tt.crop, tt.want)
			b, far := byInstance.Analyse(picture, tt.crop, tt.want)
			if x, y := abi.AppendAnalysis(nil, &a), abi.AppendAnalysis(nil, &b); !bytes.Equal(x, y) {
				t.Errorf("%s, %s: %d bytes natively, %d by an instance", tt.name, name, len(x), len(y))
			}
			if c, text := abi.CodeOf(err); err != nil || far != nil {
				if d, other := abi.CodeOf(far); c != d || text != other {
					t.Errorf("%s, %s: %v (%d) natively, %v (%d) by an instance", tt.name, name, err, c, far, d)
				}
			}
		}
	}
	if got := own.fleet.Instances(); got != 0 {
		t.Errorf("%d instances have been opened", got)
	}
	a := own.fleet.NewAnalyser([32]byte{}, raster.Limits{})
	for _, tt := range []struct {
		rt   *Runtime
		want int
	}{{anotherRuntime(t), 1}, {ownRuntime(t), 0}} {
		if err := own.fleet.Swap(context.Background(), tt.rt); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Analyse(photo, raster.Crop{}, predict.WantConcepts); err != nil {
			t.Error(err)
		}
		if got := own.fleet.Instances(); got != tt.want {
			t.Errorf("%d instances after a swap, want %d", got, tt.want)
		}
	}
}
