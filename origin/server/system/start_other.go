//go:build !linux

package system

import "os"

// startable is a file. Only Linux can begin to write its bytes before a Sync.
type startable struct{ *os.File }

// StartSync implements [blob.File].
func (startable) StartSync() {}
