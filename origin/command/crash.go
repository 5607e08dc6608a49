package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/origin/system"
)

// Copies of pictures that come with predict calls are not synced: six syncs a picture took
// longer than the prediction. They outlive the process but, when power fails, the newest may
// be left empty or in part. The folder therefore notes the machine's boot; when that has
// changed, every blob is read once and what is damaged is removed, before anything is served.

const bootFile = "BOOT"

// checkAfterPowerLoss removes damaged blobs when the machine was started anew since the
// folder was last used, and notes the present boot.
func checkAfterPowerLoss(ctx context.Context, folder blob.FS, blobs blob.Blobs, boot string, log *slog.Logger) error {
	before, err := readNote(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A new folder has nothing to check.
	case err != nil:
		return fmt.Errorf("boot note: %w", err)
	case boot != "" && before == boot:
		return nil
	default:
		if err := removeDamaged(ctx, blobs, log); err != nil {
			return err
		}
	}
	if err := writeNote(folder, boot); err != nil {
		return fmt.Errorf("boot note: %w", err)
	}
	return nil
}

func removeDamaged(ctx context.Context, blobs blob.Blobs, log *slog.Logger) error {
	checked, removed := 0, 0
	err := blobs.Each(ctx, blob.Hash{}, func(h blob.Hash) error {
		checked++
		r, err := blobs.Open(ctx, h)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r)
		if err := errors.Join(err, r.Close()); !errors.Is(err, blob.ErrCorrupt) {
			return err
		}
		removed++
		return blobs.Delete(ctx, h)
	})
	if err != nil {
		return fmt.Errorf("check blobs: %w", err)
	}
	log.Info("checked after a start of the machine", "blobs", checked, "damaged", removed)
	return nil
}

func readNote(folder blob.FS) (string, error) {
	f, err := folder.Open(bootFile)
	if err != nil {
		return "", err
	}
	b, err := system.ReadAll(f, 1<<10)
	return string(b), errors.Join(err, f.Close())
}

func writeNote(folder blob.FS, boot string) error {
	const fresh = bootFile + ".new"
	if err := folder.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := folder.Create(fresh)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, boot)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := folder.Rename(fresh, bootFile); err != nil {
		return err
	}
	return folder.SyncDir(".")
}
