package instance_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/journal/journaltest"
	"github.com/sightline-dev/sightline/core/testkit"
	"github.com/sightline-dev/sightline/wasm/abi"
	"github.com/sightline-dev/sightline/wasm/guest/instance"
	"github.com/sightline-dev/sightline/wasm/host/hostcalls"
)

// TestReload closes a page and opens it again. The page has all its data.
func TestReload(t *testing.T) {
	bundles, disk := apitest.TinyBundles(t), journaltest.NewDisk()
	p := openPage(t, bundles, disk)
	p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture("red", "red.png", `,"concepts":[{"id":"warm","value":1}]`)+
		`,{"id":"half","data":{"image":{"url":"http://pictures.test/half.png"},"metadata":{"a":[1,"ü"]}}}]}`)
	p.rest(t, time.Second)
	p.fetch(t, 200, "POST", "/v2/models", "", `{"model":{"id":"warmth","output_info":{"data":{"concepts":[{"id":"warm"}]}}}}`)
	read := func(p *page) string {
		all := ""
		for _, path := range []string{"/v2/inputs", "/v2/inputs/status", "/v2/concepts", "/v2/models/warmth", "/v2/inputs/red/outputs"} {
			all += p.fetch(t, 200, "GET", path, "", "") + "\n"
		}
		return all
	}
	want := read(p)
	p.ask(t, abi.Query{What: abi.AskClose})

	p = openPage(t, bundles, disk)
	if got := read(p); got != want {
		t.Errorf("after a reload\n%s\nwant\n%s", got, want)
	}
	name := imageURL(t, p.fetch(t, 200, "GET", "/v2/inputs/red", "", ""))
	hosted, err := abi.ParseHosted(p.ask(t, abi.Query{What: abi.AskHosted, Name: name}))
	if err != nil || !bytes.Equal(hosted.Data, apitest.Picture("red.png")) {
		t.Errorf("hosted = %d bytes, %v", len(hosted.Data), err)
	}
	if h := blob.Sum(apitest.Picture("half.png")); !bytes.Equal(p.ask(t, abi.Query{What: abi.AskBlob, Name: string(h[:])}), apitest.Picture("half.png")) {
		t.Error("a picture is another")
	}
	p.rest(t, 25*time.Hour) // names of predicted pictures expire after a day, names of inputs' pictures do not
	p.ask(t, abi.Query{What: abi.AskHosted, Name: name})
}

// TestKilledTab kills a page at a random write, with a part of the unsynced data lost. After the restart, the store has all acknowledged
// writes, and the page works.
func TestKilledTab(t *testing.T) {
	bundles := apitest.TinyBundles(t)
	for seed := range testkit.Seeds(t, 30, 1000) {
		rng := rand.New(rand.NewPCG(seed, 6))
		disk := journaltest.NewDisk()
		inputs := map[string]string{} // picture of each acknowledged input; after has the number of writes by then
		after := map[string]int{}
		p := openPage(t, bundles, disk)
		for i := range 6 + rng.IntN(6) {
			id, name := fmt.Sprintf("input-%d", i), []string{"red.png", "blue.png", "half.png", "white.png"}[rng.IntN(4)]
			body := `{"inputs":[` + picture(id, name, "") + `]}`
			if rng.IntN(3) == 0 {
				body = fmt.Sprintf(`{"inputs":[{"id":%q,"data":{"image":{"url":"http://pictures.test/%s?%d"}}}]}`, id, name, i)
			}
			p.fetch(t, 200, "POST", "/v2/inputs", "", body)
			inputs[id], after[id] = name, disk.Ops()
			if rng.IntN(2) == 0 {
				p.rest(t, time.Second)
			}
			if rng.IntN(4) == 0 {
				p.fetch(t, 200, "DELETE", "/v2/inputs/"+id, "", "")
				delete(inputs, id)
			}
		}
		at := rng.IntN(disk.Ops() + 1)
		p = openPage(t, bundles, disk.CrashAt(at, []int{0, 50, 100}[rng.IntN(3)], rng))
		for id, name := range inputs {
			if after[id] > at {
				continue
			}
			body := p.fetch(t, 200, "GET", "/v2/inputs/"+id, "", "")
			if !strings.Contains(body, "/hosted/") {
				continue // added by URL, and not fetched yet
			}
			hosted, err := abi.ParseHosted(p.ask(t, abi.Query{What: abi.AskHosted, Name: imageURL(t, body)}))
			if err != nil || !bytes.Equal(hosted.Data, apitest.Picture(name)) {
				t.Fatalf("killed after %d writes: the picture of %s is %d bytes, %v", at, id, len(hosted.Data), err)
			}
		}
		p.rest(t, time.Hour)
		p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture("last", "black.png", "")+`]}`)
		p.rest(t, time.Second)
		if body := p.fetch(t, 200, "GET", "/v2/inputs/status", "", ""); !strings.Contains(body, `"to_process":0,"errors":0`) {
			t.Fatalf("afterwards: %s", body)
		}
	}
}

