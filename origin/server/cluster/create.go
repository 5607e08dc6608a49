package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/sightline-dev/sightline/origin/server/cluster/channel"
	"github.com/sightline-dev/sightline/origin/server/cluster/identity"
	"github.com/sightline-dev/sightline/origin/server/cluster/member"
	"github.com/sightline-dev/sightline/origin/server/data"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// Create makes an open folder the first node of a new cluster, whose etcd has one member. It stops etcd again. The caller
// saves the file.
func Create(ctx context.Context, file *identity.File, f *data.Folder, log *slog.Logger) (err error) {
	dir, err := system.OpenFolder(f.Dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.RemoveAll(member.Dir))
		}
		err = errors.Join(err, dir.Close())
	}()
	if err := dir.RemoveAll(member.Dir); err != nil { // left by a command that was interrupted
		return err
	}
	files, err := file.WriteTLS(f.Dir)
	if err != nil {
		return err
	}
	address := file.Node.Address
	m, err := member.Start(member.Options{
		Data: f.Dir, Name: file.Node.ID, Address: address, Peers: map[string]identity.Address{file.Node.ID: address}, Cluster: file.Cluster.ID,
		Certificates: &member.Certificates{Authority: files.Authority, Certificate: files.Certificate, Key: files.Key, Name: string(identity.RoleNode)},
		Election:     file.Cluster.Election(), Log: log,
	})
	if err != nil {
		return fmt.Errorf("--address %s: %w", address, err)
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var res *clientv3.GetResponse
	for { // until the member has elected itself
		if res, err = m.Client.Get(ctx, string(channel.Log)); err == nil || ctx.Err() != nil {
			break
		}
		system.Pause(ctx, again)
	}
	if err == nil {
		file.Cluster.EtcdID, file.EtcdStarted = identity.EtcdID(m.Server.Cluster().ID()), true
		err = channel.Begin(f.Store, uint64(file.Cluster.EtcdID), res.Header.Revision)
	}
	return errors.Join(err, m.Close())
}
