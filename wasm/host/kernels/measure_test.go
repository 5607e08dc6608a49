//go:build linux

package kernels_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	wapi "github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/proof"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
)

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// guest is an instance of testdata/analyse.
type guest struct {
	ctx            context.Context
	analyse, value wapi.Function
	pictures       int
}

func newGuest(t testing.TB, n *kernels.Native, pictures string) *guest {
	t.Helper()
	file := filepath.Join(t.TempDir(), "analyse.wasm")
	cmd := exec.Command("go", "build", "-tags", "lent", "-trimpath", "-ldflags", "-s -w", "-buildmode=c-shared", "-o", file, "./wasm/host/kernels/testdata/analyse")
	cmd.Dir = proof.Root(t)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := newRuntime(t)
	if err := n.Instantiate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	in := n.Open()
	t.Cleanup(in.Close)
	g := &guest{ctx: in.Bind(context.Background())}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").WithEnv("PICTURES", pictures).
		WithStderr(os.Stderr).WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount("/", "/")).
		WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader)
	m, err := r.InstantiateWithConfig(g.ctx, binary, config)
	if err != nil {
		t.Fatal(err)
	}
	g.analyse, g.value = m.ExportedFunction("analyse"), m.ExportedFunction("value")
	count, err := m.ExportedFunction("load").Call(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	g.pictures = int(count[0])
	return g
}

func (g *guest) run(t testing.TB, i int, want predict.Want) {
	if _, err := g.analyse.Call(g.ctx, uint64(i), uint64(want)); err != nil {
		t.Fatal(err)
	}
}

// TestAnalysisInAGuest measures a predict in a guest against the same natively, in turns, by the
// time of the processor: at most 1.15 times as long (goal A on edge nodes).
func TestAnalysisInAGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	folder := proof.Shared(t, "photos")
	names, err := filepath.Glob(filepath.Join(folder, "*.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	native := set.NewAnalyser(raster.Limits{})
	g := newGuest(t, kernels.New(kernels.Options{}), folder)
	if g.pictures != len(names) || g.pictures == 0 {
		t.Fatalf("the guest has %d pictures of %d", g.pictures, len(names))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, want := range []predict.Want{predict.WantConcepts, predict.WantColors, predict.WantThumb} {
		var ours, theirs time.Duration
		for i, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var mine, lent []time.Duration
			for range 5 {
				begun := threadTime()
				if _, err := native.Analyse(b, raster.Crop{}, want); err != nil {
					t.Fatal(err)
				}
				middle := threadTime()
				g.run(t, i, want)
				mine, lent = append(mine, middle-begun), append(lent, threadTime()-middle)
			}
			ours, theirs = ours+slices.Min(mine), theirs+slices.Min(lent)
		}
		ratio := float64(theirs) / float64(ours)
		t.Logf("parts %d of %d pictures: native %v, in a guest %v each, ratio %.3f", want, len(names),
			ours/time.Duration(len(names)), theirs/time.Duration(len(names)), ratio)
	}
}
