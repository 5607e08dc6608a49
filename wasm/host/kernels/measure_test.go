//go:build linux

package kernels_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	wapi "github.com/tetratelabs/wazero/api"
	"golang.org/x/sys/unix"

	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/wasm/host/kernels"
	"github.com/sightline-dev/sightline/wasm/prebuilt"
)

// threadTime returns the processor time of the calling thread.
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

// newGuest compiles testdata/analyse and starts an instance. networks may be nil.
func newGuest(t testing.TB, n *kernels.Native, pictures string, networks kernels.Networks) *guest {
	t.Helper()
	file := filepath.Join(t.TempDir(), "analyse.wasm")
	cmd := exec.Command("go", "build", "-tags", "lent", "-trimpath", "-ldflags", "-s -w", "-buildmode=c-shared", "-o", file, "./wasm/host/kernels/testdata/analyse")
	cmd.Dir = testkit.Root(t)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := prebuilt.Runtime(t)
	if err := n.Instantiate(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	in := n.Open()
	in.ShareNetworks(networks)
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

// TestAnalysisInAGuest compares an analysis in a guest with a native one. The values are the same, both if the host runs the network,
// as an edge does, and if it only provides the kernels. The goal for the guest is at most 1.15 times the native processor time, if the
// host runs the network. Other work on the machine affects the two differently, so the test fails only above 1.4.
func TestAnalysisInAGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("measures")
	}
	pictures := readPictures(t)
	set, err := predict.Load(models.FS)
	if err != nil {
		t.Fatal(err)
	}
	native := set.NewAnalyser(raster.Limits{})
	var g *guest
	for _, networks := range []kernels.Networks{nil, func([32]byte) *predict.Set { return set }} {
		g = newGuest(t, kernels.New(kernels.Options{}), testkit.DataPath(t, "photos"), networks)
		g.agree(t, native, pictures)
	}
	parts, rounds := []predict.Want{predict.WantConcepts}, 1
	if testkit.Soaking() {
		parts, rounds = append(parts, predict.WantColors, predict.WantThumb), 6
	}
	for _, want := range parts {
		ours, theirs := g.compare(t, native, pictures, want, rounds)
		ratio := float64(theirs) / float64(ours)
		t.Logf("parts %d of %d pictures: native %v, in a guest %v each, ratio %.3f", want, len(pictures), ours, theirs, ratio)
		if testkit.Timing() && want == predict.WantConcepts && ratio > 1.4 {
			t.Errorf("a predict in a guest takes %.2f times as long, want at most 1.15", ratio)
		}
	}
}

// agree fails the test unless the guest's values of all pictures are equal to the native ones.
func (g *guest) agree(t testing.TB, native *predict.Analyser, pictures [][]byte) {
	t.Helper()
	if g.pictures != len(pictures) || g.pictures == 0 {
		t.Fatalf("the guest has %d pictures of %d", g.pictures, len(pictures))
	}
	for i, b := range pictures {
		a, err := native.Analyse(b, raster.Crop{}, predict.WantConcepts)
		if err != nil {
			t.Fatal(err)
		}
		g.run(t, i, predict.WantConcepts)
		for k, want := range a.General {
			if got := g.general(t, k); got != want {
				t.Fatalf("picture %d, concept %d: %v in a guest, want %v", i, k, got, want)
			}
		}
	}
}

// readPictures returns the photos in the order of their names.
func readPictures(t testing.TB) (pictures [][]byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(testkit.DataPath(t, "photos"), "*.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, b)
	}
	return pictures
}

// general returns the value of concept i in the guest's last analysis.
func (g *guest) general(t testing.TB, i int) float32 {
	v, err := g.value.Call(g.ctx, uint64(i))
	if err != nil {
		t.Fatal(err)
	}
	return wapi.DecodeF32(v[0])
}

// compare returns the mean over the pictures of the least processor time of an analysis, native and
// in the guest. In each round each runs three times in a row, so that its data are in the processor's
// caches, as on an edge.
func (g *guest) compare(t testing.TB, native *predict.Analyser, pictures [][]byte, want predict.Want, rounds int) (ours, theirs time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := func(d time.Duration, f func()) time.Duration {
		for range 3 {
			begun := threadTime()
			f()
			d = min(d, threadTime()-begun)
		}
		return d
	}
	for i, b := range pictures {
		nativeTime, host := time.Hour, time.Hour
		for range rounds {
			nativeTime = least(nativeTime, func() {
				if _, err := native.Analyse(b, raster.Crop{}, want); err != nil {
					t.Fatal(err)
				}
			})
			host = least(host, func() { g.run(t, i, want) })
		}
		ours, theirs = ours+nativeTime, theirs+host
	}
	n := time.Duration(len(pictures))
	return ours / n, theirs / n
}