// TestSalvage damages the files of a page at random places. With a salvage they open, unless nothing of the store can be read, and the page
// has the inputs whose bytes precede the damage. It works and opens again.
func TestSalvage(t *testing.T) {
	bundles, disk := apitest.TinyBundles(t), journaltest.NewDisk()
	p := openPage(t, bundles, disk)
	var sizes [][2]int // bytes of the store and of the pictures after each input
	for n := range 12 {
		p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture(fmt.Sprint("input-", n), "red.png", "")+`]}`)
		p.rest(t, time.Second)
		sizes = append(sizes, [2]int{len(disk.Bytes(0)), len(disk.Bytes(2))})
	}
	settings := abi.Settings{Role: abi.Engine, Store: abi.StoreFiles, OpenDoor: true}
	for seed := range testkit.Seeds(t, 40, 1000) {
		rng := rand.New(rand.NewPCG(seed, 7))
		after := disk.At(disk.Ops(), 0)
		damage := [2]int{math.MaxInt, math.MaxInt}
		for i, file := range []int{0, 2} {
			if rng.IntN(4) > 0 {
				data := after.Bytes(file)
				damage[i] = 64 + rng.IntN(len(data)-64)
				after.SetBytes(file, data[:damage[i]])
			}
		}
		if damage != [2]int{math.MaxInt, math.MaxInt} {
			h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return apitest.Start }, Rand: p, Files: after})
			s := settings
			s.Bundles = names(bundles)
			if guestErr, err := abi.ParseDone((&instance.Instance{Imports: h}).Open(s.Marshal())); !errors.Is(guestErr, kv.ErrCorrupt) || err != nil {
				t.Fatalf("seed %d: damage at %v: %v, %v, want ErrCorrupt", seed, damage, guestErr, err)
			}
		}
		if damage[0] < sizes[0][0] {
			continue // perhaps before the first record
		}
		p := openPage(t, bundles, after, func(s *abi.Settings) { s.Salvage = true })
		r, err := abi.ParseSalvage(p.ask(t, abi.Query{What: abi.AskSalvage}))
		if err != nil || r.Records == 0 || (r.Lost > 0) != (damage[0] < math.MaxInt) || (r.LostPictures > 0) != (damage[1] < math.MaxInt) {
			t.Fatalf("seed %d: damage at %v: %+v, %v", seed, damage, r, err)
		}
		for n, size := range sizes {
			if size[0] <= damage[0] {
				p.fetch(t, 200, "GET", fmt.Sprint("/v2/inputs/input-", n), "", "")
			}
		}
		p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture("more", "blue.png", "")+`]}`)
		p.rest(t, time.Second)
		p.ask(t, abi.Query{What: abi.AskClose})
		p = openPage(t, bundles, after)
		name := imageURL(t, p.fetch(t, 200, "GET", "/v2/inputs/more", "", ""))
		p.ask(t, abi.Query{What: abi.AskHosted, Name: name})
	}
}

// TestBrokenDisk: a page whose disk fails acknowledges no more writes.
func TestBrokenDisk(t *testing.T) {
	bundles, disk := apitest.TinyBundles(t), journaltest.NewDisk()
	p := openPage(t, bundles, disk)
	p.fetch(t, 200, "POST", "/v2/inputs", "", `{"inputs":[`+picture("red", "red.png", "")+`]}`)
	disk.FailAt(1, true)
	for _, id := range []string{"blue", "again"} {
		r := p.answer(t, &api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[` + picture(id, "blue.png", "") + `]}`)})
		if r.Status != 500 {
			t.Errorf("an input that is not kept: %d %s", r.Status, r.Body)
		}
	}
	p.fetch(t, 200, "GET", "/v2/inputs/red", "", "")
	disk.FailAt(0, false)
	p = openPage(t, bundles, disk)
	p.fetch(t, 200, "GET", "/v2/inputs/red", "", "")
	p.fetch(t, 404, "GET", "/v2/inputs/again", "", "")
}

// TestForeignFiles: an instance does not open on foreign files, and leaves them unchanged.
func TestForeignFiles(t *testing.T) {
	bundles := apitest.TinyBundles(t)
	for _, file := range []int{0, 2} {
		disk := journaltest.NewDisk()
		data := bytes.Repeat([]byte("something else entirely "), 1000)
		disk.SetBytes(file, data)
		h := newHost(hostcalls.Services{Bundles: bundles, Clock: func() time.Time { return apitest.Start }, Rand: &apitest.Counter{}, Files: disk})
		settings := abi.Settings{Role: abi.Engine, Store: abi.StoreFiles, OpenDoor: true, Bundles: names(bundles)}
		if guestErr, err := abi.ParseDone((&instance.Instance{Imports: h}).Open(settings.Marshal())); guestErr == nil || err != nil {
			t.Errorf("file %d of somebody else is taken", file)
		}
		if !bytes.Equal(disk.Bytes(file), data) {
			t.Errorf("file %d of somebody else was written to", file)
		}
	}
}
