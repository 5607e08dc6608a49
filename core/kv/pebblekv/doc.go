// Package pebblekv is a [kv.Store] on Pebble, CockroachDB's log-structured merge tree: the store of every native process.
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
//   - It always uses the newest format version: after a flipped bit in the newest log, older ones drop all records without an error.
//   - Crash only. After a failed write or sync of the log, the store acknowledges and writes nothing, and it calls [Options].Fatal. The
//     caller must open the store again to find out its contents. Pebble would panic with its locks held, or continue.
//   - Full disks. Room returns kv.ErrFull below a watermark. If the disk fills up nevertheless, the store deletes a ballast file so that
//     logs and flushes succeed. Flushes that still fail wait for space instead of retrying at once.
//   - The seal: Close, and each checkpoint, list logs, manifest and settings with their checksums in the marker, and Open compares them.
//     Pebble itself reads a damaged manifest as a shorter one and opens an older, smaller store.
//   - A marker, so that the store does not mistake another folder for its own, or the store of a newer version for a readable one.
//
// It does not interpret keys, and knows about another process only that it holds the lock.
package pebblekv
