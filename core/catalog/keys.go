package catalog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/sightline-dev/sightline/core/blob"
	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
	"github.com/sightline-dev/sightline/core/log/field"
	"github.com/sightline-dev/sightline/core/predict/raster"
)

// The layout of a store. Numbers are big-endian, so that keys are in numeric order; n is a number of 4 bytes, N one of 8. A writer of 8 bytes
// and a dot of 12 are as [log.Dot.AppendKey] writes them. All keys of an application begin with a and the 16 bytes of its id, those of the
// control partition with a and 16 zero bytes. So a range of keys is one application, and no read within it returns keys of another.
//
//	c                         → position         of a cluster's node, see origin/server/cluster/channel
//	h name app                → ord n            public name of a picture, of 16 bytes
//	u …                                          the origin's accounts, see origin/server/account
//	a app …
//	  l …                                        its log, see package log
//	  c                       → header           cursor of the fold, counts, horizon
//	  s site n                → N or Names       the writer's operations that were folded; of a drawn writer: s writer
//	  G dot                   → clock N          deletions that were folded before their things came
//	  r dot sum N             → Contradiction    registers with contradictory values, by the input or the model
//	  j seq N dot sum N       →                  the same, oldest first
//	  i ord n                 → Input            in the order of creation
//	  I id                    → ord n
//	  d dot                   → ord n            inputs by incarnation
//	  u sha256(url)/16        → ord n            the oldest input with a URL
//	  u sha256(url)/16 ord n  →                  the other inputs with it
//	  b blob crop/16 ord n    →                  inputs by picture; crop is a hash, zero for the whole picture
//	  p ord n                 →                  inputs to process, at 30001
//	  n id                    → Concept
//	  N seq N                 → id               concepts in the order of creation
//	  m id                    → Model
//	  M seq N                 → id
//	  o dot                   → id               models by incarnation
//	  v dot seq N             → Version          versions by model, oldest first
//	  V dot id                → seq N
//	  t seq N                 → dot [dot]        versions to train, at 21103: the model, the operation that requested the training
//	  w id                    → Workflow
//	  W seq N                 → id
//	  x dot                   → id
//	  f seq N                 → Feedback
//	  A id                    → App              in the control partition
//	  k sha256(key)           → Key              likewise, and so are
//	  K app sha256(key)       →                  keys by application
//	  C id                    → Client
//	  Q app                   → id               clients by application
//	  e app                   → seq N            deleted applications
//	  E id                    → Edge
//	  T sha256(token)         → id               edges by enrolment token
//	  S site n                → Site             leased ones
//	  L app site n            →                  sites by application
//	  R                       → Trust            the origin's keys of access tokens
//	                                             the state's digest covers the tables above; those below can be rebuilt
//	  D blob crop/16 base     → Derived
//	  D blob crop/16 t        → thumbnail, a JPEG
//	  O sha256                → object           manifests
//	  g what                  → cursor           pending cleanup
//	  X …                                        the index, see package index
//	  y key                   → undo record      of a replica's pending operations, see undo.go
//	  z name                  → …                local notes of the engine
const (
	tableHosted           = 'h'
	tableApp              = 'a'
	tableLog              = 'l'
	tableHeader           = 'c'
	tableSite             = 's'
	tableDeletion         = 'G'
	tableContradiction    = 'r'
	tableContradictionAge = 'j'
	tableInput            = 'i'
	tableInputID          = 'I'
	tableInputDot         = 'd'
	tableURL              = 'u'
	tableBlob             = 'b'
	tablePending          = 'p'
	tableConcept          = 'n'
	tableConceptSeq       = 'N'
	tableModel            = 'm'
	tableModelSeq         = 'M'
	tableModelDot         = 'o'
	tableVersion          = 'v'
	tableVersionID        = 'V'
	tableTraining         = 't'
	tableWorkflow         = 'w'
	tableWorkflowSeq      = 'W'
	tableWorkflowDot      = 'x'
	tableFeedback         = 'f'
	tableKeyApp           = 'A'
	tableKey              = 'k'
	tableAppKey           = 'K'
	tableClient           = 'C'
	tableAppClient        = 'Q'
	tableAppGone          = 'e'
	tableEdge             = 'E'
	tableEdgeToken        = 'T'
	tableLease            = 'S'
	tableAppLease         = 'L'
	tableTrust            = 'R'
	tableDerived          = 'D'
	tableObject           = 'O'
	tableTidy             = 'g'
	tableIndex            = 'X'
	tableUndo             = 'y'
	tableLocal            = 'z'
)

// AppID identifies an application; in messages it is 32 lower-case hex digits. The zero AppID is
// the control partition, whose records are applications, keys and clients.
type AppID [16]byte

// Control is the partition of applications, keys and clients.
var Control AppID

