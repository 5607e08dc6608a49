package abi_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
	"github.com/sightline-dev/sightline/wasm/abi"
)

var update = flag.Bool("update", false, "write testdata/envelopes.json instead of comparing it")

const vectorsFile = "testdata/envelopes.json"

// vector is an envelope with its content, for hosts in other languages. Fields have the names of wasm/README.md; bytes are hex digits.
type vector struct {
	Envelope string         `json:"envelope"`
	Name     string         `json:"name"`
	Hex      string         `json:"hex"`
	Fields   map[string]any `json:"fields"`
}

type fields = map[string]any

func settings() abi.Settings {
	return abi.Settings{
		Role: abi.Both, App: "0123456789abcdef0123456789abcdef", Store: abi.StoreFiles, PublicURL: "https://a.example",
		PublicAppID: "main", KeepPredicted: time.Hour, Bundles: []string{"general-v1.3/manifest.json", "color/colors.tsv"},
		Tokens: true, OpenDoor: true, Rate: 10, Burst: 100, Counted: true, MaxBytes: 200, MaxMembers: 4,
		OperatorRate: 5, OperatorBurst: 50, PictureTime: 1500 * time.Millisecond, Memory: 1 << 28, Checked: true, Salvage: true,
	}
}

func job() api.Job {
	j := api.Job{
		URL: "http://pictures.test/red.png", Want: predict.WantConcepts | predict.WantThumb,
		Crop: raster.Crop{Top: 0.25, Left: 0.5, Bottom: 0.75, Right: 1}, Keep: true,
	}
	j.Base[0], j.Base[31] = 1, 2
	return j
}

func analysis() predict.Analysis {
	v := make([]float32, predict.Dim)
	for i := range v {
		v[i] = float32(i) - 100.5
	}
	e, _ := predict.NewEmbedding(v) // finite
	return predict.Analysis{
		Has: predict.WantConcepts | predict.WantColors | predict.WantThumb, Embedding: e,
		General: []float32{0.5, 0, 1}, Food: []float32{0.25},
		Colors: []predict.ColorShare{{W3C: predict.Color{ID: "ai_1", Name: "Red", Hex: "#ff0000"}, RawHex: "#fe0000", Value: 0.75}},
		Thumb:  []byte("jpeg"),
	}
}

// analysisWithCells returns an analysis with cells.
func analysisWithCells() predict.Analysis {
	c := predict.Cells{Height: 1, Width: 2, Classes: 3, Rows: make([]float32, 2*(3+predict.Dim)), Box: raster.Crop{Left: 0.25, Bottom: 1, Right: 0.75}}
	for i := range c.Rows {
		c.Rows[i] = float32(i) / 4
	}
	return predict.Analysis{Has: predict.WantCells, Cells: c}
}

// TestCells has cells cross, and refuses those that are not all there.
func TestCells(t *testing.T) {
	a := analysisWithCells()
	got, err := abi.ParseAnalysis(abi.AppendAnalysis(nil, &a))
	if err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, %v, want %+v", got, err, a)
	}
	for name, change := range map[string]func(a *predict.Analysis){
		"short":       func(a *predict.Analysis) { a.Cells.Rows = a.Cells.Rows[:7] },
		"other shape": func(a *predict.Analysis) { a.Cells.Width = 3 },
		"no box":      func(a *predict.Analysis) { a.Cells.Box = raster.Crop{} },
		"none":        func(a *predict.Analysis) { a.Cells = predict.Cells{} },
	} {
		a := analysisWithCells()
		change(&a)
		if got, err := abi.ParseAnalysis(abi.AppendAnalysis(nil, &a)); !errors.Is(err, field.ErrFormat) {
			t.Errorf("%s: %+v, %v, want ErrFormat", name, got, err)
		}
	}
}

// TestPicture has the picture of a frame cross.
func TestPicture(t *testing.T) {
	a := predict.Analysis{Has: predict.WantPicture, Picture: []byte("jpeg in full size")}
	if got, err := abi.ParseAnalysis(abi.AppendAnalysis(nil, &a)); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("%+v, %v, want %+v", got, err, a)
	}
}

func jobFields(j *api.Job) fields {
	f := fields{"url": j.URL, "want": float64(j.Want), "keep": j.Keep, "base": hex.EncodeToString(j.Base[:])}
	if j.Crop != (raster.Crop{}) {
		f["crop"] = []any{j.Crop.Top, j.Crop.Left, j.Crop.Bottom, j.Crop.Right}
	}
	return f
}

