package program

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/cli"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/replica"
)

// progressEvery is the minimum time between two updates of the progress line on a terminal.
const progressEvery = 100 * time.Millisecond

// progress shows the replica's status. On a terminal it updates one line. Otherwise, with --watch, it prints a line for each change of
// phase or problem.
func (s *syncer) progress(now *replica.Status) {
	if s.f.quiet {
		return
	}
	if !s.terminal {
		if line := now.Phase.String() + problem(now); s.f.watch && line != s.lastLine {
			s.lastLine = line
			fmt.Fprintf(s.out, "%s, entry %d of %d, %d changes pending%s\n", now.Phase, now.Cursor, now.Head, now.Pending(), problem(now))
		}
		return
	}
	if at := system.Now(); at.Sub(s.when) >= progressEvery || now.IsSettled() {
		s.when = at
		s.line(formatStatus(now))
	}
}

// formatStatus returns the status of a replica as a line.
func formatStatus(now *replica.Status) string {
	parts := []string{now.Phase.String()}
	if now.Chunks > 0 {
		parts = append(parts, fmt.Sprintf("snapshot %d of %d", now.ChunksDone, now.Chunks))
	}
	parts = append(parts, fmt.Sprintf("entry %d of %d", now.Cursor, now.Head))
	if n := now.Pending(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d changes pending", n))
	}
	if n := now.Uploads; n > 0 {
		parts = append(parts, fmt.Sprintf("%d pictures to upload", n))
	}
	if n := now.Downloads; n > 0 {
		parts = append(parts, fmt.Sprintf("%d pictures to download", n))
	}
	return strings.Join(parts, " · ") + problem(now)
}

func problem(now *replica.Status) string {
	if now.Problem == "" {
		return ""
	}
	return " (" + server.Printable(now.Problem) + ")"
}

// line replaces the last line on a terminal. An empty text removes it.
func (s *syncer) line(text string) {
	if !s.terminal || s.f.quiet || text == "" && s.lastLine == "" {
		return
	}
	s.lastLine = text
	fmt.Fprintf(s.out, "\r\x1b[K%s", text)
}

// conflicts returns the changes that the log did not accept as intended, from the replica's API.
func (s *syncer) conflicts(ctx context.Context) (all []conflict, err error) {
	err = cli.Pages(ctx, cli.LocalSession(s.node, s.app.String()), "/v2/sync/conflicts", "conflicts", func(c *conflict) error {
		all = append(all, *c)
		return nil
	})
	return all, err
}

// dismiss deletes the listed conflicts from the replica's list. Contradictions stay, because their deletion decides for everybody.
func (s *syncer) dismiss(ctx context.Context, list []conflict) error {
	replica := cli.LocalSession(s.node, s.app.String())
	for i := range list {
		if list[i].contradicts() {
			continue
		}
		if err := cli.SendRequest(ctx, replica, "DELETE", "/v2/sync/conflicts/"+list[i].ID, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// outcome is the result of a sync.
type outcome struct {
	App       string     `json:"app_id"`
	Phase     string     `json:"phase"`
	Cursor    uint64     `json:"cursor"`
	Head      uint64     `json:"head"`
	Pulled    uint64     `json:"pulled"`
	Confirmed uint64     `json:"confirmed"` // during this run
	Pending   uint64     `json:"pending"`
	Sent      uint64     `json:"pictures_sent"`
	Got       uint64     `json:"pictures_got"`
	Problem   string     `json:"problem,omitempty"`
	Conflicts []conflict `json:"conflicts"`
}

// conflict is a change that the log did not accept as intended, or a contradiction, in the API's form.
type conflict struct {
	ID       string          `json:"id"`
	Writer   string          `json:"writer,omitempty"`
	Seq      uint64          `json:"seq,omitempty"`
	At       string          `json:"at,omitempty"`
	By       string          `json:"by,omitempty"`
	Kind     string          `json:"kind,omitempty"`
	Field    string          `json:"field,omitempty"` // of a contradiction
	Input    string          `json:"input_id,omitempty"`
	Concept  string          `json:"concept_id,omitempty"`
	Model    string          `json:"model_id,omitempty"`
	Version  string          `json:"version_id,omitempty"`
	Workflow string          `json:"workflow_id,omitempty"`
	Path     []string        `json:"path,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	Values   json.RawMessage `json:"values,omitempty"` // of a contradiction
	Verdict  string          `json:"verdict"`
	Reason   string          `json:"reason"`
	Position uint64          `json:"position,omitempty"`
}

// contradicts reports whether it is a contradiction, which a person decides with a page or a call.
func (c *conflict) contradicts() bool { return c.Verdict == "contradiction" }

// about returns a description of the operation and its subject.
func (c *conflict) about() string {
	kind := cmp.Or(c.Kind, c.Field)
	for _, x := range [][2]string{{"input", c.Input}, {"concept", c.Concept}, {"model", c.Model}, {"workflow", c.Workflow}} {
		if x[1] != "" {
			return kind + " of " + x[0] + " " + server.Printable(x[1])
		}
	}
	return kind
}

// printResult prints the result of the sync.
func (s *syncer) printResult(ctx context.Context, w io.Writer) error {
	if s.machine == nil {
		return nil
	}
	now := s.machine.Status()
	o := outcome{
		App: s.app.String(), Phase: now.Phase.String(), Cursor: now.Cursor, Head: now.Head,
		Pulled: now.Cursor - min(s.first.Cursor, now.Cursor), Confirmed: now.Folded - min(s.first.Folded, now.Folded), Pending: now.Pending(),
		Sent: now.BlobsSent, Got: now.BlobsGot, Problem: now.Problem, Conflicts: []conflict{},
	}
	if s.purge == nil || s.purge.KeepOutbox { // otherwise the replica no longer exists
		list, err := s.conflicts(ctx)
		if err != nil {
			return err
		}
		o.Conflicts = append(o.Conflicts, list...)
	}
	var err error
	if s.last.IsSettled() {
		o.Phase = s.last.Phase.String() // the machine was stopped meanwhile
	}
	switch {
	case s.f.asJSON:
		err = server.NewJSONEncoder(w).Encode(o)
	case !s.f.quiet:
		_, err = fmt.Fprintf(w, "%d entries pulled, %d changes confirmed, %d pending, %d pictures uploaded, %d downloaded\n", o.Pulled, o.Confirmed, o.Pending, o.Sent, o.Got)
	}
	for _, c := range o.Conflicts {
		switch {
		case s.f.asJSON:
		case c.contradicts():
			fmt.Fprintf(s.out, "contradiction: %s (%s): %s Values: %s\n", c.ID, c.about(), server.Printable(c.Reason), server.Printable(string(c.Values)))
		default:
			fmt.Fprintf(s.out, "conflict: change %s (%s): %s Content: %s\n", c.ID, c.about(), server.Printable(c.Reason), server.Printable(string(c.Content)))
		}
	}
	if err == nil && s.f.dismiss {
		err = s.dismiss(ctx, o.Conflicts)
	}
	if err == nil && len(o.Conflicts) > s.oldConflicts {
		err = server.ExitError(server.ExitPartial)
	}
	return err
}
