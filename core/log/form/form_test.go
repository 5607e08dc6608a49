package form_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/form"
	"github.com/sightline-dev/sightline/core/log/logtest"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// badIDs are invalid as ids of new things.
var badIDs = []string{"\x1b[2J", "a\x00", "\u0085", "\xff", strings.Repeat("a", 129), ".", "..", "searches", "status", "usage"}

// put returns a function that makes a body of each text.
type put = func(text string) log.Body

// TestCheckTexts checks the ids, names and URLs of all kinds of operations.
func TestCheckTexts(t *testing.T) {
	picture := "https://example.com/a.png"
	tests := []struct {
		name      string
		body      put
		good, bad []string
	}{
		{"input", func(s string) log.Body { return &log.InputCreate{ID: s, URL: picture} }, []string{"", "a", "é", strings.Repeat("a", 128)}, badIDs},
		{
			"url", func(s string) log.Body { return &log.InputCreate{ID: "a", URL: s} },
			[]string{picture, "HTTP://x/é", "http://x/" + strings.Repeat("a", 8183)},
			[]string{"", "javascript:alert(1)", "file:///etc/passwd", "data:,x", "//x/a", "http://", "http://x/\x1b", "http://x/\xff", "http://x/" + strings.Repeat("a", 8184)},
		},
		{"label", func(s string) log.Body {
			return &log.InputLabels{Labels: []log.Label{{Concept: s, Value: log.True}}}
		}, []string{"a", "ai_red"}, append([]string{"", "ai_\x1b"}, badIDs...)},
		{
			"removed label", func(s string) log.Body { return &log.InputLabels{Labels: []log.Label{{Concept: s}}} },
			[]string{"a", "status", "\x1b", strings.Repeat("a", 1024)},
			[]string{"", "\xff", strings.Repeat("a", 1025)},
		},
		{
			"edit", func(s string) log.Body {
				return &log.OutputsPatch{Edits: []log.OutputEdit{{Concept: s, Removed: true}}}
			},
			[]string{"a", "ai_red"},
			append([]string{""}, badIDs...),
		},
		{"concept", func(s string) log.Body { return &log.ConceptCreate{ID: s} }, []string{"a"}, append([]string{"", "ai_red"}, badIDs...)},
		{
			"concept's name", func(s string) log.Body { return &log.ConceptCreate{Name: s} },
			[]string{"a", "status", strings.Repeat("a", 1024)},
			[]string{"", "a\n", "\xff", strings.Repeat("a", 1025)},
		},
		{
			"concept's language", func(s string) log.Body { return &log.ConceptCreate{ID: "a", Language: s} },
			[]string{"", "en", "zh-TW"},
			[]string{"zh-tw", "EN", "tlh", "\x1b"},
		},
		{"renamed concept", func(s string) log.Body { return &log.ConceptName{ID: s, Name: "a"} }, []string{"a", "status"}, []string{"", "ai_red", "\xff"}},
		{"deleted concept", func(s string) log.Body { return &log.ConceptDelete{ID: s} }, []string{"a", "status"}, []string{"", "ai_red", "\xff"}},
		{"another name", func(s string) log.Body { return &log.ConceptName{ID: "a", Name: s} }, []string{"a"}, []string{"", "\x1b", strings.Repeat("a", 1025)}},
		{"model", func(s string) log.Body { return &log.ModelCreate{ID: s} }, []string{"", "a", "ai_red"}, badIDs},
		{"version", func(s string) log.Body { return &log.ModelCreate{ID: "a", Version: s} }, []string{"", "a"}, badIDs},
		{"model's name", func(s string) log.Body { return &log.ModelCreate{Name: s} }, []string{"", "a"}, []string{"\x1b", "\xff"}},
		{"model's concept", func(s string) log.Body { return &log.ModelCreate{Concepts: []string{s}} }, []string{"a", "ai_red"}, append([]string{""}, badIDs...)},
		{"added concept", func(s string) log.Body { return &log.ModelPatch{Add: []string{s}} }, []string{"a"}, append([]string{""}, badIDs...)},
		{"removed concept", func(s string) log.Body { return &log.ModelPatch{Remove: []string{s}} }, []string{"a", "\x1b"}, []string{"", "\xff"}},
		{"renamed model", func(s string) log.Body { return &log.ModelPatch{Name: &s} }, []string{"a"}, []string{"", "\x1b"}},
		{"patched version", func(s string) log.Body { return &log.ModelPatch{Version: s} }, []string{"", "a"}, badIDs},
		{"training", func(s string) log.Body { return &log.VersionTrain{Version: s} }, []string{"", "a"}, badIDs},
		{"result", func(s string) log.Body { return &log.VersionResult{Version: s} }, []string{"a", "status"}, []string{"", "\xff"}},
		{"detail", func(s string) log.Body { return &log.VersionResult{Version: "a", Detail: s} }, []string{"", "no"}, []string{"\x1b", "\xff", strings.Repeat("a", 1025)}},
		{"deleted version", func(s string) log.Body { return &log.VersionDelete{Version: s} }, []string{"a", "status"}, []string{"", "\xff"}},
		{"workflow", func(s string) log.Body {
			return &log.WorkflowCreate{ID: s, Nodes: []log.WorkflowNode{{ID: "a", Model: "m"}}}
		}, []string{"", "a"}, badIDs},
		{"node", func(s string) log.Body { return &log.WorkflowCreate{Nodes: []log.WorkflowNode{{ID: s, Model: "m"}}} }, []string{"a"}, append([]string{""}, badIDs...)},
		{"node's model", func(s string) log.Body { return &log.WorkflowCreate{Nodes: []log.WorkflowNode{{ID: "a", Model: s}}} }, []string{"m", "status"}, []string{"", "\x1b", "\xff"}},
		{"node's version", func(s string) log.Body {
			return &log.WorkflowCreate{Nodes: []log.WorkflowNode{{ID: "a", Model: "m", Version: s}}}
		}, []string{"", "v"}, []string{"\x1b", "\xff"}},
		{"feedback's model", func(s string) log.Body { return &log.Feedback{Model: s, JSON: []byte("{}")} }, []string{"m"}, []string{"", "\x1b", "\xff"}},
		{
			"feedback", func(s string) log.Body { return &log.Feedback{Model: "m", JSON: []byte(s)} },
			[]string{"{}", `{"a":[1]}`},
			[]string{"", "[]", "null", "{", `{"a":"` + strings.Repeat("a", 64<<10) + `"}`},
		},
		{
			"feedback on a hit", func(s string) log.Body { return &log.Feedback{JSON: []byte(s)} },
			[]string{`{"feedback_info":{"a":1}}`, `{"id":"a","feedback_info":{"a":1}}`},
			[]string{"{}", `{"feedback_info":{}}`, `{"feedback_info":[1]}`, `{"id":1,"feedback_info":{"a":1}}`, `{"id":"\u0000","feedback_info":{"a":1}}`},
		},
		{
			"metadata", func(s string) log.Body { return &log.InputCreate{URL: picture, Meta: []byte(s)} },
			[]string{"1", `{"a":[1]}`, strings.Repeat("[", 32) + strings.Repeat("]", 32)},
			[]string{"", "{", "\xff", strings.Repeat("[", 33) + strings.Repeat("]", 33), "[" + strings.Repeat("1,", 2000) + "1]", `"` + strings.Repeat("a", 64<<10) + `"`},
		},
		{"download", func(s string) log.Body { return &log.InputFetched{Code: 30002, Detail: s} }, []string{"", "404"}, []string{"\x1b", "\xff"}},
		{"content type", func(s string) log.Body { return &log.InputFetched{Blob: blob.Hash{1}, ContentType: s} }, []string{"image/png"}, []string{"", "text/html", "image/png\r\n"}},
		{"no content", func(s string) log.Body { return &log.InputCreate{URL: picture, ContentType: s} }, []string{""}, []string{"image/png", "\x1b"}},
		{"refusal", func(s string) log.Body { return &log.Refused{Reason: s} }, []string{"", "scope: no"}, []string{"\x1b", "\xff", strings.Repeat("a", 1025)}},
	}
	for _, tt := range tests {
		for _, s := range tt.good {
			if why := form.Check(tt.body(s)); why != "" {
				t.Errorf("%s %.40q: %s", tt.name, s, why)
			}
		}
		for _, s := range tt.bad {
			if form.Check(tt.body(s)) == "" {
				t.Errorf("%s %.40q is accepted", tt.name, s)
			}
		}
	}
}

