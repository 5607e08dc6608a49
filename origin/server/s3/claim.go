package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/sightline-dev/sightline/core/blob"
)

// ErrClaimed is returned by Claim for a bucket that belongs to another cluster, or whose owner is unknown.
var ErrClaimed = errors.New("bucket is not this cluster's")

// claimError is an ErrClaimed with its text.
type claimError string

func (e claimError) Error() string { return string(e) }

// Unwrap returns ErrClaimed.
func (claimError) Unwrap() error { return ErrClaimed }

// maxID is the maximum number of bytes of a cluster's id.
const maxID = 128

// Claim makes the bucket that of the cluster id, if it is empty, and writes the id into it. A bucket that has the id already is
// unchanged. id is a short text, such as hex digits. Each error is one sentence with the cause and the fix: ErrClaimed for another cluster's
// bucket, otherwise blob.ErrUnavailable.
func (s *Store) Claim(ctx context.Context, id string) error {
	owner, err := s.owner(ctx)
	if err == nil && owner == "" {
		err = s.claim(ctx, id)
		if errors.Is(err, errExists) {
			err = nil
		}
		if err == nil { // another cluster may have claimed the bucket now, where the server ignores the condition
			owner, err = s.owner(ctx)
		}
	}
	switch {
	case err != nil:
		return s.explain(err)
	case owner != id:
		return claimError(fmt.Sprintf("bucket %s belongs to cluster %s: use another bucket, or join that cluster", s.o.Location, owner))
	}
	return nil
}

// owner returns the id of the cluster that has the bucket, or "".
func (s *Store) owner(ctx context.Context) (string, error) {
	data, err := s.read(ctx, clusterObject, maxID)
	if errors.Is(err, blob.ErrNotFound) {
		return "", nil
	}
	return strings.TrimSpace(string(data)), err
}

// claim writes the id into an empty bucket.
func (s *Store) claim(ctx context.Context, id string) error {
	err := s.list(ctx, shard, "", func(o minio.ObjectInfo) error {
		return claimError(fmt.Sprintf("bucket %s has objects of an unknown cluster, such as %s: use an empty bucket", s.o.Location, o.Key))
	})
	if err != nil {
		return err
	}
	var condition minio.PutObjectOptions
	condition.SetMatchETagExcept("*")
	err = s.write(ctx, clusterObject, []byte(id+"\n"), condition)
	if failed := (*requestError)(nil); errors.As(err, &failed) && minio.ToErrorResponse(failed.cause).Code == minio.NotImplemented {
		err = s.write(ctx, clusterObject, []byte(id+"\n"), minio.PutObjectOptions{})
	}
	return err
}

// explain returns the error of a request with its fix.
func (s *Store) explain(err error) error {
	failed := (*requestError)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	text := "S3 at %s cannot be reached: check the URL, and that the server runs (%v)"
	switch minio.ToErrorResponse(failed.cause).Code {
	case minio.NoSuchBucket:
		text = "bucket %s does not exist: create it first (%v)"
	case minio.AccessDenied:
		text = "S3 refuses access to bucket %s: allow the access key to get, put, delete and list its objects (%v)"
	case minio.InvalidAccessKeyID, minio.SignatureDoesNotMatch:
		text = "S3 does not accept the credentials for bucket %s: check " + accessVariable + " and " + secretVariable + " or " + fileFlag + " (%v)"
	case minio.RequestTimeTooSkewed:
		text = "S3 at %s refuses this machine's clock: set the clock, for example by NTP (%v)"
	case "":
	default:
		text = "S3 at %s refuses the request: check the server and the permissions of the access key (%v)"
	}
	return &requestError{"", fmt.Errorf(text, s.o.Location, failed.cause)}
}
