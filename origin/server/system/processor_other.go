//go:build !linux

package system

import "time"

// processTime returns false. Only Linux reports the processor time of another process.
func processTime(int) (spent time.Duration, known bool) { return 0, false }

// MemoryAvailable returns 0: it is not known.
func MemoryAvailable() int64 { return 0 }