// TestCheckValues checks numbers, lists, metadata writes and settings.
func TestCheckValues(t *testing.T) {
	const picture = "https://example.com/a.png"
	labels := func(n int, v log.Value) log.Body {
		b := &log.InputLabels{}
		for i := range n {
			b.Labels = append(b.Labels, log.Label{Concept: fmt.Sprint(i), Value: v})
		}
		return b
	}
	meta := func(depth int, a log.MetaAction, json string) log.Body {
		w := log.MetaWrite{Action: a, JSON: []byte(json)}
		for range depth {
			w.Path = append(w.Path, "a")
		}
		return &log.InputMeta{Writes: []log.MetaWrite{w}}
	}
	writes := func(n int) log.Body {
		b := &log.InputMeta{}
		for i := range n {
			b.Writes = append(b.Writes, log.MetaWrite{Path: []string{fmt.Sprint(i)}, JSON: []byte("1")})
		}
		return b
	}
	set := func(name, json string) log.Body {
		return &log.ModelPatch{Config: []log.Setting{{Name: name, JSON: []byte(json)}}}
	}
	nodes := func(n int) log.Body {
		b := &log.WorkflowCreate{}
		for i := range n {
			b.Nodes = append(b.Nodes, log.WorkflowNode{ID: fmt.Sprint(i), Model: "m"})
		}
		return b
	}
	concepts := func(n int) log.Body {
		b := &log.ModelCreate{}
		for i := range n {
			b.Concepts = append(b.Concepts, fmt.Sprint(i))
		}
		return b
	}
	edit := func(v float32) log.Body { return &log.OutputsPatch{Edits: []log.OutputEdit{{Concept: "a", Value: v}}} }
	geo := func(x, y float64) log.Body { return &log.InputGeo{Geo: &log.Point{Longitude: x, Latitude: y}} }
	crop := func(c raster.Crop) log.Body { return &log.InputCreate{URL: picture, Crop: c} }
	nan := math.NaN()
	good := []log.Body{
		labels(1000, log.True), labels(3000, log.Removed), &log.InputLabels{},
		edit(0), edit(1), geo(180, -90), &log.InputGeo{}, crop(raster.Crop{Bottom: 1, Right: 0.5}),
		meta(0, log.MetaSet, "{}"), meta(31, log.MetaSet, "{}"), meta(32, log.MetaSet, "1"), meta(32, log.MetaRemove, ""), meta(1, log.MetaAppend, "[1]"),
		writes(2000), labels(10_000, log.Removed), &log.ModelPatch{Remove: slices.Repeat([]string{"a"}, 10_000)},
		nodes(1), nodes(5), concepts(5000),
		set("max_concepts", "200"), set("min_value", "0.5"), set("language", `"de"`), set("closed_environment", "true"), set("sample_ms", "5"),
		set("hyper_parameters", `"{\"precision\":0.9}"`), set("hyper_parameters", `"other"`), set("hyper_parameters", `{"precision":0.9,"a":{"b":[1]}}`), set("hyper_parameters", "{}"), set("select_concepts", `[{"id":"a"},{"name":"b"},{},null,[]]`),
		set("select_concepts", "{}"), set("existing_model_id", `"a"`), set("training_timeout", "0"),
		&log.ModelPatch{Config: []log.Setting{{Name: "min_value"}}},
		&log.Horizon{At: 1}, &log.NetworkSwitch{}, &log.InputDeleteAll{}, &log.Unknown{Kind: 999},
	}
	bad := []log.Body{
		labels(1001, log.False), labels(1, 3),
		edit(-0.1), edit(1.01), edit(float32(nan)), geo(181, 0), geo(0, nan), geo(math.Inf(1), 0), crop(raster.Crop{Bottom: 2, Right: 1}), crop(raster.Crop{Top: nan}),
		meta(32, log.MetaSet, "{}"), meta(33, log.MetaSet, "1"), meta(33, log.MetaRemove, ""), meta(0, log.MetaRemove, "1"), meta(0, log.MetaAppend, "1"), meta(0, 3, "1"),
		&log.InputMeta{Writes: []log.MetaWrite{{Path: []string{"\xff"}, JSON: []byte("1")}}},
		&log.InputMeta{Writes: []log.MetaWrite{{Path: []string{strings.Repeat("a", 64<<10)}, JSON: []byte("1")}}},
		nodes(0), nodes(6), concepts(5001),
		set("max_concepts", "201"), set("max_concepts", "-1"), set("max_concepts", `"1"`), set("min_value", "1.1"), set("language", `"tlh"`), set("closed_environment", "1"),
		set("sample_ms", "-1"), set("hyper_parameters", `"{\"precision\":0.4}"`), set("hyper_parameters", `{"precision":0.4}`), set("hyper_parameters", "[]"), set("select_concepts", "[1]"), set("select_concepts", `[{"id":1}]`),
		set("select_concepts", "["+strings.Repeat("{},", 1000)+"{}]"), set("existing_model_id", "1"), set("training_timeout", "-1"), set("color", "1"), set("min_value", ""),
		set("existing_model_id", `"`+strings.Repeat("a", 64<<10)+`"`),
		writes(2001), labels(10_001, log.Removed), &log.ModelPatch{Remove: slices.Repeat([]string{"a"}, 10_001)},
	}
	for i, b := range good {
		if why := form.Check(b); why != "" {
			t.Errorf("good %d, %T: %s", i, b, why)
		}
	}
	for i, b := range bad {
		if form.Check(b) == "" {
			t.Errorf("bad %d, %T is accepted", i, b)
		}
	}
}

// TestCheckNeverPanics checks random bodies of every kind.
func TestCheckNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op := logtest.Op(t)
		form.Check(op.Body)
	})
}

// TestLine makes texts of random bytes.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "s")) + rapid.String().Draw(t, "more")
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		got := form.Line(s, limit)
		if !form.IsText(got, limit) || form.IsText(s, limit) && got != s || utf8.ValidString(s) && len(s) <= limit && len(got) > len(s) {
			t.Fatalf("Line(%q, %d) = %q", s, limit, got)
		}
	})
}
