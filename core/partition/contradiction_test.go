package partition_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
)

// contradictoryLabels returns the values of the contradictory labels in a state, in the order of the log.
func contradictoryLabels(t testing.TB, p kind) (all [][]log.Value) {
	t.Helper()
	v := p.View()
	err := v.Contradictions(func(c catalog.Contradiction) bool {
		var values []log.Value
		for _, x := range c.Values {
			values = append(values, x.Label)
		}
		all = append(all, values)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestContradictoryLabels labels an input at two replicas that do not know of each other's labels, and compares what all hosts list.
func TestContradictoryLabels(t *testing.T) {
	submit := func(t *testing.T, p kind, by string, body log.Body) log.Dot {
		t.Helper()
		verdicts, err := p.Submit(t.Context(), by, []log.Body{body}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return verdicts[0].Dot
	}
	label := func(input log.Dot, value log.Value) *log.InputLabels {
		return &log.InputLabels{Input: input, Labels: []log.Label{{Concept: "town", Value: value}}}
	}
	type world struct {
		*copies
		a, b  *testReplica
		input log.Dot
	}
	tests := []struct {
		name string
		act  func(w *world)
		want [][]log.Value
	}{
		{"both contradict each other", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
		}, [][]log.Value{{log.True, log.False}}},
		{"both agree", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.True))
		}, nil},
		{"the second has seen the first", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			w.settle()
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
		}, nil},
		{"one labels twice and never sees the other's", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.Removed))
		}, [][]log.Value{{log.True, log.Removed}}},
		{"one reopens in between", func(w *world) {
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
			w.b = w.reopen(w.b)
			w.replicas[1] = w.b
			submit(t, w.b.Replica, w.b.by, label(w.input, log.True))
		}, nil},
		{"somebody who saw both decides", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
			w.settle()
			submit(t, w.origin, "key", label(w.input, log.True))
		}, nil},
		{"somebody who saw one of them labels", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			w.a.push(w, w.origin, 9)
			submit(t, w.origin, "key", label(w.input, log.Removed))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
		}, [][]log.Value{{log.Removed, log.False}}},
		{"the input is deleted", func(w *world) {
			submit(t, w.a.Replica, w.a.by, label(w.input, log.True))
			submit(t, w.b.Replica, w.b.by, label(w.input, log.False))
			w.settle()
			submit(t, w.origin, "key", &log.InputDelete{Input: w.input})
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &world{copies: newCopies(t, rand.New(rand.NewPCG(1, 1)), 2, false)}
			w.a, w.b = w.replicas[0], w.replicas[1]
			w.input = submit(t, w.origin, "key", create("a"))
			w.settle()
			tt.act(w)
			w.settle()
			for i, p := range []kind{w.origin, w.a.Replica, w.b.Replica} {
				got := contradictoryLabels(t, p)
				if !slices.EqualFunc(got, tt.want, slices.Equal) {
					t.Errorf("host %d lists %v, want %v", i, got, tt.want)
				}
			}
		})
	}
}
