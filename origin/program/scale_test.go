//go:build linux

package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv/pebblekv"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// TestScale prints the costs of an application with N inputs, by make scale. It keeps its folder for the next run.
func TestScale(t *testing.T) {
	n := testkit.Inputs(t)
	if n == 0 {
		t.Skip("run this test with make scale N=1000000")
	}
	s := newSynthesis(t)
	dir := filepath.Join(testkit.Root(t), ".cache", fmt.Sprint("scale-", n))
	s.measureScale(t, s.openScale(t, dir, n))
}

// The sizes that [TestScaleIsFlat] compares.
const (
	scaleSmall = 10_000
	scaleLarge = 100_000
)

// TestScaleIsFlat compares the costs of two applications, one with ten times the inputs of the other. Other work on the machine changes
// neither the ratios of processor times nor the counts that it compares.
func TestScaleIsFlat(t *testing.T) {
	testkit.Nightly(t)
	s, dir := newSynthesis(t), t.TempDir()
	rows := s.measureScale(t, s.openScale(t, filepath.Join(dir, "small"), scaleSmall), s.openScale(t, filepath.Join(dir, "large"), scaleLarge))
	for _, x := range rows {
		if x.flat && x.ratio() > flatRatio {
			t.Errorf("%s: %.3f ms of the processor with %d inputs and %.3f ms with %d, which is %.2f times as much, want at most %v",
				x.name, x.values[0], scaleSmall, x.values[1], scaleLarge, x.ratio(), flatRatio)
		}
		if misses := x.values[1]; x.name == missesOfOrd && misses > maxMisses {
			t.Errorf("%s: %v with %d inputs, want at most %v", x.name, misses, scaleLarge, maxMisses)
		}
	}
}

// flatRatio is the maximum ratio of the processor times of a flat call.
const flatRatio = 1.5

// figure is a row of the table: a figure of each folder.
type figure struct {
	name, unit string
	flat       bool // must not grow with the number of inputs
	values     []float64
}

// ratio returns the figure of the second folder divided by that of the first.
func (f *figure) ratio() float64 { return f.values[1] / f.values[0] }

// row returns the figure as a row of the table, with three digits.
func (f *figure) row() string {
	b := "| " + f.name
	for _, v := range f.values {
		decimals := 3
		if v >= 1 {
			decimals = max(0, 3-len(strconv.Itoa(int(v))))
		}
		b += " | " + strings.TrimSpace(strconv.FormatFloat(v, 'f', decimals, 64)+" "+f.unit)
	}
	if len(f.values) == 2 {
		b += " | "
		if f.values[0] > 0 {
			b += strconv.FormatFloat(f.ratio(), 'f', 2, 64)
		}
		if f.flat {
			b += fmt.Sprint(", at most ", flatRatio)
		}
	}
	return b + " |"
}

// figures are the rows of the table.
type figures []*figure

// add adds the figure of the next folder to a row.
func (f *figures) add(name, unit string, value float64) *figure {
	i := slices.IndexFunc(*f, func(x *figure) bool { return x.name == name })
	if i < 0 {
		i = len(*f)
		*f = append(*f, &figure{name: name, unit: unit})
	}
	x := (*f)[i]
	x.values = append(x.values, value)
	return x
}

// print prints the table in Markdown, with the processor and the load of the machine.
func (f figures) print(t *testing.T, folders []*scaleFolder) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, load %s\n\n| inputs |", processorName(t), loadAverage(t))
	rule := "\n|---|"
	for _, folder := range folders {
		fmt.Fprintf(&b, " %d |", folder.N)
		rule += "---|"
	}
	if len(folders) == 2 {
		b.WriteString(" ratio |")
		rule += "---|"
	}
	b.WriteString(rule + "\n")
	for _, x := range f {
		b.WriteString(x.row() + "\n")
	}
	t.Log(b.String())
}

func processorName(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/cpuinfo")
	check(t, err)
	_, rest, _ := strings.Cut(string(b), "model name")
	name, _, _ := strings.Cut(rest, "\n")
	return strings.Trim(name, "\t :")
}

