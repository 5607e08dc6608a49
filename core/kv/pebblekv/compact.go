//go:build !wasip1

package pebblekv

import (
	"context"
	"fmt"
)

// Compact rewrites the tables that hold keys lo ≤ key < hi, so that what was deleted or
// overwritten of them is in no table any more. Logs of old writes that Pebble keeps to be used
// again may hold it until they are, or until the next start. While the disk is nearly full it is
// left for the compactions in the background: the error is then Room's.
func (s *Store) Compact(ctx context.Context, lo, hi []byte) error {
	if err := s.Room(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	if err := s.db.Compact(ctx, lo, hi, false); err != nil {
		return fmt.Errorf("compact: %w", translate(err))
	}
	return nil
}
