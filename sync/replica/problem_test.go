package replica_test

import (
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/sync/replica"
	"github.com/sightline-dev/sightline/sync/wire"
)

// TestProblemsEnd: the status names a problem only while it exists.
func TestProblemsEnd(t *testing.T) {
	absent := func(name string) *log.InputCreate {
		return &log.InputCreate{Blob: blob.Sum([]byte(name)), ContentType: "image/jpeg"}
	}
	for problem, does := range map[string]func(r *rig){
		"no such blob": func(r *rig) { // the replica has lost pictures
			r.step(replica.Offline{})
			r.write(create("a"), absent("b"), absent("c"), create("d"))
			r.step(replica.Online{})
		},
		"too large": func(r *rig) { // the origin never accepts a picture
			r.instead = func(a *replica.Ask) *wire.Refusal {
				if a.Method != "PUT" {
					return nil
				}
				return &wire.Refusal{Code: wire.RefusedLimit, Detail: "too large"}
			}
			r.write(r.picture(100), create("a"))
		},
		"connection lost": func(r *rig) { // the answer to a push is lost, but the operation arrives in the log
			r.wire = func(a *replica.Ask, _ *replica.Answer) bool { return a.Path != "/v2/sync/push" }
			r.write(create("a"))
		},
	} {
		t.Run(problem, func(t *testing.T) {
			r := newRig(t, replica.Options{})
			r.settle()
			does(r)
			seen := false
			r.run(func() bool {
				p := r.status().Problem
				seen = seen || strings.Contains(p, problem)
				return r.isSettled() && p == ""
			}, 100)
			if !seen {
				t.Error("the status did not name the problem")
			}
			r.wire, r.instead = nil, nil
			r.write(absent("b")) // the same picture is lost again
			r.run(func() bool { return r.isSettled() && r.status().Problem == "" }, 100)
		})
	}
}
