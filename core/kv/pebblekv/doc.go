// Package pebblekv is a [kv.Store] on Pebble, CockroachDB's log-structured merge tree. Every data folder has one.
//
//	Commit ─▶ one at a time ─▶ write-ahead log ──sync, shared──▶ wait returns
//	                      └──▶ memtable ──flush──▶ tables, compacted in the background
//	                              │                   │
//	Get, Scan, Snapshot ◀─────────┴───────────────────┘
//
//	folder  SIGHTLINE      our marker: kind, format, and after Close the seal
//	        BALLAST        space that is freed when the disk is full
//	        LOCK, MANIFEST-*, OPTIONS-*, marker.*, *.log, *.sst   Pebble's
//
// It adds to Pebble the following. Each addition has its reason in a measurement:
//
//   - It always uses Pebble's newest format version. With an older version, a flipped bit in the newest log drops all records without an
//     error.
//   - Crash only. After a failed write or sync of the log, the store calls [Options].Fatal. It then acknowledges and writes nothing. The
//     caller must open the store again to find out its contents. Pebble would panic with its locks held, or continue.
//   - Full disks. Room returns kv.ErrFull below a watermark. If the disk fills up nevertheless, the store deletes a ballast file so that
//     logs and flushes succeed. Flushes that still fail wait for space instead of retrying at once.
//   - The seal. It lists logs, manifest and settings with their checksums in the marker. Close and each checkpoint write it, and Open
//     compares it. Pebble itself reads a damaged manifest as a shorter one and opens an older, smaller store.
//   - The marker. It identifies the store and its version, so that Open rejects other folders and stores of newer versions.
//
// The store does not interpret keys. It notices other processes only by their lock.
package pebblekv
