//go:build linux

package program

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api/call"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/models"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/web"
)

// scaleFormat changes with the content of the folders, so that a folder of an older test is built again.
const scaleFormat = 1

// scaleFolder is a data folder of synthetic inputs in two states. It has no pictures. A run measures in a copy of a state, so the next run
// begins with the same data.
//
//	DIR/built         all inputs were added, and no background step ran
//	DIR/indexed       the same inputs after all background steps
//	DIR/figures.json  a complete folder has it
//	DIR/run           the copy of the current run; its tables are links
type scaleFolder struct {
	dir string

	Format   int
	N        int // number of inputs
	App, Key string
	Adding   [10]float64 // processor time of adding an input in ms, for each tenth of the inputs
	Indexing float64     // processor time of the background steps for each input, in ms
	Concepts []string    // ids of 20 concepts of the general model
}

// The states of a folder.
const (
	stateBuilt   = "built"
	stateIndexed = "indexed"
	stateRun     = "run"
)

// openScale returns the folder dir with n inputs. It builds one that is missing, incomplete or of another format.
func (s *synthesis) openScale(t *testing.T, dir string, n int) *scaleFolder {
	t.Helper()
	f := &scaleFolder{dir: dir}
	figures := filepath.Join(dir, "figures.json")
	if text, err := os.ReadFile(figures); err == nil && json.Unmarshal(text, f) == nil && f.Format == scaleFormat && f.N == n {
		t.Logf("%s is complete: remove it to build it again", dir)
		return f
	}
	*f = scaleFolder{dir: dir, Format: scaleFormat, N: n}
	check(t, os.RemoveAll(dir))
	check(t, os.MkdirAll(dir, 0o755))
	f.build(t, s)
	f.index(t)
	text, err := json.Marshal(f)
	check(t, err)
	check(t, os.WriteFile(figures, text, 0o644))
	return f
}

// check ends the test after an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a state of the folder in this process. No background step runs until the caller runs it.
func (f *scaleFolder) open(t *testing.T, state string) *server.Node {
	t.Helper()
	s := testSettings(t)
	s.Data, s.PublicURL = filepath.Join(f.dir, state), "http://127.0.0.1:8080"
	n, err := server.OpenNode(t.Context(), s, slog.New(slog.DiscardHandler), server.Use{Create: true})
	check(t, err)
	return n
}

// addingBatch is the number of inputs that are added at once.
const addingBatch = 1000

// build adds all inputs through the core and runs no background step.
func (f *scaleFolder) build(t *testing.T, s *synthesis) {
	t.Helper()
	start := system.Now()
	n := f.open(t, stateBuilt)
	var out safeBuffer
	check(t, n.CreateFirstApp(t.Context(), &out, "sightline"))
	f.Key = printedKey(out.String())
	apps, err := control.Apps.Do(t.Context(), n, control.Nothing{})
	check(t, err)
	f.App = apps[0].ID
	f.Concepts = s.commonConcepts(20)
	for tenth := range f.Adding {
		from, to := f.N*tenth/10, f.N*(tenth+1)/10
		f.Adding[tenth] = milliseconds(s.add(t, n, f.App, from, to)) / float64(to-from)
		t.Logf("added %d of %d inputs in %v", to, f.N, system.Now().Sub(start).Round(time.Second))
	}
	check(t, n.Close())
}

// index runs all background steps in a copy of the built folder.
func (f *scaleFolder) index(t *testing.T) {
	t.Helper()
	start := system.Now()
	f.copyState(t, stateBuilt, stateIndexed)
	n := f.open(t, stateIndexed)
	before := ownTime(t)
	for more := true; more; {
		var err error
		more, err = n.Engine.Step(t.Context(), system.Now())
		check(t, err)
	}
	f.Indexing = milliseconds(ownTime(t)-before) / float64(f.N)
	check(t, n.Close())
	t.Logf("indexed %d inputs in %v", f.N, system.Now().Sub(start).Round(time.Second))
}

// copyState replaces a state by a copy of another one. Tables of the store never change, so the copy links them.
func (f *scaleFolder) copyState(t *testing.T, from, to string) {
	t.Helper()
	source, target := filepath.Join(f.dir, from), filepath.Join(f.dir, to)
	check(t, os.RemoveAll(target))
	check(t, filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(target, path[len(source):])
		switch {
		case d.IsDir():
			return os.MkdirAll(at, 0o700)
		case filepath.Ext(path) == ".sst":
			return os.Link(path, at)
		case !d.Type().IsRegular() || d.Name() == ballast:
			return nil
		}
		return copyFile(path, at)
	}))
}

// ballast is the file that reserves space for a full disk. The store creates it again.
const ballast = "BALLAST"

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// bytes returns the size of the files of the current run, without the reserved space.
func (f *scaleFolder) bytes(t *testing.T) (sum int64) {
	t.Helper()
	check(t, filepath.WalkDir(filepath.Join(f.dir, stateRun), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == ballast {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	}))
	return sum
}

