package jsonio

import (
	"errors"
	"fmt"
	"math"
)

// Errors of [Doc.Parse] and of the conversions of [Value]. All but ErrType and ErrUnknown come inside an [Error] with the offset.
var (
	// ErrSyntax is returned for text that is not JSON.
	ErrSyntax = errors.New("not JSON")
	// ErrDuplicate is returned if an object has the same name twice.
	ErrDuplicate = errors.New("duplicate name")
	// ErrUTF8 is returned for bytes that are not UTF-8 and for half a surrogate pair.
	ErrUTF8 = errors.New("not UTF-8")
	// ErrTooLong is returned for more bytes than Limits.Bytes.
	ErrTooLong = errors.New("text too long")
	// ErrTooDeep is returned for objects and arrays nested deeper than Limits.Depth.
	ErrTooDeep = errors.New("nested too deep")
	// ErrTooMany is returned for more members and elements than Limits.Members.
	ErrTooMany = errors.New("too many members")
	// ErrNumber is returned by a conversion that would lose or overflow the number.
	ErrNumber = errors.New("number out of range")
	// ErrBase64 is returned by Value.Base64 for text that is not base64.
	ErrBase64 = errors.New("not base64")
	// ErrType is returned by a conversion of a value of another kind.
	ErrType = errors.New("wrong kind of value")
	// ErrUnknown is returned by Value.ScanAll for a member without a variable.
	ErrUnknown = errors.New("unknown member")
)

// Error is an error with the offset at which it was found.
type Error struct {
	Offset int    // from the start of the text, or of the value if the error of a Value names it so
	Detail string // the text at the offset, or the expected text; may be empty
	Err    error  // one of this package's sentinels
}

// Error returns "byte 17: duplicate name: "id"".
func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("byte %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("byte %d: %v: %s", e.Offset, e.Err, e.Detail)
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }

// Limits bound the cost of a text. Zero fields mean the defaults.
type Limits struct {
	Bytes   int // maximum length of the text; 0 means 96 MiB, and 2 GiB - 1 is the largest
	Depth   int // maximum number of objects and arrays around a value; 0 means 64
	Members int // maximum number of members and elements of the whole text; 0 means 100,000
}

// Default limits.
const (
	DefaultBytes   = 96 << 20
	DefaultDepth   = 64
	DefaultMembers = 100_000
)

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	l.Bytes = min(l.Bytes, math.MaxInt32)
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if l.Members <= 0 {
		l.Members = DefaultMembers
	}
	return l
}
