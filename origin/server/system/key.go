package system

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
)

// LoadKey returns the random key in the file name of dir. If the file is missing or damaged, LoadKey writes a new key.
func LoadKey(dir *Folder, name string) (key [32]byte, err error) {
	for {
		text, err := ReadIn(dir, name, 2*int64(len(key)))
		if err == nil {
			if n, err := hex.Decode(key[:], text); err == nil && n == len(key) {
				return key, nil
			}
			if err := dir.Remove(name); err != nil { // a crash interrupted its creation, or it is damaged
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