// milliseconds returns d in milliseconds.
func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// ownTime returns the processor time of this process.
func ownTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	check(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// synthesis makes inputs whose analyses resemble those of real pictures.
type synthesis struct {
	set     *predict.Set
	derived []catalog.DerivedData // analyses of crops of the samples
	vectors [][]float32           // the embeddings of derived
}

// crops are the parts of each sample that are analysed.
const crops = 8

// newSynthesis analyses crops of the samples.
func newSynthesis(t *testing.T) *synthesis {
	t.Helper()
	set, err := predict.Load(models.FS)
	check(t, err)
	s := &synthesis{set: set}
	network := &call.Network{Models: set}
	analyser := set.NewAnalyser(raster.Limits{})
	rnd := rand.New(rand.NewPCG(1, 23))
	names, err := fs.Glob(web.Samples(), "*.jpg")
	check(t, err)
	for _, name := range names {
		picture := sample(t, name)
		for range crops {
			side := 0.4 + 0.6*rnd.Float64()
			top, left := (1-side)*rnd.Float64(), (1-side)*rnd.Float64()
			crop := raster.Crop{Top: top, Left: left, Bottom: top + side, Right: left + side}
			a, err := analyser.Analyse(picture, crop, call.WantOfInputs)
			check(t, err)
			d, err := network.Derive(&a)
			check(t, err)
			d.Thumb, d.Values = blob.Hash{}, slices.Clone(d.Values)
			v := make([]float32, predict.Dim)
			for i, q := range a.Embedding.Q {
				v[i] = float32(q) * a.Embedding.Scale
			}
			s.derived, s.vectors = append(s.derived, *d), append(s.vectors, v)
		}
	}
	return s
}

// commonConcepts returns the ids of the n concepts with the largest values.
func (s *synthesis) commonConcepts(n int) (ids []string) {
	concepts := s.set.General().Concepts
	sums, places := make([]float32, len(concepts)), make([]int, len(concepts))
	for i := range concepts {
		places[i] = i
		for _, d := range s.derived {
			sums[i] += d.Values[i]
		}
	}
	s.set.General().Sort(places, sums)
	for _, place := range places[:n] {
		ids = append(ids, concepts[place].ID)
	}
	return ids
}

// add adds inputs and returns the processor time of the process without that of making the inputs.
func (s *synthesis) add(t *testing.T, n *server.Node, app string, from, to int) time.Duration {
	t.Helper()
	p, err := n.Engine.(native).Origin(app)
	check(t, err)
	id, _ := catalog.ParseAppID(app)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, making := ownTime(t), time.Duration(0)
	for ; from < to; from += addingBatch {
		began := system.ThreadTime()
		bodies, derived := s.batch(t, from, min(from+addingBatch, to))
		making += system.ThreadTime() - began
		submit(t, p, bodies, func(b *kv.Batch) {
			for i, body := range bodies {
				catalog.PutDerived(b, id, s.set.Base(), body.(*log.InputCreate).Blob, raster.Crop{}, derived[i])
			}
		})
	}
	return ownTime(t) - before - making
}

func submit(t *testing.T, p *partition.Origin, bodies []log.Body, also func(*kv.Batch)) {
	t.Helper()
	verdicts, err := p.Submit(t.Context(), "", bodies, also)
	check(t, err)
	for _, v := range verdicts {
		if v.Code != fold.OK {
			t.Fatalf("an input was rejected: %+v", v)
		}
	}
}

// batch returns the inputs from…to with the results of their analyses.
func (s *synthesis) batch(t *testing.T, from, to int) (bodies []log.Body, derived []catalog.DerivedData) {
	t.Helper()
	for i := from; i < to; i++ {
		rnd := rand.New(rand.NewPCG(uint64(i), 23))
		name := blob.Sum(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		create := &log.InputCreate{
			ID: scaleID(i), Blob: name, ContentType: "image/jpeg", Hosted: [16]byte(name[16:]),
			Meta: fmt.Appendf(nil, `{"n":%d,"tenth":%d,"tags":["all","t%d"]}`, i, i%10, i%1000),
		}
		if i%2 == 0 {
			create.Geo = &log.Point{Longitude: 360*rnd.Float64() - 180, Latitude: math.Asin(2*rnd.Float64()-1) * 180 / math.Pi}
		}
		if i%10 == 3 {
			create.Labels = append(create.Labels, log.Label{Concept: "tenth", Value: log.True})
		}
		if i < 50 {
			create.Labels = append(create.Labels, log.Label{Concept: "few", Value: log.True})
		}
		d, err := s.perturbed(rnd)
		check(t, err)
		bodies, derived = append(bodies, create), append(derived, d)
	}
	return bodies, derived
}

// scaleID returns the ID of input i. It is as long and as random as the IDs that the API makes.
func scaleID(i int) string {
	name := blob.Sum(binary.LittleEndian.AppendUint64(nil, uint64(i)))
	return fmt.Sprintf("%x", name[:16])
}

// perturbed returns the analysis of a random crop, changed a little. Values that are 0 stay 0.
func (s *synthesis) perturbed(rnd *rand.Rand) (catalog.DerivedData, error) {
	k := rnd.IntN(len(s.derived))
	d := s.derived[k]
	v := slices.Clone(s.vectors[k])
	for i := range v {
		v[i] += 0.03 * float32(rnd.NormFloat64())
	}
	e, err := predict.NewEmbedding(v)
	if err != nil {
		return d, err
	}
	if d.Embedding, err = e.MarshalBinary(); err != nil {
		return d, err
	}
	d.Values = slices.Clone(d.Values)
	for i, x := range d.Values {
		if x > 0 {
			d.Values[i] = min(x*float32(math.Exp(0.3*rnd.NormFloat64())), 1)
		}
	}
	d.Fingerprint = slices.Clone(d.Fingerprint)
	for range 4 {
		d.Fingerprint[4+rnd.IntN(len(d.Fingerprint)-4)] ^= 1 << rnd.IntN(3)
	}
	return d, nil
}
