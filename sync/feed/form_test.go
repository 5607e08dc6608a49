package feed_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestPushAndAPIAcceptTheSame draws operations of each kind that a call of /v2 makes, valid and invalid ones. It sends each to /v2 of one
// application and pushes it to another one. Both must accept it, or refuse it for its form. Each round has 40 operations of each kind.
func TestPushAndAPIAcceptTheSame(t *testing.T) {
	const each = 40
	accepted, refused := map[string]int{}, map[string]int{}
	for seed := range testkit.Seeds(t, 250, 10_000) {
		w := newWorld(t, nil)
		other := w.NewTenant(t, "", "en")
		r := w.join(other.App, other.Key)
		d := &drawer{Rand: rand.New(rand.NewPCG(seed, 1)), w: w}
		d.furnish()
		r.mustPush(r.next(&log.InputCreate{ID: "ready", URL: "http://pictures.test/red.png"}, &log.ModelCreate{ID: "m", Concepts: []string{"a"}}, &log.ConceptCreate{ID: "c"}))
		d.input, d.model = log.Dot{Writer: r.writer, Seq: 1}, log.Dot{Writer: r.writer, Seq: 2}
		for kind := range d.kinds() {
			var bodies []log.Body
			var answers []api.Response
			var calls []api.Request
			for range each {
				body, call := d.kinds()[kind]()
				bodies, calls, answers = append(bodies, body), append(calls, call), append(answers, w.Serve(t, call))
			}
			ops := r.next(bodies...)
			refusals := map[uint64]string{}
			for from := 0; from < each; {
				out := r.mustPush(ops[from:])
				for _, v := range out.Verdicts {
					if fold.Code(v.Code) == fold.Refused && strings.HasPrefix(v.Detail, "schema: ") {
						refusals[v.Seq] = v.Detail
					}
				}
				from = int(out.Accepted - ops[0].Dot.Seq + 1)
			}
			for i, a := range answers {
				why, isRefused := refusals[ops[i].Dot.Seq]
				if a.Status >= 500 || (a.Status != 200) != isRefused {
					t.Errorf("%T %.300q\npushed: %q\n%s %s %.300q: %d %.300s", bodies[i], fmt.Sprintf("%+v", bodies[i]), why, calls[i].Method, calls[i].Path, calls[i].Body, a.Status, a.Body)
				}
				name := strings.TrimPrefix(fmt.Sprintf("%T", bodies[i]), "*log.")
				if isRefused {
					refused[name]++
				} else {
					accepted[name]++
				}
			}
		}
	}
	t.Logf("accepted %v, refused %v", accepted, refused)
}
