package ingest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/ingest"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/predict/raster/exif"
)

// update opens the store of a program that knew fewer formats and dates, and so wrote other notes, or none.
func update(t testing.TB, store *memkv.Store) *shop {
	t.Helper()
	var b kv.Batch
	b.Delete(app.LocalKey("unread"))
	b.Delete(app.LocalKey("undated"))
	if err := store.Apply(&b); err != nil {
		t.Fatal(err)
	}
	return open(t, store)
}

// step runs steps until no more is due.
func (s *shop) step() {
	s.Helper()
	for range 1000 {
		more, err := s.worker.StepBacklog()
		if err != nil {
			s.Fatal(err)
		}
		if !more {
			return
		}
	}
	s.Fatal("the walk does not end")
}

// fail adds inputs whose downloads end with code.
func (s *shop) fail(code int, ids ...string) {
	s.Helper()
	s.add(ids...)
	for _, id := range ids {
		s.submit(&log.InputFetched{Input: s.input(id).Dot, Code: code, Detail: "by an earlier version"})
	}
}

// expectNone checks that no input is tried, now and after a start.
func (s *shop) expectNone(when string) {
	s.Helper()
	for _, start := range []func() *shop{func() *shop { return s }, func() *shop { return open(s, s.store) }} {
		x := start()
		x.step()
		if _, ids := x.take(99); ids != "" {
			s.Errorf("%s: %q", when, ids)
		}
	}
}

// TestUnreadInputsAreDownloadedOnce: after an update each unread input is downloaded once more, and no other. An input that can be read is
// ready. The others keep their status and details.
func TestUnreadInputsAreDownloadedOnce(t *testing.T) {
	s := open(t, memkv.New())
	s.fail(30101, "a", "b")
	s.fail(30105, "c")
	s.fail(30300, "d", "e")
	s.fail(30002, "f")
	s.fail(catalog.InputOverQuota, "g")
	s.submit(&log.InputCreate{ID: "h", URL: "http://x/h", Blob: good("h").Blob, ContentType: "image/png"})
	s.expectNone("by the version that failed")

	s = update(t, s.store)
	head := s.p.Log().Head()
	s.fail(30300, "new") // by the new version, before its first step
	head += 2
	s.step()
	tasks, ids := s.take(99)
	if ids != "abcde" {
		t.Fatalf("after the update %q, want abcde", ids)
	}
	if want := (raster.Crop{Right: 0.5, Bottom: 1}); tasks[0].Crop != want || tasks[0].Base != base {
		t.Errorf("a task is %+v", tasks[0])
	}
	s.finishTask(tasks[0], good("a"))
	s.finishTask(tasks[1], ingest.Outcome{Code: 30101, Detail: "no preview"})
	s.finishTask(tasks[2], ingest.Outcome{Code: 30002, Detail: "404"})
	s.finishTask(tasks[4], good("e"))
	for _, pause := range []time.Duration{time.Second, 5 * time.Second, 25 * time.Second} {
		s.finishTask(tasks[3], ingest.Outcome{Code: 30002, Retry: ingest.Limited})
		s.now = s.now.Add(pause - 1)
		if _, ids := s.take(9); ids != "" {
			t.Errorf("%q before the pause ends", ids)
		}
		s.now = s.now.Add(1)
		if _, ids := s.take(9); ids != "d" {
			t.Fatalf("%q after the pause, want d", ids)
		}
	}
	s.finishTask(tasks[3], ingest.Outcome{Code: 30002, Retry: ingest.Limited})
	for id, want := range map[string]int{"a": 30000, "b": 30101, "c": 30105, "d": 30300, "e": 30000, "f": 30002, "g": catalog.InputOverQuota, "h": 30000, "new": 30300} {
		in := s.input(id)
		if in.Code != want || (want == 30000) != (in.Detail == "") || want != 30000 && in.Detail != "by an earlier version" {
			t.Errorf("%s is at %d, %q", id, in.Code, in.Detail)
		}
	}
	r := catalog.Read(s.store, app)
	in := s.input("a")
	if d, err := r.DerivedOfInput(base, &in); err != nil || d.Values[0] != 0.5 {
		t.Errorf("derived %+v, %v", d, err)
	}
	if n, err := r.Counts(); err != nil || n != (catalog.Counts{Processed: 3, Errors: 6}) {
		t.Errorf("counts %+v, %v", n, err)
	}
	if got := s.p.Log().Head(); got != head+2 {
		t.Errorf("%d entries for two inputs that can be read", got-head)
	}
	s.expectNone("once more")
}

