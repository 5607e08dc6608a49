package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// defined has the keys of metrics in the last definition of the API, EvalMetrics and its parts. Paths omit arrays. All our additions are
// under the key sightline.
var defined = strings.Fields(`
	status status.code status.description status.details
	summary summary.macro_avg_roc_auc summary.macro_std_roc_auc summary.macro_avg_f1_score
	summary.macro_std_f1_score summary.macro_avg_precision summary.macro_avg_recall
	confusion_matrix confusion_matrix.matrix confusion_matrix.matrix.predicted
	confusion_matrix.matrix.actual confusion_matrix.matrix.value confusion_matrix.concept_ids
	label_counts label_counts.positive_label_counts
	label_counts.positive_label_counts.concept_name label_counts.positive_label_counts.count
	binary_metrics binary_metrics.num_pos binary_metrics.num_neg binary_metrics.num_tot
	binary_metrics.roc_auc binary_metrics.f1
	binary_metrics.concept binary_metrics.concept.id binary_metrics.concept.name
	binary_metrics.concept.value binary_metrics.concept.created_at
	binary_metrics.concept.language binary_metrics.concept.app_id
	binary_metrics.roc_curve binary_metrics.roc_curve.fpr binary_metrics.roc_curve.tpr
	binary_metrics.roc_curve.thresholds
	binary_metrics.precision_recall_curve binary_metrics.precision_recall_curve.recall
	binary_metrics.precision_recall_curve.precision binary_metrics.precision_recall_curve.thresholds
	test_set test_set.id test_set.url
	test_set.predicted_concepts test_set.predicted_concepts.id test_set.predicted_concepts.name
	test_set.predicted_concepts.value test_set.predicted_concepts.app_id
	test_set.ground_truth_concepts test_set.ground_truth_concepts.id test_set.ground_truth_concepts.name
	test_set.ground_truth_concepts.value test_set.ground_truth_concepts.app_id
	sightline`)

// keysOf returns the paths of all keys in a value, without those under the key sightline.
func keysOf(value any, path string) (keys []string) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			at := strings.TrimPrefix(path+"."+key, ".")
			keys = append(keys, at)
			if at != "sightline" {
				keys = append(keys, keysOf(inner, at)...)
			}
		}
	case []any:
		for _, inner := range v {
			keys = append(keys, keysOf(inner, path)...)
		}
	}
	return keys
}

// evaluatedVersion has the members of an answer that the tests read.
type evaluatedVersion struct {
	Inputs  int `json:"total_input_count"`
	Metrics struct {
		Concepts []struct {
			Positives int                                               `json:"num_pos"`
			ROC       struct{ FPR, TPR, Thresholds []float64 }          `json:"roc_curve"`
			PR        struct{ Recall, Precision, Thresholds []float64 } `json:"precision_recall_curve"`
		} `json:"binary_metrics"`
		Confusion struct {
			Matrix []struct{ Predicted, Actual string } `json:"matrix"`
		} `json:"confusion_matrix"`
		Ours struct {
			Folds, Inputs int
			Others        int     `json:"other_inputs"`
			Promised      float64 `json:"promised_precision"`
			Counts        []int   `json:"confusion_counts"`
			Concepts      []struct {
				ID        string
				CutOff    float64 `json:"cut_off"`
				Precision *float64
				Supported *float64 `json:"supported_precision"`
			}
		} `json:"sightline"`
	}
}

// ofHeat trains a model on eight pictures with its concepts and two with another one. It returns the world, a function for calls and the
// path of the version.
func ofHeat(t *testing.T) (*apitest.World, func(method, path, body string) []byte, string) {
	t.Helper()
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, nil)
	ask := func(method, path, body string) []byte {
		t.Helper()
		at, query, _ := strings.Cut(path, "?")
		r := w.Serve(t, api.Request{Method: method, Path: at, Query: query, Body: []byte(body)})
		if r.Status != 200 {
			t.Fatalf("%s %s = %d %s", method, path, r.Status, r.Body)
		}
		return slices.Clone(r.Body)
	}
	var inputs []string
	for i := range 10 {
		concept := []string{"warm", "cold"}[i%2]
		if i > 7 {
			concept = "other"
		}
		inputs = append(inputs, fmt.Sprintf(`{"id":"i%d","data":{"image":{"url":"http://pictures.test/half.png","crop":[%v,0,%v,1],"allow_duplicate_url":true},"concepts":[{"id":%q}]}}`,
			i, float64(i%2*(i+1))/16, 1-float64((1-i%2)*(i+1))/16, concept))
	}
	ask("POST", "/v2/inputs", `{"inputs":[`+strings.Join(inputs, ",")+`]}`)
	w.Step(t, time.Second)
	ask("POST", "/v2/models", `{"model":{"id":"heat","output_info":{"data":{"concepts":[{"id":"warm"},{"id":"cold"}]}}}}`)
	var answer struct {
		Model struct {
			Version struct{ ID string } `json:"model_version"`
		}
	}
	if err := json.Unmarshal(ask("POST", "/v2/models/heat/versions", ""), &answer); err != nil {
		t.Fatal(err)
	}
	w.Step(t, time.Second)
	return w, ask, "/v2/models/heat/versions/" + answer.Model.Version.ID
}

