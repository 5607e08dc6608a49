//go:build !wasip1

package partition_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/kv/kvtest"
	"github.com/sightline-dev/sightline/core/kv/memkv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/core/testkit"
)

// TestPartitionIsLinearizable lets several clients read and write a few ids of a partition at once. Each history must have a sequential
// order in which a plain map gives the same answers.
func TestPartitionIsLinearizable(t *testing.T) {
	for seed := range testkit.Seeds(t, 200, 20_000) {
		calls := history(t, seed)
		if !porcupine.CheckOperations(register, calls) {
			for _, c := range calls {
				t.Logf("%d…%d client %d: %s", c.Call, c.Return, c.ClientId, register.DescribeOperation(c.Input, c.Output))
			}
			t.Errorf("seed %d: no order of these calls explains their answers", seed)
		}
	}
}

// callInput is a call: create, delete, label, read or list.
type callInput struct {
	kind  string
	id    string
	dot   log.Dot // input to delete or to label
	value log.Value
}

// callOutput is the answer of a call.
type callOutput struct {
	code  fold.Code
	dot   log.Dot   // created, conflicting or read input; zero: none
	value log.Value // value that was read
	list  string    // ids in the order of creation
}

// lives are the inputs of the model, in the order of creation.
type lives []life

type life struct {
	id    string
	dot   log.Dot
	value log.Value
}

// register is a map from ids to labels, and the list of its ids.
var register = porcupine.Model{
	Init: func() any { return lives(nil) },
	Step: func(state, input, output any) (bool, any) {
		return state.(lives).step(input.(callInput), output.(callOutput))
	},
	Equal: func(a, b any) bool { return slices.Equal(a.(lives), b.(lives)) },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v → %+v", input, output)
	},
}

func (s lives) step(in callInput, out callOutput) (bool, lives) {
	byID := slices.IndexFunc(s, func(l life) bool { return l.id == in.id })
	byDot := slices.IndexFunc(s, func(l life) bool { return l.dot == in.dot })
	switch in.kind {
	case "create":
		if byID >= 0 {
			return out.code == fold.Duplicate && out.dot == s[byID].dot, s
		}
		return out.code == fold.OK, append(s[:len(s):len(s)], life{id: in.id, dot: out.dot})
	case "delete":
		if byDot < 0 {
			return out.code == fold.Gone, s
		}
		return out.code == fold.OK, slices.Delete(slices.Clone(s), byDot, byDot+1)
	case "label":
		if byDot < 0 {
			return out.code == fold.Gone, s
		}
		next := slices.Clone(s)
		next[byDot].value = in.value
		return out.code == fold.OK, next
	case "read":
		if byID < 0 {
			return out.dot == log.Dot{}, s
		}
		return out.dot == s[byID].dot && out.value == s[byID].value, s
	}
	var ids []string
	for _, l := range s {
		ids = append(ids, l.id)
	}
	return out.list == strings.Join(ids, " "), s
}

// slow is a store whose syncs take a while, so that calls overlap.
type slow struct{ kv.Store }

func (s slow) Commit(b *kv.Batch) (func() error, error) {
	wait, err := s.Store.Commit(b)
	return func() error {
		for range 3 {
			runtime.Gosched()
		}
		return wait()
	}, err
}

// history runs concurrent clients and returns their calls.
func history(t *testing.T, seed uint64) []porcupine.Operation {
	p := open(t, slow{kvtest.OrLate(t, memkv.New())})
	var (
		now   atomic.Int64
		mu    sync.Mutex
		calls []porcupine.Operation
		dots  = []log.Dot{{Writer: 9, Seq: 9}}
		group sync.WaitGroup
	)
	for client := range 4 {
		rng := rand.New(rand.NewPCG(seed, uint64(client)))
		group.Go(func() {
			for range 8 {
				mu.Lock()
				in := callInput{
					kind: []string{"create", "create", "delete", "label", "label", "read", "read", "list"}[rng.IntN(8)],
					id:   string(rune('a' + rng.IntN(3))), dot: dots[len(dots)-1-rng.IntN(min(len(dots), 3))], value: log.Value(rng.IntN(3)),
				}
				mu.Unlock()
				start := now.Add(1)
				out, err := call(p, in)
				end := now.Add(1)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				calls = append(calls, porcupine.Operation{ClientId: client, Input: in, Call: start, Output: out, Return: end})
				if in.kind == "create" && out.code == fold.OK {
					dots = append(dots, out.dot)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return calls
}

// call makes one call.
func call(p *partition.Origin, in callInput) (callOutput, error) {
	var body log.Body
	switch in.kind {
	case "create":
		body = create(in.id)
	case "delete":
		body = &log.InputDelete{Input: in.dot}
	case "label":
		body = &log.InputLabels{Input: in.dot, Labels: []log.Label{{Concept: "x", Value: in.value}}}
	default:
		return look(p, in)
	}
	v, err := p.Submit(context.Background(), "", []log.Body{body}, nil)
	if err != nil {
		return callOutput{}, err
	}
	out := callOutput{code: v[0].Code}
	if in.kind == "create" {
		out.dot = v[0].Dot
	}
	return out, nil
}

// look makes a read or list call in a view.
func look(p *partition.Origin, in callInput) (out callOutput, err error) {
	v := p.View()
	if in.kind == "list" {
		var ids []string
		err = v.Inputs(0, func(in catalog.Input) bool {
			ids = append(ids, in.ID)
			return true
		})
		out.list = strings.Join(ids, " ")
		return out, errors.Join(err, v.Close())
	}
	input, err := v.InputByID(in.id)
	switch {
	case errors.Is(err, catalog.ErrNotFound):
		return out, v.Close()
	case err != nil:
		return out, err
	}
	out.dot = input.Dot
	for _, l := range input.Labels {
		out.value = l.Value
	}
	return out, v.Close()
}
