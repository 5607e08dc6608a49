package cluster

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// A machine joins by a token:
//
//	cluster token   a node stores the hash of a secret in etcd, for an hour
//	cluster join    the machine sends the secret and its address to that node, which connects to the address, uses up the secret and signs
//
// The answer has all that the machine's cluster.json needs.

const (
	tokenPrefix = "token/"  // of etcd's keys of valid tokens, by the hash of their secret
	tokenLife   = time.Hour // of a token
)

// ErrToken is returned for a token that is unknown, used or too old.
var ErrToken = errors.New("the token is wrong, was used or is older than an hour: make another one with 'sightline cluster token'")

// NewToken returns a token with which one machine can join.
func (c *Cluster) NewToken(ctx context.Context) (string, error) {
	t, err := c.file.NewToken(system.Random)
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	e := c.client()
	lease, err := e.Grant(ctx, int64(tokenLife.Seconds()))
	if err == nil {
		_, err = e.Put(ctx, tokenKey(t.Secret), "", clientv3.WithLease(lease.ID))
	}
	if err != nil {
		return "", fmt.Errorf("cannot store the token: %w", err)
	}
	return t.Text(), nil
}

func tokenKey(s identity.Secret) string {
	hash := s.Hash()
	return tokenPrefix + hex.EncodeToString(hash[:])
}

// admitNode admits a machine with a valid token.
func (c *Cluster) admitNode(w http.ResponseWriter, r *http.Request) {
	var in identity.JoinRequest
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder)).Decode(&in)
	var out identity.JoinResponse
	if err == nil {
		out, err = c.admit(r.Context(), in)
	}
	if err != nil {
		refuse(w, http.StatusForbidden, err)
		return
	}
	reply(w, out)
}

func (c *Cluster) admit(ctx context.Context, in identity.JoinRequest) (out identity.JoinResponse, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	key, e := tokenKey(in.Secret), c.client()
	valid, err := e.Get(ctx, key)
	if err != nil {
		return out, fmt.Errorf("the cluster cannot admit a node at present, try again: %w", err)
	}
	if len(valid.Kvs) == 0 {
		return out, ErrToken
	}
	if err := in.Check(system.Now()); err != nil {
		return out, err
	}
	records, err := e.Get(ctx, nodePrefix, clientv3.WithPrefix())
	if err != nil {
		return out, fmt.Errorf("the cluster cannot admit a node at present, try again: %w", err)
	}
	for _, x := range records.Kvs {
		var k record
		if json.Unmarshal(x.Value, &k) == nil && k.Address == in.Address {
			return out, fmt.Errorf("another node of the cluster has the address %s: give this node another one with --address", in.Address)
		}
	}
	if err := c.reach(ctx, in); err != nil {
		return out, err
	}
	used, err := e.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", valid.Kvs[0].CreateRevision)).Then(clientv3.OpDelete(key)).Commit()
	if err != nil {
		return out, fmt.Errorf("the cluster cannot admit a node at present, try again: %w", err)
	}
	if !used.Succeeded {
		return out, ErrToken
	}
	c.mu.Lock()
	file := *c.file
	c.mu.Unlock()
	out, err = file.Admit(in, system.Now(), system.Random)
	if err != nil {
		return out, err
	}
	value, err := json.Marshal(record{ID: out.NodeID, Address: in.Address, Version: in.Version, State: starting})
	if err == nil {
		_, err = e.Put(ctx, nodePrefix+out.NodeID, string(value))
	}
	return out, err
}

// echoBytes is the number of bytes that a machine that joins sends to those who connect to its address: the start of its secret's hash.
const echoBytes = 16

// reach checks that other nodes can connect to the address of a machine that joins.
func (c *Cluster) reach(ctx context.Context, in identity.JoinRequest) error {
	ctx, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	conn, err := system.Dial(ctx, "tcp", in.Address.String(), nil)
	if err == nil {
		defer conn.Close()
		deadline, _ := ctx.Deadline()
		err = conn.SetDeadline(deadline)
	}
	got := make([]byte, echoBytes)
	if err == nil {
		_, err = io.ReadFull(conn, got)
	}
	want := in.Secret.Hash()
	if err != nil || string(got) != string(want[:echoBytes]) {
		return fmt.Errorf("node %s cannot connect to %s: give --address an address that the other nodes reach, and open its port and the two ports after it",
			c.file.Node.Address, in.Address)
	}
	return nil
}

// Join lets this machine join the cluster of a token. It writes the folder dir, which must be new or empty.
func Join(ctx context.Context, dir, token string, address identity.Address, blobCache int64, version string) (_ *identity.File, err error) {
	t, err := identity.ParseToken(token)
	if err != nil {
		return nil, err
	}
	j, err := identity.NewJoin(t, address, version, system.Now(), system.Random)
	if err != nil {
		return nil, err
	}
	existed := system.IsDir(dir)
	if err := system.NewFolder(dir); err != nil { // before the token is used up
		return nil, err
	}
	defer func() {
		if err != nil && !existed {
			err = errors.Join(err, removeFolder(dir))
		}
	}()
	l, err := system.Listen(ctx, address.String())
	if err != nil {
		return nil, fmt.Errorf("--address: %w", err)
	}
	defer l.Close()
	go echo(l, t.Secret)
	ctx, stop := context.WithTimeout(ctx, 2*patience)
	defer stop()
	client := &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, network, at string) (net.Conn, error) { return dialToken(ctx, t) },
		DisableKeepAlives: true,
	}}
	res, err := ask(ctx, client, "http://"+t.Address.String()+pathJoin, http.MethodPost, j.Request)
	if err != nil {
		var r *refusal
		if errors.As(err, &r) || errors.Is(err, identity.ErrAuthority) {
			return nil, err
		}
		return nil, fmt.Errorf("cannot reach the cluster's node %s, which made the token: %w", t.Address, err)
	}
	defer res.Body.Close()
	var out identity.JoinResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, maxOrder)).Decode(&out); err != nil {
		return nil, err
	}
	file, err := j.Accept(out, blobCache, system.Now(), system.Random)
	if err != nil {
		return nil, err
	}
	return file, file.Save(dir)
}

// removeFolder removes a new folder.
func removeFolder(dir string) error {
	above, err := system.OpenFolder(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(above.RemoveAll(filepath.Base(dir)), above.Close())
}

// echo proves to those who connect that this machine has the token.
func echo(l net.Listener, s identity.Secret) {
	hash := s.Hash()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write(hash[:echoBytes])
		_ = c.Close()
	}
}

// dialToken connects to the node that made a token.
func dialToken(ctx context.Context, t identity.Token) (net.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, dialTime)
	defer stop()
	return dialTLS(ctx, t.Address, identity.JoinTLS(t, system.Now, orderProtocol))
}
