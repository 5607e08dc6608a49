package catalog

import (
	"bytes"
	"slices"

	"github.com/sightline-dev/sightline/core/kv"
	"github.com/sightline-dev/sightline/core/log"
)

// StateTables yields the keys and the values of the state in a fixed order, without those that the horizon has collected: equal states
// yield equal bytes. Key and value are borrowed, and the key is without the application's id.
func (r Reader) StateTables(yield func(key, value []byte) bool) error {
	return r.tables(stateTables[:], nil, func(_ byte, key, value []byte) bool { return yield(key, value) })
}

// IsStateKey reports whether a key, without the application's id, belongs to an application's state.
func IsStateKey(key []byte) bool { return len(key) > 0 && bytes.IndexByte(stateTables[:], key[0]) >= 0 }

// IsDerivedKey reports whether a key, without the application's id, belongs to a derived record.
func IsDerivedKey(key []byte) bool {
	return len(key) == 1+pictureBytes+len([32]byte{}) && key[0] == tableDerived
}

// CopyTables yields the initial data of a replica: the state, as StateTables does, and then the derived records that the network base has
// made. For a zero base it yields no derived records. It begins with the key from, which it has yielded before, or with the first key if
// from is nil.
func (r Reader) CopyTables(base [32]byte, from []byte, yield func(key, value []byte) bool) error {
	tables := stateTables[:]
	if base != [32]byte{} {
		tables = append(slices.Clone(tables), tableDerived)
	}
	return r.tables(tables, from, func(table byte, key, value []byte) bool {
		if table == tableDerived && !(IsDerivedKey(key) && bytes.HasSuffix(key, base[:])) {
			return true
		}
		return yield(key, value)
	})
}

// tables yields the keys of tables, starting at one of them, without the application's id.
func (r Reader) tables(tables, from []byte, yield func(table byte, key, value []byte) bool) error {
	h, err := r.Header()
	if err != nil {
		return err
	}
	prefix := r.app.key(0, 0)
	prefix = prefix[:len(prefix)-1]
	if len(from) > 0 {
		tables = tables[max(bytes.IndexByte(tables, from[0]), 0):]
	}
	for i, t := range tables {
		lo := append(bytes.Clone(prefix), t)
		hi := kv.PrefixEnd(lo)
		if i == 0 && len(from) > 0 {
			lo = append(lo, from[1:]...)
		}
		var failed error
		for key, value := range kv.Range(r.kv, lo, hi, &failed) {
			value, err := dropRemovals(t, value, h.Horizon)
			if err != nil || !yield(t, key[len(prefix):], value) {
				return err
			}
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// stateTables are the tables of the state's digest.
var stateTables = [...]byte{
	tableHeader, tableSite, tableInput, tableInputID, tableInputDot, tableURL, tableBlob, tablePending,
	tableConcept, tableConceptSeq, tableModel, tableModelSeq, tableModelDot, tableVersion, tableVersionID, tableTraining,
	tableWorkflow, tableWorkflowSeq, tableWorkflowDot, tableFeedback, tableKeyApp, tableKey,
	tableAppKey, tableClient, tableAppClient, tableAppGone, tableEdge, tableEdgeToken, tableLease, tableAppLease,
	tableTrust, tableDeletion, tableContradiction, tableContradictionAge,
}

// dropRemovals returns the record of a table without its old removals.
func dropRemovals(table byte, value []byte, horizon log.HLC) ([]byte, error) {
	if horizon == 0 {
		return value, nil
	}
	switch table {
	case tableInput:
		in, err := decodeInput(bytes.Clone(value))
		if err != nil {
			return nil, err
		}
		if in.DropRemovals(horizon) {
			return encodeInput(nil, &in), nil
		}
	case tableModel:
		m, err := decodeModel(bytes.Clone(value))
		if err != nil {
			return nil, err
		}
		if m.DropRemovals(horizon) {
			return encodeModel(nil, &m), nil
		}
	}
	return value, nil
}
