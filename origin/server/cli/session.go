package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/control"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Object is a JSON object in a request.
type Object = map[string]any

// target selects the application of a command.
type target struct {
	url, key string // URL of a server and key of the application; or
	data     string // path of a data folder, and
	app      string // id of the application, if the folder has several
}

// targetHelp is the end of the help of each command that works on an application.
const targetHelp = `

Give --key to use a server (--url), or --data to work directly on a data folder without a key,
whether or not a server is running. If the folder holds several applications, name one with
--app.`

func (w *target) flags(cmd *cobra.Command, env *server.Env) {
	f := cmd.Flags()
	f.StringVar(&w.url, "url", "", "`URL` of the server (default: SIGHTLINE_URL, or http://127.0.0.1:8080)")
	f.StringVar(&w.key, "key", "", "API `key` of the application (default: SIGHTLINE_KEY)")
	f.StringVar(&w.data, "data", "", "data `folder` to work on directly")
	f.StringVar(&w.app, "app", "", "`ID` of the application, with --data")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if w.data != "" && (w.url != "" || w.key != "") {
			return server.Usagef("--data cannot be combined with --url or --key")
		}
		if w.app != "" && w.data == "" {
			return server.Usagef("--app needs --data; with --key the application is the key's")
		}
		w.url = cmp.Or(w.url, env.Lookup(server.EnvPrefix+"URL"), "http://127.0.0.1:8080")
		w.key = cmp.Or(w.key, env.Lookup(server.EnvPrefix+"KEY"))
		return nil
	}
}

// Session sends /v2 requests to one application, of a server or of a data folder.
type Session interface {
	// call sends one request and returns the answer. An error means that no answer came.
	call(ctx context.Context, method, path string, body []byte) (reply, error)
	// picture reads the original of a hosted picture. address and sha256 come from an answer. The error is a *missingPicture if this picture
	// cannot be read although its server works.
	picture(ctx context.Context, address, sha256 string) (data []byte, contentType string, err error)
	close() error
}

// reply is an answer of the API.
type reply struct {
	status     int // HTTP status
	body       []byte
	retryAfter time.Duration // time after which the server accepts the request; 0: unknown
	notices    string        // header with notices; empty: none
}

// isBusy reports whether the server refused the request and may accept it later.
func (r *reply) isBusy() bool {
	return r.status == http.StatusTooManyRequests || r.status == http.StatusServiceUnavailable || r.status == http.StatusGatewayTimeout
}

