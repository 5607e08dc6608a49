package wire

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sightline-dev/sightline/core/blob"
)

// Protocol is the newest version of the protocol that this code speaks, and Oldest the oldest.
const (
	Protocol = 2
	Oldest   = 2
)

// Refusal is the machine-readable reason for a refused request. It is the body of an answer with a status of 400 or above and the content
// type [ContentType]. Other answers with such a status come from the HTTP layer or from a proxy, and only their status counts.
//
//field:message
type Refusal struct {
	Code       RefusalCode `wire:"1"`                 // see the codes below
	Detail     string      `wire:"2"`                 // text for people
	Features   []string    `wire:"3,max=maxFeatures"` // of `features`: the unknown features
	Min        uint32      `wire:"4"`                 // of `protocol` and `fold`: the oldest supported version
	Max        uint32      `wire:"5"`                 // of `protocol` and `fold`: the newest supported version
	Limit      string      `wire:"6"`                 // of `limit` and `quota`: the name of the limit
	Value      uint64      `wire:"7"`                 // of `limit` and `quota`: the value of the limit
	WaitMillis uint64      `wire:"8"`                 // milliseconds to wait before trying again; absent: trying again with the same message does not help
	Epoch      [16]byte    `wire:"9"`                 // of `epoch`: the opening of the log
	Accepted   uint64      `wire:"10"`                // of `sequence`, `blobs` and `content`: sequence of the writer's last operation in the log
	Blobs      []blob.Hash `wire:"11,func=Hashes"`    // of `blobs`: hashes of some of the missing pictures, 32 bytes each
	Extra      []byte      `wire:"*"`
}

// RefusalCode is the kind of a refusal.
type RefusalCode uint32

// The codes.
const (
	RefusedFormat   RefusalCode = 1 + iota // 400: the message is invalid
	RefusedProtocol                        // 426: the two sides have no version of the protocol in common
	RefusedFeatures                        // 426: the replica requires unknown features
	RefusedFold                            // 426: the replica's fold rules are older than the log's
	RefusedWriter                          // 403: the secret is not that of the writer
	RefusedScope                           // 403: the application is outside the sender's scope
	RefusedEpoch                           // 409: the log has another opening
	RefusedSequence                        // 409: operations before these are missing
	RefusedContent                         // 409: the log has another operation by this name, or the bytes have another hash
	RefusedLimit                           // 413: the request exceeds the limit in Limit
	RefusedQuota                           // 429: the sender has used up a quota for now
	RefusedBusy                            // 503: the origin is busy; the sender retries later
	RefusedGone                            // 410: the application was deleted
	RefusedUnknown                         // 404: the requested thing does not exist, or the sender may not see it
	RefusedBlobs                           // 409: the sender must first send the pictures or objects that its operations refer to
)

var refusalStatus = [...]int{0, 400, 426, 426, 426, 403, 403, 409, 409, 409, 413, 429, 503, 410, 404, 409}

// LimitCalls is the Limit of a refusal `quota` if the account of the application has no calls left.
const LimitCalls = "Calls"

// LimitGaps is the Limit of a refusal `limit` if the log has too many gaps between the operations of the writer.
const LimitGaps = "Gaps"

// Status returns the HTTP status of an answer with the refusal.
func (r *Refusal) Status() int {
	if int(r.Code) < len(refusalStatus) && r.Code > 0 {
		return refusalStatus[r.Code]
	}
	return 400
}

// Error implements error. It returns the reason for people.
func (r *Refusal) Error() string {
	if len(r.Features) > 0 {
		return fmt.Sprintf("%s: %s", r.Detail, strings.Join(r.Features, ", "))
	}
	return r.Detail
}

// Encode returns the message.
func (r *Refusal) Encode() []byte { return encodeRefusal(nil, r) }

// DecodeRefusal reads a Refusal. Errors: ErrFormat.
func DecodeRefusal(data []byte) (Refusal, error) { return decodeRefusal(data) }

// Support has the versions and features of an origin.
type Support struct {
	Min, Max uint32   // versions of the protocol
	Schema   uint32   // version of the records that it writes
	Features []string // features that it knows
}

// Agree returns the newest version of the protocol that both sides speak, and the features of the session that the origin knows.
// Errors: *[Refusal].
func (m *Session) Agree(s Support) (protocol uint32, features []string, err error) {
	protocol = min(m.Max, s.Max)
	if protocol < m.Min || protocol < s.Min {
		return 0, nil, &Refusal{Code: RefusedProtocol, Detail: fmt.Sprintf("versions %d to %d of the protocol are supported, not %d to %d", s.Min, s.Max, m.Min, m.Max), Min: s.Min, Max: s.Max}
	}
	var unknown []string
	for _, f := range m.Require {
		if !slices.Contains(s.Features, f) {
			unknown = append(unknown, f)
		}
	}
	if len(unknown) > 0 {
		return 0, nil, &Refusal{Code: RefusedFeatures, Detail: "unsupported features", Features: unknown}
	}
	if m.Schema < s.Schema {
		return 0, nil, &Refusal{Code: RefusedFeatures, Detail: "unsupported newer records", Features: []string{fmt.Sprintf("schema/%d", s.Schema)}}
	}
	for _, f := range append(slices.Clone(m.Require), m.Features...) {
		if slices.Contains(s.Features, f) && !slices.Contains(features, f) {
			features = append(features, f)
		}
	}
	return protocol, features, nil
}