// TestMetricsAreDefined checks that an evaluation has only defined keys, that its curves have several points, and that all numbers come
// from one set of inputs.
func TestMetricsAreDefined(t *testing.T) {
	_, ask, version := ofHeat(t)
	body := ask("GET", version+"/metrics?show=sightline", "")
	var raw struct {
		Version struct{ Metrics map[string]any } `json:"model_version"`
	}
	var got struct {
		Version evaluatedVersion `json:"model_version"`
	}
	if err := errors.Join(json.Unmarshal(body, &raw), json.Unmarshal(body, &got)); err != nil {
		t.Fatal(err)
	}
	for _, key := range keysOf(raw.Version.Metrics, "") {
		if !slices.Contains(defined, key) {
			t.Errorf("%s is outside the definitions", key)
		}
	}
	m := &got.Version.Metrics
	for _, c := range m.Concepts {
		if n := len(c.PR.Thresholds); n < 2 || len(c.PR.Recall) != n || len(c.PR.Precision) != n || c.PR.Recall[n-1] != 1 {
			t.Errorf("precision-recall curve %v", c.PR)
		}
		if n := len(c.ROC.Thresholds); n < 2 || len(c.ROC.FPR) != n || len(c.ROC.TPR) != n || c.ROC.FPR[n-1] != 1 || c.ROC.TPR[n-1] != 1 {
			t.Errorf("ROC curve %v", c.ROC)
		}
	}
	sum := 0
	for _, n := range m.Ours.Counts {
		sum += n
	}
	if got.Version.Inputs != 10 || m.Ours.Inputs != 10 || m.Ours.Others != 2 || len(m.Ours.Counts) != len(m.Confusion.Matrix) || sum < 10 {
		t.Errorf("%d inputs, %d evaluated and %d others, %v counted: want 10 and 2 of one set", got.Version.Inputs, m.Ours.Inputs, m.Ours.Others, m.Ours.Counts)
	}
	for _, c := range m.Ours.Concepts {
		if m.Ours.Promised != 0.9 || c.CutOff == 0 || c.Precision == nil || c.Supported == nil || *c.Supported > 0.9 {
			t.Errorf("%+v: four pictures cannot support a precision of %v", c, m.Ours.Promised)
		}
	}
}

// strayRows are weakest examples with indexes of no example or no concept of the heat model, and one whose value does not contradict its
// label.
const strayRows = `[{"example":-1,"concept":0,"label":1,"value":0.5},{"example":1000000,"concept":0,"label":1,"value":0.5},` +
	`{"example":0,"concept":-1,"label":1,"value":0.5},{"example":0,"concept":2,"label":1,"value":0.5},` +
	`{"example":0,"concept":0,"label":1,"value":0.5,"said":-1,"said_value":0.5},{"example":0,"concept":0,"label":1,"value":0.5,"said":2,"said_value":0.5},` +
	`{"example":0,"concept":0,"label":1,"value":0.2,"said":1,"said_value":0.6}]`

// TestMetricsOfOlderVersions reads evaluations that older programs stored. They may have rows with indexes out of range, which an origin
// refuses now. The answer has no such row.
func TestMetricsOfOlderVersions(t *testing.T) {
	for _, tt := range []struct{ name, stored, want string }{
		{
			"without cut-offs", `"evaluated":true,"positives":4,"negatives":4,"unrelated":0`,
			`"roc_curve":{"fpr":[],"tpr":[],"thresholds":[]},"precision_recall_curve":{"recall":[0.5],"precision":[1],"thresholds":[0.5]}}`,
		},
		{
			"with a curve", `"evaluated":true,"positives":4,"negatives":4,"unrelated":0,"cut_off":0.25,"at_cut_off":{"precision":0.75,"recall":1},"roc":[[0,0],[0,0.5],[1,1]]`,
			`"roc_curve":{"fpr":[0,0,1],"tpr":[0,0.5,1],"thresholds":[]},"precision_recall_curve":{"recall":[0.5],"precision":[1],"thresholds":[0.5]}}`,
		},
	} {
		w, ask, version := ofHeat(t)
		p, err := w.Engine.Partition(w.App)
		if err != nil {
			t.Fatal(err)
		}
		v := p.View()
		model, err := v.Model("heat")
		if err != nil {
			t.Fatal(err)
		}
		app := v.AppID()
		var manifest catalog.Manifest
		err = v.Versions(model.Dot, func(got catalog.Version) bool {
			if got.Code == catalog.VersionTrained {
				manifest, err = v.Manifest(&got)
			}
			return err == nil
		})
		if err = errors.Join(err, v.Close()); err != nil {
			t.Fatal(err)
		}
		concept := `{"roc_auc":1,"precision":1,"recall":0.5,"f1":0.75,` + tt.stored + `}`
		manifest.Version = strings.Repeat("f", 32)
		manifest.Metrics = []byte(`{"folds":2,"concepts":[` + concept + `,` + concept + `],"macro":{"roc_auc":1,"precision":1,"recall":0.5,"f1":0.75},` +
			`"confusion":[[2,1,1],[0,4,0],[0,0,2]],"weakest":` + strayRows + `}`)
		stored := manifest.Marshal()
		_, span, err := p.SubmitSpan(t.Context(), partition.Caller{By: "key"}, []log.Body{&log.VersionTrain{Model: model.Dot, Version: manifest.Version}}, nil)
		if err == nil {
			_, err = p.Submit(t.Context(), "key", []log.Body{&log.VersionResult{
				Model: model.Dot, Version: manifest.Version, Train: log.Dot{Writer: span.Writer, Seq: span.Last}, Code: 21100, Manifest: blob.Sum(stored),
			}}, func(b *kv.Batch) { catalog.PutObject(b, app, stored) })
		}
		if err != nil {
			t.Fatal(err)
		}
		body := string(ask("GET", version[:strings.LastIndex(version, "/")+1]+manifest.Version+"/metrics?show=sightline", ""))
		for _, want := range []string{tt.want, `"total_input_count":10`, `"inputs":10,"other_inputs":2,"min_checked_pictures":4,"concepts":[`, `"confusion_counts":[2,1,1,4,2]`, `"test_set":[]`} {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %s in %s", tt.name, want, body)
			}
		}
	}
}
