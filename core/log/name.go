package log

// String returns the kind's name, such as "input_labels"; "unknown" for one of a later version.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return "unknown"
}

// KindOf is the kind of a body.
func KindOf(b Body) Kind { return b.kind() }
