package call

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/partition"
)

// TestMarkOfCallWithoutEffect ends calls with kv.ErrFollows. Only a call that has written nothing gets the mark.
func TestMarkOfCallWithoutEffect(t *testing.T) {
	for name, tt := range map[string]struct {
		call Call
		err  error
		mark bool
	}{
		"nothing written":     {Call{}, fmt.Errorf("submit: %w", kv.ErrFollows), true},
		"another error":       {Call{}, ErrBusy, false},
		"an earlier write":    {Call{submitted: []partition.Span{{Writer: 1, First: 1, Last: 2}}}, kv.ErrFollows, false},
		"a write elsewhere":   {Call{Elsewhere: true}, kv.ErrFollows, false},
		"a store that failed": {Call{}, kv.ErrFailed, false},
	} {
		x := tt.call
		x.Host = &Host{Options: Options{MaxAnswer: DefaultMaxAnswer}}
		x.End(tt.err)
		if got := slices.Contains(x.Exchange.Response().Header, Field{HeaderApplied, "0"}); got != tt.mark {
			t.Errorf("%s: mark %v", name, got)
		}
	}
}

// TestNewCall runs a call that continues elsewhere through two rounds of jobs.
func TestNewCall(t *testing.T) {
	var got [][]Result
	call := NewExchange([]Job{{URL: "a"}, {URL: "b"}}, func(results []Result) ([]Job, Response, bool) {
		got = append(got, results)
		if len(got) == 1 {
			return []Job{{URL: "c"}}, Response{}, false
		}
		return nil, Response{Status: 200}, true
	})
	if call.Done() || len(call.Jobs()) != 2 {
		t.Fatalf("at first: done %v, jobs %v", call.Done(), call.Jobs())
	}
	call.Resume([]Result{{ContentType: "a"}, {ContentType: "b"}})
	if call.Done() || len(call.Jobs()) != 1 || call.Jobs()[0].URL != "c" {
		t.Fatalf("then: done %v, jobs %v", call.Done(), call.Jobs())
	}
	call.Resume([]Result{{ContentType: "c"}})
	if !call.Done() || call.Jobs() != nil || call.Response().Status != 200 {
		t.Fatalf("at last: done %v, jobs %v, %+v", call.Done(), call.Jobs(), call.Response())
	}
	call.Resume(nil) // has no effect on a call that is done
	var types []string
	for _, r := range slices.Concat(got...) {
		types = append(types, r.ContentType)
	}
	if !slices.Equal(types, []string{"a", "b", "c"}) {
		t.Errorf("results %v", types)
	}
}

// TestGiveUp: GiveUp passes the error for every job to a call that continues elsewhere, until the call is done. It does not change a call
// of this program.
func TestGiveUp(t *testing.T) {
	var errs []error
	rounds := 0
	call := NewExchange(make([]Job, 2), func(results []Result) ([]Job, Response, bool) {
		for _, r := range results {
			errs = append(errs, r.Err)
		}
		rounds++
		return make([]Job, 1), Response{Status: 503}, rounds == 2
	})
	call.GiveUp(ErrBusy)
	if want := []error{ErrBusy, ErrBusy, ErrBusy}; !slices.Equal(errs, want) || !call.Done() {
		t.Errorf("told %v, want %v", errs, want)
	}
	resumed := false
	own := &Exchange{jobs: make([]Job, 1), resume: func([]Result) Response {
		resumed = true
		return Response{}
	}}
	if own.GiveUp(ErrBusy); resumed {
		t.Error("a call of this program is resumed")
	}
}