// TestUnreadWalkContinuesAfterRestart restarts the program during the walk, in the middle of downloads. The walk continues with the first
// input that is not done, so that a restart repeats at most those that were in progress.
func TestUnreadWalkContinuesAfterRestart(t *testing.T) {
	s := open(t, memkv.New())
	const all = 150
	for i := range all {
		s.fail(30101, fmt.Sprintf(" %d", i))
	}
	s = update(t, s.store)
	tried := map[string]int{}
	total := 0
	for starts := 0; ; starts++ {
		done := 0
		for {
			s.step()
			tasks, ids := s.take(9)
			if len(tasks) == 0 {
				break
			}
			for _, id := range strings.Fields(ids) {
				tried[id]++
				total++
			}
			if done += len(tasks); done > 40 && starts < 5 {
				break // a kill, while the last tasks are in progress
			}
			for i := range tasks {
				o := good(tasks[i].URL)
				if i%2 > 0 {
					o = ingest.Outcome{Code: 30300}
				}
				s.finishTask(tasks[len(tasks)-1-i], o) // in another order
			}
		}
		if s = open(t, s.store); done == 0 {
			break
		}
	}
	if len(tried) != all || total > all+5*9 {
		t.Errorf("%d of %d inputs in %d tries", len(tried), all, total)
	}
}

// TestUnreadInputsTakeHalfTheTasks: the downloads of unread inputs take half of the tasks that can be handed out. New inputs come first.
func TestUnreadInputsTakeHalfTheTasks(t *testing.T) {
	s := open(t, memkv.New())
	for i := range 300 {
		s.fail(30300, fmt.Sprintf(" %d", i))
	}
	s = update(t, s.store)
	s.add("x")
	const most = 8
	var out []ingest.Task
	for range most {
		s.step()
		tasks, _ := s.take(most - len(out))
		out = append(out, tasks...)
	}
	if len(out) != 1+most/2 || out[0].URL != "http://x/x" {
		t.Errorf("%d of %d tasks, the first of them %v", len(out), most, out[:1])
	}
	s.add("y", "z")
	if tasks, ids := s.take(most - len(out)); ids != "yz" {
		t.Errorf("%q of new inputs, want yz", ids)
	} else {
		out = append(out, tasks...)
	}
	for _, task := range out { // an unread input that is deleted is downloaded no more, nor are its successors
		s.submit(&log.InputDelete{Input: task.Dot})
		s.finishTask(task, good(task.URL))
	}
	s.submit(&log.InputDeleteAll{})
	s.step()
	if _, ids := s.take(most); ids != "" {
		t.Errorf("%q after the deletion", ids)
	}
}

// TestUnreadResultWithoutSpaceIsWantedAgain: a result that cannot be written is wanted again.
func TestUnreadResultWithoutSpaceIsWantedAgain(t *testing.T) {
	s := open(t, memkv.New())
	s.fail(30101, "a")
	s = update(t, s.store)
	if err := s.worker.Attach(fullPartition{s.p}); err != nil {
		t.Fatal(err)
	}
	s.step()
	tasks, _ := s.take(1)
	o := good("a")
	if err := s.worker.Done(t.Context(), s.now, tasks[0], &o); !errors.Is(err, kv.ErrFull) {
		t.Errorf("Done = %v, want the store's error", err)
	}
	s = open(t, s.store)
	s.step()
	if tasks, _ = s.take(1); len(tasks) != 1 {
		t.Fatal("the input is not wanted again")
	}
	s.finishTask(tasks[0], o)
	if in := s.input("a"); in.Code != catalog.InputReady {
		t.Errorf("a is at %d", in.Code)
	}
}

