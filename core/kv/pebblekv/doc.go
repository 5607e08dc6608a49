// Package pebblekv is a [kv.Store] on Pebble, CockroachDB's log-structured merge tree: the
// store of every native process.
//
//	Commit ─▶ one at a time ─▶ write-ahead log ──sync, shared──▶ wait returns
//	                      └──▶ memtable ──flush──▶ tables, compacted in the background
//	                              │                   │
//	Get, Scan, Snapshot ◀─────────┴───────────────────┘
//
//	folder  SIGHTLINE      our marker: what this is, format, and after a clean stop the seal
//	        BALLAST        space that is given up when the disk is full
//	        LOCK, MANIFEST-*, OPTIONS-*, marker.*, *.log, *.sst   Pebble's
//
// What it adds to Pebble, each because a measurement asked for it:
//
//   - The newest format version, always: older ones drop all records after a flipped bit of
//     the newest log in silence.
//   - Crash only. After a log write or sync has failed nothing is acknowledged and nothing is
//     written any more, [Options].Fatal is called, and only opening again tells what was
//     kept. Pebble would panic with its locks held, or go on.
//   - Full disks. Room asks for no more data below a watermark; where the disk fills up all
//     the same, a ballast file is given up so that logs and flushes get through; and flushes
//     that fail nevertheless wait for space in place of spinning.
//   - The seal: at a clean stop, and in each checkpoint, the marker lists logs, manifest and
//     settings with their checksums, and opening compares. Pebble itself takes a damaged
//     manifest for a short one and opens an older, smaller store.
//   - A marker, so that no other folder is taken for a store of ours, nor a store of a newer
//     version for one that this version can read.
//
// It knows nothing of keys, and nothing of other processes but that they hold the lock.
package pebblekv