func loadAverage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/loadavg")
	check(t, err)
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

// measureScale measures the folders in turns and prints the table.
func (s *synthesis) measureScale(t *testing.T, folders ...*scaleFolder) figures {
	t.Helper()
	var f figures
	for _, folder := range folders {
		for tenth, ms := range folder.Adding {
			f.add(fmt.Sprintf("add an input, tenth %d, processor", tenth+1), "ms", ms)
		}
		f.add("background steps for an input, processor", "ms", folder.Indexing)
		server := folder.serve(t, stateBuilt)
		server.awaitReady(t)
		f.addFirst("concept search, inputs pending", folder.Concepts, server.byConcept)
		server.kill()
	}
	var servers []*scaleServer
	for _, folder := range folders {
		servers = append(servers, folder.serve(t, stateIndexed))
	}
	for _, server := range servers {
		server.idle = server.awaitQuiet(t)
		f.add("server without calls, processor in a second", "ms", 1e3*server.idle)
		f.searchConcepts("concept search", server)
	}
	for _, c := range scaleCalls {
		f.measure(t, c, servers)
	}
	for _, server := range servers {
		f.restart(t, server)
		_, err := server.terminate(t)
		check(t, err)
		server.checkLog()
	}
	f.addMore(t, s, folders)
	for _, folder := range folders {
		f.lookUp(t, folder)
		f.add("size of the folder", "MB", float64(folder.bytes(t))/1e6)
		check(t, os.RemoveAll(filepath.Join(folder.dir, stateRun)))
	}
	f.print(t, folders)
	return f
}

// scaleServer is a server over a copy of a folder.
type scaleServer struct {
	*process
	t      *testing.T
	folder *scaleFolder
	client *http.Client
	idle   float64 // share of a processor that the server uses without calls
	order  []int   // random order of the inputs
	read   int     // number of inputs that calls have read, at the end of order
	writes int     // number of inputs that calls have changed, at the beginning of order
}

// serve starts a server over a copy of a state.
func (f *scaleFolder) serve(t *testing.T, state string) *scaleServer {
	t.Helper()
	f.copyState(t, state, stateRun)
	client := own(t)
	client.Timeout = 10 * time.Minute // the server has less
	return &scaleServer{process: f.start(t), t: t, folder: f, client: client, order: rand.New(rand.NewPCG(2, 23)).Perm(f.N)}
}

// start starts a server over the copy of the current run.
func (f *scaleFolder) start(t *testing.T) *process {
	t.Helper()
	dir := filepath.Join(f.dir, stateRun)
	keys.Store(dir, f.Key)
	return startOn(t, dir, "--log", "error")
}

// awaitReady waits until a load balancer would send requests to the server.
func (s *scaleServer) awaitReady(t *testing.T) {
	t.Helper()
	for statusOf(t, s.client, s.base+"/readyz") != 200 {
		system.Pause(t.Context(), time.Millisecond)
	}
}

// kill ends the server with SIGKILL.
func (s *scaleServer) kill() {
	s.t.Helper()
	check(s.t, s.cmd.Process.Kill())
	<-s.exited
	s.checkLog()
}

// checkLog fails the test if the server has logged an error.
func (s *scaleServer) checkLog() {
	s.t.Helper()
	if lines := s.lines("level=ERROR"); len(lines) > 0 {
		s.t.Errorf("the server logged %d errors: %s", len(lines), lines[0])
	}
}

// toRead returns the ID of another input that no call has changed.
func (s *scaleServer) toRead() string {
	s.read++
	return scaleID(s.order[len(s.order)-1-s.read%(len(s.order)/3)])
}

// toWrite returns the ID of another input, which the caller may change.
func (s *scaleServer) toWrite() string {
	s.writes++
	return scaleID(s.order[s.writes-1])
}

