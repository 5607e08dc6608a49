package api_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
)

// records are the records of the interface with their members, as its strictest clients define them: Python 2.3.0 to 2.4.0 fail on any
// other member, at any depth. After a colon follows the record in a member, or * for any value.
var records = parseRecords(`
Status               code description details stack_trace percent_completed time_remaining req_id internal_details
Concept              id name value created_at language app_id definition
Model                id name created_at app_id output_info:OutputInfo model_version:ModelVersion display_name
OutputInfo           data:Data output_config:OutputConfig message type type_ext
OutputConfig         concepts_mutually_exclusive closed_environment existing_model_id language hyper_parameters max_concepts min_value select_concepts:Concept training_timeout
ModelVersion         id created_at status:Status active_concept_count metrics:EvalMetrics total_input_count pretrained_model_config
EvalMetrics          status:Status summary:Summary confusion_matrix:Confusion cooccurrence_matrix label_counts:LabelCounts binary_metrics:BinaryMetrics test_set:TestInput
Summary              top1_accuracy top5_accuracy macro_avg_roc_auc macro_std_roc_auc macro_avg_f1_score macro_std_f1_score macro_avg_precision macro_avg_recall
Confusion            matrix:Cell concept_ids
Cell                 predicted actual value
LabelCounts          positive_label_counts:LabelCount
LabelCount           concept_name count
BinaryMetrics        num_pos num_neg num_tot roc_auc f1 concept:Concept roc_curve:ROC precision_recall_curve:PrecisionRecall
ROC                  fpr tpr thresholds
PrecisionRecall      recall precision thresholds
TestInput            id url predicted_concepts:Concept ground_truth_concepts:Concept
Input                id data:Data feedback_info created_at modified_at status:Status
InputCount           processed to_process errors processing
Data                 image:Image video:Video concepts:Concept face metadata:* geo:Geo colors:Color clusters embeddings:Embedding focus regions frames:Frame
Image                url base64 crop allow_duplicate_url
Video                url base64 allow_duplicate_url
Geo                  geo_point:GeoPoint geo_limit geo_box
GeoPoint             longitude latitude
Color                raw_hex w3c:W3C value
W3C                  hex name
Embedding            vector num_dimensions
Frame                frame_info:FrameInfo data:Data
FrameInfo            index time
Output               id status:Status created_at model:Model input:Input data:Data
Hit                  score input:Input
Workflow             id app_id created_at nodes:Node
Node                 id model:Model
WorkflowResult       id status:Status created_at model:Model input:Input outputs:Output
`)

// answers are the members of the answers of each call, next to status.
var answers = parseRecords(`
POST /models/{model_id}/outputs                                outputs:Output
POST /models/{model_id}/versions/{version_id}/outputs          outputs:Output
POST /inputs                                                   inputs:Input
GET /inputs                                                    inputs:Input
PATCH /inputs                                                  inputs:Input
DELETE /inputs
GET /inputs/status                                             counts:InputCount
GET /inputs/{input_id}                                         input:Input
DELETE /inputs/{input_id}
PATCH /inputs/{input_id}/data/concepts                         input:Input
GET /inputs/{input_id}/outputs                                 outputs:Output
PATCH /inputs/{input_id}/outputs                               outputs:Output
POST /models/searches                                          models:Model
GET /models                                                    models:Model
POST /models                                                   model:Model
PATCH /models                                                  models:Model
DELETE /models
GET /models/{model_id}                                         model:Model
DELETE /models/{model_id}
GET /models/{model_id}/output_info                             model:Model
PATCH /models/{model_id}/output_info/data/concepts             model:Model
GET /models/{model_id}/inputs                                  inputs:Input
POST /models/{model_id}/feedback
POST /models/{model_id}/versions                               model:Model
GET /models/{model_id}/versions                                model_versions:ModelVersion
GET /models/{model_id}/versions/{version_id}                   model_version:ModelVersion
DELETE /models/{model_id}/versions/{version_id}
GET /models/{model_id}/versions/{version_id}/output_info       model:Model
GET /models/{model_id}/versions/{version_id}/inputs            inputs:Input
POST /models/{model_id}/versions/{version_id}/feedback
POST /models/{model_id}/versions/{version_id}/metrics          model_version:ModelVersion
GET /models/{model_id}/versions/{version_id}/metrics           model_version:ModelVersion
POST /concepts/searches                                        concepts:Concept
POST /concepts                                                 concepts:Concept
GET /concepts                                                  concepts:Concept
PATCH /concepts                                                concepts:Concept
GET /concepts/{concept_id}                                     concept:Concept
POST /searches                                                 id hits:Hit
POST /searches/feedback
POST /workflows                                                workflows:Workflow
GET /workflows                                                 workflows:Workflow
GET /public_workflows                                          workflows:Workflow
GET /workflows/{workflow_id}                                   workflow:Workflow
DELETE /workflows/{workflow_id}
POST /workflows/{workflow_id}/results                          workflow:Workflow results:WorkflowResult
`)

// lenient are the calls of the interface that strict clients do not make. Their readers take single members.
var lenient = []string{
	"POST /token", "POST /login", "POST /users/{user_id}/apps", "GET /users/{user_id}/apps", "GET /users/{user_id}/apps/{app_id}",
	"POST /users/{user_id}/keys", "GET /users/{user_id}/keys", "GET /scopes", "GET /myscopes",
}

