package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// inputs are inputs in a fixed order, so that a seed always draws the same one.
type inputs struct {
	ids  []string
	dots map[string]log.Dot
}

func (s *inputs) add(id string, dot log.Dot) {
	if _, ok := s.dots[id]; !ok {
		s.ids = append(s.ids, id)
	}
	s.dots[id] = dot
}

func (s *inputs) remove(id string) {
	s.ids = slices.DeleteFunc(s.ids, func(x string) bool { return x == id })
	delete(s.dots, id)
}

// draw returns one of the inputs. ok is false if there is none.
func (s *inputs) draw(rng *rand.Rand) (id string, dot log.Dot, ok bool) {
	if len(s.ids) == 0 {
		return "", dot, false
	}
	id = s.ids[rng.IntN(len(s.ids))]
	return id, s.dots[id], true
}

// number is a number that a client appends to the list of an input, in its metadata. Each number is another one.
type number struct {
	value int
	input string
	body  *log.InputMeta
	acked bool // the call was acknowledged, so the list has the number
	never bool // the call got kv.ErrFollows and was not repeated yet, so the list lacks the number
}

// number draws a number for the list of an input.
func (w *world) number(input string, dot log.Dot) *number {
	w.serial++
	w.stats.Appended++
	n := &number{value: w.serial, input: input, body: &log.InputMeta{Input: dot, Writes: []log.MetaWrite{
		{Path: []string{"list"}, Action: log.MetaAppend, JSON: fmt.Appendf(nil, "[%d]", w.serial)},
	}}}
	w.numbers[input] = append(w.numbers[input], n)
	return n
}

// appendNumber appends a number to the list of an input. A call that got kv.ErrFollows has written nothing, so the client repeats it, at any
// node. It repeats no other call.
func (w *world) appendNumber(p *process) error {
	origin, err := p.engine.Origin(w.app.String())
	if err != nil {
		return err
	}
	var x *number
	if len(w.repeats) > 0 {
		x, w.repeats = w.repeats[0], w.repeats[1:]
		x.never = false
		w.stats.Repeated++
	} else if id, dot, ok := w.inputs.draw(w.rng); ok {
		x = w.number(id, dot)
	} else {
		return nil
	}
	verdicts, err := origin.Submit(context.Background(), "key", []log.Body{x.body}, nil)
	switch {
	case err == nil:
		x.acked = verdicts[0].Code == fold.OK // otherwise a call has deleted the input
	case errors.Is(err, kv.ErrFollows):
		x.never = true
		w.repeats = append(w.repeats, x)
	}
	return err
}

// checkNumbers checks that the list of an input has each acknowledged number once, and no number twice.
func (o *oracle) checkNumbers(in *catalog.Input) error {
	var meta struct {
		List []int `json:"list"`
	}
	if data := in.Meta.JSON(); len(data) > 0 {
		if err := json.Unmarshal(data, &meta); err != nil {
			return err
		}
	}
	times := map[int]int{}
	for _, x := range meta.List {
		if times[x]++; times[x] > 1 {
			return fmt.Errorf("the number %d occurs twice", x)
		}
	}
	for _, x := range o.numbers[in.ID] {
		switch n := times[x.value]; {
		case x.acked && n == 0:
			return fmt.Errorf("the acknowledged number %d is lost", x.value)
		case x.never && n > 0:
			return fmt.Errorf("the number %d is in the list, and its call got kv.ErrFollows", x.value)
		}
	}
	return nil
}