// dated returns the outcome for a file with a date.
func dated(wall int64) ingest.Outcome {
	return ingest.Outcome{Code: catalog.InputReady, Derived: &catalog.DerivedData{Taken: exif.Time{Wall: wall, Known: true}}}
}

// TestUndatedInputsAreReadOnce: after an update the stored picture of each input without a date is read once, and the date is in its
// derived record. No operation is written, and nothing else changes.
func TestUndatedInputsAreReadOnce(t *testing.T) {
	s := open(t, memkv.New())
	s.add("a", "b", "c", "d", "e")
	tasks, _ := s.take(9)
	for i, task := range tasks[:4] {
		s.finishTask(task, good(string("aabc"[i])))
	}
	s.fail(30300, "f")
	s = update(t, s.store)
	s.step()
	head := s.p.Log().Head()
	before := s.input("a")
	s.take(1) // e, which is pending
	tasks, ids := s.take(9)
	if tasks = tasks[1:]; ids != "fabcd" {
		t.Fatalf("after the update %q, want f and abcd", ids)
	}
	for _, task := range tasks {
		if !task.IsUndated() || task.Blob.IsZero() {
			t.Errorf("a task is %+v", task)
		}
	}
	s.finishTask(tasks[0], dated(-1))
	s.finishTask(tasks[1], dated(-1))
	s.finishTask(tasks[2], dated(0))
	s.finishTask(tasks[3], ingest.Outcome{}) // unreadable
	r := catalog.Read(s.store, app)
	for id, want := range map[string]exif.Time{"a": {Wall: -1, Known: true}, "b": {Wall: -1, Known: true}, "c": {Known: true}, "d": {}} {
		in := s.input(id)
		if got, isDue, err := r.Taken(base, &in); got != want || isDue != (id == "d") || err != nil {
			t.Errorf("%s is of %+v, due %v, %v", id, got, isDue, err)
		}
		if d, err := r.DerivedOfInput(base, &in); err != nil || d.Values[0] != 0.5 || len(d.Embedding) != 516 {
			t.Errorf("%s: derived %+v, %v", id, d, err)
		}
	}
	if got := s.p.Log().Head(); got != head || s.input("a").Modified != before.Modified {
		t.Errorf("%d operations", got-head)
	}
	s.step()
	s = open(t, s.store)
	s.step()
	if _, ids := s.take(9); ids != "ef" { // e is pending, and f was in progress
		t.Errorf("once more: %q", ids)
	}
}

// TestReadEXIF: an input that asks for it gets the place of its picture's file after the download. Every write of its place counts more.
func TestReadEXIF(t *testing.T) {
	s := open(t, memkv.New())
	file, person := &log.Point{Longitude: 1, Latitude: 2}, &log.Point{Longitude: 3, Latitude: 4}
	for id, asks := range map[string]bool{"asks": true, "not": false, "set": true, "removed": true, "none": true} {
		s.submit(&log.InputCreate{ID: id, URL: "http://x/" + id, ReadEXIF: asks})
	}
	s.submit(&log.InputGeo{Input: s.input("set").Dot, Geo: person})
	s.submit(&log.InputGeo{Input: s.input("removed").Dot, Geo: person}, &log.InputGeo{Input: s.input("removed").Dot})
	tasks, _ := s.take(9)
	for _, task := range tasks {
		o := good(task.URL)
		if o.Place = file; task.URL == "http://x/none" {
			o.Place = nil
		}
		s.finishTask(task, o)
	}
	for id, want := range map[string]*log.Point{"asks": file, "not": nil, "set": person, "removed": nil, "none": nil} {
		if got := s.input(id).Geo; (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s is at %v, want %v", id, got, want)
		}
	}
}
