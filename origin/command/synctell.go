package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/core/partition"
	"github.com/sightline-dev/sightline/origin/system"
	"github.com/sightline-dev/sightline/sync/replica"
)

// progressEvery is the least time between two lines of progress on a terminal.
const progressEvery = 100 * time.Millisecond

// progress shows where the copy stands: on a terminal in one line that changes, elsewhere, with
// --watch, in a line for each change of what it is doing.
func (s *syncer) progress(now *replica.Status) {
	if s.f.quiet {
		return
	}
	if !s.terminal {
		if line := now.Phase.String() + problem(now); s.f.watch && line != s.shown {
			s.shown = line
			fmt.Fprintf(s.out, "%s, entry %d of %d, %d changes not confirmed%s\n", now.Phase, now.Cursor, now.Head, now.Pending(), problem(now))
		}
		return
	}
	if at := system.Now(); at.Sub(s.when) >= progressEvery || now.Settled() {
		s.when = at
		s.line(stand(now))
	}
}

// stand is where a copy stands, in a line.
func stand(now *replica.Status) string {
	parts := []string{now.Phase.String()}
	if now.Pieces > 0 {
		parts = append(parts, fmt.Sprintf("snapshot %d of %d", now.PiecesDone, now.Pieces))
	}
	parts = append(parts, fmt.Sprintf("entry %d of %d", now.Cursor, now.Head))
	if n := now.Pending(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d changes not confirmed", n))
	}
	if n := now.Uploads; n > 0 {
		parts = append(parts, fmt.Sprintf("%d pictures to send", n))
	}
	if n := now.Downloads; n > 0 {
		parts = append(parts, fmt.Sprintf("%d pictures to fetch", n))
	}
	return strings.Join(parts, " · ") + problem(now)
}

func problem(now *replica.Status) string {
	if now.Problem == "" {
		return ""
	}
	return " (" + clean(now.Problem) + ")"
}

// line puts a line in the place of the last one; an empty one leaves none.
func (s *syncer) line(text string) {
	if !s.terminal || s.f.quiet || text == "" && s.shown == "" {
		return
	}
	s.shown = text
	fmt.Fprintf(s.out, "\r\x1b[K%s", text)
}

// conflicts yields the changes that the log did not take as they were meant, and counts them.
func (s *syncer) conflicts(yield func(partition.Conflict)) (n int, err error) {
	err = s.partition.Conflicts(func(c partition.Conflict) bool {
		n++
		yield(c)
		return true
	})
	return n, err
}

// outcome is what became of a sync.
type outcome struct {
	App       string       `json:"app_id"`
	Phase     string       `json:"phase"`
	Site      uint32       `json:"site"`
	Cursor    uint64       `json:"cursor"`
	Head      uint64       `json:"head"`
	Pulled    uint64       `json:"pulled"`
	Confirmed uint64       `json:"confirmed"` // now
	Pending   uint64       `json:"pending"`
	Sent      uint64       `json:"pictures_sent"`
	Got       uint64       `json:"pictures_got"`
	Problem   string       `json:"problem,omitempty"`
	Conflicts []notAsMeant `json:"conflicts"`
}

// notAsMeant is a change that the log did not take as it was meant.
type notAsMeant struct {
	Operation uint64 `json:"operation"`
	What      string `json:"what"`
	Verdict   string `json:"verdict"`
	Detail    string `json:"detail,omitempty"`
}

// tell prints what became of it.
func (s *syncer) tell(w io.Writer) error {
	if s.machine == nil {
		return nil
	}
	now := s.machine.Status()
	o := outcome{
		App: s.app.String(), Phase: now.Phase.String(), Site: uint32(now.Site), Cursor: now.Cursor, Head: now.Head,
		Pulled: now.Cursor - min(s.first.Cursor, now.Cursor), Confirmed: now.Folded - min(s.first.Folded, now.Folded), Pending: now.Pending(),
		Sent: now.BlobsSent, Got: now.BlobsGot, Problem: now.Problem, Conflicts: []notAsMeant{},
	}
	n, err := s.conflicts(func(c partition.Conflict) {
		what, _ := strings.CutPrefix(fmt.Sprintf("%T", c.Op.Body), "*log.")
		o.Conflicts = append(o.Conflicts, notAsMeant{Operation: c.Op.Dot.Seq, What: what, Verdict: c.Verdict.Code.String(), Detail: c.Verdict.Detail})
	})
	if err != nil {
		return err
	}
	if s.last.Settled() {
		o.Phase = s.last.Phase.String() // the machine was stopped since
	}
	switch {
	case s.f.asJSON:
		err = json.NewEncoder(w).Encode(o)
	case !s.f.quiet:
		_, err = fmt.Fprintf(w, "%d entries pulled, %d changes confirmed, %d not yet, %d pictures sent, %d fetched\n", o.Pulled, o.Confirmed, o.Pending, o.Sent, o.Got)
	}
	for _, c := range o.Conflicts {
		if !s.f.asJSON {
			fmt.Fprintf(s.out, "change %d (%s) was not taken as it was meant: %s %s\n", c.Operation, c.What, c.Verdict, clean(c.Detail))
		}
	}
	if err == nil && n > s.told {
		err = errSome
	}
	return err
}
