package api_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/api/apitest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
)

const maxAnswer = api.MinMaxAnswer

// heavy returns a world whose answers have at most [maxAnswer] bytes. It has an input for each size, with about that many bytes of
// metadata.
func heavy(t *testing.T, sizes ...int) *apitest.World {
	t.Helper()
	w := apitest.NewWorld(t, memkv.New(), apitest.Tiny(t), nil, map[string]string{"max-answer": strconv.Itoa(maxAnswer)})
	for at := 0; at < len(sizes); at += 100 {
		items := make([]string, 0, 100)
		for i := at; i < min(at+100, len(sizes)); i++ {
			items = append(items, fmt.Sprintf(`{"id":"i%d","data":{"image":{"url":"http://a.test/%d.png"},"concepts":[{"id":"heavy"}],"metadata":{"text":"%s"}}}`,
				i, i, strings.Repeat("m", sizes[i])))
		}
		if got := call(t, w, "POST /v2/inputs", `{"inputs":[`+strings.Join(items, ",")+`]}`); got.Status != 200 {
			t.Fatalf("%d %.200s", got.Status, got.Body)
		}
	}
	return w
}

func call(t testing.TB, w *apitest.World, call, body string) api.Response {
	t.Helper()
	method, target, _ := strings.Cut(call, " ")
	path, query, _ := strings.Cut(target, "?")
	return w.Serve(t, api.Request{Method: method, Path: path, Query: query, Body: []byte(body)})
}

var perPagePattern = regexp.MustCompile(`the largest per_page that fits is (\d+)\.`)

func repeat(n, size int) (sizes []int) {
	for range n {
		sizes = append(sizes, size)
	}
	return sizes
}

// TestLargeAnswersAreRefused requests pages above the limit of an answer from each list of inputs. The error names the largest per_page
// that fits: every page of that size is answered, and one page with one row more is refused.
func TestLargeAnswersAreRefused(t *testing.T) {
	sizes := repeat(60, 60_000)
	sizes[10], sizes[40] = 1000, 10
	w := heavy(t, sizes...)
	for _, list := range []struct{ call, body, rows string }{
		{"GET /v2/inputs?", "", "inputs"},
		{"POST /v2/searches?", `{"query":{"ands":[{"input":{"data":{"concepts":[{"id":"heavy"}]}}}]}}`, "hits"},
	} {
		page := func(number, size int) api.Response {
			return call(t, w, fmt.Sprintf("%spage=%d&per_page=%d", list.call, number, size), list.body)
		}
		got := page(1, 1000)
		found := perPagePattern.FindSubmatch(got.Body)
		if got.Status != 400 || found == nil || !strings.Contains(string(got.Body), `"code":11102`) || !strings.Contains(string(got.Body), `"`+list.rows+`":[]`) {
			t.Fatalf("%s of 1000: %d %.300s, want 400 with the largest per_page", list.call, got.Status, got.Body)
		}
		perPage, _ := strconv.Atoi(string(found[1]))
		all, refused := 0, false
		for number := 1; (number-1)*perPage < len(sizes); number++ {
			got := page(number, perPage)
			if len(got.Body) > maxAnswer || got.Status != 200 {
				t.Errorf("%s of %d, page %d: %d with %d bytes, want 200 with at most %d", list.call, perPage, number, got.Status, len(got.Body), maxAnswer)
			}
			var in map[string]json.RawMessage
			var rows []json.RawMessage
			if err := json.Unmarshal(got.Body, &in); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(in[list.rows], &rows); err != nil {
				t.Fatal(err)
			}
			all += len(rows)
			refused = refused || page(number, perPage+1).Status == 400
		}
		if all != len(sizes) || !refused {
			t.Errorf("%s of %d: pages have %d rows, want %d; a larger page was refused: %t", list.call, perPage, all, len(sizes), refused)
		}
	}
}

// TestTwentyInputsAlwaysFit lists inputs with the maximum size of metadata, under the smallest limit of an answer.
func TestTwentyInputsAlwaysFit(t *testing.T) {
	w := heavy(t, repeat(40, 64<<10-len(`{"text":""}`))...)
	for _, query := range []string{"", "?page=2", "?per_page=20"} {
		var in struct{ Inputs []struct{ ID string } }
		got := call(t, w, "GET /v2/inputs"+query, "")
		if err := json.Unmarshal(got.Body, &in); got.Status != 200 || err != nil || len(in.Inputs) != 20 {
			t.Errorf("%q: %d with %d inputs, %v; want 200 with 20", query, got.Status, len(in.Inputs), err)
		}
	}
}

