//! Tests that need the lab's programs: several processes on one journal, failing disks, the model
//! server, the fuzz targets, and the verdict of a chaos run. All tests share this process.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod chaos;
mod faults;
mod fuzz;
mod model;
mod processes;