func vectors() []vector {
	s := settings()
	j := job()
	picture := api.Job{Data: []byte("picture"), Want: predict.WantColors}
	stored := api.Job{Blob: blob.Sum([]byte("picture"))}
	planes := raster.Planes{Width: 320, Height: 240, SubX: 1, SubY: 1, Depth: 10, Matrix: raster.BT709, Full: true, Rotation: 6}
	frameJob := abi.Job{Job: api.Job{Data: []byte("samples"), Want: predict.WantColors}, Planes: &planes}
	headed := abi.Query{What: abi.AskFilm, Film: abi.Film{Output: []byte("GIF")}}
	probed := abi.Query{What: abi.AskFilmProbed, Film: abi.Film{Output: []byte("{}"), Video: api.Video{SampleMS: 1500, MaxFrames: 600}}}
	failed := abi.Query{What: abi.AskFilmFailed, Film: abi.Film{Video: api.Video{SampleMS: 1500, MaxFrames: 600}, Failure: abi.FailedDecode, Frames: 3}}
	ffprobe := abi.FilmReply{Args: []string{"ffprobe", abi.FilmName}, Bytes: 8 << 20, Memory: 512 << 20, Time: 15 * time.Minute}
	ffmpeg := abi.FilmReply{Args: []string{"ffmpeg", "-i", abi.FilmName}, Bytes: 230_400, Frames: 12, Planes: &planes}
	film := api.Job{Data: []byte("GIF"), Video: api.Video{SampleMS: 1500, MaxFrames: 600}}
	a := analysis()
	seen := abi.AppendAnalysis(nil, &a)
	good := abi.Result{Result: api.Result{Analysis: a, Blob: blob.Sum([]byte("p")), ContentType: "image/png"}, Picture: []byte("p")}
	bad := abi.Result{Result: api.Result{Err: api.ErrFetch, Passing: true}}
	frames := abi.Result{Result: api.Result{Frames: []api.Frame{{Analysis: a}, {TimeMS: 1500, Analysis: a}}}}
	frame := func(timeMS ...byte) string { // 1 time, 2 analysis
		return hex.EncodeToString(append(append(timeMS, 2<<3|2, byte(len(seen)&127|128), byte(len(seen)>>7)), seen...))
	}
	request := api.Request{
		Method: "POST", Path: "/v2/models/x/outputs", Query: "page=1", Authorization: "Key k", Session: "s", App: "app",
		Remote: "192.0.2.1", Page: true, Known: `"1"`, Client: "js:2.9.1", Body: bytes.Repeat([]byte("{}"), 100),
	}
	response := api.Response{
		Status: 200, ContentType: "application/json", Header: []api.Field{{Name: "Retry-After", Value: "3"}, {Name: "X-Empty"}}, Body: []byte(`{"status":{}}`),
	}
	step := abi.Step{Take: 2, Done: []abi.TaskResult{{Task: 300, Result: bad}}, Idle: true}
	stepped := abi.StepResult{More: true, Tasks: []abi.Task{{Number: 7, Job: j}}, Training: true, Error: "store is full", Orphans: true}
	question := abi.Query{What: abi.AskHosted, Name: "0123456789abcdef0123456789abcdef"}
	hosted := abi.HostedReply{ContentType: "image/gif", Data: []byte("GIF"), Expires: time.UnixMilli(1_700_000_000_123).UTC(), Hash: blob.Sum([]byte("GIF"))}
	copied := abi.Settings{Role: abi.Engine, App: s.App, Store: abi.StoreFiles, Replica: &abi.Replica{
		Name: "this browser", Live: replica.Poll, Wants: wire.Wants{Vectors: wire.VectorsQ16, Blobs: wire.BlobsFull}, Audit: time.Minute,
		RegisterSeq: 7, Register: []byte("register"), Origin: "https://origin.example",
	}}
	digest := abi.DigestReply{Epoch: log.Epoch{1, 15: 2}, Seq: 12, Digest: blob.Sum([]byte("state"))}
	memory := abi.MemoryReply{Heap: 1 << 20, System: 1 << 33}
	salvage := abi.SalvageReply{Records: 7, Lost: 300, LostPictures: 1 << 33}

	goodFields := fields{
		"error": 0., "analysis": hex.EncodeToString(seen), "blob": good.Blob.String(), "content_type": "image/png", "picture": "70",
	}
	badFields := fields{"error": 1., "text": api.ErrFetch.Error(), "passing": true}
	envelope := func(kind, name string, data []byte, f fields) vector {
		return vector{kind, name, hex.EncodeToString(data), f}
	}
	all := []vector{
		envelope("settings", "all", s.Marshal(), fields{
			"role": 3., "app": s.App, "store": 2., "public_url": s.PublicURL, "public_app_id": "main", "keep_predicted": 3600.,
			"bundle": []any{s.Bundles[0], s.Bundles[1]}, "tokens": true, "open_door": true, "rate": 10., "burst": 100.,
			"counted": true, "max_bytes": 200., "max_members": 4., "operator_rate": 5., "operator_burst": 50., "picture_time": 1500., "memory": float64(1 << 28), "checked": true, "salvage": true,
		}),
		envelope("settings", "least", (&abi.Settings{Role: abi.Engine, Store: abi.StoreHost}).Marshal(), fields{"role": 1., "store": 1.}),
		envelope("done", "well", abi.AppendDone(nil, nil), fields{}),
		envelope("done", "refused", abi.AppendDone(nil, predict.ErrBundle), fields{"error": fields{"code": 15., "text": "invalid bundle"}}),
		envelope("request", "all", abi.AppendRequest(nil, &request), fields{
			"method": "POST", "path": request.Path, "query": "page=1", "authorization": "Key k", "session": "s", "app": "app",
			"remote": "192.0.2.1", "page": true, "known": `"1"`, "client": "js:2.9.1", "body": hex.EncodeToString(request.Body),
		}),
		envelope("request", "without a body", abi.AppendRequest(nil, &api.Request{Method: "GET", Path: "/v2/models"}), fields{"method": "GET", "path": "/v2/models"}),
		envelope("response", "all", abi.AppendResponse(nil, &response), fields{
			"status": 200., "content_type": "application/json", "body": hex.EncodeToString(response.Body),
			"header": []any{fields{"name": "Retry-After", "value": "3"}, fields{"name": "X-Empty"}},
		}),
		envelope("jobs", "three", abi.AppendJobs(nil, 1<<40, []api.Job{j, picture, stored}), fields{
			"call": float64(1 << 40),
			"job":  []any{jobFields(&j), fields{"data": hex.EncodeToString(picture.Data), "want": 2.}, fields{"blob": stored.Blob.String()}},
		}),
		envelope("job", "picture", abi.AppendJob(nil, &picture), fields{"data": hex.EncodeToString(picture.Data), "want": 2.}),
		envelope("job", "video", abi.AppendJob(nil, &film), fields{"data": hex.EncodeToString(film.Data), "video": "08dc0b10d804"}),
		envelope("job", "frame", abi.AppendFrame(nil, &frameJob), fields{"data": hex.EncodeToString(frameJob.Data), "want": 2., "planes": "08c00210f00118012001280a300238014006"}),
		envelope("result", "frames", abi.AppendResult(nil, &frames), fields{"frames": []any{frame(), frame(1<<3, 0xdc, 0x0b)}}),
		envelope("result", "well", abi.AppendResult(nil, &good), goodFields),
		envelope("result", "failed", abi.AppendResult(nil, &bad), badFields),
		envelope("results", "two", abi.AppendResults(nil, 5, []abi.Result{good, bad}), fields{"call": 5., "result": []any{goodFields, badFields}}),
		envelope("step", "all", step.Marshal(), fields{"take": 2., "idle": true, "done": []any{fields{"task": 300., "result": badFields}}}),
		envelope("stepped", "all", stepped.Append(nil), fields{
			"more": true, "training": true, "error": "store is full", "orphans": true, "task": []any{fields{"task": 7., "job": jobFields(&j)}},
		}),
		envelope("question", "hosted", question.Marshal(), fields{"what": "hosted", "name": "0123456789abcdef0123456789abcdef"}),
		envelope("question", "close", (&abi.Query{What: abi.AskClose}).Marshal(), fields{"what": "close"}),
		envelope("question", "film", headed.Marshal(), fields{"what": "film", "film": fields{"output": "474946"}}),
		envelope("question", "film.probed", probed.Marshal(), fields{"what": "film.probed", "film": fields{"output": "7b7d", "video": "08dc0b10d804"}}),
		envelope("question", "film.failed", failed.Marshal(), fields{"what": "film.failed", "film": fields{"video": "08dc0b10d804", "failure": 2., "frames": 3.}}),
		envelope("film", "ffprobe", ffprobe.Marshal(), fields{"arg": []any{"ffprobe", "/in"}, "bytes": float64(8 << 20), "memory": float64(512 << 20), "time": 900_000.}),
		envelope("film", "ffmpeg", ffmpeg.Marshal(), fields{"arg": []any{"ffmpeg", "-i", "/in"}, "bytes": 230_400., "frames": 12., "planes": "08c00210f00118012001280a300238014006"}),
		envelope("reply", "value", abi.AppendReply(nil, []byte("value"), nil), fields{"value": hex.EncodeToString([]byte("value"))}),
		envelope("reply", "refused", abi.AppendReply(nil, nil, blob.ErrNotFound), fields{"error": fields{"code": 10., "text": "no such blob"}}),
		envelope("hosted", "with data", hosted.Marshal(), fields{
			"content_type": "image/gif", "data": hex.EncodeToString(hosted.Data), "expires": 1_700_000_000_123., "hash": hosted.Hash.String(),
		}),
		envelope("settings", "a copy", copied.Marshal(), fields{
			"role": 1., "app": s.App, "store": 2., "replica": fields{
				"name": "this browser", "live": 1., "vectors": 1., "blobs": 3., "audit": 60., "register_seq": 7., "register": hex.EncodeToString(copied.Replica.Register), "origin": "https://origin.example",
			},
		}),
		envelope("digest", "all", digest.Marshal(), fields{
			"epoch": hex.EncodeToString(digest.Epoch[:]), "seq": 12., "digest": hex.EncodeToString(digest.Digest[:]),
		}),
		envelope("salvage", "all", salvage.Marshal(), fields{"records": 7., "lost": 300., "lost_pictures": float64(1 << 33)}),
		envelope("memory", "all", memory.Marshal(), fields{"heap": float64(1 << 20), "system": float64(1 << 33)}),
	}
	return append(all, syncVectors()...)
}

