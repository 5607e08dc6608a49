package call

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/jsonio"
)

// notices returns the header with notices of an answer, and its parsed list.
func noticesIn(t *testing.T, r Response) (header string, list []map[string]string) {
	t.Helper()
	for _, f := range r.Header {
		if f.Name == HeaderNotice {
			header = f.Value
		}
	}
	if header != "" {
		if err := json.Unmarshal([]byte(header), &list); err != nil {
			t.Fatalf("%s: %v", header, err)
		}
	}
	return header, list
}

// TestNotice checks the form of the header: an ASCII JSON list that repeats any text, and a body without it.
func TestNotice(t *testing.T) {
	var x Call
	texts := []string{"buterfly: no such concept; butterfly?", "naïve \"quoted\" \\ \u007f \t\n\u2028", "猫 🦋"}
	for i, text := range texts {
		x.Notify(fmt.Sprintf("query.ands[%d]", i), text)
	}
	if err := x.OK(func(*jsonio.Writer) {}); err != nil {
		t.Fatal(err)
	}
	r := x.Exchange.Response()
	if got, want := string(r.Body), `{"status":{"code":10000,"description":"Ok"}}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	header, list := noticesIn(t, r)
	for i := range len(header) {
		if header[i] < ' ' || header[i] > '~' {
			t.Errorf("byte %d of %q is not printable ASCII", i, header)
		}
	}
	var want []map[string]string
	for i, text := range texts {
		want = append(want, map[string]string{"at": fmt.Sprintf("query.ands[%d]", i), "text": text})
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	if exposed := r.Header[len(r.Header)-1]; exposed != exposeHeaders || !strings.Contains(ExposedHeaders, HeaderNotice) {
		t.Errorf("the last header is %v, want %v with the notice", exposed, exposeHeaders)
	}
}

// TestNoticeLimit checks that the header has at most 4 KB and that its last notice has the number of the others.
func TestNoticeLimit(t *testing.T) {
	var x Call
	for i := range 1000 {
		x.Notify("at", fmt.Sprintf("notice %d %s", i, Excerpt(strings.Repeat("語", 500))))
	}
	_ = x.OK(func(*jsonio.Writer) {})
	header, list := noticesIn(t, x.Exchange.Response())
	if len(header) > 4096 || len(list) < 2 {
		t.Fatalf("%d bytes with %d notices, want up to 4096 bytes with several", len(header), len(list))
	}
	if got, want := list[len(list)-1]["text"], fmt.Sprintf("%d more", 1000-len(list)+1); got != want {
		t.Errorf("last notice %q, want %q", got, want)
	}
}

// TestNoticeOfFailure checks that the answer of a failed call has no notices.
func TestNoticeOfFailure(t *testing.T) {
	for name, end := range map[string]func(x *Call){
		"error":   func(x *Call) { x.Fail(ErrBusy) },
		"failure": func(x *Call) { _ = x.Answer(StatusFailure, "", func(*jsonio.Writer) {}) },
	} {
		var x Call
		x.Notify("page", "something")
		end(&x)
		if header, _ := noticesIn(t, x.Exchange.Response()); header != "" {
			t.Errorf("%s: the answer has the notices %s", name, header)
		}
	}
}
