package feed_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict"
	"github.com/sightline-dev/sightline/core/train"
	"github.com/sightline-dev/sightline/sync/wire"
)

// drawer draws operations and the calls that make them. Their ids are new, so that only the form decides.
type drawer struct {
	*rand.Rand
	w            *world
	serial       int
	input, model log.Dot  // of the pushed operations
	fresh        []string // ids of inputs without metadata
}

// furnish creates what the calls change.
func (d *drawer) furnish() {
	d.w.t.Helper()
	picture := base64.StdEncoding.EncodeToString(apitest.Picture("red.png"))
	d.mustServe("POST", "/v2/inputs", `{"inputs":[{"id":"ready","data":{"image":{"base64":"`+picture+`"}}}]}`)
	d.mustServe("POST", "/v2/models", `{"model":{"id":"m","output_info":{"data":{"concepts":[{"id":"a"}]}}}}`)
	d.mustServe("POST", "/v2/concepts", `{"concepts":[{"id":"c"}]}`)
}

func (d *drawer) mustServe(method, path, body string) api.Response {
	d.w.t.Helper()
	res := d.w.Serve(d.w.t, api.Request{Method: method, Path: path, Body: []byte(body)})
	if res.Status != 200 {
		d.w.t.Fatalf("%s %s %s = %d %s", method, path, body, res.Status, res.Body)
	}
	return res
}

// kinds returns a drawer of each kind of operation.
func (d *drawer) kinds() []func() (log.Body, api.Request) {
	return []func() (log.Body, api.Request){
		d.inputCreate, d.inputLabels, d.inputMeta, d.inputGeo, d.inputDelete, d.outputsPatch, d.conceptCreate, d.conceptName, d.modelCreate,
		d.modelPatch, d.modelDelete, d.versionTrain, d.versionDelete, d.workflowCreate, d.workflowDelete, d.feedback, d.searchFeedback,
	}
}

func call(method, path, body string, args ...any) api.Request {
	return api.Request{Method: method, Path: path, Body: fmt.Appendf(nil, body, args...)}
}

// rarely reports true once in n times.
func (d *drawer) rarely(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *drawer, of ...T) T { return of[d.IntN(len(of))] }