// TestVectors holds the bytes of envelopes to testdata, which the other hosts' tests read.
func TestVectors(t *testing.T) {
	want := vectors()
	if *update {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		if err := enc.Encode(want); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorsFile, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var got []vector
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what is written (−want +got):\n%s", vectorsFile, diff)
	}
}

// TestVectorsRoundTrip reads each vector and writes it again.
func TestVectorsRoundTrip(t *testing.T) {
	for _, v := range vectors() {
		data, err := hex.DecodeString(v.Hex)
		if err != nil {
			t.Fatal(err)
		}
		again, err := rewrite(v.Envelope, data)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s, %s: %v, written again as %x, want %x", v.Envelope, v.Name, err, again, data)
		}
	}
}

// rewrite reads an envelope and writes what it says.
func rewrite(kind string, data []byte) ([]byte, error) {
	switch kind {
	case "settings":
		s, err := abi.ParseSettings(data)
		return s.Marshal(), err
	case "done":
		guestErr, err := abi.ParseDone(data)
		return abi.AppendDone(nil, guestErr), err
	case "request":
		r, err := abi.ParseRequest(data)
		return abi.AppendRequest(nil, &r), err
	case "response", "jobs":
		s, err := abi.ParseServeResult(data)
		if s.Call != 0 {
			return abi.AppendJobs(nil, s.Call, s.Jobs), err
		}
		return abi.AppendResponse(nil, &s.Response), err
	case "job":
		j, err := abi.ParseJob(data)
		return abi.AppendFrame(nil, &j), err
	case "result":
		r, err := abi.ParseResult(data)
		return abi.AppendResult(nil, &r), err
	case "results":
		call, results, err := abi.ParseResults(data)
		return abi.AppendResults(nil, call, results), err
	case "step":
		s, err := abi.ParseStep(data)
		return s.Marshal(), err
	case "stepped":
		s, err := abi.ParseStepResult(data)
		return s.Append(nil), err
	case "question":
		q, err := abi.ParseQuery(data)
		return q.Marshal(), err
	case "reply":
		value, guestErr, err := abi.ParseReply(data)
		return abi.AppendReply(nil, value, guestErr), err
	case "hosted":
		h, err := abi.ParseHosted(data)
		return h.Marshal(), err
	case "film":
		r, err := abi.ParseFilm(data)
		return r.Marshal(), err
	case "memory":
		m, err := abi.ParseMemory(data)
		return m.Marshal(), err
	case "salvage":
		r, err := abi.ParseSalvage(data)
		return r.Marshal(), err
	case "analysis":
		a, err := abi.ParseAnalysis(data)
		return abi.AppendAnalysis(nil, &a), err
	case "digest":
		r, err := abi.ParseDigest(data)
		return r.Marshal(), err
	case "event":
		e, err := abi.ParseEvent(data)
		return abi.AppendEvent(nil, e), err
	case "synced":
		s, err := abi.ParseSyncResult(data)
		return s.Append(nil), err
	}
	return nil, nil
}

var kinds = []string{
	"settings", "done", "request", "response", "job", "result", "results", "step", "stepped", "question", "reply", "hosted",
	"film", "memory", "salvage", "digest", "analysis", "event", "synced",
}

// FuzzEnvelope reads any bytes as each envelope: what can be read says the same when it is
// written and read again.
func FuzzEnvelope(f *testing.F) {
	for _, v := range vectors() {
		data, err := hex.DecodeString(v.Hex)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, a := range []predict.Analysis{analysis(), analysisWithCells()} {
		f.Add(abi.AppendAnalysis(nil, &a))
	}
	for _, e := range events() {
		f.Add(abi.AppendEvent(nil, e))
	}
	all := fullSyncResult()
	f.Add(all.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range kinds {
			once, err := rewrite(kind, data)
			if err != nil {
				continue
			}
			twice, err := rewrite(kind, once)
			if err != nil || !bytes.Equal(once, twice) {
				t.Errorf("%s %x is written as %x, and read as %x, %v", kind, data, once, twice, err)
			}
		}
	})
}
