package log

// String returns the kind's name, such as "input_labels". For a kind of a later version it returns "unknown".
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "unknown"
}

// KindOf returns the kind of a body.
func KindOf(b Body) Kind { return b.kind() }
