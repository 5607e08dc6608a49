package replica

// Audit makes the machine compare its state with the origin's as soon as it can.
func (m *Machine) Audit() { m.audit = audit{due: m.at} }

// State is the progress of one of the replica's own operations. It may be behind the facts, but never ahead of them.
type State int

// The states.
const (
	Queued    State = iota // it is durable at the replica, and not known to be at the origin
	Sent                   // the origin has acknowledged it
	Confirmed              // the replica has folded it from the origin's log
)

// String returns the state's name, such as "queued".
func (s State) String() string { return [...]string{"queued", "sent", "confirmed"}[s] }

// Of returns the state of one of the replica's own operations by its sequence number.
func (s *Status) Of(seq uint64) State {
	switch {
	case seq <= s.Folded:
		return Confirmed
	case seq <= s.Accepted:
		return Sent
	}
	return Queued
}