// seconds returns the time in a header Retry-After; 0: none.
func seconds(retryAfter string) time.Duration {
	n, err := strconv.ParseUint(strings.TrimSpace(retryAfter), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

// missingPicture is the reason why a picture cannot be read.
type missingPicture struct{ error }

func (m *missingPicture) Unwrap() error { return m.error }

// open starts a session with the selected application.
func (w *target) open(ctx context.Context, env *server.Env) (Session, error) {
	if w.data != "" {
		service, done, err := server.Attach(ctx, w.data, env, server.Use{Background: true})
		if err != nil {
			return nil, err
		}
		app, err := ChooseApp(ctx, service, w.app)
		if err != nil {
			return nil, errors.Join(err, done())
		}
		return &local{service, app, done}, nil
	}
	if w.key == "" {
		return nil, server.Usagef("no application given: use --key (or SIGHTLINE_KEY), or --data")
	}
	base, err := url.Parse(w.url)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, server.Usagef("--url %q is not a URL such as http://127.0.0.1:8080", w.url)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true, ResponseHeaderTimeout: 6 * time.Minute}
	return &remote{base: strings.TrimRight(w.url, "/"), key: w.key, client: &http.Client{Transport: transport}}, nil
}

// ChooseApp returns the id of the application that --app names. For an empty id it returns the only application.
func ChooseApp(ctx context.Context, s control.Folder, id string) (string, error) {
	apps, err := control.Apps.Do(ctx, s, control.Nothing{})
	if err != nil {
		return "", err
	}
	var known []string
	for _, a := range apps {
		if a.ID == id {
			return id, nil
		}
		known = append(known, "  "+a.ID+"  "+server.Printable(a.Name))
	}
	switch {
	case id != "":
		return "", server.Usagef("--app %s: application not found; available:\n%s", id, strings.Join(known, "\n"))
	case len(apps) == 1:
		return apps[0].ID, nil
	case len(apps) == 0:
		return "", errors.New("no application in this folder; create one with 'app create NAME --data DIR'")
	}
	return "", server.Usagef("--app is required: the folder has several applications:\n%s", strings.Join(known, "\n"))
}

// LocalSession returns a session with an application of an open data folder. The caller closes the folder.
func LocalSession(f control.Folder, app string) Session {
	return &local{f, app, func() error { return nil }}
}

// local is a session with an application of a data folder.
type local struct {
	service control.Folder
	app     string
	done    func() error
}

func (l *local) call(ctx context.Context, method, path string, body []byte) (reply, error) {
	path, query, _ := strings.Cut(path, "?")
	res, err := l.service.Call(ctx, l.app, &api.Request{Method: method, Path: path, Query: query, Body: body})
	got := reply{status: res.Status, body: res.Body}
	for _, f := range res.Header {
		switch f.Name {
		case "Retry-After":
			got.retryAfter = seconds(f.Value)
		case api.HeaderNotice:
			got.notices = f.Value
		}
	}
	return got, err
}

func (l *local) picture(ctx context.Context, address, _ string) ([]byte, string, error) {
	name, err := hostedName(address)
	if err != nil {
		return nil, "", err
	}
	data, contentType, err := l.service.Picture(ctx, name)
	if err != nil {
		return nil, "", &missingPicture{err}
	}
	return data, contentType, nil
}

// hostedName returns the name in the address of a hosted picture.
func hostedName(address string) (string, error) {
	_, name, ok := strings.Cut(address, api.HostedPath)
	if !ok {
		return "", &missingPicture{fmt.Errorf("%s is not a picture of this server", address)}
	}
	return name, nil
}

func (l *local) close() error { return l.done() }

// remote is a session over HTTP.
type remote struct {
	base, key string
	client    *http.Client
}

// maxAnswer is the maximum number of bytes of an answer.
const maxAnswer = 256 << 20

func (r *remote) call(ctx context.Context, method, path string, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Authorization", "Key "+r.key)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	got, _, err := r.do(req)
	if err != nil {
		return reply{}, err
	}
	return got, nil
}

// maxCuts is the number of incomplete downloads after which a picture counts as damaged. The server sends a damaged picture incomplete, each
// time. A bad connection rarely cuts so many in succession.
const maxCuts = 3

// picture downloads from the session's server, even if address has another host. It waits for as long as the server asks. If the server does
// not answer, or is busy without a time, picture tries for half a minute.
func (r *remote) picture(ctx context.Context, address, sha256 string) ([]byte, string, error) {
	name, err := hostedName(address)
	if err != nil {
		return nil, "", err
	}
	cuts := 0
	for wait := firstWait; ; {
		req, err := http.NewRequestWithContext(ctx, "GET", r.base+api.HostedPath+name+"/"+sha256, nil)
		if err != nil {
			return nil, "", err
		}
		got, header, err := r.do(req)
		isCut := err != nil && got.status == http.StatusOK
		if err == nil && got.status == http.StatusOK {
			return got.body, header.Get("Content-Type"), nil
		}
		if err == nil {
			err = fmt.Errorf("%s: HTTP status %d", address, got.status)
		}
		pause := wait
		switch {
		case ctx.Err() != nil:
			return nil, "", errors.Join(err, ctx.Err())
		case got.status == http.StatusNotFound:
			return nil, "", &missingPicture{err}
		case isCut:
			if cuts++; cuts == maxCuts {
				return nil, "", &missingPicture{err}
			}
		case got.isBusy() && got.retryAfter > 0:
			pause = min(got.retryAfter, maxPause)
		case got.status != 0 && !got.isBusy() || wait > lastWait:
			return nil, "", err
		default:
			wait *= 2
		}
		system.Pause(ctx, pause)
	}
}

// do sends a request. If the body of the answer is incomplete, do returns the answer without it, and an error.
func (r *remote) do(req *http.Request) (reply, http.Header, error) {
	res, err := r.client.Do(req)
	if err != nil {
		return reply{}, nil, err
	}
	got := reply{status: res.StatusCode, retryAfter: seconds(res.Header.Get("Retry-After")), notices: res.Header.Get(api.HeaderNotice)}
	got.body, err = system.ReadAll(res.Body, maxAnswer)
	return got, res.Header, errors.Join(err, res.Body.Close())
}

func (r *remote) close() error {
	r.client.CloseIdleConnections()
	return nil
}

// StatusError is an answer of the API other than a success.
type StatusError struct {
	HTTP int
	Status
}

func (w *StatusError) Error() string { return w.Err().Error() }

// SendRequest sends a request and retries it while the server is busy or restarts. It decodes the answer into out. For an answer other than
// a success it also returns a *StatusError.
func SendRequest(ctx context.Context, s Session, method, path string, in, out any) error {
	_, err := ask(ctx, s, method, path, in, out)
	return err
}

// notice is a notice of a successful answer.
type notice struct{ At, Text string }

// ask is SendRequest. It also returns the notices of the answer.
func ask(ctx context.Context, s Session, method, path string, in, out any) (notices []notice, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	got, err := persist(ctx, s, method, path, body)
	if err != nil {
		return nil, err
	}
	var envelope struct{ Status Status }
	if err := json.Unmarshal(got.body, &envelope); err != nil {
		return nil, fmt.Errorf("%s %s: unexpected response (HTTP %d); is this a Sightline server?", method, path, got.status)
	}
	if out != nil {
		if err := json.Unmarshal(got.body, out); err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	if envelope.Status.Code != 10000 {
		return nil, &StatusError{got.status, envelope.Status}
	}
	_ = json.Unmarshal([]byte(got.notices), &notices) // a malformed header has none
	return notices, nil
}

// Pauses between attempts double up to lastWait, and are longer if the server asks for more.
const (
	firstWait = 250 * time.Millisecond
	lastWait  = 16 * time.Second
	maxPause  = time.Minute     // maximum pause that a server can ask for
	maxWait   = 2 * time.Minute // maximum sum of the pauses of persist
)

// persist sends a request until the answer is not "busy", for about half a minute, or up to maxWait if the server asks for that. Then it
// returns the last answer or error. It returns an answer at once that asks for more than maxPause.
func persist(ctx context.Context, s Session, method, path string, body []byte) (got reply, err error) {
	waited := time.Duration(0)
	for wait := firstWait; ; wait *= 2 {
		got, err = s.call(ctx, method, path, body)
		pause := max(wait, got.retryAfter)
		if ctx.Err() != nil || err == nil && !got.isBusy() || wait > lastWait || pause > maxPause || waited+pause > maxWait || !transient(err) {
			return got, errors.Join(err, ctx.Err())
		}
		system.Pause(ctx, pause)
		waited += pause
	}
}

// transient reports whether a retry may succeed: the server is restarting, or the connection is bad.
func transient(err error) bool {
	var wrong server.UsageError
	return err == nil || !errors.As(err, &wrong) && !control.IsMistake(err)
}

// page returns the query for page n, counted from 1.
func page(n, rows int) string {
	return "page=" + strconv.Itoa(n) + "&per_page=" + strconv.Itoa(rows)
}

// Status is the status of an answer.
type Status struct {
	Code        int
	Description string
	Details     string
}

// Err returns the status as an error.
func (s Status) Err() error {
	if s.Details == "" {
		return fmt.Errorf("%s (%d)", s.Description, s.Code)
	}
	return fmt.Errorf("%s (%d): %s", s.Description, s.Code, s.Details)
}
