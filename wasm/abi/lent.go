package abi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/sightline-dev/sightline/core/api"
	"github.com/sightline-dev/sightline/core/auth"
	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/log/field"
)

// RoomOnce is the room that the guest gives imports which must not be asked twice (token_issue,
// account): what they return always fits.
const RoomOnce = 64 << 10

// MarshalClaims returns the fields of a token's claims.
func MarshalClaims(c auth.Claims) []byte {
	e := encoder(nil)
	e.Text(1, c.App)
	e.Text(2, c.Client)
	e.Uint(3, c.Generation)
	e.Bool(4, c.Page)
	return inner(e)
}

// ParseClaims reads the fields of claims.
func ParseClaims(data []byte) (auth.Claims, error) {
	var c auth.Claims
	d := field.Fields(data)
	for d.Next() {
		switch d.Number {
		case 1:
			c.App = d.Text()
		case 2:
			c.Client = d.Text()
		case 3:
			c.Generation = d.Uint()
		case 4:
			c.Page = d.Bool()
		}
	}
	return c, envelope("claims", d)
}

// AppendToken writes what token_issue returns: i64 life in nanoseconds, then the token.
func AppendToken(buf []byte, token string, life time.Duration) []byte {
	return append(binary.LittleEndian.AppendUint64(buf, uint64(life)), token...)
}

// ParseToken reads what token_issue returned.
func ParseToken(data []byte) (token string, life time.Duration, err error) {
	if len(data) < 8 {
		return "", 0, fmt.Errorf("token of %d bytes: %w", len(data), field.ErrFormat)
	}
	return string(data[8:]), time.Duration(binary.LittleEndian.Uint64(data)), nil
}

// PictureNameBytes is the length of a picture's name, as picture_add writes it before the hash.
const PictureNameBytes = 16

// AppendPicture writes what picture_lookup returns: 32 bytes of hash, i64 nanoseconds of its end,
// 0 for never, then the content type.
func AppendPicture(buf []byte, p *blob.Picture) []byte {
	buf = append(buf, p.Hash[:]...)
	return append(binary.LittleEndian.AppendUint64(buf, uint64(Nanos(p.Expires))), p.ContentType...)
}

// ParsePicture reads what picture_lookup returned.
func ParsePicture(data []byte) (p blob.Picture, err error) {
	if len(data) < len(p.Hash)+8 {
		return p, fmt.Errorf("picture of %d bytes: %w", len(data), field.ErrFormat)
	}
	n := copy(p.Hash[:], data)
	p.Expires = FromNanos(int64(binary.LittleEndian.Uint64(data[n:])))
	p.ContentType = string(data[n+8:])
	return p, nil
}

// Nanos are nanoseconds since 1970, 0 for the zero time.
func Nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// FromNanos is the inverse of Nanos.
func FromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// AppendRecord writes a record of a scan as kv_next returns them: u32 length of the key, u32
// length of the value, key, value.
func AppendRecord(buf, key, value []byte) []byte {
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(key)))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(len(value)))
	return append(append(buf, key...), value...)
}

// NextRecord takes the first record off data. Key and value are borrowed.
func NextRecord(data []byte) (key, value, rest []byte, err error) {
	if len(data) < 8 {
		return nil, nil, nil, fmt.Errorf("record of a scan: %w", field.ErrFormat)
	}
	k, v := uint64(binary.LittleEndian.Uint32(data)), uint64(binary.LittleEndian.Uint32(data[4:]))
	if data = data[8:]; k+v > uint64(len(data)) {
		return nil, nil, nil, fmt.Errorf("record of a scan: %w", field.ErrFormat)
	}
	return data[:k:k], data[k : k+v : k+v], data[k+v:], nil
}

// AccountKind is what is asked of the host's accounts.
type AccountKind uint8

// The questions.
const (
	AccountLogin   AccountKind = 1
	AccountSession AccountKind = 2
	AccountSpend   AccountKind = 3
)

// AccountQuestion is what the import account is asked.
type AccountQuestion struct {
	What                    AccountKind
	Email, Password, Remote string    // of a login
	Session                 string    // of a session
	Spent                   api.Spent // of a call that is counted
}

// Marshal returns the envelope.
func (q *AccountQuestion) Marshal() []byte {
	e := encoder(nil)
	e.Uint(1, uint64(q.What))
	e.Text(2, q.Email)
	e.Text(3, q.Password)
	e.Text(4, q.Remote)
	e.Text(5, q.Session)
	e.Text(6, q.Spent.Account)
	e.Text(7, q.Spent.App)
	e.Text(8, q.Spent.By)
	e.Text(9, q.Spent.Route)
	return e.Bytes(nil)
}

// ParseAccountQuestion reads an envelope.
func ParseAccountQuestion(data []byte) (AccountQuestion, error) {
	var q AccountQuestion
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			q.What = AccountKind(d.Uint32())
		case 2:
			q.Email = d.Text()
		case 3:
			q.Password = d.Text()
		case 4:
			q.Remote = d.Text()
		case 5:
			q.Session = d.Text()
		case 6:
			q.Spent.Account = d.Text()
		case 7:
			q.Spent.App = d.Text()
		case 8:
			q.Spent.By = d.Text()
		case 9:
			q.Spent.Route = d.Text()
		}
	}
	return q, envelope("account question", d)
}

// AccountReply is what the import account answers.
type AccountReply struct {
	Err     error // told by its Errno and its text; of a rate the wait goes with it
	Session string
	Account string
	Left    int64 // calls left; negative: any number
}

// Marshal returns the envelope.
func (r *AccountReply) Marshal() []byte {
	e := encoder(nil)
	if r.Err != nil {
		e.Uint(1, uint64(ErrnoOf(r.Err)))
		e.Text(2, r.Err.Error())
		e.Uint(3, uint64(waitOf(r.Err)))
	}
	e.Text(4, r.Session)
	e.Text(5, r.Account)
	e.Fixed64(6, uint64(r.Left))
	return e.Bytes(nil)
}

// waitOf is how long an error asks to wait.
func waitOf(err error) time.Duration {
	var rate *auth.RateError
	if errors.As(err, &rate) {
		return rate.Wait
	}
	return 0
}

// ParseAccountReply reads an envelope.
func ParseAccountReply(data []byte) (AccountReply, error) {
	var r AccountReply
	var no Errno
	var text string
	var wait time.Duration
	d := field.Decode(data)
	for d.Next() {
		switch d.Number {
		case 1:
			no = Errno(d.Int())
		case 2:
			text = d.Text()
		case 3:
			wait = time.Duration(d.Uint())
		case 4:
			r.Session = d.Text()
		case 5:
			r.Account = d.Text()
		case 6:
			r.Left = int64(d.Fixed64())
		}
	}
	switch {
	case no == TooFast:
		r.Err = &auth.RateError{Wait: wait}
	case no != OK:
		r.Err = far(no.Err(), text)
	}
	return r, envelope("account reply", d)
}
