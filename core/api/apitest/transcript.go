// Package apitest replays transcripts of /v2 on any host: the native service, the module under wazero, a browser. All hosts must give
// the same bytes.
//
// A transcript has settings, then exchanges. An exchange is a request, a blank line, the response and a blank line. Lines that begin with
// '#' before a request are comments.
//
//	set public-app-id main
//
//	# Names are not ids.
//	GET /v2/models/general-v1.3
//
//	404
//	{"status":{"code":11101,"description":"Resource does not exist",…}}
//
// A line "STEP 5s" before a request moves the clock by that time and then runs background work until none is left.
//
// A request is its request line, then header lines if any, then the body unchanged, including line ends. The pseudo-header Remote is the
// caller's address. A response is its HTTP status, then those of its headers that report limits, notices and tags, then the body. A long
// body is shown with one line for each object of a list. The line breaks follow a fixed rule, so the comparison covers every byte.
package apitest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sightline-dev/sightline/core/api"
)

// Transcript is the content of one file.
type Transcript struct {
	Settings  map[string]string // by the name after "set"
	settings  []string
	Exchanges []Exchange
}

// Exchange is a request and its expected response.
type Exchange struct {
	comment string   // with its line ends; includes steps
	steps   []string // durations by which the steps move the clock
	head    string   // request in the form of the file
	Request api.Request
	Status  int
	Header  string // lines of the headers that transcripts show
	Body    string // in the form that breakLines returns
}

// ErrTranscript is returned for an invalid transcript.
var ErrTranscript = errors.New("malformed transcript")

// Parse reads a transcript.
func Parse(text string) (Transcript, error) {
	t := Transcript{Settings: map[string]string{}}
	var comment string
	var steps []string
	var open *Exchange
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		block = strings.Trim(block, "\n")
		if open != nil {
			answered := open.expect(block)
			t.Exchanges = append(t.Exchanges, *open)
			if open = nil; answered {
				continue
			}
		}
		lines := strings.SplitAfter(block, "\n")
		for len(lines) > 0 && (strings.HasPrefix(lines[0], "#") || strings.HasPrefix(lines[0], "set ") || strings.HasPrefix(lines[0], "STEP ")) {
			if step, ok := strings.CutPrefix(strings.TrimSpace(lines[0]), "STEP "); ok {
				steps = append(steps, step)
			}
			if setting, ok := strings.CutPrefix(strings.TrimSpace(lines[0]), "set "); ok {
				name, value, _ := strings.Cut(setting, " ")
				t.Settings[name] = value
				t.settings = append(t.settings, setting)
			} else {
				comment += strings.TrimRight(lines[0], "\n") + "\n"
			}
			lines = lines[1:]
		}
		head := strings.Join(lines, "")
		if strings.TrimSpace(head) == "" {
			if comment != "" {
				comment += "\n"
			}
			continue
		}
		open = &Exchange{comment: comment, steps: steps, head: head}
		comment, steps = "", nil
		if err := open.request(); err != nil {
			return t, err
		}
	}
	if open != nil {
		t.Exchanges = append(t.Exchanges, *open)
	}
	return t, nil
}

func (e *Exchange) request() error {
	line, rest, _ := strings.Cut(e.head, "\n")
	method, target, ok := strings.Cut(line, " ")
	if !ok {
		return fmt.Errorf("%w: request line %q", ErrTranscript, line)
	}
	p, query, _ := strings.Cut(target, "?")
	e.Request = api.Request{Method: method, Path: p, Query: query}
	for rest != "" {
		line, after, _ := strings.Cut(rest, "\n")
		name, value, ok := strings.Cut(line, ": ")
		if !ok || strings.ContainsAny(name, "{[\" ") {
			break
		}
		switch name {
		case "Authorization":
			e.Request.Authorization = value
		case "X-Clarifai-Session-Token":
			e.Request.Session = value
		case "If-None-Match":
			e.Request.Known = value
		case "X-Clarifai-Client":
			e.Request.Client = value
		case "Remote":
			e.Request.Remote = value
		}
		rest = after
	}
	e.Request.Body = []byte(rest)
	return nil
}

// expect parses the expected response. It returns false if the block is not a response, for example after a new request that
// has no recorded answer yet.
func (e *Exchange) expect(block string) bool {
	status, body, _ := strings.Cut(block, "\n")
	n, err := strconv.Atoi(status)
	if err != nil {
		return false
	}
	e.Status, e.Header, e.Body = n, "", body
	for {
		line, rest, _ := strings.Cut(e.Body, "\n")
		if name, _, ok := strings.Cut(line, ": "); !ok || !slices.Contains(transcriptHeaders, name) {
			return true
		}
		e.Header += line + "\n"
		e.Body = rest
	}
}

