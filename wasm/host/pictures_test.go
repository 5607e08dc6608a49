package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/abi"
)

// TestNativeAnalysisEqualsInstance analyses pictures natively, as a fleet does, and in an instance. Both give the same bytes and errors.
func TestNativeAnalysisEqualsInstance(t *testing.T) {
	photo, err := os.ReadFile(filepath.Join(testkit.Root(t), "web", "samples", "01-canal-in-venice.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	pictures := map[string][]byte{
		"photo": photo, "cut photo": photo[:len(photo)/2], "head of a photo": photo[:200], "png": apitest.Picture("red.png"),
		"half": apitest.Picture("half.png"), "none": []byte("no picture"), "empty": nil,
	}
	n := newNode(t, anotherRuntime(t), nil)
	in, err := n.fleet.Runtime().Open(t.Context(), n.fleet.o.Services, abi.Settings{Role: abi.Analyser, Store: abi.StoreMemory})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
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
		natively, err := n.fleet.NewAnalyser([32]byte{}, tt.l)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if tt.l.Expired != nil {
			stop()
		}
		for name, picture := range pictures {
			a, err := natively.Analyse(picture, tt.crop, tt.want)
			r := in.Analyse(ctx, &api.Job{Data: picture, Crop: tt.crop, Want: tt.want, Base: n.fleet.o.Models.Base()})
			b, far := r.Analysis, r.Err
			if x, y := abi.AppendAnalysis(nil, &a), abi.AppendAnalysis(nil, &b); !bytes.Equal(x, y) {
				t.Errorf("%s, %s: %d bytes natively, %d by an instance", tt.name, name, len(x), len(y))
			}
			if c, text := abi.CodeOf(err); err != nil || far != nil {
				if d, other := abi.CodeOf(far); c != d || text != other {
					t.Errorf("%s, %s: %v (%d) natively, %v (%d) by an instance", tt.name, name, err, c, far, d)
				}
			}
		}
		stop()
	}
	if _, err := n.fleet.NewAnalyser([32]byte{1}, raster.Limits{}); !errors.Is(err, api.ErrInternal) {
		t.Errorf("a network that the bundles lack: %v", err)
	}
}