// ParseAppID reads 32 lower-case hex digits, not all of them 0. For other text it returns ErrNotFound.
func ParseAppID(s string) (AppID, error) {
	var a AppID
	n, err := hex.Decode(a[:], []byte(s[:min(len(s), 2*len(a))]))
	if err != nil || n != len(a) || a == Control || a.String() != s {
		return AppID{}, fmt.Errorf("application %q: %w", s, ErrNotFound)
	}
	return a, nil
}

// String returns 32 lower-case hex digits.
func (a AppID) String() string { return hex.EncodeToString(a[:]) }

// key returns the start of a key in a table, with capacity for room more bytes.
func (a AppID) key(table byte, room int) []byte {
	k := make([]byte, 0, 2+len(a)+room)
	k = append(k, tableApp)
	k = append(k, a[:]...)
	return append(k, table)
}

// Range returns the bounds of all keys of the application except the public names of its
// pictures. Deleting the application deletes this range.
func (a AppID) Range() (lo, hi []byte) {
	lo = append([]byte{tableApp}, a[:]...)
	return lo, kv.PrefixEnd(lo)
}

// ChangedApps returns the applications whose keys a batch changes.
func ChangedApps(b *kv.Batch) map[AppID]bool {
	apps := map[AppID]bool{}
	for op := range b.Each {
		if n := len(AppID{}); len(op.Key) > n && op.Key[0] == tableApp {
			apps[AppID(op.Key[1:1+n])] = true
		}
	}
	return apps
}

// HostedRange returns the bounds of the public names of all applications' pictures.
func HostedRange() (lo, hi []byte) { return []byte{tableHosted}, []byte{tableHosted + 1} }

// LogPrefix returns the prefix of the keys of the application's log.
func (a AppID) LogPrefix() []byte { return a.key(tableLog, 0) }

// IndexPrefix returns the prefix of the keys of the application's index.
func (a AppID) IndexPrefix() []byte { return a.key(tableIndex, 0) }

// LocalKey returns the key of a local note of the engine about an application. Notes belong neither to the log nor to the state's digest,
// and are not replicated.
func (a AppID) LocalKey(name string) []byte { return append(a.key(tableLocal, len(name)), name...) }

// TidyKey returns the key of a pending cleanup.
func (a AppID) TidyKey(cleanup string) []byte {
	return append(a.key(tableTidy, len(cleanup)), cleanup...)
}

func (a AppID) uint32Key(table byte, n uint32) []byte {
	return binary.BigEndian.AppendUint32(a.key(table, 4), n)
}

func (a AppID) uint64Key(table byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(a.key(table, 8), n)
}

func (a AppID) stringKey(table byte, id string) []byte { return append(a.key(table, len(id)), id...) }

func (a AppID) dotKey(table byte, d log.Dot, room int) []byte {
	return d.AppendKey(a.key(table, 12+room))
}

// writerKey returns the key of a writer in tableSite: 4 bytes for a site, 8 for any other.
func (a AppID) writerKey(w log.Writer) []byte {
	if w.IsSite() {
		return a.uint32Key(tableSite, uint32(w))
	}
	return w.AppendKey(a.key(tableSite, 8))
}

// writerOf reads the writer at the end of a writerKey.
func writerOf(k []byte) log.Writer {
	if len(k) == 4 {
		return log.Writer(binary.BigEndian.Uint32(k))
	}
	return log.KeyWriter(k)
}

func (a AppID) url(url string) []byte { return appendURL(a.key(tableURL, 20), url) }

func appendURL(k []byte, url string) []byte {
	sum := sha256.Sum256([]byte(url))
	return append(k, sum[:16]...)
}

func (a AppID) picture(table byte, h blob.Hash, c raster.Crop, room int) []byte {
	return appendPicture(a.key(table, len(h)+16+room), h, c)
}

func appendPicture(k []byte, h blob.Hash, c raster.Crop) []byte {
	k = append(k, h[:]...)
	if c == (raster.Crop{}) {
		return append(k, make([]byte, 16)...)
	}
	var b [32]byte
	for i, f := range [...]float64{c.Top, c.Left, c.Bottom, c.Right} {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(f))
	}
	sum := sha256.Sum256(b[:])
	return append(k, sum[:16]...)
}

func appendUint64(k []byte, n uint64) []byte { return binary.BigEndian.AppendUint64(k, n) }

// dotOf decodes a value that is a dot.
func dotOf(v []byte) (log.Dot, error) {
	if len(v) != 12 {
		return log.Dot{}, fmt.Errorf("%w: %d bytes for a dot", field.ErrFormat, len(v))
	}
	return log.KeyDot(v), nil
}

// ordAt decodes the ordinal at the end of a key.
func ordAt(key []byte) uint32 { return binary.BigEndian.Uint32(key[len(key)-4:]) }

func number4(v []byte) (uint32, error) {
	if len(v) != 4 {
		return 0, fmt.Errorf("%w: %d bytes for a number", field.ErrFormat, len(v))
	}
	return binary.BigEndian.Uint32(v), nil
}

func number8(v []byte) (uint64, error) {
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: %d bytes for a number", field.ErrFormat, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}
