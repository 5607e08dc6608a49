package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/server/system"
)

// The server does not sync copies of pictures from predict calls: six syncs per picture took longer than the prediction. The copies outlive
// the process, but a power failure may leave the newest ones empty or incomplete. The folder therefore stores the machine's boot id. When
// the boot id has changed, the server reads every copy once and removes damaged ones before it answers requests. Pictures of inputs are
// synced, so only Check reads them.

const bootFile = "BOOT"

// maxNote is the maximum number of bytes of a note, which is a small file about the folder.
const maxNote = 1 << 10

// CheckAfterPowerLoss deletes damaged copies if the machine was restarted since the folder was last used, and stores the current boot id.
// keep reports whether a blob is not a copy. It reads the pictures in the folder only.
func (f *Folder) CheckAfterPowerLoss(ctx context.Context, boot string, keep func(blob.Hash) bool, log *slog.Logger) error {
	before, err := system.ReadIn(f.folder, bootFile, maxNote)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A new folder has nothing to check.
	case err != nil:
		return fmt.Errorf("boot note: %w", err)
	case boot != "" && string(before) == boot:
		return nil
	default:
		if err := removeDamaged(ctx, f.local, keep, log); err != nil {
			return err
		}
	}
	if err := system.ReplaceIn(f.folder, bootFile, []byte(boot)); err != nil {
		return fmt.Errorf("boot note: %w", err)
	}
	return nil
}

func removeDamaged(ctx context.Context, blobs blob.Blobs, keep func(blob.Hash) bool, log *slog.Logger) error {
	checked, removed := 0, 0
	err := blobs.Each(ctx, blob.Hash{}, func(h blob.Hash) error {
		if keep(h) {
			return nil
		}
		checked++
		err := verify(ctx, blobs, h)
		if !errors.Is(err, blob.ErrCorrupt) {
			return err
		}
		removed++
		return blobs.Delete(ctx, h)
	})
	if err != nil {
		return fmt.Errorf("check blobs: %w", err)
	}
	log.Info("checked pictures after a restart of the machine", "blobs", checked, "damaged", removed)
	return nil
}

// verify reads a blob to its end, which checks its hash.
func verify(ctx context.Context, blobs blob.Blobs, h blob.Hash) error {
	r, err := blobs.Open(ctx, h)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
