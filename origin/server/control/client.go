package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/sightline-dev/sightline/core/api"
)

// Caller is the service at the other end of a socket. It is safe for concurrent use.
type Caller struct {
	http      http.Client
	transport *http.Transport
}

var _ Service = (*Caller)(nil)

// NewCaller makes a caller of the socket that dial connects to. It connects when it is used.
func NewCaller(dial func(context.Context) (net.Conn, error)) *Caller {
	t := &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		MaxIdleConnsPerHost: 16,
		DisableCompression:  true,
	}
	return &Caller{http: http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, transport: t}
}

// Close closes the connections that nobody uses.
func (c *Caller) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

// CreateApp implements [Service].
func (c *Caller) CreateApp(ctx context.Context, a NewApp) (App, Client, error) {
	var out createdApp
	err := c.do(ctx, "POST", pathApps, a, &out)
	return out.App, out.Client, err
}

// ChangeApp implements [Service].
func (c *Caller) ChangeApp(ctx context.Context, id string, change AppChange) (out App, err error) {
	err = c.do(ctx, "POST", pathChange, changeApp{id, change}, &out)
	return out, err
}

// Contents implements [Service].
func (c *Caller) Contents(ctx context.Context, id string) (out Contents, err error) {
	err = c.do(ctx, "POST", pathContents, named{id}, &out)
	return out, err
}

// DeleteApp implements [Service].
func (c *Caller) DeleteApp(ctx context.Context, id string) error {
	return c.do(ctx, "POST", pathDelete, named{id}, &struct{}{})
}

// ReplaceSecret implements [Service].
func (c *Caller) ReplaceSecret(ctx context.Context, app string) (out Client, err error) {
	err = c.do(ctx, "POST", pathSecret, named{app}, &out)
	return out, err
}

// RevokeTokens implements [Service].
func (c *Caller) RevokeTokens(ctx context.Context, app string) error {
	return c.do(ctx, "POST", pathRevoke, named{app}, &struct{}{})
}

// Apps implements [Service].
func (c *Caller) Apps(ctx context.Context) (out []App, err error) {
	err = c.do(ctx, "GET", pathApps, nil, &out)
	return out, err
}

// CreateKey implements [Service].
func (c *Caller) CreateKey(ctx context.Context, k NewKey) (string, Key, error) {
	var out createdKey
	err := c.do(ctx, "POST", pathKeys, k, &out)
	return out.Key, out.Record, err
}

// DeleteKey implements [Service].
func (c *Caller) DeleteKey(ctx context.Context, id string) error {
	return c.do(ctx, "POST", pathKeyDelete, named{id}, &struct{}{})
}

// ReplaceKey implements [Service].
func (c *Caller) ReplaceKey(ctx context.Context, id string) (string, Key, error) {
	var out createdKey
	err := c.do(ctx, "POST", pathKeyReplace, named{id}, &out)
	return out.Key, out.Record, err
}

// Keys implements [Service].
func (c *Caller) Keys(ctx context.Context, app string) (out []Key, err error) {
	err = c.do(ctx, "GET", pathKeys+"?app_id="+url.QueryEscape(app), nil, &out)
	return out, err
}

// CreateEdge implements [Service].
func (c *Caller) CreateEdge(ctx context.Context, e NewEdge) (string, Edge, error) {
	var out createdEdge
	err := c.do(ctx, "POST", pathEdges, e, &out)
	return out.Token, out.Record, err
}

// Edges implements [Service].
func (c *Caller) Edges(ctx context.Context) (out []Edge, err error) {
	err = c.do(ctx, "GET", pathEdges, nil, &out)
	return out, err
}

// RevokeEdge implements [Service].
func (c *Caller) RevokeEdge(ctx context.Context, id string) (out Edge, err error) {
	err = c.do(ctx, "POST", pathEdgeRevoke, named{id}, &out)
	return out, err
}

// Checkpoint implements [Service].
func (c *Caller) Checkpoint(ctx context.Context, to string) error {
	return c.do(ctx, "POST", pathCheckpoint, target{to}, &struct{}{})
}

// Status implements [Service].
func (c *Caller) Status(ctx context.Context) (out Status, err error) {
	err = c.do(ctx, "GET", pathStatus, nil, &out)
	return out, err
}

// do sends one request and decodes its answer into out, a pointer.
func (c *Caller) do(ctx context.Context, method, path string, in, out any) error {
	res, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := refused(res); err != nil {
		return err
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

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
	return c.http.Do(req)
}

// refused is the error that an answer says.
func refused(res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	var f failure
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&f); err != nil || f.Text == "" {
		return fmt.Errorf("control socket: status %d", res.StatusCode)
	}
	return f.err()
}

// Backup implements [Service].
func (c *Caller) Backup(ctx context.Context, to string, progress func(done, total Copied)) (Copied, error) {
	res, err := c.send(ctx, "POST", pathBackup, target{to})
	if err != nil {
		return Copied{}, err
	}
	defer res.Body.Close()
	if err := refused(res); err != nil {
		return Copied{}, err
	}
	for lines := json.NewDecoder(res.Body); ; {
		var l step
		if err := lines.Decode(&l); err != nil {
			return Copied{}, fmt.Errorf("the server stopped during the backup: %w", errors.Join(err, ctx.Err()))
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

// Picture implements [Service].
func (c *Caller) Picture(ctx context.Context, name string) (data []byte, contentType string, err error) {
	res, err := c.send(ctx, "GET", pathPicture+"?name="+url.QueryEscape(name), nil)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	if err := refused(res); err != nil {
		return nil, "", err
	}
	data, err = io.ReadAll(res.Body)
	return data, res.Header.Get("Content-Type"), err
}

// Call implements [Service].
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
		return api.Response{}, refused(res)
	}
	body, err := io.ReadAll(res.Body)
	return api.Response{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Body: body}, err
}
