//go:build !linux

package partition_test

import (
	"testing"
	"time"
)

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	return 0
}
