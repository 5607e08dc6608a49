package replica

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/fold"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/sync/wire"
)

// Limits of an audit.
const (
	retryPause = time.Minute // pause before the next try if the log advanced meanwhile
	maxLeaves  = 256         // maximum number of leaves to repair; for more, a snapshot is cheaper
)

// audit compares the confirmed state with the origin's. It starts at the roots of both trees of digests, descends where they differ, and
// takes the origin's keys there:
//
//	   root           equal: done
//	0 1 … f           differs: only 7
//	     70 … 7f      differs: only 73
//	       …  73a1    a leaf: its keys and values replace ours
//
// Both trees must belong to the same entry. If the log has advanced, the audit starts again later. It does not change the outbox.
type audit struct {
	due    time.Duration
	seq    uint64     // entry at which both trees are compared
	tree   *fold.Tree // our tree; nil: no audit is in progress
	todo   []string   // prefixes still to be compared
	leaves int        // number of leaves that differ
	keys   []catalog.Pair
}

// startAudit asks for the next node of the origin's tree.
func (m *Machine) startAudit(l *lane) error {
	a := &m.audit
	c := m.p.Cursor()
	if m.o.Audit < 0 || a.tree == nil && m.at < a.due {
		return nil
	}
	if !m.pull.caught || m.origin.head != c.Seq || c.Seq == 0 || m.session.rebase {
		return nil
	}
	if a.tree != nil && a.seq != c.Seq {
		m.audit = audit{due: m.at + retryPause}
		return nil
	}
	if a.tree == nil {
		a.seq, a.todo = c.Seq, []string{""}
		err := m.p.ReadConfirmed(func(r kv.Reader) (err error) {
			a.tree, err = fold.DigestTree(r, m.o.App)
			return err
		})
		if err != nil {
			return err
		}
	}
	query := m.where("at", strconv.FormatUint(a.seq, 10), "prefix", a.todo[0])
	if len(a.todo[0]) == fold.TreeDepth {
		query = append(query, "values", "1")
	}
	m.ask(l, Ask{Method: "GET", Path: "/v2/sync/digest"}, query...)
	return nil
}

// handleDigests compares one node of the origin's tree with ours.
func (m *Machine) handleDigests(l *lane, body []byte) error {
	d, err := wire.DecodeDigests(body)
	if err != nil {
		return err
	}
	a := &m.audit
	if a.tree == nil || len(a.todo) == 0 {
		return nil
	}
	if d.Epoch != m.session.epoch || d.Seq != a.seq || m.p.Cursor().Seq != a.seq {
		m.audit = audit{due: m.at + retryPause}
		return nil
	}
	prefix := a.todo[0]
	if d.Prefix != prefix {
		return fmt.Errorf("%w: node %q instead of %q", errAnswer, d.Prefix, prefix)
	}
	if len(prefix) == fold.TreeDepth {
		err = m.compareLeaf(prefix, d.Leaves)
	} else {
		err = m.compareNodes(prefix, d.Nodes)
	}
	if err != nil {
		return err
	}
	a.todo = a.todo[1:]
	l.succeeded()
	if a.leaves > maxLeaves {
		m.audit = audit{due: m.at + m.o.Audit}
		m.rebase.force = true
		m.lane[laneAudit].wrong = "audit: most of the state differs from the origin; downloading a snapshot"
		return nil
	}
	if len(a.todo) == 0 {
		return m.endAudit()
	}
	return nil
}

// compareNodes adds the children that differ to todo.
func (m *Machine) compareNodes(prefix string, theirs []wire.Node) error {
	ours, err := m.audit.tree.Children(prefix)
	if err != nil {
		return err
	}
	if len(theirs) != len(ours) {
		return fmt.Errorf("%w: %d children of a node", errAnswer, len(theirs))
	}
	for i := range ours {
		if wire.Node(ours[i]) == theirs[i] {
			continue
		}
		child := prefix + string("0123456789abcdef"[i])
		if m.audit.todo = append(m.audit.todo, child); len(child) == fold.TreeDepth {
			m.audit.leaves++
		}
	}
	return nil
}

// compareLeaf adds the changes that make our leaf equal to theirs.
func (m *Machine) compareLeaf(prefix string, theirs []wire.Digest) error {
	want := map[string][]byte{}
	for i := range theirs {
		if !strings.HasPrefix(blob.Sum(theirs[i].Key).String(), prefix) || theirs[i].Value == nil {
			return fmt.Errorf("%w: key belongs to another leaf", errAnswer)
		}
		want[string(theirs[i].Key)] = theirs[i].Value
	}
	var deletedKeys [][]byte
	err := m.p.ReadConfirmed(func(r kv.Reader) error {
		return fold.KeysBelow(r, m.o.App, prefix, func(key, value []byte) bool {
			is, exists := want[string(key)]
			switch {
			case !exists:
				deletedKeys = append(deletedKeys, slices.Clone(key))
			case string(is) == string(value):
				delete(want, string(key))
			}
			return true
		})
	})
	for _, key := range deletedKeys {
		m.audit.keys = append(m.audit.keys, catalog.Pair{Key: key})
	}
	for i := range theirs {
		if _, differs := want[string(theirs[i].Key)]; differs {
			m.audit.keys = append(m.audit.keys, catalog.Pair{Key: theirs[i].Key, Value: theirs[i].Value})
			delete(want, string(theirs[i].Key))
		}
	}
	return err
}

// endAudit repairs the keys that differ.
func (m *Machine) endAudit() error {
	a := m.audit
	m.audit = audit{due: m.at + m.o.Audit}
	m.origin.audited = m.wall
	if len(a.keys) == 0 {
		return nil
	}
	err := m.p.Repair(context.Background(), a.seq, a.keys)
	if isOriginFault(err) { // the origin's parts do not fit together: download a snapshot
		m.rebase.force = true
		m.lane[laneAudit].wrong = fmt.Sprintf("audit: %v; downloading a snapshot", err)
		return nil
	}
	if err != nil {
		return err
	}
	m.origin.repairs += uint64(len(a.keys))
	m.audit.due = m.at + min(retryPause, m.o.Audit) // audit again to check the repair
	return nil
}
