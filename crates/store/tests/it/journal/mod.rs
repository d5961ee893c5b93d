//! The open journal: group commit, the WAL, and faults of the disk.

mod faults;
mod group;
mod wal;
