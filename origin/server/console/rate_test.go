package console

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server/account"
)

// TestChangesAreRateLimited makes many changes in two sessions of an account. It may make 120 at once and then one a second. Reads,
// sign-outs and another account have no part in that rate, and the operator has none.
func TestChangesAreRateLimited(t *testing.T) {
	s := newSite(t, func(o *Options, _ *account.Options) { o.Tokens = mint{} })
	operator, first, second, friend := s.operator(), s.person("anna"), s.browser(), s.person("bob")
	second.ok("POST", "/session", `{"email":"anna@x.example","password":`+quote(password)+`}`, nil)
	app := first.application("farm")
	change := func(b *browser, i int) api.Response {
		return b.do("PATCH", "/apps/"+app, fmt.Sprintf(`{"name":"farm %d"}`, i))
	}
	n := 0
	for ; n < 200; n++ {
		if res := change([]*browser{first, second}[n%2], n); res.Status != 200 {
			break
		}
	}
	if n != 119 { // and the creation of the application
		t.Errorf("%d changes at once", n)
	}
	res := first.checkRefusal("PATCH", "/apps/"+app, `{"name":"a"}`, 429, 11005, "rate")
	if !slices.Contains(res.Header, api.Field{Name: "Retry-After", Value: "1"}) {
		t.Errorf("the refused change has the headers %v", res.Header)
	}
	if res := first.do("GET", "/apps", ""); res.Status != 200 {
		t.Errorf("a read = %d", res.Status)
	}
	if res := first.do("POST", "/apps/"+app+"/page-token", "{}"); res.Status != 200 {
		t.Errorf("another token of a page = %d %s", res.Status, res.Body)
	}
	friend.application("garden")
	theirs := operator.application("own")
	for i := range 150 {
		operator.ok("PATCH", "/apps/"+theirs, fmt.Sprintf(`{"name":"own %d"}`, i), nil)
	}
	if res := second.do("DELETE", "/session", "{}"); res.Status != 200 {
		t.Errorf("a sign-out = %d %s", res.Status, res.Body)
	}
	s.pass(time.Second)
	if res := change(first, n); res.Status != 200 {
		t.Errorf("a second later = %d %s", res.Status, res.Body)
	}
}

// TestExportsCountAsChanges begins many exports of a small application, one after another. The audit log keeps each, so they have the rate of
// changes. A refused export leaves the place to the next one.
func TestExportsCountAsChanges(t *testing.T) {
	s := newExportSite(t, func(context.Context, string, io.Writer) error { return nil })
	s.operator()
	b := s.person("anna")
	app := b.application("farm")
	export := func() api.Response {
		res := b.get("/apps/" + app + "/export")
		if res.Stream != nil {
			if err := res.Stream(io.Discard); err != nil {
				t.Fatal(err)
			}
		}
		return res
	}
	n := 0
	for n < 200 && export().Status == 200 {
		n++
	}
	if n != 119 { // and the creation of the application
		t.Errorf("%d exports at once", n)
	}
	b.checkRefusal("GET", "/apps/"+app+"/export", "", 429, 11005, "rate")
	s.pass(time.Second)
	if res := export(); res.Status != 200 {
		t.Errorf("a second later = %d %s", res.Status, res.Body)
	}
}
