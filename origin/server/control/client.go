package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/sightline-dev/sightline/core/api"
)

// Caller is the client of a folder that another process has open. It is safe for concurrent use.
type Caller struct {
	http http.Client
}

var _ Folder = (*Caller)(nil)

// NewCaller returns a client of the socket that dial connects to. It connects at the first request.
func NewCaller(dial func(context.Context) (net.Conn, error)) *Caller {
	t := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxIdleConnsPerHost: 16,
		DisableCompression:  true,
	}
	return &Caller{http: http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Close closes the idle connections.
func (c *Caller) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Do implements [Folder].
func (c *Caller) Do(ctx context.Context, name string, in, out any) error {
	res, err := c.send(ctx, "POST", "/"+name, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// send sends a request. It returns a refusal as an error. Otherwise the caller must close the body of the answer.
func (c *Caller) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://control"+path, body)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if err := checkResponse(res); err != nil {
		return nil, errors.Join(err, res.Body.Close())
	}
	return res, nil
}

// checkResponse returns the error in an answer, or nil for a success.
func checkResponse(res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	var f failure
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&f); err != nil || f.Text == "" {
		return fmt.Errorf("control socket: status %d", res.StatusCode)
	}
	return f.err()
}

// Backup implements [Folder].
func (c *Caller) Backup(ctx context.Context, to string, progress func(done, total BackupStats)) (BackupStats, error) {
	res, err := c.send(ctx, "POST", pathBackup, Target{to})
	if err != nil {
		return BackupStats{}, err
	}
	defer res.Body.Close()
	for lines := json.NewDecoder(res.Body); ; {
		var l step
		if err := lines.Decode(&l); err != nil {
			return BackupStats{}, fmt.Errorf("the server stopped during the backup: %w", errors.Join(err, ctx.Err()))
		}
		switch {
		case l.Error != nil:
			return l.Copied, l.Error.err()
		case l.Done:
			return l.Copied, nil
		}
		progress(l.Copied, l.Total)
	}
}

// Picture implements [Folder].
func (c *Caller) Picture(ctx context.Context, name string) (data []byte, contentType string, err error) {
	res, err := c.send(ctx, "GET", pathPicture+"?name="+url.QueryEscape(name), nil)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	data, err = io.ReadAll(res.Body)
	return data, res.Header.Get("Content-Type"), err
}

// Call implements [Folder].
func (c *Caller) Call(ctx context.Context, app string, r *api.Request) (api.Response, error) {
	u := &url.URL{Scheme: "http", Host: "control", RawQuery: r.Query}
	var err error
	if u.Path, err = url.PathUnescape(r.Path); err != nil {
		return api.Response{}, fmt.Errorf("%w: path %q", ErrArgument, r.Path)
	}
	u.RawPath = r.Path
	req := (&http.Request{Method: r.Method, URL: u, Header: http.Header{headerApp: {app}}, Host: "control"}).WithContext(ctx)
	if len(r.Body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	}
	res, err := c.http.Do(req)
	if err != nil {
		return api.Response{}, err
	}
	defer res.Body.Close()
	if res.Header.Get(headerApp) == "" {
		return api.Response{}, checkResponse(res)
	}
	answer := api.Response{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Header: fieldsOf(res.Header)}
	answer.Body, err = io.ReadAll(res.Body)
	return answer, err
}

// fieldsOf returns the headers of an answer of /v2, sorted by name, without those of the connection.
func fieldsOf(h http.Header) (all []api.Field) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch name {
		case headerApp, "Content-Type", "Content-Length", "Date":
		default:
			all = append(all, api.Field{Name: name, Value: h.Get(name)})
		}
	}
	return all
}
