package account

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Layout of table u. Numbers are big-endian. id is the 16 bytes of an account's or application's id, n is a number of 4 bytes and N a
// number of 8 bytes. hash is the SHA-256 of a secret's text.
//
//	u a id             → record        an account, JSON
//	u e address        → id            owners of normalised email addresses, in hex, see address.go
//	u c address 0 N id → hash          further claims to an address; N is the time when the account was created, in Unix nanoseconds
//	u s hash           → session       JSON
//	u S id hash        →               sessions by account
//	u r hash           → id            reset links, in hex
//	u z                → link          link for the first account, JSON
//	u q id             → quota         28 bytes, see quota.go
//	u d n id by 0 route → N            calls of day n since 1970, by application, key and endpoint
//	u k id by          → N N           total calls of a key, and its last call in Unix seconds
//	u b app edge       → N             calls of an application that an edge has reported, see report.go
//	u v id device      → device        last contact of a device of an application, JSON, see devices.go
//	u l N              → hash, JSON    the audit log, from 1; hash covers the previous record's hash and the JSON
//	u L id N           →               records of the audit log by account; the command line's id is zeros
//	u h                → N, hash       length of the audit log, and its last hash
const (
	table         = 'u'
	tableAccount  = 'a'
	tableEmail    = 'e'
	tableClaim    = 'c'
	tableSession  = 's'
	tableSessions = 'S'
	tableReset    = 'r'
	tableSetup    = 'z'
	tableQuota    = 'q'
	tableDay      = 'd'
	tableKey      = 'k'
	tableReport   = 'b'
	tableDevice   = 'v'
	tableAudit    = 'l'
	tableAudits   = 'L'
	tableHead     = 'h'
)

// hash is the stored form of a secret: its SHA-256. It needs no salt, since the secret has 256 random bits.
type hash = [sha256.Size]byte

func hashOf(secret string) hash { return sha256.Sum256([]byte(secret)) }

// isID reports whether id is 32 lower-case hex digits.
func isID(id string) bool {
	return len(id) == 32 && strings.Trim(id, "0123456789abcdef") == ""
}

// bytesOf returns the bytes of an id. For an invalid id it returns zeros.
func bytesOf(id string) []byte {
	b := make([]byte, 16)
	if isID(id) {
		_, _ = hex.Decode(b, []byte(id)) // isID has checked the digits
	}
	return b
}

func key(t byte, parts ...[]byte) []byte {
	k := []byte{table, t}
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

func accountKey(id string) []byte          { return key(tableAccount, bytesOf(id)) }
func emailKey(email string) []byte         { return key(tableEmail, []byte(email)) }
func claimsKey(email string) []byte        { return key(tableClaim, []byte(email), []byte{0}) }
func sessionKey(h hash) []byte             { return key(tableSession, h[:]) }
func sessionsKey(id string, h hash) []byte { return key(tableSessions, bytesOf(id), h[:]) }
func resetKey(h []byte) []byte             { return key(tableReset, h) }
func setupKey() []byte                     { return key(tableSetup) }
func quotaKey(id string) []byte            { return key(tableQuota, bytesOf(id)) }
func reportKey(app, edge string) []byte    { return key(tableReport, bytesOf(app), []byte(edge)) }
func headKey() []byte                      { return key(tableHead) }

func claimKey(rec *record) []byte {
	return append(binary.BigEndian.AppendUint64(claimsKey(rec.Email), uint64(rec.Created.UnixNano())), bytesOf(rec.ID)...)
}

// claimID returns the account id in a key from claimKey.
func claimID(k []byte) string { return hex.EncodeToString(k[len(k)-16:]) }

func auditKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(key(tableAudit), seq) }

func auditsKey(id string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(key(tableAudits, bytesOf(id)), seq)
}

func dayKey(day uint32, app []byte) []byte {
	return append(binary.BigEndian.AppendUint32(key(tableDay), day), app...)
}