// transcriptHeaders are the response headers that transcripts show.
var transcriptHeaders = []string{"X-Sightline-Calls-Left", "X-Sightline-Notice", "Retry-After", "ETag", "Vary"}

// headerOf returns the lines of the response headers that transcripts show.
func headerOf(r api.Response) string {
	lines := ""
	for _, f := range r.Header {
		if slices.Contains(transcriptHeaders, f.Name) {
			lines += f.Name + ": " + f.Value + "\n"
		}
	}
	return lines
}

// Format writes a transcript in the form that Parse reads.
func (t Transcript) Format() string {
	var b strings.Builder
	for _, s := range t.settings {
		fmt.Fprintf(&b, "set %s\n", s)
	}
	for _, e := range t.Exchanges {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s%s\n\n%d\n%s", e.comment, e.head, e.Status, e.Header)
		if e.Body != "" {
			b.WriteString(e.Body + "\n")
		}
	}
	return b.String()
}

// breakLines inserts a line break after each comma between two objects of a list.
func breakLines(body []byte) string {
	var b strings.Builder
	quoted := false
	for i, c := range body {
		b.WriteByte(c)
		switch {
		case c == '"' && !isEscaped(body[:i]):
			quoted = !quoted
		case c == ',' && !quoted && i > 0 && body[i-1] == '}' && i+1 < len(body) && body[i+1] == '{':
			b.WriteString("\n ")
		}
	}
	return b.String()
}

// isEscaped reports whether text ends with an odd number of backslashes, which escape the next byte.
func isEscaped(text []byte) bool {
	n := 0
	for i := len(text) - 1; i >= 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

// Server answers one request after another for one application. A request with the method STEP moves the clock by the duration in its
// path.
type Server func(api.Request) api.Response

// Host is a server under test and its transcripts.
type Host struct {
	Files fs.FS                                                 // folder of transcripts, *.txt
	Open  func(t testing.TB, settings map[string]string) Server // returns a fresh server for each transcript
	Write func(t testing.TB, name string, transcript string)    // writes the answers as a new transcript; nil: answers are compared
	Form  Form                                                  // form of the requests and the answers; zero: that of the files
}

// WithoutAccounts returns a folder of transcripts without those about accounts. Only the origin has accounts and counts calls.
func WithoutAccounts(files fs.FS) fs.FS {
	return without{files, []string{"quota.txt", "rate.txt", "sessions.txt"}}
}

// ReplicaTranscripts returns a folder of transcripts without those that a replica answers differently. They depend on ids from the writer
// of an operation, on the history of an input, or on the number of the host's download attempts.
func ReplicaTranscripts(files fs.FS) fs.FS {
	return without{WithoutAccounts(files), []string{"input-outputs.txt", "learning.txt", "inputs-download.txt", "training.txt"}}
}

type without struct {
	fs.FS
	names []string
}

// ReadDir implements [fs.ReadDirFS].
func (w without) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(w.names, e.Name()) }), err
}

// Run replays every transcript against a fresh server.
func Run(t *testing.T, h Host) {
	t.Helper()
	names, err := fs.Glob(h.Files, "*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(path.Base(name), ".txt"), func(t *testing.T) { run(t, h, name) })
	}
}

func run(t *testing.T, h Host, name string) {
	text, err := fs.ReadFile(h.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	formatted := tr.Format() == string(text)
	h.Form.set(&tr)
	serve := h.Open(t, tr.Settings)
	for i := range tr.Exchanges {
		e := &tr.Exchanges[i]
		for _, step := range e.steps {
			serve(api.Request{Method: "STEP", Path: step})
		}
		got := serve(e.Request)
		body := breakLines(got.Body)
		if h.Write != nil {
			e.Status, e.Header, e.Body = got.Status, headerOf(got), body
			continue
		}
		if header := headerOf(got); got.Status != e.Status || header != e.Header || body != e.Body {
			t.Errorf("%s\n\n%d\n%s%s\n\nwant\n\n%d\n%s%s", e.head, got.Status, header, body, e.Status, e.Header, e.Body)
		}
	}
	if h.Write != nil {
		h.Write(t, name, tr.Format())
	} else if !formatted {
		t.Errorf("%s is not as -update writes it", name)
	}
}