// call sends a request, which must succeed or exceed the server's time limit, and returns its time.
func (s *scaleServer) call(method, path string, body any) time.Duration {
	s.t.Helper()
	b, err := json.Marshal(body)
	check(s.t, err)
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, bytes.NewReader(b))
	check(s.t, err)
	start := time.Now()
	res, err := s.client.Do(req)
	check(s.t, err)
	answer, err := io.ReadAll(res.Body)
	check(s.t, err)
	took := time.Since(start)
	_ = res.Body.Close()
	if res.StatusCode == http.StatusGatewayTimeout {
		s.t.Logf("%s %s %s timed out with %d inputs", method, path, b, s.folder.N)
		return took
	}
	if res.StatusCode != 200 || bytes.Contains(answer, []byte(`"hits":[]`)) {
		s.t.Fatalf("%s %s %s: %d %.300q", method, path, b, res.StatusCode, answer)
	}
	return took
}

// search sends a search with one clause.
func (s *scaleServer) search(clause cli.Object) time.Duration {
	s.t.Helper()
	return s.call("POST", "/v2/searches", cli.Object{"query": cli.Object{"ands": []cli.Object{clause}}})
}

// similar searches for inputs similar to an input that it has not searched for.
func (s *scaleServer) similar() time.Duration {
	s.t.Helper()
	return s.search(cli.Object{"output": cli.Object{"input": cli.Object{"id": s.toRead()}}})
}

// byConcept searches for inputs in which a model finds a concept.
func (s *scaleServer) byConcept(id string) time.Duration {
	s.t.Helper()
	return s.search(cli.Object{"output": cli.Object{"data": conceptData(id)}})
}

// byData searches for inputs with data.
func (s *scaleServer) byData(data cli.Object) time.Duration {
	s.t.Helper()
	return s.search(cli.Object{"input": cli.Object{"data": data}})
}

// scaleCall is a call of the table.
type scaleCall struct {
	name string
	kind callKind
	do   func(s *scaleServer) time.Duration
}

// callKind is the bound of a call's costs.
type callKind uint8

const (
	growing callKind = iota // the costs may grow with the number of inputs
	flat                    // the costs must be flat
	writing                 // the costs must be flat, including the background steps that the call causes
)

// scaleCalls are measured in their order. Calls that write come last.
var scaleCalls = []scaleCall{
	{"get an input", growing, func(s *scaleServer) time.Duration { return s.call("GET", "/v2/inputs/"+s.toRead(), nil) }},
	{"first page of the list", flat, func(s *scaleServer) time.Duration { return s.call("GET", "/v2/inputs?per_page=20", nil) }},
	{"similar search", flat, (*scaleServer).similar},
	{"search by a label of 50 inputs", flat, func(s *scaleServer) time.Duration { return s.byData(conceptData("few")) }},
	{"search by a label of a tenth", growing, func(s *scaleServer) time.Duration { return s.byData(conceptData("tenth")) }},
	{"page by metadata of a tenth", growing, func(s *scaleServer) time.Duration {
		return s.byData(cli.Object{"metadata": cli.Object{"tenth": 3}})
	}},
	{"change a label", writing, func(s *scaleServer) time.Duration {
		input := cli.Object{"id": s.toWrite(), "data": conceptData("changed")}
		return s.call("PATCH", "/v2/inputs", cli.Object{"action": "merge", "inputs": []cli.Object{input}})
	}},
	{"delete an input", writing, func(s *scaleServer) time.Duration { return s.call("DELETE", "/v2/inputs/"+s.toWrite(), nil) }},
}

func conceptData(id string) cli.Object {
	return cli.Object{"concepts": []cli.Object{{"id": id, "value": true}}}
}

// A call is measured in slices. The slices of the servers alternate, so other work on the machine affects all servers alike.
const (
	slicesOfCall = 33 // the first does not count for calls that write nothing
	callsOfSlice = 20
)

