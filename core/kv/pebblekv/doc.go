// Package pebblekv is a [kv.Store] on Pebble, CockroachDB's log-structured merge tree: the store of every native process.
//
//	Commit ─▶ one at a time ─▶ write-ahead log ──sync, shared──▶ wait returns
//	                      └──▶ memtable ──flush──▶ tables, compacted in the background
//	                              │                   │
//	Get, Scan, Snapshot ◀─────────┴───────────────────┘
//
//	folder  SIGHTLINE      our marker: kind, format, and after a clean stop the seal
//	        BALLAST        space that is freed when the disk is full
//	        LOCK, MANIFEST-*, OPTIONS-*, marker.*, *.log, *.sst   Pebble's
//
// It adds to Pebble, each because of a measurement:
//
//   - The newest format version, always: older ones drop all records after a flipped bit of
//     the newest log without an error.
//   - Crash only. After a failed write or sync of the log nothing is acknowledged or written
//     any longer, and [Options].Fatal is called. The store must be opened again to find out what
//     it has. Pebble would panic with its locks held, or continue.
//   - Full disks. Room refuses more data below a watermark. If the disk fills up nevertheless,
//     the store frees a ballast file so that logs and flushes succeed. Flushes that still
//     fail wait for space instead of spinning.
//   - The seal: at a clean stop, and in each checkpoint, the marker lists logs, manifest and
//     settings with their checksums, and opening compares. Pebble itself reads a damaged
//     manifest as a shorter one and opens an older, smaller store.
//   - A marker, so that no other folder is mistaken for our store, and no store of a newer
//     version for one that this version can read.
//
// It does not interpret keys, and knows about other processes only that they hold the lock.
package pebblekv
