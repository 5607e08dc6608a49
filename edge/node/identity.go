package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/origin/server"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/synclink"
	"github.com/sightline-dev/sightline/origin/server/system"
	"github.com/sightline-dev/sightline/sync/feed"
)

// identityFile has the edge's identity at its origin.
const identityFile = data.CredentialFile

// maxIdentity is the maximum size of the file, and of the origin's answer, in bytes.
const maxIdentity = 1 << 20

// identity identifies an edge to its origin. The edge creates the key before it enrols, so that it can repeat the request if the answer
// is lost.
type identity struct {
	Origin string   `json:"origin"`
	Seed   []byte   `json:"seed"`           // seed of the private key
	ID     string   `json:"id,omitempty"`   // empty if the origin has not enrolled it yet
	Name   string   `json:"name,omitempty"` // name that the operator chose
	Apps   []string `json:"apps,omitempty"` // IDs of the applications that the edge may replicate

	mu sync.Mutex // guards Name, which enrolment sets while pages read it
}

func (i *identity) key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(i.Seed) }

// authorize signs a request. It also signs the head of a request with a body, so that the origin accepts a large one.
func (i *identity) authorize(method, path, query string, body []byte) ([]api.Field, error) {
	key, now := i.key(), system.Now()
	header := []api.Field{{Name: "Authorization", Value: feed.Sign(key, i.ID, now, method, path, query, body)}}
	if len(body) > 0 {
		header = append(header, api.Field{Name: feed.HeadHeader, Value: feed.SignHead(key, now, method, path, query, len(body))})
	}
	return header, nil
}

// readIdentity reads the identity of the folder's edge. It returns nil if the edge is standalone.
func readIdentity(dir *system.Folder) (*identity, error) {
	text, err := system.ReadIn(dir, identityFile, maxIdentity)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	i := &identity{}
	if err := json.Unmarshal(text, i); err != nil || len(i.Seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%s is damaged: it has no edge identity. Create a new edge at the origin and enrol it with a new folder", identityFile)
	}
	return i, nil
}

// write stores the identity in the folder, readable only by its user.
func (i *identity) write(dir *system.Folder) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	return system.ReplaceIn(dir, identityFile, append(text, '\n'))
}

// identify returns the identity of a folder's edge, by the flags of this start and the folder, or nil if the edge has no origin.
func (n *Node) identify(dir *system.Folder) (*identity, error) {
	i, err := readIdentity(dir)
	switch {
	case err != nil:
		return nil, err
	case i != nil && n.origin != "" && n.origin != i.Origin && i.ID != "":
		return nil, server.Usagef("origin: this folder is already enrolled as edge %q of %s", i.Name, i.Origin)
	case i != nil && i.ID != "" || n.origin == "":
		return i, nil
	case n.token == "":
		return nil, server.Usagef("token: the first start with --origin needs the token that the origin printed when the edge was created there")
	}
	if i == nil {
		i = &identity{Seed: make([]byte, ed25519.SeedSize)}
		if _, err := io.ReadFull(system.Random, i.Seed); err != nil {
			return nil, err
		}
	}
	i.Origin = n.origin
	return i, i.write(dir)
}

// errEnrol is returned by enrol if another attempt is useless.
var errEnrol = errors.New("the origin refused to enrol this edge")

// enrol sends the origin the token and the key, and sets the edge's ID, name and applications from the answer.
func (i *identity) enrol(ctx context.Context, client *http.Client, token string) error {
	body := feed.Enrolment(i.key(), token)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, i.Origin+feed.Prefix+"/enrol", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := system.ReadAll(res.Body, maxIdentity)
	if err != nil {
		return err
	}
	var reply feed.EnrolReply
	if err := json.Unmarshal(text, &reply); err != nil && res.StatusCode == http.StatusOK {
		return fmt.Errorf("%s: not an answer of a Sightline origin: %w", i.Origin, err)
	}
	switch {
	case res.StatusCode == http.StatusOK && reply.Edge.ID != "":
	case res.StatusCode >= 400 && res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s (%w)", errEnrol, reply.Status.Description, synclink.StatusError(res.StatusCode))
	default:
		return fmt.Errorf("%s: %w", i.Origin, synclink.StatusError(res.StatusCode))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ID, i.Name, i.Apps = reply.Edge.ID, reply.Edge.Name, reply.Edge.Apps
	return nil
}
