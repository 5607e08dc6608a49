package sim

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// oracle knows what the clients know, and what the logs had.
type oracle struct {
	serial  int
	inputs  inputs          // acknowledged inputs that no call has deleted
	deleted map[string]bool // inputs whose deletion was acknowledged
	never   map[string]bool // inputs that got kv.ErrFollows
	spent   int64           // acknowledged calls of the account

	numbers    map[string][]*number // of the lists of inputs
	repeats    []*number            // numbers that no log has, for a further call
	listed     map[log.Dot]bool     // acknowledged conflicts
	dismissed  map[log.Dot]bool     // conflicts that an acknowledged call has dismissed
	dismissals map[log.Dot]int      // number of calls that have dismissed a conflict, or may have

	content map[log.Dot]string // entries of all logs, by their names
	states  map[int64]state    // state of the application at a position
}

// state is the state of an application.
type state struct {
	digest    [32]byte
	conflicts []log.Dot
}

func newOracle() oracle {
	return oracle{
		inputs: inputs{dots: map[string]log.Dot{}}, deleted: map[string]bool{}, never: map[string]bool{},
		numbers: map[string][]*number{}, listed: map[log.Dot]bool{}, dismissed: map[log.Dot]bool{}, dismissals: map[log.Dot]int{},
		content: map[log.Dot]string{}, states: map[int64]state{},
	}
}

// check checks that a state has every acknowledged write, and nothing else that the clients know of.
func (o *oracle) check(p *partition.Origin) error {
	v := p.View()
	defer v.Close()
	for _, id := range o.inputs.ids {
		in, err := v.InputByID(id)
		if err != nil || in.Dot != o.inputs.dots[id] {
			return errors.Join(fmt.Errorf("the acknowledged input %s is lost", id), err)
		}
		if err := o.checkNumbers(&in); err != nil {
			return fmt.Errorf("input %s: %w", id, err)
		}
	}
	for _, gone := range []map[string]bool{o.deleted, o.never} {
		for id := range gone {
			if _, err := v.InputByID(id); !errors.Is(err, catalog.ErrNotFound) {
				return errors.Join(fmt.Errorf("the input %s exists", id), err)
			}
		}
	}
	return o.checkConflicts(p)
}

// observe reads the new entries of a node's log, and sometimes compares the state with those of other nodes at the same position.
func (w *world) observe(n *node) {
	p, err := n.engine.Origin(w.app.String())
	if err == nil {
		l := p.Log()
		from := max(n.checked+1, l.Floor())
		err = l.Read(from, func(e log.Entry) bool {
			n.checked = e.Seq
			content := fmt.Sprint(e.Seq, log.Encode(nil, &e.Op))
			if was, ok := w.content[e.Op.Dot]; ok && was != content {
				w.fail(fmt.Errorf("the name %v has two contents", e.Op.Dot))
			}
			w.content[e.Op.Dot] = content
			return true
		})
	}
	if err != nil {
		w.fail(fmt.Errorf("node %s: read the log: %w", n.self, err))
	}
	if w.rng.IntN(4) == 0 {
		w.fail(w.compareState(n))
	}
}

// compareState compares the state of a node, at which no call waits, with others at the same position.
func (w *world) compareState(n *node) error {
	at, _ := n.store.Position()
	digest, err := fold.Digest(n.store, w.app)
	if err != nil {
		return err
	}
	p, err := n.engine.Origin(w.app.String())
	if err != nil {
		return err
	}
	state := state{digest: digest}
	if state.conflicts, err = listConflicts(p); err != nil {
		return err
	}
	was, ok := w.states[at.Version]
	switch {
	case ok && was.digest != state.digest:
		return fmt.Errorf("node %s: another state at record %d", n.self, at.Version)
	case ok && !slices.Equal(was.conflicts, state.conflicts):
		return fmt.Errorf("node %s: the conflicts %v at record %d, and %v at another node", n.self, state.conflicts, at.Version, was.conflicts)
	}
	w.states[at.Version] = state
	w.stats.Compared++
	return nil
}

// compare compares all nodes, which have shown all events.
func (w *world) compare() error {
	ids, err := w.nodes[0].engine.Register.IDs()
	if err != nil {
		return err
	}
	var first string
	for _, n := range w.nodes {
		w.observe(n)
		var all bytes.Buffer
		for _, id := range append([]string{catalog.Control.String()}, ids...) {
			app, err := catalog.ParseAppID(id)
			if err != nil && id != catalog.Control.String() {
				return err
			}
			digest, err := fold.Digest(n.store, app)
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, "%s %x\n", id, digest)
		}
		purges, err := n.engine.Register.Reader().Purges()
		fmt.Fprintln(&all, purges, err)
		for key, value := range kv.Range(n.store, []byte("u"), []byte("v"), &err) {
			fmt.Fprintf(&all, "%q %x\n", key, value)
		}
		if err != nil {
			return err
		}
		if first == "" {
			first = all.String()
		}
		if all.String() != first {
			return fmt.Errorf("node %s differs from the first one: %s", n.self, cmp.Diff(first, all.String()))
		}
		_, err = n.accounts.VerifyAudit()
		var origin *partition.Origin
		if err == nil {
			origin, err = n.engine.Origin(w.app.String())
		}
		if err == nil {
			err = w.compareState(n)
		}
		if err == nil {
			err = w.oracle.check(origin)
		}
		if err != nil {
			return fmt.Errorf("node %s, in the end: %w", n.self, err)
		}
	}
	return nil
}