// text returns a short text, and sometimes one that no form allows.
func (d *drawer) text() string {
	var b strings.Builder
	for range 1 + d.IntN(6) {
		b.WriteString(pick(d, "a", "B", "é", "漢", "😀", " ", `"`, `\`, "/", "%", "?", "\u2028"))
	}
	if d.rarely(8) {
		b.WriteString(pick(d, "\x00", "\x1b[2J", "\n", "\x7f", "\u0085", "\xff", "\xc3"))
	}
	return b.String()
}

// id returns an id that nothing has yet, none, or an invalid one.
func (d *drawer) id() string {
	d.serial++
	switch d.IntN(20) {
	case 0:
		return pick(d, "", ".", "..", "searches", "status", "usage")
	case 1:
		n := strconv.Itoa(d.serial)
		return strings.Repeat("a", 127+d.IntN(3)-len(n)) + n
	}
	return d.text() + strconv.Itoa(d.serial)
}

// name returns a name, or an invalid one.
func (d *drawer) name() string {
	if d.rarely(8) {
		return strings.Repeat("é", 511+d.IntN(3))
	}
	return d.text()
}

// concept returns the id of a concept that a label names, or an invalid one.
func (d *drawer) concept() string {
	if d.rarely(8) {
		return pick(d, "ai_red", ".", "usage", "")
	}
	return d.id()
}

func (d *drawer) url() string {
	d.serial++
	if !d.rarely(4) {
		return "https://pictures.test/é?" + strconv.Itoa(d.serial)
	}
	path := d.text()
	if d.rarely(10) {
		path = strings.Repeat("p", 8140+d.IntN(40))
	}
	return pick(d, "http", "https", "HTTPS", "http", "https", "ftp", "file", "javascript", "data", "") + pick(d, "://", "://", "://", ":", "//") +
		pick(d, "pictures.test", "é.test", "[::1]", "x:80", "", "a b", "x%") + "/" + path + "?" + strconv.Itoa(d.serial)
}

// quote returns text as JSON. Bytes that are not UTF-8 stay as they are.
func quote(text string) string {
	b := []byte{'"'}
	for _, c := range []byte(text) {
		if c < 0x20 || c == '"' || c == '\\' {
			b = fmt.Appendf(b, `\u%04x`, c)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// quoteAll returns objects with ids.
func quoteAll(ids []string) string {
	for i := range ids {
		ids[i] = `{"id":` + quote(ids[i]) + `}`
	}
	return "[" + strings.Join(ids, ",") + "]"
}

// doc returns JSON of at most depth levels, and sometimes something else.
func (d *drawer) doc(depth int) string {
	switch n := d.IntN(24); {
	case n < 3:
		return pick(d, "1", "true", `"s"`, `{"a":1}`, `{"a":{"b":[1,2]},"c":null}`, "[]", "[{}]", `{}`)
	case n < 8:
		deep := max(depth+d.IntN(5)-2, 1)
		return strings.Repeat("[", deep) + strings.Repeat("]", deep)
	case n == 8 && d.rarely(5):
		return "[" + strings.Repeat("1,", 1950+d.IntN(100)) + "1]"
	case n == 9 && d.rarely(5):
		return `"` + strings.Repeat("a", 64<<10-10+d.IntN(20)) + `"`
	case n > 9 && n < 12:
		return pick(d, "{", "tru", "01", `"`, "\xff", `{"a":1,"a":2}`, `"\ud800"`, "1 2")
	}
	return `{` + quote(d.text()) + `:[1,{"b":2}]}`
}

func (d *drawer) labels() []log.Label {
	n := 1 + d.IntN(3)
	if d.rarely(200) {
		n = 999 + d.IntN(3)
	}
	var out []log.Label
	for range n {
		id := "l" + strconv.Itoa(len(out))
		if n < 10 {
			id = d.concept()
		}
		out = append(out, log.Label{Concept: id, Value: pick(d, log.True, log.False)})
	}
	return out
}

func labelsJSON(labels []log.Label) string {
	var b []string
	for _, l := range labels {
		b = append(b, fmt.Sprintf(`{"id":%s,"value":%t}`, quote(l.Concept), l.Value == log.True))
	}
	return "[" + strings.Join(b, ",") + "]"
}

func (d *drawer) inputCreate() (log.Body, api.Request) {
	b := &log.InputCreate{ID: d.id(), URL: d.url(), AllowDuplicate: true}
	data := `"image":{"url":` + quote(b.URL) + `,"allow_duplicate_url":true`
	if d.rarely(3) {
		b.Crop.Top, b.Crop.Left = pick(d, 0, 0, 0, 0.5, -0.1), pick(d, 0, 0.25)
		b.Crop.Bottom, b.Crop.Right = pick(d, 1, 1, 0.4, 1.5), pick(d, 1, 1, 0.3, 0.2)
		data += fmt.Sprintf(`,"crop":[%v,%v,%v,%v]`, b.Crop.Top, b.Crop.Left, b.Crop.Bottom, b.Crop.Right)
	}
	data += "}"
	if d.rarely(3) {
		b.Labels = d.labels()
		data += `,"concepts":` + labelsJSON(b.Labels)
	}
	if d.rarely(3) {
		b.Meta = []byte(d.doc(32))
		data += `,"metadata":` + string(b.Meta)
	}
	if d.rarely(3) {
		b.Geo = d.point()
		data += `,"geo":` + geoJSON(b.Geo)
	}
	return b, api.Request{Method: "POST", Path: "/v2/inputs", Body: []byte(`{"inputs":[{"id":` + quote(b.ID) + `,"data":{` + data + `}}]}`)}
}

func (d *drawer) inputLabels() (log.Body, api.Request) {
	b := &log.InputLabels{Input: d.input, Labels: d.labels()}
	action := "overwrite" // so that the input never has more than the labels of one operation
	if d.rarely(4) {
		action, b.Labels = "remove", []log.Label{{Concept: "l1"}} // a call may remove any label that the input has
	}
	return b, api.Request{Method: "PATCH", Path: "/v2/inputs", Body: []byte(`{"action":"` + action + `","inputs":[{"id":"ready","data":{"concepts":` + labelsJSON(b.Labels) + `}}]}`)}
}

// blank returns the id of an input without metadata.
func (d *drawer) blank() string {
	if len(d.fresh) == 0 {
		var inputs []string
		for range 40 {
			d.serial++
			id := fmt.Sprint("fresh", d.serial)
			d.fresh = append(d.fresh, id)
			inputs = append(inputs, fmt.Sprintf(`{"id":%q,"data":{"image":{"url":"http://pictures.test/fresh.png?%d"}}}`, id, d.serial))
		}
		d.mustServe("POST", "/v2/inputs", `{"inputs":[`+strings.Join(inputs, ",")+`]}`)
	}
	id := d.fresh[0]
	d.fresh = d.fresh[1:]
	return id
}

func (d *drawer) inputMeta() (log.Body, api.Request) {
	w := log.MetaWrite{Action: pick(d, log.MetaSet, log.MetaRemove, log.MetaAppend)}
	depth := d.IntN(4)
	if d.rarely(4) {
		depth = 30 + d.IntN(4)
	}
	before, after := "", ""
	for range depth {
		name := d.text()
		w.Path = append(w.Path, name)
		before, after = before+`{`+quote(name)+`:`, after+`}`
	}
	action, value := "overwrite", ""
	switch w.Action {
	case log.MetaRemove:
		action, value = "remove", "true"
	case log.MetaAppend:
		action, value = "merge", "["+d.doc(31-depth)+"]"
		w.JSON = []byte(value)
	default:
		value = d.doc(32 - depth)
		w.JSON = []byte(value)
	}
	return &log.InputMeta{Input: d.input, Writes: []log.MetaWrite{w}}, api.Request{
		Method: "PATCH", Path: "/v2/inputs",
		Body: []byte(`{"action":"` + action + `","inputs":[{"id":"` + d.blank() + `","data":{"metadata":` + before + value + after + `}}]}`),
	}
}

func (d *drawer) point() *log.Point {
	return &log.Point{Longitude: pick(d, 0, 12.5, 180, -180, 180.0001, -200), Latitude: pick(d, 0, -90, 90, 90.5, 45)}
}

func geoJSON(p *log.Point) string {
	return fmt.Sprintf(`{"geo_point":{"longitude":%v,"latitude":%v}}`, p.Longitude, p.Latitude)
}

func (d *drawer) inputGeo() (log.Body, api.Request) {
	p := d.point()
	return &log.InputGeo{Input: d.input, Geo: p}, call("PATCH", "/v2/inputs", `{"action":"merge","inputs":[{"id":"ready","data":{"geo":%s}}]}`, geoJSON(p))
}

func (d *drawer) inputDelete() (log.Body, api.Request) {
	return &log.InputDelete{Input: log.Dot{Writer: 9, Seq: uint64(d.Uint32())}}, call("DELETE", "/v2/inputs", `{"ids":["%s"]}`, d.blank())
}

func (d *drawer) outputsPatch() (log.Body, api.Request) {
	b := &log.OutputsPatch{Input: d.input}
	var all []string
	n := 1 + d.IntN(3)
	if d.rarely(200) {
		n = 999 + d.IntN(3)
	}
	action := pick(d, "merge", "remove")
	for range n {
		e := log.OutputEdit{Concept: "e" + strconv.Itoa(len(all)), Value: 1, Removed: action == "remove"}
		if n < 10 {
			e.Concept, e.Value = d.concept(), pick[float32](d, 0, 0.5, 1, 0.5, 1, 0.5, 1, 0.5, -0.5, 1.5)
		}
		b.Edits = append(b.Edits, e)
		all = append(all, fmt.Sprintf(`{"id":%s,"value":%v}`, quote(e.Concept), e.Value))
	}
	return b, api.Request{Method: "PATCH", Path: "/v2/inputs/ready/outputs", Body: []byte(`{"action":"` + action + `","outputs":[{"data":{"concepts":[` + strings.Join(all, ",") + `]}}]}`)}
}

func (d *drawer) conceptCreate() (log.Body, api.Request) {
	b := &log.ConceptCreate{ID: d.id(), Language: pick(d, "", "", "en", "de", "zh-TW", "zh-tw", "EN", "tlh", "\x1b")}
	if d.rarely(10) {
		b.ID = "ai_" + b.ID
	}
	if d.rarely(2) {
		b.Name = d.name()
	}
	return b, api.Request{Method: "POST", Path: "/v2/concepts", Body: []byte(`{"concepts":[{"id":` + quote(b.ID) + `,"name":` + quote(b.Name) + `,"language":` + quote(b.Language) + `}]}`)}
}

func (d *drawer) conceptName() (log.Body, api.Request) {
	b := &log.ConceptName{ID: "c", Name: d.name()}
	if d.rarely(8) {
		b.Name = ""
	}
	return b, api.Request{Method: "PATCH", Path: "/v2/concepts", Body: []byte(`{"action":"overwrite","concepts":[{"id":"c","name":` + quote(b.Name) + `}]}`)}
}

func (d *drawer) concepts() []string {
	n := d.IntN(3)
	if d.rarely(400) {
		n = 4999 + d.IntN(3)
	}
	var out []string
	for range n {
		id := "k" + strconv.Itoa(len(out))
		if n < 10 {
			id = d.concept()
		}
		out = append(out, id)
	}
	return out
}

var settingNames = []string{
	"concepts_mutually_exclusive", "closed_environment", "max_concepts", "min_value", "language", "hyper_parameters", "select_concepts", "sample_ms",
	"existing_model_id", "training_timeout",
}

// config returns settings, with values that all fields allow and others.
func (d *drawer) config() (set []log.Setting, text string) {
	var all []string
	for range d.IntN(3) {
		s := log.Setting{Name: pick(d, settingNames...)}
		value := pick(d, "true", "false", "0", "1", "200", "201", "-1", "1.5", "1e2", "0.5", "2", `"x"`, `"de"`, `"tlh"`, `""`, "[]", "{}", `[{"id":"a"}]`,
			`[{"name":"a"},null,[],{}]`, `[{"id":1}]`, "[1]", `{"a":1}`, "9223372036854775807", "9223372036854775808", `"{\"precision\":0.4}"`,
			`"{\"precision\":0.9}"`, `"{\"precision\":\"x\"}"`, `{"precision":0.4}`, `{"precision":0.9}`, "[", "\xff")
		switch {
		case d.rarely(40):
			value = "[" + strings.Repeat("{},", 998+d.IntN(3)) + "{}]"
		case d.rarely(40):
			value = `"` + strings.Repeat("a", 64<<10-3+d.IntN(3)) + `"`
		case len(all) > 0 && s.Name == set[0].Name, strings.HasSuffix(s.Name, "ive") || s.Name == "closed_environment":
			if s.Name = "closed_environment"; len(all) > 0 {
				continue // a name twice
			}
			if value == "0" || value == "1" {
				continue // calls write false and true instead
			}
		}
		if len(all) > 0 && s.Name == set[0].Name {
			continue
		}
		s.JSON = []byte(value)
		member := s.Name
		if member == "hyper_parameters" && value[0] == '{' {
			member = "hyper_params"
		}
		set, all = append(set, s), append(all, quote(member)+":"+value)
	}
	return set, "{" + strings.Join(all, ",") + "}"
}

func (d *drawer) modelCreate() (log.Body, api.Request) {
	b := &log.ModelCreate{ID: d.id(), Version: "v", Concepts: d.concepts()}
	if d.rarely(2) {
		b.Name = d.name()
	}
	var config string
	b.Config, config = d.config()
	return b, api.Request{Method: "POST", Path: "/v2/models", Body: []byte(`{"model":{"id":` + quote(b.ID) + `,"name":` + quote(b.Name) +
		`,"output_info":{"data":{"concepts":` + quoteAll(append([]string{}, b.Concepts...)) + `},"output_config":` + config + `}}}`)}
}

func (d *drawer) modelPatch() (log.Body, api.Request) {
	b := &log.ModelPatch{Model: d.model, Version: fmt.Sprint("p", d.serial)}
	name := ""
	if d.rarely(2) {
		name = d.name()
		b.Name = &name
	}
	if b.Add = d.concepts(); len(b.Add) > 10 {
		b.Add = append(b.Add, "k5000", "k5001") // with the concepts that the model has, too many in any case
	}
	var config string
	b.Config, config = d.config()
	return b, api.Request{Method: "PATCH", Path: "/v2/models", Body: []byte(`{"action":"merge","models":[{"id":"m","name":` + quote(name) +
		`,"output_info":{"data":{"concepts":` + quoteAll(append([]string{}, b.Add...)) + `},"output_config":` + config + `}}]}`)}
}

func (d *drawer) modelDelete() (log.Body, api.Request) {
	return &log.ModelDelete{Model: log.Dot{Writer: 9, Seq: uint64(d.Uint32())}}, call("DELETE", "/v2/models", `{"ids":["no such model"]}`)
}

func (d *drawer) versionTrain() (log.Body, api.Request) {
	d.serial++
	return &log.VersionTrain{Model: d.model, Version: fmt.Sprint("t", d.serial)}, call("POST", "/v2/models/m/versions", "")
}

func (d *drawer) versionDelete() (log.Body, api.Request) {
	var answer struct {
		Model struct {
			Version struct{ ID string } `json:"model_version"`
		}
	}
	if err := json.Unmarshal(d.mustServe("POST", "/v2/models/m/versions", "").Body, &answer); err != nil {
		d.w.t.Fatal(err)
	}
	id := answer.Model.Version.ID
	return &log.VersionDelete{Model: d.model, Version: id}, call("DELETE", "/v2/models/m/versions/"+id, "")
}

func (d *drawer) workflowCreate() (log.Body, api.Request) {
	const general = "aaa03c23b3724a16a56b629203edc62c"
	b := &log.WorkflowCreate{ID: d.id()}
	var nodes []string
	for range d.IntN(7) {
		n := log.WorkflowNode{ID: pick(d, "n", "é", "n"), Model: general}
		if d.rarely(8) {
			n.ID = d.text()
		}
		if d.rarely(20) {
			n.Model = "\x1b" + d.text()
		}
		if d.rarely(20) {
			n.Version = "\x00"
		}
		b.Nodes = append(b.Nodes, n)
		nodes = append(nodes, fmt.Sprintf(`{"id":%s,"model":{"id":%s,"model_version":{"id":%s}}}`, quote(n.ID), quote(n.Model), quote(n.Version)))
	}
	return b, api.Request{Method: "POST", Path: "/v2/workflows", Body: []byte(`{"workflows":[{"id":` + quote(b.ID) + `,"nodes":[` + strings.Join(nodes, ",") + `]}]}`)}
}

func (d *drawer) workflowDelete() (log.Body, api.Request) {
	d.serial++
	d.mustServe("POST", "/v2/workflows", fmt.Sprintf(`{"workflows":[{"id":"w%d","nodes":[{"model":{"id":"m"}}]}]}`, d.serial))
	return &log.WorkflowDelete{Workflow: log.Dot{Writer: 9, Seq: uint64(d.Uint32())}}, call("DELETE", fmt.Sprintf("/v2/workflows/w%d", d.serial), "")
}

// comment returns JSON for a feedback.
func (d *drawer) comment() string {
	return pick(d, "{}", `{"id":"a"}`, "[]", "null", "1", `"x"`, "[1]", "{", `{"a":"`+strings.Repeat("a", 64<<10-10+d.IntN(4))+`"}`, "\xff",
		`{"feedback_info":{"event_type":"annotation"}}`, `{"id":`+quote(d.id())+`,"feedback_info":{"a":`+quote(d.text())+`}}`, `{"feedback_info":{}}`,
		`{"feedback_info":[]}`, `{"feedback_info":[1]}`, `{"id":1,"feedback_info":{"a":1}}`, `{"id":null,"feedback_info":{"a":null}}`,
		`{"feedback_info":{"a":"`+strings.Repeat("a", 64<<10-28+d.IntN(4))+`"}}`)
}

func (d *drawer) feedback() (log.Body, api.Request) {
	text := d.comment()
	return &log.Feedback{Model: "m", JSON: []byte(text)}, api.Request{Method: "POST", Path: "/v2/models/m/feedback", Body: []byte(`{"input":` + text + `}`)}
}

func (d *drawer) searchFeedback() (log.Body, api.Request) {
	text := d.comment()
	return &log.Feedback{JSON: []byte(text)}, api.Request{Method: "POST", Path: "/v2/searches/feedback", Body: []byte(`{"input":` + text + `}`)}
}

// evaluated returns the manifest of a trained version of two concepts and three examples, with an evaluation. change may damage it.
func evaluated(t testing.TB, version string, change func(*catalog.Manifest, *train.Metrics)) []byte {
	t.Helper()
	head := train.Head{Concepts: []string{"a", "b"}, Weights: make([]float32, 2*predict.Dim), Bias: make([]float32, 2)}
	m := catalog.Manifest{Version: version, Inputs: make([]catalog.TrainingInput, 3)}
	metrics := train.UnevaluatedMetrics(&train.Problem{Concepts: head.Concepts})
	metrics.Folds, metrics.Inputs = 2, 3
	metrics.Weakest = []train.Weakness{{Example: 2, Concept: 1, Label: train.True, Value: 0.5, Labelled: 1, LabelledValue: 0.5}}
	var err error
	if m.Head, err = head.MarshalBinary(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&m, metrics)
	}
	if m.Metrics == nil {
		if m.Metrics, err = metrics.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
	}
	return m.Marshal()
}

// TestPushOfFalseEvaluation: the origin refuses the result of a training if its head or its evaluation cannot be read, or if the evaluation
// names examples and concepts that the version does not have. The log had results that come back after a restore, so it keeps these.
func TestPushOfFalseEvaluation(t *testing.T) {
	w := newWorld(t, nil)
	r := w.join(w.App, w.Key)
	ops := r.next(&log.ModelCreate{ID: "m", Concepts: []string{"a", "b"}})
	r.mustPush(ops)
	model := ops[0].Dot
	n := 0
	result := func(change func(*catalog.Manifest, *train.Metrics)) *wire.Verdict {
		n++
		version := fmt.Sprint("v", n)
		trained := r.next(&log.VersionTrain{Model: model, Version: version})
		trained = append(trained, r.next(&log.VersionResult{
			Model: model, Version: version, Train: trained[0].Dot, Code: catalog.VersionTrained, Manifest: r.upload(evaluated(t, version, change)),
		})...)
		out := r.mustPush(trained)
		if len(out.Verdicts) == 0 {
			return nil
		}
		return &out.Verdicts[0]
	}
	if v := result(nil); v != nil {
		t.Errorf("a valid result: %+v", v)
	}
	weak := func(change func(*train.Weakness)) func(*catalog.Manifest, *train.Metrics) {
		return func(_ *catalog.Manifest, m *train.Metrics) { change(&m.Weakest[0]) }
	}
	for name, change := range map[string]func(*catalog.Manifest, *train.Metrics){
		"example -1":         weak(func(w *train.Weakness) { w.Example = -1 }),
		"example 3":          weak(func(w *train.Weakness) { w.Example = 3 }),
		"concept -1":         weak(func(w *train.Weakness) { w.Concept = -1 }),
		"concept 2":          weak(func(w *train.Weakness) { w.Concept = 2 }),
		"labelled -1":        weak(func(w *train.Weakness) { w.Labelled = -1 }),
		"labelled 2":         weak(func(w *train.Weakness) { w.Labelled = 2 }),
		"one concept":        func(_ *catalog.Manifest, m *train.Metrics) { m.Concepts = m.Concepts[:1] },
		"small confusion":    func(_ *catalog.Manifest, m *train.Metrics) { m.Confusion = m.Confusion[:2] },
		"short row":          func(_ *catalog.Manifest, m *train.Metrics) { m.Confusion[0] = m.Confusion[0][:1] },
		"negative count":     func(_ *catalog.Manifest, m *train.Metrics) { m.Confusion[0][0] = -1 },
		"negative positives": func(_ *catalog.Manifest, m *train.Metrics) { m.Concepts[0].Positives = -1 },
		"negative folds":     func(_ *catalog.Manifest, m *train.Metrics) { m.Folds = -1 },
		"more others":        func(_ *catalog.Manifest, m *train.Metrics) { m.Others = 4 },
		"long curve": func(_ *catalog.Manifest, m *train.Metrics) {
			m.Concepts[0].Curve = make([]train.CurvePoint, train.MaxCurve+1)
		},
		"negative step":         func(_ *catalog.Manifest, m *train.Metrics) { m.Concepts[0].Curve = []train.CurvePoint{{Found: -1}} },
		"an evaluation of text": func(m *catalog.Manifest, _ *train.Metrics) { m.Metrics = []byte("none") },
		"a head of text":        func(m *catalog.Manifest, _ *train.Metrics) { m.Head = []byte("none") },
	} {
		if v := result(change); v == nil || fold.Code(v.Code) != fold.Refused || v.Detail != "schema: invalid manifest of a model version" {
			t.Errorf("%s: %+v, want it refused", name, v)
		}
	}
}

// TestStoredFormIsRead: a log may have operations from before the rules for their form. Every call that reads them answers.
func TestStoredFormIsRead(t *testing.T) {
	w := newWorld(t, nil)
	w.input("a", "red.png")
	p, err := w.Engine.Origin(w.App)
	if err != nil {
		t.Fatal(err)
	}
	in, err := w.Input("a")
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := p.Submit(t.Context(), "", []log.Body{
		&log.WorkflowCreate{ID: "none"},
		&log.WorkflowCreate{ID: "six", Nodes: make([]log.WorkflowNode, 6)},
		&log.InputMeta{Input: in.Dot, Writes: []log.MetaWrite{{Action: log.MetaRemove, JSON: []byte(`"x"}]},"evil":`)}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Code != fold.OK {
			t.Fatalf("verdicts %+v", verdicts)
		}
	}
	picture := `{"inputs":[{"data":{"image":{"url":"http://pictures.test/red.png"}}}]}`
	for path, want := range map[string]int{
		"POST /v2/workflows/none/results": 400, "POST /v2/workflows/six/results": 400, "GET /v2/workflows": 200, "GET /v2/inputs": 200, "GET /v2/inputs/a": 200,
	} {
		method, path, _ := strings.Cut(path, " ")
		got := w.Serve(t, api.Request{Method: method, Path: path, Body: []byte(picture)})
		var d jsonio.Doc
		if err := d.Parse(got.Body, jsonio.Limits{}); err != nil || got.Status != want || strings.Contains(string(got.Body), "evil") {
			t.Errorf("%s = %d %s, %v", path, got.Status, got.Body, err)
		}
	}
}
