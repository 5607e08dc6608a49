package feed

import (
	"bytes"
	"sync"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// maxSecrets is the number of writers whose secrets a feed remembers, so that it need not hash them again.
const maxSecrets = 10_000

// secrets are the secrets of writers that have pushed.
type secrets struct {
	mu    sync.Mutex
	known map[writerIn][]byte
}

// writerIn is a writer in an application. Its secret counts in no other one.
type writerIn struct {
	app    catalog.AppID
	writer log.Writer
}

// fits reports whether a secret is that of a writer in an application.
func (s *secrets) fits(app string, w log.Writer, secret []byte) bool {
	id, err := catalog.ParseAppID(app)
	if err != nil || len(secret) != partition.SecretSize {
		return false
	}
	s.mu.Lock()
	known, ok := s.known[writerIn{id, w}]
	s.mu.Unlock()
	if ok && bytes.Equal(known, secret) {
		return true
	}
	if partition.WriterOf(id, secret) != w {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSecrets {
		s.known = map[writerIn][]byte{}
	}
	s.known[writerIn{id, w}] = bytes.Clone(secret)
	return true
}