// TestLargeAnswerOfAWrite changes inputs and gets an answer above the limit. The call succeeds and its status has details.
func TestLargeAnswerOfAWrite(t *testing.T) {
	w := heavy(t, repeat(50, 60_000)...)
	items := make([]string, 50)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":"i%d","data":{"concepts":[{"id":"seen"}]}}`, i)
	}
	got := call(t, w, "PATCH /v2/inputs", `{"action":"merge","inputs":[`+strings.Join(items, ",")+`]}`)
	var in struct {
		Status struct {
			Code    int
			Details string
		}
		Inputs []struct {
			ID     string
			Status struct{ Code int }
			Data   *struct{}
		}
	}
	if err := json.Unmarshal(got.Body, &in); err != nil {
		t.Fatal(err)
	}
	if got.Status != 200 || in.Status.Code != 10000 || in.Status.Details == "" || len(in.Inputs) != 50 || in.Inputs[49].ID != "i49" || in.Inputs[49].Data != nil {
		t.Errorf("PATCH: %d %.300s, want 10000 with ids and statuses alone", got.Status, got.Body)
	}
	if one := call(t, w, "GET /v2/inputs/i49", ""); !strings.Contains(string(one.Body), `"id":"seen"`) {
		t.Errorf("the change is not there: %.200s", one.Body)
	}
}

// memory is a memory budget whose Reserve calls the function.
type memory func(int64) bool

func (m memory) Reserve(bytes int64) bool { return m(bytes) }

func (memory) Room() int64 { panic("only hosts of the module ask") }

func (memory) Settle(int64) { panic("only hosts settle") }

// TestAnswersReserveMemory gives answers less memory than they need. Reads fail as busy and a completed write succeeds. No answer reserves
// more memory than its records and its buffer may use.
func TestAnswersReserveMemory(t *testing.T) {
	w := heavy(t, repeat(30, 60_000)...)
	reserved := int64(0)
	for _, room := range []int64{100 << 10, 1 << 20, 1900 << 10, 1 << 40} {
		r := api.Request{Method: "GET", Path: "/v2/inputs", Query: "per_page=30", Memory: memory(func(n int64) bool {
			reserved = max(reserved, n)
			return n <= room
		})}
		if got, fits := w.Serve(t, r), room == 1<<40; (got.Status == 200) != fits || !fits && (got.Status != 503 || !strings.Contains(string(got.Body), `"code":40030`)) {
			t.Errorf("with %d bytes: %d %.200s", room, got.Status, got.Body)
		}
	}
	if reserved < 30*60_000 || reserved > 3*maxAnswer {
		t.Errorf("the answer asked for %d bytes", reserved)
	}
	r := api.Request{Method: "PATCH", Path: "/v2/inputs", Memory: memory(func(n int64) bool { return n <= 64<<10 })}
	items := make([]string, 30)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":"i%d","data":{"concepts":[{"id":"seen"}]}}`, i)
	}
	r.Body = []byte(`{"action":"merge","inputs":[` + strings.Join(items, ",") + `]}`)
	if got := w.Serve(t, r); got.Status != 200 || !strings.Contains(string(got.Body), `"id":"i29"`) {
		t.Errorf("a write without memory for its answer: %d %.200s, want 200", got.Status, got.Body)
	}
}

// TestHistoryKeepsOnePage reads one page of a history that is larger than the limit of an answer.
func TestHistoryKeepsOnePage(t *testing.T) {
	w := heavy(t, 10)
	for n := range 45 {
		body := fmt.Sprintf(`{"action":"overwrite","inputs":[{"id":"i0","data":{"metadata":{"text":"%s","n":%d}}}]}`, strings.Repeat("h", 60_000), n)
		if got := call(t, w, "PATCH /v2/inputs", body); got.Status != 200 {
			t.Fatalf("%d %.200s", got.Status, got.Body)
		}
	}
	reserved := int64(0)
	got := w.Serve(t, api.Request{Method: "GET", Path: "/v2/inputs/i0/history", Query: "page=2&per_page=5", Memory: memory(func(n int64) bool {
		reserved = max(reserved, n)
		return true
	})})
	var in struct {
		Total      int
		Operations []json.RawMessage
	}
	if err := json.Unmarshal(got.Body, &in); err != nil || got.Status != 200 || in.Total != 46 || len(in.Operations) != 5 || reserved > 15*60_000 {
		t.Errorf("5 of the history: %d, %d of %d operations, %d bytes reserved, %v", got.Status, len(in.Operations), in.Total, reserved, err)
	}
	for i, op := range in.Operations {
		if want := fmt.Sprintf(`"n":%d`, 39-i); !strings.Contains(string(op), want) && !strings.Contains(string(op), fmt.Sprintf(`"value":%d`, 39-i)) {
			t.Errorf("operation %d: %.200s… lacks %s", i, op, want)
		}
	}
	if got := call(t, w, "GET /v2/inputs/i0/history?per_page=1000", ""); got.Status != 400 || !perPagePattern.Match(got.Body) {
		t.Errorf("all of the history: %d %.200s, want 400", got.Status, got.Body)
	}
}
