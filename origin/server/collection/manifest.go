package collection

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Manifest returns the manifest of an export. ok is false if s is not an export or has no manifest. The error is ErrFormat for an invalid
// manifest and for a newer version.
func (s *Source) Manifest() (m Manifest, ok bool, err error) {
	if s.manifest != InputsFile {
		return m, false, nil
	}
	b, err := fs.ReadFile(s.files.FS, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Format != formatName {
		return m, false, fmt.Errorf("%s: %w", ManifestFile, ErrFormat)
	}
	if m.Version > formatVersion {
		return m, false, fmt.Errorf("%s: version %d; this program reads versions up to %d: %w", ManifestFile, m.Version, formatVersion, ErrFormat)
	}
	return m, true, nil
}