// ours are the calls that only this service has.
var ours = []string{
	"POST /models/{model_id}/activations", "GET /inputs/{input_id}/thumbnail", "GET /inputs/{input_id}/rendition",
	"GET /inputs/{input_id}/source", "GET /inputs/{input_id}/history", "GET /inputs/{input_id}/duplicates", "GET /duplicates", "GET /models/{model_id}/training_set",
	"GET /models/{model_id}/next", "GET /models/{model_id}/versions/{version_id}/comparison", "GET /concepts/usage",
	"DELETE /concepts/{concept_id}", "POST /searches/summary",
	"GET /sync/status", "GET /sync/outbox", "GET /sync/devices", "GET /sync/history", "GET /sync/conflicts", "PATCH /sync/conflicts/{conflict_id}", "DELETE /sync/conflicts/{conflict_id}",
}

// shown are the members that only this service has, by the word of show that asks for them.
var shown = map[string]string{
	"digest": "ModelVersion.digest", "progress": "ModelVersion.progress", "sha256": "Image.sha256", "sightline": "EvalMetrics.sightline",
	"taken": "Data.taken",
}

// settings are the members that strict clients do not know and that other clients of the interface store with a model and read back.
var settings = []string{"OutputConfig.hyper_params", "OutputConfig.sample_ms"}

// parseRecords reads a table of records with their members.
func parseRecords(table string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(table)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), "  ")
		members := map[string]string{}
		for _, member := range strings.Fields(rest) {
			member, record, _ := strings.Cut(member, ":")
			members[member] = record
		}
		all[name] = members
	}
	return all
}

// checkMembers calls report for each member of value, a record or a list of records, that its definition lacks.
func checkMembers(value any, name string, members map[string]string, report func(member string)) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			checkMembers(element, name, members, report)
		}
	case map[string]any:
		for member, inner := range v {
			record, ok := members[member]
			switch {
			case !ok:
				report(name + "." + member)
			case record != "*":
				checkMembers(inner, record, records[record], report)
			}
		}
	}
}

// askedFor returns the members that a request asks for with show.
func askedFor(t *testing.T, r *api.Request) (members []string) {
	t.Helper()
	query, err := url.ParseQuery(r.Query)
	if err != nil {
		return nil
	}
	var body struct{ Show []string }
	_ = json.Unmarshal(r.Body, &body) // not every body is an object
	for _, word := range slices.Concat(body.Show, strings.Split(strings.Join(query["show"], ","), ",")) {
		members = append(members, shown[word])
	}
	return members
}

// TestAnswersAreDefined compares each member of each answer in the transcripts with the definitions of the strictest clients, in both
// forms of app_id. Only an answer to a request that asks for a member of ours may have it.
func TestAnswersAreDefined(t *testing.T) {
	covered := map[string]bool{}
	for _, dir := range []string{"testdata", filepath.Join("testdata", "released")} {
		files, err := fs.Glob(os.DirFS(dir), "*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no transcripts: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			transcript, err := apitest.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for i := range transcript.Exchanges {
				checkDefined(t, file, &transcript.Exchanges[i], covered)
			}
		}
	}
	for endpoint := range answers {
		if !covered[endpoint] {
			t.Errorf("no transcript has a success of %s", endpoint)
		}
	}
}

// checkDefined checks an answer in both forms of app_id, and adds its endpoint to covered if it is a success.
func checkDefined(t *testing.T, file string, e *apitest.Exchange, covered map[string]bool) {
	t.Helper()
	endpoint := api.EndpointOf(e.Request.Method, e.Request.Path)
	if e.Body == "" || slices.Contains(ours, endpoint) || slices.Contains(lenient, endpoint) {
		return
	}
	members := maps.Clone(answers[endpoint]) // of an unknown path: none
	if members == nil {
		members = map[string]string{}
		if list := api.ListOf(e.Request.Method, e.Request.Path); list != "" {
			members[list] = ""
		}
	}
	members["status"] = "Status"
	covered[endpoint] = covered[endpoint] || e.Status == 200
	optional := slices.Concat(settings, askedFor(t, &e.Request))
	for _, body := range []string{e.Body, apitest.InMain(e.Body)} {
		form := "main"
		if body == e.Body && endpoint == "POST /concepts/searches" {
			form, optional = "null", append(optional, "Concept.updated_at") // the interface's description has it
		}
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatalf("%s: %s %s: %v", file, e.Request.Method, e.Request.Path, err)
		}
		checkMembers(value, endpoint, members, func(member string) {
			if !slices.Contains(optional, member) {
				t.Errorf("%s: %s %s?%s: %s is outside the definitions, form %s. Strict clients fail on members that they do not know: "+
					"answer with it only if the request asks for it, by a word of show or a member of its own",
					file, e.Request.Method, e.Request.Path, e.Request.Query, member, form)
			}
		})
		optional = slices.DeleteFunc(optional, func(member string) bool { return member == "Concept.updated_at" })
	}
}

// TestEveryCallIsDefined checks that each call has either the definition of its answer or a reason why it has none.
func TestEveryCallIsDefined(t *testing.T) {
	defined := slices.Concat(slices.Collect(maps.Keys(answers)), lenient, ours)
	slices.Sort(defined)
	var all []string
	for _, e := range api.Endpoints() {
		all = append(all, e.Method+" "+e.Path)
	}
	slices.Sort(all)
	if !slices.Equal(defined, all) {
		t.Errorf("the definitions have %q, the routes %q", defined, all)
	}
}
