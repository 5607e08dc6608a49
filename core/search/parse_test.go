package search_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/index"
	"github.com/sightline-dev/sightline/core/jsonio"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/predict/raster"
	"github.com/sightline-dev/sightline/core/search"
)

// words contains the public names of concepts for tests.
type words map[string]string // language and name → id

func (w words) Resolve(name, code string) (string, bool) {
	id, ok := w[code+" "+name]
	return id, ok
}

var options = search.Options{
	Names:    words{"en dog": "ai_dog", "de Hund": "ai_dog", "en cat": "ai_cat"},
	Language: "en",
	CustomConcepts: func(name string) ([]string, error) {
		switch name {
		case "dog":
			return []string{"mine"}, nil
		case "broken":
			return nil, errBroken
		}
		return nil, nil
	},
	Hosted: func(url string) ([16]byte, bool) {
		return [16]byte{1}, url == "https://here/hosted" // other URLs are not hosted
	},
}

var errBroken = errors.New("broken")

func parse(t testing.TB, query string, o search.Options) (*search.Query, error) {
	t.Helper()
	var doc jsonio.Doc
	if err := doc.Parse([]byte(query), jsonio.Limits{}); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return search.Parse(doc.Root(), o)
}

func pattern(t testing.TB, text string) *index.Pattern {
	t.Helper()
	p, err := index.NewPattern([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParse(t *testing.T) {
	dog, cat := []string{"ai_dog", "mine"}, []string{"ai_cat"}
	all := func(c ...search.Condition) []search.Clause { return []search.Clause{{All: c}} }
	similar := func(p search.Picture) search.Query {
		return search.Query{Clauses: all(search.Similar{}), Pictures: []search.Picture{p}}
	}
	const km = 1 / 6371.0088
	tests := []struct {
		name, query string
		want        search.Query
	}{
		{"nothing", `null`, search.Query{}},
		{"empty", `{}`, search.Query{}},
		{"no clauses", `{"ands":[]}`, search.Query{}},
		{"null clauses", `{"ands":null,"language":null}`, search.Query{}},
		{"clauses as an empty object", `{"ands":{}}`, search.Query{}},
		{"predicted by name", `{"ands":[{"output":{"data":{"concepts":[{"name":"dog"}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: dog})}},
		{"predicted by id", `{"ands":[{"output":{"data":{"concepts":[{"id":"x","name":"dog"}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: []string{"x"}})}},
		{"a least score", `{"min_score":0.25}`, search.Query{MinScore: 0.25}},
		{"no least score", `{"min_score":null}`, search.Query{}},
		{"in a language", `{"language":"de","ands":[{"output":{"data":{"concepts":[{"name":"Hund"}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: []string{"ai_dog"}})}},
		{"own names have no language", `{"language":"de","ands":[{"output":{"data":{"concepts":[{"name":"dog"}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: []string{"mine"}})}},
		{"a name of another language", `{"ands":[{"output":{"data":{"concepts":[{"name":"Hund"}]}}}]}`, search.Query{Clauses: all(search.Prediction{})}},
		{"absent", `{"ands":[{"output":{"data":{"concepts":[{"name":"cat","value":false}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: cat, Absent: true})}},
		{"absent as a number", `{"ands":[{"output":{"data":{"concepts":[{"name":"cat","value":0.0}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: cat, Absent: true})}},
		{"several in one clause", `{"ands":[{"output":{"data":{"concepts":[{"name":"cat","value":1},{"id":"y"}]}}}]}`, search.Query{Clauses: all(search.Prediction{Concepts: cat}, search.Prediction{Concepts: []string{"y"}})}},
		{"labels", `{"ands":[{"input":{"data":{"concepts":[{"name":"cat","value":true},{"id":"y","value":0},{"id":"z","value":null}]}}}]}`, search.Query{Clauses: all(
			search.Label{Concepts: cat, Value: log.True}, search.Label{Concepts: []string{"y"}, Value: log.False}, search.Label{Concepts: []string{"z"}, Value: log.True})}},
		{"metadata", `{"ands":[{"input":{"data":{"metadata":{"k":[1]}}}}]}`, search.Query{Clauses: all(search.Metadata{Pattern: pattern(t, `{"k":[1]}`)})}},
		{"metadata that is a list", `{"ands":[{"input":{"data":{"metadata":[1]}}}]}`, search.Query{Clauses: all(search.Metadata{Pattern: pattern(t, `[1]`)})}},
		{"empty metadata", `{"ands":[{"input":{"data":{"metadata":{}}}},{"input":{"data":{"metadata":[]}}}]}`, search.Query{}},
		{"url", `{"ands":[{"input":{"data":{"image":{"url":" https://a/b "}}}}]}`, search.Query{Clauses: all(search.URL{URL: "https://a/b"})}},
		{"hosted url", `{"ands":[{"input":{"data":{"image":{"url":"https://here/hosted"}}}}]}`, search.Query{Clauses: all(search.URL{URL: "https://here/hosted", Hosted: [16]byte{1}})}},
		{"bytes", `{"ands":[{"input":{"data":{"image":{"base64":"YWJj"}}}}]}`, search.Query{Clauses: all(search.Bytes{Blob: blob.Sum([]byte("abc"))})}},
		{"id with an empty image", `{"ands":[{"input":{"id":"i","data":{"image":{}}}}]}`, search.Query{Clauses: all(search.InputID{ID: "i"})}},
		{"empty images", `{"ands":[{"input":{"data":{"image":{}}}},{"output":{"input":{"data":{"image":{}}}}},{"input":{"data":{"image":[]}}}]}`, search.Query{}},
		{"negated", `{"ands":[{"negate":true,"input":{"id":"i"}},{"negate":0,"input":{"id":"j"}}]}`, search.Query{Clauses: []search.Clause{
			{Negate: true, All: []search.Condition{search.InputID{ID: "i"}}}, {All: []search.Condition{search.InputID{ID: "j"}}},
		}}},
		{"input and output in one clause", `{"ands":[{"input":{"id":"i"},"output":{"data":{"concepts":[{"id":"y"}]}}}]}`, search.Query{Clauses: all(search.InputID{ID: "i"}, search.Prediction{Concepts: []string{"y"}})}},
		{"similar by url", `{"ands":[{"output":{"input":{"data":{"image":{"url":"https://a/b"}}}}}]}`, similar(search.Picture{URL: "https://a/b"})},
		{"similar by id", `{"ands":[{"output":{"input":{"id":"i"}}}]}`, similar(search.Picture{Input: "i"})},
		{"similar by id with a crop", `{"ands":[{"output":{"input":{"id":"i","data":{"image":{"crop":[0,0.5,1,1]}}}}}]}`, similar(search.Picture{Input: "i", Crop: raster.Crop{Left: 0.5, Bottom: 1, Right: 1}})},
		{"similar by id with an empty crop", `{"ands":[{"output":{"input":{"id":"i","data":{"image":{"crop":[],"base64":""}}}}}]}`, similar(search.Picture{Input: "i"})},
		{"miles", geo(`"geo_point":{"longitude":-30,"latitude":40},"geo_limit":{"type":"withinMiles","value":10}`), search.Query{Clauses: all(search.Radius{Centre: log.Point{Longitude: -30, Latitude: 40}, Angle: 10 * 1.609344 * km})}},
		{"kilometres", geo(`"geo_point":{"longitude":-30,"latitude":40},"geo_limit":{"type":"withinKilometers","value":10}`), search.Query{Clauses: all(search.Radius{Centre: log.Point{Longitude: -30, Latitude: 40}, Angle: 10 * km})}},
		{"degrees", geo(`"geo_point":{"longitude":40.7,"latitude":74.0},"geo_limit":{"type":"withinDegrees","value":180}`), search.Query{Clauses: all(search.Radius{Centre: log.Point{Longitude: 40.7, Latitude: 74}, Angle: math.Pi})}},
		{"radians without geo_point", geo(`"longitude":180,"latitude":-90,"geo_limit":{"type":"withinRadians"}`), search.Query{Clauses: all(search.Radius{Centre: log.Point{Longitude: 180, Latitude: -90}})}},
		{"box in any order", geo(`"geo_box":[{"geo_point":{"longitude":5,"latitude":-2}},{"geo_point":{"longitude":-5,"latitude":2}}]`), search.Query{Clauses: all(search.Box{Min: log.Point{Longitude: -5, Latitude: -2}, Max: log.Point{Longitude: 5, Latitude: 2}})}},
		{"empty geo", geo(``), search.Query{}},
		{"what nobody knows is passed over", `{"x":1,"ands":[{"input":{"id":"i","status":{},"data":{}}}]}`, search.Query{Clauses: all(search.InputID{ID: "i"})}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(t, tt.query, options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, *got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-15),
				cmpopts.IgnoreUnexported(jsonio.Value{}), cmp.Comparer(func(a, b *index.Pattern) bool { return a.String() == b.String() })); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

func geo(members string) string { return `{"ands":[{"input":{"data":{"geo":{` + members + `}}}}]}` }

func clause(c string) string { return `{"ands":[` + c + `]}` }

func TestParseErrors(t *testing.T) {
	tests := []struct{ name, query string }{
		{"no object", `7`},
		{"clauses that are none", `{"ands":7}`},
		{"one clause without a list", `{"ands":{"input":{}}}`},
		{"a clause that is none", clause(`null`)},
		{"an empty clause", clause(`{}`)},
		{"a clause of something else", clause(`{"inputs":{"id":"i"}}`)},
		{"unknown language", `{"language":"xx"}`},
		{"language that is none", `{"language":7}`},
		{"least score that is none", `{"min_score":"0.5"}`},
		{"least score below all", `{"min_score":-0.1}`},
		{"least score above all", `{"min_score":1.01}`},
		{"negate that is none", clause(`{"negate":"yes","input":{"id":"i"}}`)},
		{"a number that is no truth", clause(`{"negate":2,"input":{"id":"i"}}`)},
		{"input that is none", clause(`{"input":7}`)},
		{"output that is none", clause(`{"output":7}`)},
		{"an input of something else", clause(`{"input":{"dat":{}}}`)},
		{"data that is none", clause(`{"input":{"data":7}}`)},
		{"data of something else", clause(`{"input":{"data":{"concept":[]}}}`)},
		{"id that is none", clause(`{"input":{"id":7}}`)},
		{"concepts that are none", clause(`{"input":{"data":{"concepts":{"id":"x"}}}}`)},
		{"a concept that is none", clause(`{"input":{"data":{"concepts":["x"]}}}`)},
		{"a concept without a name", clause(`{"input":{"data":{"concepts":[{"value":true}]}}}`)},
		{"a concept's id that is none", clause(`{"input":{"data":{"concepts":[{"id":7}]}}}`)},
		{"a concept's name that is none", clause(`{"input":{"data":{"concepts":[{"name":7}]}}}`)},
		{"a value that is none", clause(`{"output":{"data":{"concepts":[{"id":"x","value":0.5}]}}}`)},
		{"a value of text", clause(`{"output":{"data":{"concepts":[{"id":"x","value":"true"}]}}}`)},
		{"image that is none", clause(`{"input":{"data":{"image":"https://a"}}}`)},
		{"image of something else", clause(`{"input":{"data":{"image":{"uri":"x"}}}}`)},
		{"url that is none", clause(`{"input":{"data":{"image":{"url":7}}}}`)},
		{"base64 that is none", clause(`{"input":{"data":{"image":{"base64":7}}}}`)},
		{"base64 of something else", clause(`{"input":{"data":{"image":{"base64":"!"}}}}`)},
		{"the picture beside image", clause(`{"output":{"input":{"data":{"url":"https://a"}}}}`)},
		{"output data that is none", clause(`{"output":{"data":7}}`)},
		{"output data of something else", clause(`{"output":{"data":{"metadata":{}}}}`)},
		{"output of something else", clause(`{"output":{"image":{}}}`)},
		{"output's input that is none", clause(`{"output":{"input":7}}`)},
		{"output's input of something else", clause(`{"output":{"input":{"image":{}}}}`)},
		{"its data that is none", clause(`{"output":{"input":{"data":7}}}`)},
		{"its image that is none", clause(`{"output":{"input":{"data":{"image":7}}}}`)},
		{"its image of something else", clause(`{"output":{"input":{"data":{"image":{"uri":"x"}}}}}`)},
		{"its id that is none", clause(`{"output":{"input":{"id":7}}}`)},
		{"its url that is none", clause(`{"output":{"input":{"data":{"image":{"url":7}}}}}`)},
		{"its base64 that is none", clause(`{"output":{"input":{"data":{"image":{"base64":7}}}}}`)},
		{"two pictures", clause(`{"output":{"input":{"id":"i","data":{"image":{"url":"https://a"}}}}}`)},
		{"a crop of nothing", clause(`{"output":{"input":{"data":{"image":{"crop":[0,0,1,1]}}}}}`)},
		{"a crop of three", clause(`{"output":{"input":{"id":"i","data":{"image":{"crop":[0,0,1]}}}}}`)},
		{"a crop of five", clause(`{"output":{"input":{"id":"i","data":{"image":{"crop":[0,0,1,1,1]}}}}}`)},
		{"a crop upside down", clause(`{"output":{"input":{"id":"i","data":{"image":{"crop":[1,0,0,1]}}}}}`)},
		{"a crop of text", clause(`{"output":{"input":{"id":"i","data":{"image":{"crop":"all"}}}}}`)},
		{"too much metadata", clause(`{"input":{"data":{"metadata":[` + strings.Repeat("1,", 1000) + `1]}}}`)},
		{"geo that is none", clause(`{"input":{"data":{"geo":[1]}}}`)},
		{"geo of something else", geo(`"point":{}`)},
		{"no limit", geo(`"geo_point":{"longitude":1,"latitude":2}`)},
		{"a limit that is none", geo(`"geo_point":{"longitude":1,"latitude":2},"geo_limit":7`)},
		{"unknown unit", geo(`"geo_point":{"longitude":1,"latitude":2},"geo_limit":{"type":"withinYards","value":1}`)},
		{"a unit that is none", geo(`"geo_point":{"longitude":1,"latitude":2},"geo_limit":{"type":7,"value":1}`)},
		{"negative", geo(`"geo_point":{"longitude":1,"latitude":2},"geo_limit":{"type":"withinMiles","value":-1}`)},
		{"a distance of text", geo(`"geo_point":{"longitude":1,"latitude":2},"geo_limit":{"type":"withinMiles","value":"1"}`)},
		{"no latitude", geo(`"geo_point":{"longitude":1},"geo_limit":{"type":"withinMiles","value":1}`)},
		{"too far north", geo(`"geo_point":{"longitude":1,"latitude":90.1},"geo_limit":{"type":"withinMiles","value":1}`)},
		{"too far east", geo(`"geo_point":{"longitude":180.1,"latitude":0},"geo_limit":{"type":"withinMiles","value":1}`)},
		{"longitude of text", geo(`"geo_point":{"longitude":"1","latitude":0},"geo_limit":{"type":"withinMiles","value":1}`)},
		{"latitude of text", geo(`"geo_point":{"longitude":1,"latitude":"0"},"geo_limit":{"type":"withinMiles","value":1}`)},
		{"a point that is none", geo(`"geo_point":7,"geo_limit":{"type":"withinMiles","value":1}`)},
		{"one corner", geo(`"geo_box":[{"geo_point":{"longitude":5,"latitude":-2}}]`)},
		{"a corner that is none", geo(`"geo_box":[7,{"geo_point":{"longitude":5,"latitude":-2}}]`)},
		{"a corner without a place", geo(`"geo_box":[{},{"geo_point":{"longitude":5,"latitude":-2}}]`)},
		{"too many clauses", `{"ands":[` + strings.Repeat(`{"input":{}},`, 64) + `{"input":{"id":"i"}}]}`},
		{"too many conditions", clause(`{"input":{"data":{"concepts":[` + strings.Repeat(`{"id":"x"},`, 64) + `{"id":"x"}]}}}`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := parse(t, tt.query, options)
			if !errors.Is(err, search.ErrQuery) {
				t.Fatalf("Parse = %+v, %v, want ErrQuery", q, err)
			}
			if !strings.HasPrefix(err.Error(), "query") {
				t.Errorf("error %q does not say where", err)
			}
		})
	}
	if _, err := parse(t, clause(`{"output":{"data":{"concepts":[{"name":"broken"}]}}}`), options); !errors.Is(err, errBroken) {
		t.Errorf("Parse = %v, want the error of Own", err)
	}
}

// TestParseWithDefaultOptions parses a query with options that have neither custom concepts nor hosted pictures.
func TestParseWithDefaultOptions(t *testing.T) {
	o := search.Options{Names: words{}, Language: "zh-TW"}
	q, err := parse(t, `{"ands":[{"output":{"data":{"concepts":[{"name":"dog"}]}}},{"input":{"data":{"image":{"url":"https://here/hosted"}}}}]}`, o)
	if err != nil || len(q.Clauses) != 2 {
		t.Fatalf("Parse = %+v, %v", q, err)
	}
}

// FuzzParse checks that Parse returns a query within its limits, or ErrQuery, for any body.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"language":"de","ands":[{"output":{"data":{"concepts":[{"name":"Hund","value":false}]}},"negate":true}]}`))
	f.Add([]byte(`{"ands":[{"input":{"id":"i","data":{"image":{"url":"u","base64":"YQ"},"metadata":{"a":[1,{"b":null}]},"concepts":[{"id":"x","value":0}]}}}]}`))
	f.Add([]byte(`{"ands":[{"output":{"input":{"id":"i","data":{"image":{"crop":[0,0,1,1]}}}}}]}`))
	f.Add([]byte(geo(`"geo_box":[{"geo_point":{"longitude":5,"latitude":-2}},{"longitude":-5,"latitude":2}]`)))
	f.Add([]byte(geo(`"geo_point":{"longitude":5,"latitude":-2},"geo_limit":{"type":"withinMiles","value":1e308}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		var doc jsonio.Doc
		if doc.Parse(body, jsonio.Limits{}) != nil {
			return
		}
		q, err := search.Parse(doc.Root(), options)
		if err != nil {
			if !errors.Is(err, search.ErrQuery) && !errors.Is(err, errBroken) {
				t.Fatalf("Parse(%s) = %v", body, err)
			}
			return
		}
		conditions := 0
		for _, c := range q.Clauses {
			if len(c.All) == 0 {
				t.Fatalf("Parse(%s) has a clause without a condition", body)
			}
			conditions += len(c.All)
			for _, cond := range c.All {
				if s, ok := cond.(search.Similar); ok && (s.Picture < 0 || s.Picture >= len(q.Pictures)) {
					t.Fatalf("Parse(%s) has no picture %d", body, s.Picture)
				}
			}
		}
		if conditions > search.MaxClauses {
			t.Fatalf("Parse(%s) has %d conditions", body, conditions)
		}
	})
}

func ExampleParse() {
	var doc jsonio.Doc
	body := `{"query":{"language":"de","ands":[
		{"output":{"data":{"concepts":[{"name":"Hund"}]}}},
		{"input":{"data":{"metadata":{"album":"Sommer"}}},"negate":true},
		{"output":{"input":{"data":{"image":{"url":"https://example.com/dog.jpg"}}}}}]}}`
	if err := doc.Parse([]byte(body), jsonio.Limits{}); err != nil {
		fmt.Println(err)
		return
	}
	q, err := search.Parse(doc.Root().Get("query"), search.Options{Names: words{"de Hund": "ai_8S2Vq3cR"}, Language: "en"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range q.Clauses {
		fmt.Printf("%T negated: %v\n", c.All[0], c.Negate)
	}
	fmt.Println("to analyse:", q.Pictures[0].URL)
	// Output:
	// search.Prediction negated: false
	// search.Metadata negated: true
	// search.Similar negated: false
	// to analyse: https://example.com/dog.jpg
}
