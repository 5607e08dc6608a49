package emit

// Type returns the type of the value.
func (a Value) Type() Type { return a.typ }
