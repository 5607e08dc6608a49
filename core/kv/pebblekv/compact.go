//go:build !wasip1

package pebblekv

import (
	"context"
	"fmt"
)

// Compact rewrites the tables that hold keys lo ≤ key < hi, so that no table contains deleted or overwritten values of them. Pebble
// keeps old write-ahead logs for reuse. Such a log may contain these values until Pebble reuses it or the store is opened again. While the
// disk is nearly full, Compact does nothing and returns the error of Room. Background compactions then remove the values later.
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
