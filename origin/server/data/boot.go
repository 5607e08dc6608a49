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

// Copies of pictures that come with predict calls are not synced: six syncs a picture took
// longer than the prediction. They outlive the process but, when power fails, the newest may
// be left empty or in part. The folder therefore notes the machine's boot; when that has
// changed, every copy is read once and what is damaged is removed, before anything is served.
// Pictures of inputs are synced: they are left alone, and Check reads them.

const bootFile = "BOOT"

// maxNote is the maximum number of bytes in a note: a small file about the folder.
const maxNote = 1 << 10

// CheckAfterPowerLoss deletes damaged copies if the machine was restarted since the folder was last used, and notes the present boot.
// keep reports the blobs that are not copies.
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
		if err := removeDamaged(ctx, f.Blobs, keep, log); err != nil {
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

// verify reads a blob to its end.
func verify(ctx context.Context, blobs blob.Blobs, h blob.Hash) error {
	r, err := blobs.Open(ctx, h)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}
