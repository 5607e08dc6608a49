package feed

import (
	"sync"

	"github.com/sightline-dev/sightline/core/catalog"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/partition"
)

// maxSecrets is the number of secrets whose writers a feed remembers, so that it need not hash them again.
const maxSecrets = 10_000

// secrets are the writers of secrets that pushes had.
type secrets struct {
	mu      sync.Mutex
	writers map[secretIn]log.Writer
}

// secretIn is a secret in an application. It counts in no other one.
type secretIn struct {
	app    catalog.AppID
	secret [partition.SecretSize]byte
}

// fits reports whether a secret is that of a writer in an application.
func (s *secrets) fits(app string, w log.Writer, secret []byte) bool {
	id, err := catalog.ParseAppID(app)
	if err != nil || len(secret) != partition.SecretSize {
		return false
	}
	key := secretIn{id, [partition.SecretSize]byte(secret)}
	s.mu.Lock()
	owner, isKnown := s.writers[key]
	s.mu.Unlock()
	if isKnown {
		return owner == w
	}
	owner = partition.WriterOf(id, secret)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writers == nil || len(s.writers) >= maxSecrets {
		s.writers = map[secretIn]log.Writer{}
	}
	s.writers[key] = owner
	return owner == w
}
