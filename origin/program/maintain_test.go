package program

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/data"
)

// startFilled returns a server with a little of everything, and the key of its application.
func startFilled(t testing.TB) (srv *server.Server, s server.Settings, base string) {
	t.Helper()
	turtle := sample(t, "09-sea-turtle.jpg")
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(turtle) }))
	defer pictures.Close()
	s = testSettings(t)
	s.AllowPrivate = true
	srv, base = startOrigin(t, s)
	fill(t, own(t), base, pictures.URL)
	awaitProcessed(t, own(t), base, 4)
	return srv, s, base
}

// logEnds returns the last entry of each log of a folder that nobody has open, with its epoch.
func logEnds(t testing.TB, dir string) map[string]log.Mark {
	t.Helper()
	f, err := data.Open(dir, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]log.Mark{}
	apps := []catalog.AppID{catalog.Control}
	err = catalog.Read(f.Store, catalog.Control).Apps(func(a catalog.App) bool {
		id, _ := catalog.ParseAppID(a.ID)
		apps = append(apps, id)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, app := range apps {
		l, err := log.Open(f.Store, log.Options{Prefix: app.LogPrefix()})
		if err != nil {
			t.Fatal(err)
		}
		out[app.String()] = l.EpochOf(l.Head())
	}
	return out
}

func TestBackupAndRestore(t *testing.T) {
	srv, s, base := startFilled(t)
	dir := t.TempDir()
	live, cold, restored := filepath.Join(dir, "live"), filepath.Join(dir, "cold"), filepath.Join(dir, "restored")
	if out := mustRun(t, "backup", live, "--data", s.Data); !strings.Contains(out, "pictures") {
		t.Errorf("backup says %q", out)
	}
	key := keyOf(strings.TrimPrefix(base, "http://"))
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "backup", cold, "--data", s.Data)
	want := contentDigest(t, s.Data)
	for _, backup := range []string{live, cold} {
		mustRun(t, "restore", backup, "--data", restored)
		if got := contentDigest(t, restored); got != want {
			t.Errorf("%s: content digest %s, want %s", backup, got, want)
		}
		before := logEnds(t, s.Data)
		if after := logEnds(t, restored); len(after) != 2 || !maps.Equal(before, after) {
			t.Errorf("the restored logs end at %x, want %x", after, before)
		}
		r := s
		r.Data = restored
		restoredServer, restoredBase := startOrigin(t, r)
		res, err := own(t).Do(requestWithKey(t, "GET", restoredBase+"/v2/inputs", key, ""))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("the old key at the restored folder: %v %v", res, err)
		}
		_ = res.Body.Close()
		if out := mustRun(t, "search", "--label", "turtle", "--data", restored, "--json"); strings.Count(out, "\n") != 2 {
			t.Errorf("search in the restored folder: %s", out)
		}
		res, err = own(t).Do(requestWithKey(t, "POST", restoredBase+"/v2/inputs", key, `{"inputs":[{"id":"new","data":{"image":{"url":"https://example.com/a.jpg"}}}]}`))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("a write at the restored folder: %v %v", res, err)
		}
		_ = res.Body.Close()
		if err := restoredServer.Stop(); err != nil {
			t.Fatal(err)
		}
		mustRun(t, "app", "create", "another", "--data", restored)
		after := logEnds(t, restored)
		for app, was := range before {
			if end := after[app]; was.Epoch == end.Epoch || end.To <= was.To {
				t.Errorf("the log of %s ends at %x, and ended at %x: a write after the restore is not of another opening", app, end, was)
			}
		}
		mustRun(t, "doctor", "--data", restored)
		if err := os.RemoveAll(restored); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, stderr := runCode(t, "backup", live, "--data", s.Data); code == 0 || !strings.Contains(stderr, "not empty") {
		t.Errorf("backup over another: exit code %d, %s", code, stderr)
	}
	if err := os.Remove(filepath.Join(cold, "BACKUP")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCode(t, "restore", cold, "--data", restored); code != 1 || !strings.Contains(stderr, "not a complete backup") {
		t.Errorf("restore of half a backup: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := runCode(t, "restore", live, "--data", s.Data); code != 1 || !strings.Contains(stderr, "not empty") {
		t.Errorf("restore over a folder: exit code %d, %s", code, stderr)
	}
}

func requestWithKey(t testing.TB, method, url, key, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Key "+key)
	return req
}

// doctor is a report and the exit code.
func doctor(t testing.TB, args ...string) (code int, r struct {
	Sound bool
	data.Report
},
) {
	t.Helper()
	code, stdout, stderr := runCode(t, append([]string{"doctor", "--json"}, args...)...)
	if stdout == "" {
		t.Fatalf("doctor %q: exit code %d, %s", args, code, stderr)
	}
	decode(t, stdout, &r)
	if r.Sound != (code == 0) {
		t.Errorf("doctor says sound: %v, and ends with %d", r.Sound, code)
	}
	return code, r
}

func TestDoctorOnASoundFolder(t *testing.T) {
	testkit.SkipRace(t)
	srv, s, _ := startFilled(t)
	if code, r := doctor(t, "--data", s.Data); code != 0 || r.Checked.Inputs != 4 || r.Checked.Pictures < 2 || r.Checked.Entries < 10 || len(r.Findings) > 0 {
		t.Errorf("beside a server: %d %+v", code, r)
	}
	if code, _, stderr := runCode(t, "doctor", "--data", s.Data, "--repair"); code != 1 || !strings.Contains(stderr, "stop the server first") {
		t.Errorf("repair beside a server: exit code %d, %s", code, stderr)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, r := doctor(t, "--data", s.Data); code != 0 || r.Checked.Inputs != 4 || len(r.Findings) > 0 {
		t.Errorf("alone: %d %+v", code, r)
	}
	if code, r := doctor(t, "--data", s.Data, "--repair"); code != 0 || len(r.Findings) > 0 {
		t.Errorf("repair of what is sound: %d %+v", code, r)
	}
}

// TestDoctorFindsAndRepairs breaks one thing of a folder after the other.
func TestDoctorFindsAndRepairs(t *testing.T) {
	testkit.SkipRace(t)
	srv, s, _ := startFilled(t)
	apps, err := control.Apps.Do(t.Context(), srv, control.Nothing{})
	if err != nil {
		t.Fatal(err)
	}
	app, err := catalog.ParseAppID(apps[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	want := contentDigest(t, s.Data)
	write := func(do func(f *data.Folder, tx change)) {
		t.Helper()
		f, err := data.Open(s.Data, data.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		commitTo(t, f.Store, func(tx change) { do(f, tx) })
	}
	index := app.IndexPrefix()
	write(func(f *data.Folder, tx change) {
		deleteSome(t, f, tx, append(index, 'p'), 3) // of its postings
	})
	if code, r := doctor(t, "--data", s.Data); code != 1 || r.Findings[0].Part != "index" {
		t.Errorf("a damaged index: %d %+v", code, r)
	}
	if code, r := doctor(t, "--data", s.Data, "--repair"); code != 0 || !r.Findings[0].Repaired {
		t.Errorf("its repair: %d %+v", code, r)
	}
	if code, r := doctor(t, "--data", s.Data); code != 0 || len(r.Findings) > 0 {
		t.Errorf("after it: %d %+v", code, r)
	}

	inputs := append(app.LogPrefix()[:len(index)-1], 'i')
	write(func(f *data.Folder, tx change) { deleteSome(t, f, tx, inputs, 1) })
	if code, r := doctor(t, "--data", s.Data); code != 1 || !has(r.Findings, "state") {
		t.Errorf("a lost record: %d %+v", code, r)
	}
	if code, r := doctor(t, "--data", s.Data, "--repair"); code != 0 {
		t.Errorf("its repair: %d %+v", code, r)
	}
	if code, r := doctor(t, "--data", s.Data); code != 0 || len(r.Findings) > 0 {
		t.Errorf("after it: %d %+v", code, r)
	}
	if got := contentDigest(t, s.Data); got != want {
		t.Errorf("content digest after repairs %s, want %s", got, want)
	}

	entries := append(app.LogPrefix(), 'e')
	write(func(f *data.Folder, tx change) { deleteSome(t, f, tx, entries, 1) })
	for range 2 { // the second time after an attempt at repair, which must not hide it
		if code, r := doctor(t, "--data", s.Data); code != 1 || !has(r.Findings, "log") {
			t.Errorf("a lost entry: %d %+v", code, r)
		}
		if code, r := doctor(t, "--data", s.Data, "--repair"); code != 1 || !has(r.Findings, "log") {
			t.Errorf("repair of a lost entry: %d %+v", code, r)
		}
	}
}

func TestDoctorFindsLostPictures(t *testing.T) {
	testkit.SkipRace(t)
	srv, s, _ := startFilled(t)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob(filepath.Join(s.Data, "blobs", "*", "*"))
	if err != nil || len(pictures) < 2 {
		t.Fatalf("pictures %v, %v", pictures, err)
	}
	rewrite(t, pictures[0], "another picture")
	if err := os.Remove(pictures[1]); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(s.Data, "blobs", "ab", "ab"+strings.Repeat("0", 62))
	if err := os.MkdirAll(filepath.Dir(orphan), 0o700); err != nil {
		t.Fatal(err)
	}
	rewrite(t, orphan, "left behind")
	code, r := doctor(t, "--data", s.Data)
	if code != 1 || len(r.Findings) < 3 {
		t.Errorf("lost pictures: %d %+v", code, r)
	}
	if code, r = doctor(t, "--data", s.Data, "--repair"); code != 1 {
		t.Errorf("lost pictures cannot be mended: %d %+v", code, r)
	}
	if _, err := os.Stat(orphan); err == nil {
		t.Error("what nothing needs is still there")
	}
	if _, err := os.Stat(pictures[0]); err != nil {
		t.Errorf("an input's damaged picture was removed: %v", err)
	}
}

func has(findings []data.Finding, part string) bool {
	for _, f := range findings {
		if f.Part == part && !f.Repaired {
			return true
		}
	}
	return false
}

// TestDamageFolders damages a random file at a random place in a copy of a data folder, of a server that was stopped or killed.
// Either doctor reports the damage, or all data is right.
func TestDamageFolders(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of doctoring")
	}
	srv, s, _ := startFilled(t)
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	folders := []string{s.Data, newKilledFolder(t)}
	var want []string
	for _, dir := range folders {
		undamaged := copyOf(t, dir)
		if code, r := doctor(t, "--data", undamaged); code != 0 || len(r.Findings) > 0 {
			t.Fatalf("an undamaged copy: %d %+v", code, r)
		}
		want = append(want, contentDigest(t, undamaged))
	}
	reported, harmless := map[int]int{}, map[int]int{}
	for seed := range testkit.Seeds(t, 40, 1000) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		from := int(seed % 2)
		dir := copyOf(t, folders[from])
		name := spoil(t, rnd, dir)
		code, stdout, stderr := runCode(t, "doctor", "--data", dir)
		switch {
		case code == 1:
			reported[from]++
		case code != 0:
			t.Errorf("seed %d: %s damaged: doctor ends with %d: %s", seed, name, code, stderr)
		case contentDigest(t, dir) != want[from]:
			t.Errorf("seed %d: %s damaged: doctor finds nothing, and something is missing\n%s", seed, name, stdout)
		default:
			harmless[from]++
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("after a stop %d damages told, %d harmless; after a kill %d and %d; 0 wrong or silently missing", reported[0], harmless[0], reported[1], harmless[1])
}

// newKilledFolder returns the folder of a server that was killed. The store notices damage in its log only before the last end of a sync
// that the log mentions. A write mentions the sync of the write before it, so two durable writes follow those that count.
func newKilledFolder(t testing.TB) string {
	t.Helper()
	turtle := sample(t, "09-sea-turtle.jpg")
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(turtle) }))
	defer pictures.Close()
	p := startProcess(t, "--allow-private-fetch")
	fill(t, own(t), p.base, pictures.URL)
	awaitProcessed(t, own(t), p.base, 4)
	for _, id := range []string{"last", "least"} {
		res, err := own(t).Post(p.base+"/v2/concepts", "application/json", strings.NewReader(`{"concepts":[{"id":"`+id+`"}]}`))
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("add a concept: %v %v", res, err)
		}
		_ = res.Body.Close()
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.exited
	return p.data
}

// copyOf copies a data folder.
func copyOf(t testing.TB, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, noSockets{os.DirFS(from)}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// spoil flips a bit of a random file, or cuts it off.
func spoil(t testing.TB, rnd *rand.Rand, dir string) string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"store/*", "blobs/*/*", "names/*/*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > 0 && filepath.Base(name) != "BALLAST" {
				names = append(names, name)
			}
		}
	}
	name := names[rnd.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	// A killed server's log ends wherever it ends: shorter, or with a last write that does not
	// have its checksum, it is what an earlier kill, or one during that write, leaves behind.
	limit, cut := len(b), rnd.IntN(4) == 0
	if filepath.Ext(name) == ".log" {
		limit, cut = len(b)/2, false
	}
	if at := rnd.IntN(limit); cut {
		b = b[:at]
	} else {
		b[at] ^= 1 << rnd.IntN(8)
	}
	rewrite(t, name, string(b))
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}
