package log

// Kind is the number of a kind of body: the field that holds it in an operation. Numbers are
// never used again.
type Kind uint32

func (u *Unknown) kind() Kind { return u.Kind }
