package log

// Advance reads the record and the last entry of the log again, after another process has appended entries to the store, trimmed the log or
// redacted it. If this process led, it forgets what it appended and the store lacks, and the error of a failed sync. Errors: those of kv; the
// log then rejects appends.
func (l *Store) Advance() error {
	l.mu.Lock()
	before := l.durable
	l.turn++
	l.failed = l.load()
	err, moves := l.failed, l.durable != before
	l.mu.Unlock()
	if moves {
		l.moved()
	}
	return err
}

// Lead makes a log that followed append entries with an opening. The caller has called Advance since the store got its last batch from another
// process. Errors: those of kv, if the store lacks the log and Lead cannot create it.
func (l *Store) Lead(opening Epoch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn++
	l.opening = opening
	return l.create()
}
