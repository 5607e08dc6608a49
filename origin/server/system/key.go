package system

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
)

// Key returns the random key in a file of a folder, and makes it when it is first needed. A file that is damaged is replaced.
func Key(dir *Folder, name string) (key [32]byte, err error) {
	for {
		text, err := ReadIn(dir, name, 2*int64(len(key)))
		if err == nil {
			if n, err := hex.Decode(key[:], text); err == nil && n == len(key) {
				return key, nil
			}
			if err := dir.Remove(name); err != nil { // a crash left it, or it is damaged
				return key, err
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return key, err
		}
		if _, err := io.ReadFull(Random, key[:]); err != nil {
			return key, err
		}
		if err := dir.WriteFile(name, []byte(hex.EncodeToString(key[:]))); err != nil && !errors.Is(err, fs.ErrExist) {
			return key, err
		}
	}
}
