package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/origin/server/fetch"
	"github.com/sightline-dev/sightline/origin/server/hosted"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// newFiles returns the hosted pictures and videos of the folder.
func (n *Node) newFiles() *hosted.Files {
	o := hosted.Options{
		Picture: n.Engine.HostedPicture, Thumbnail: n.Register.Thumbnail, Owner: n.ownerOf, Blobs: n.Folder.Blobs,
		KeepLocation: n.Settings.KeepLocation, Workers: system.Cores() / 2,
	}
	if e, ok := n.Engine.(PictureFetcher); ok {
		o.Fetch = e.FetchPicture
	}
	return hosted.New(o)
}

// ownerOf returns the account that a hosted picture belongs to, or its application if the operator owns that.
func (n *Node) ownerOf(p *blob.Picture) string {
	id := catalog.AppID(p.App).String()
	a, err := n.Register.App(id)
	if err != nil {
		return id // deleted meanwhile
	}
	return cmp.Or(a.Owner, id)
}

// fetch returns the picture at a URL, for an application. It reads files that this server hosts from the blobs, because the server refuses
// to connect to itself.
func (n *Node) fetch(ctx context.Context, fetcher *fetch.Fetcher, app catalog.AppID, url string) ([]byte, error) {
	if path, ours := n.hostedPath(url); ours {
		return n.fetchHosted(ctx, app, path)
	}
	return fetcher.Fetch(ctx, url)
}

// hostedPath returns the part after [api.HostedPath] of the URL of a file that this server hosts. ours is false for other URLs. Another
// spelling of this server's address is another URL: the server downloads it as a client, and gets what every client gets.
func (n *Node) hostedPath(url string) (path string, ours bool) {
	path, ours = strings.CutPrefix(url, strings.TrimRight(n.Settings.PublicURL, "/")+api.HostedPath)
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	return path, ours
}

// fetchHosted returns a file that this server hosts, for an application; path is its path below [api.HostedPath]. The application gets its
// own pictures and videos as they were stored, because it can read them in any case. For other files fetchHosted returns what the URL serves
// to everybody. Otherwise an application could read the location in a picture of another one.
func (n *Node) fetchHosted(ctx context.Context, app catalog.AppID, path string) ([]byte, error) {
	if p, err := n.Engine.HostedPicture(path); err == nil && p.App == app && app != (catalog.AppID{}) {
		return n.picture(ctx, p.Hash)
	}
	r := &api.Request{}
	file, err := n.Files.Open(ctx, r, path)
	if err != nil {
		return nil, err
	}
	body, err := file.Open(ctx, r, 0, file.Size)
	if errors.Is(err, api.ErrBusy) {
		return nil, busyError{err}
	}
	if err != nil {
		return nil, err
	}
	b := make([]byte, file.Size)
	_, err = io.ReadFull(body, b)
	return b, errors.Join(err, body.Close())
}

// busyError is the failure of a download that may succeed later.
type busyError struct{ error }

// Retryable reports that a later try may succeed; see [jobs.Options].
func (busyError) Retryable() bool { return true }