// measure adds the processor time and the median latency of a call. The processor time of a call that writes is the mean of all calls,
// because the background steps follow at any time. That of another call is the mean of the middle half of the slices.
func (f *figures) measure(t *testing.T, c scaleCall, servers []*scaleServer) {
	t.Helper()
	times, costs := make([]latencies, len(servers)), make([][]float64, len(servers))
	before, start := make([]time.Duration, len(servers)), time.Now()
	for i, s := range servers {
		before[i] = s.processorTime(t)
	}
	for slice := range slicesOfCall {
		for i, s := range servers {
			began := s.processorTime(t)
			for range callsOfSlice {
				times[i].add(c.do(s))
			}
			if slice > 0 {
				costs[i] = append(costs[i], milliseconds(s.processorTime(t)-began)/callsOfSlice)
			}
		}
	}
	for i, s := range servers {
		cost := middleMean(costs[i])
		s.awaitQuiet(t)
		if c.kind == writing {
			f.add(c.name+", processor of the calls", "ms", cost)
			all := milliseconds(s.processorTime(t)-before[i]) - s.idle*milliseconds(time.Since(start))
			cost = all / (slicesOfCall * callsOfSlice)
		}
		f.add(c.name+", processor", "ms", cost).flat = c.kind != growing
		f.add(c.name+", p50", "ms", milliseconds(times[i].p(50)))
	}
}

// middleMean returns the mean of the middle half of x. It sorts x.
func middleMean(x []float64) (mean float64) {
	slices.Sort(x)
	middle := x[len(x)/4 : len(x)*3/4]
	for _, v := range middle {
		mean += v / float64(len(middle))
	}
	return mean
}

// searchConcepts adds the times and the processor time of searches for 20 concepts.
func (f *figures) searchConcepts(name string, s *scaleServer) {
	s.t.Helper()
	before := s.processorTime(s.t)
	f.addFirst(name, s.folder.Concepts, s.byConcept)
	f.add(name+", processor", "ms", milliseconds(s.processorTime(s.t)-before)/float64(len(s.folder.Concepts)))
}

// addFirst adds the first and the median time of do for each text. It ends early after 10 minutes.
func (f *figures) addFirst(name string, all []string, do func(string) time.Duration) {
	var times latencies
	for start := time.Now(); len(all) > 0 && time.Since(start) < 10*time.Minute; all = all[1:] {
		times.add(do(all[0]))
	}
	f.add(name+", first", "ms", milliseconds(times.d[0]))
	f.add(name+", p50", "ms", milliseconds(times.p(50)))
}

// restart kills the server and starts it again. It adds the time until the server is ready, the times of its first searches, and its memory.
func (f *figures) restart(t *testing.T, s *scaleServer) {
	t.Helper()
	f.add("memory after the calls, RssAnon", "MB", float64(s.anonymous(t))/1e6)
	s.kill()
	start := time.Now()
	s.process = s.folder.start(t)
	s.awaitReady(t)
	f.add("ready after kill -9", "ms", milliseconds(time.Since(start)))
	f.add("ready after kill -9, processor", "ms", milliseconds(s.processorTime(t)))
	f.addFirst("similar search after kill -9", make([]string, 20), func(string) time.Duration { return s.similar() })
	f.add("server without calls after kill -9, processor in a second", "ms", 1e3*s.awaitQuiet(t))
	f.add("memory at the end, RssAnon", "MB", float64(s.anonymous(t))/1e6)
}

// anonymous returns the resident memory of the server that belongs to no file, in bytes.
func (p *process) anonymous(t testing.TB) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	check(t, err)
	_, rest, _ := strings.Cut(string(b), "RssAnon:")
	kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	check(t, err)
	return kB << 10
}

// processorTime returns the processor time that the process has used.
func (p *process) processorTime(t testing.TB) time.Duration {
	t.Helper()
	var now unix.Timespec
	const scheduler = 2 // see clock_getcpuclockid(3): the clock of a process counts what the scheduler gave it
	check(t, unix.ClockGettime(int32(^p.cmd.Process.Pid)<<3|scheduler, &now))
	return time.Duration(now.Nano())
}

