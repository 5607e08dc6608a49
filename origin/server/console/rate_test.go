package console

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sightline-dev/sightline/core/api"
)

// TestChangesHaveARate makes many changes in two sessions of an account. It may make 120 at once and then one a second. Reads, sign-outs and
// another account have no part in that rate, and the operator has none.
func TestChangesHaveARate(t *testing.T) {
	s := newSite(t, nil)
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