// awaitQuiet waits until the server works only now and then, which means that its background steps have ended. It returns the share
// of a processor that the server then uses. A thread that waits for a processor counts as working, so other work on the machine
// does not make a server quiet.
func (p *process) awaitQuiet(t testing.TB) float64 {
	t.Helper()
	const samples = 60
	for {
		before, start := p.processorTime(t), time.Now()
		working := 0
		for range samples {
			if p.isWorking(t) {
				working++
			}
			system.Pause(t.Context(), 5*time.Millisecond)
		}
		if working < samples/4 {
			return (p.processorTime(t) - before).Seconds() / time.Since(start).Seconds()
		}
	}
}

// isWorking reports whether a thread of the process runs, waits for a processor or waits for a disk.
func (p *process) isWorking(t testing.TB) bool {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	check(t, err)
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		if _, state, ok := strings.Cut(string(stat), ") "); ok && (state[0] == 'R' || state[0] == 'D') {
			return true
		}
	}
	return false
}

// missesOfOrd is the name of the figure of lookups of IDs that no input has. They find the blocks of indexes and filters in the cache. A filter
// of 10 bits a key lets 1 % of the keys pass, in each of up to ten tables, so one lookup in ten may read a block of data.
const (
	missesOfOrd = "cache misses of a lookup of a fresh ID"
	maxMisses   = 0.1
)

// addMore adds inputs to the folders in turns. It adds the processor time, which is the mean of the middle half of the slices, and counts of
// the block cache.
func (f *figures) addMore(t *testing.T, s *synthesis, folders []*scaleFolder) {
	t.Helper()
	const slicesOfAdding, inputsOfSlice = 21, 100
	var nodes []*server.Node
	var before []pebblekv.Metrics
	for _, folder := range folders {
		n := folder.open(t, stateRun)
		nodes, before = append(nodes, n), append(before, n.Folder.Store.Metrics())
	}
	costs := make([][]float64, len(folders))
	for slice := range slicesOfAdding {
		for i, folder := range folders {
			from := folder.N + slice*inputsOfSlice
			if cost := s.add(t, nodes[i], folder.App, from, from+inputsOfSlice); slice > 0 {
				costs[i] = append(costs[i], milliseconds(cost)/inputsOfSlice)
			}
		}
	}
	for i, n := range nodes {
		f.add("add another input, processor", "ms", middleMean(costs[i])).flat = true
		after := n.Folder.Store.Metrics()
		f.add("add another input, cache misses", "", float64(after.CacheMisses-before[i].CacheMisses)/slicesOfAdding/inputsOfSlice)
		f.add("add another input, cache hits", "", float64(after.CacheHits-before[i].CacheHits)/slicesOfAdding/inputsOfSlice)
		check(t, n.Close())
	}
}

// lookUp adds the number of blocks that a lookup of a fresh ID reads from the disk. The store has the default cache.
func (f *figures) lookUp(t *testing.T, folder *scaleFolder) {
	t.Helper()
	alone, err := data.Open(filepath.Join(folder.dir, stateRun), data.Options{})
	check(t, err)
	app, err := catalog.ParseAppID(folder.App)
	check(t, err)
	records := catalog.Read(alone.Store, app)
	const slicesOfLookups, lookupsOfSlice = 40, 1000
	var misses []float64
	for slice := range slicesOfLookups {
		before := alone.Store.Metrics().CacheMisses
		for i := range lookupsOfSlice {
			if _, err := records.Ord(scaleID(-1 - slice*lookupsOfSlice - i)); !errors.Is(err, catalog.ErrNotFound) {
				t.Fatalf("the lookup of a fresh ID returns %v", err)
			}
		}
		if slice >= slicesOfLookups/2 { // the first half has warmed the cache
			misses = append(misses, float64(alone.Store.Metrics().CacheMisses-before)/lookupsOfSlice)
		}
	}
	f.add(missesOfOrd, "", middleMean(misses)) // the store's own work in the background may miss, too, in a few slices
	check(t, alone.Close())
}
