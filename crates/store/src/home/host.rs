//! Rejects a home that is in use on another machine.
//!
//! Every process that has a home open holds a shared lock on its `host` file, which contains the
//! kernel that used it last. Another kernel's record is outdated if the lock is free. Containers on
//! one kernel share locks and memory, so they count as one machine.

use crate::error::{Error, Result, io};
use crate::home::{Home, private_file};
use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Time after which a lock that is held under another kernel's record counts as in use.
const CLAIM_TIMEOUT: Duration = Duration::from_millis(500);
const CLAIM_RETRY_INTERVAL: Duration = Duration::from_millis(2);
const MAX_RECORD_BYTES: usize = 512;

/// This machine's claim to a home, held while a process has the home open.
#[derive(Debug)]
pub(crate) struct HostClaim {
    _file: File,
}

impl HostClaim {
    pub(crate) fn acquire(home: &Home) -> Result<Self> {
        Self::claim_as(home, &this_kernel())
    }

    fn claim_as(home: &Home, kernel: &str) -> Result<Self> {
        let path = home.host();
        let mut file = private_file(&path)?;
        let deadline = Instant::now() + CLAIM_TIMEOUT;
        loop {
            file.lock_shared().map_err(io("lock", &path))?;
            let record = read(&file).map_err(io("read", &path))?;
            if is_same_kernel(&record, kernel) {
                return Ok(Self { _file: file });
            }
            file.unlock().map_err(io("unlock", &path))?;
            match file.try_lock() {
                Ok(()) => rewrite(&mut file, kernel).map_err(io("write", &path))?,
                // Another process of this machine may be reading the record, or have just written
                // it, which the next read shows. Another machine holds the lock for longer.
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(CLAIM_RETRY_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => {
                    let host = record.lines().nth(1).unwrap_or("unknown").to_owned();
                    let path = home.path().to_owned();
                    return Err(Error::OtherMachine { path, host });
                }
                Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
            }
        }
    }
}

/// Return whether two records have the same kernel. The host name after it is for people.
fn is_same_kernel(one: &str, other: &str) -> bool {
    one.lines().next() == other.lines().next()
}

/// Read a record. One read is enough, because our records are short.
fn read(file: &File) -> std::io::Result<String> {
    let mut bytes = [0; MAX_RECORD_BYTES];
    let count = file.read_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

fn rewrite(file: &mut File, text: &str) -> std::io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// Return the id of the running kernel, and the host name for people. Without an id, the host name
/// takes its place.
fn this_kernel() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    let boot = File::open("/proc/sys/kernel/random/boot_id").and_then(|file| read(&file));
    let kernel = boot.as_deref().map_or(&*name, str::trim);
    format!("{kernel}\n{name}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_processes_claim_a_home_of_another_machine_at_once() {
        for stale in ["", "kernel-b\nhost-b\n"] {
            let dir = tempfile::tempdir().unwrap();
            let home = Home::open(dir.path(), None).unwrap();
            std::fs::write(home.host(), stale).unwrap();
            let claims = std::thread::scope(|scope| {
                let claim = || HostClaim::claim_as(&home, "kernel-a\nhost-a\n");
                let threads: Vec<_> = (0..10).map(|_| scope.spawn(claim)).collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .collect::<Vec<_>>()
            });
            for claim in claims {
                claim.unwrap();
            }
        }
    }

    #[test]
    fn a_claim_is_shared_while_another_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path(), None).unwrap();
        let kernel = "kernel-a\nhost-a\n";
        for _ in 0..50 {
            std::fs::write(home.host(), "").unwrap();
            std::thread::scope(|scope| {
                let claims: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| HostClaim::claim_as(&home, kernel).unwrap()))
                    .collect();
                // Every claim is held until the last one is acquired.
                let holds: Vec<_> = claims.into_iter().map(|c| c.join().unwrap()).collect();
                assert_eq!(holds.len(), 4);
            });
        }
    }

    #[test]
    fn another_name_for_the_same_kernel_is_the_same_machine() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path(), None).unwrap();
        let _here = HostClaim::claim_as(&home, "kernel-a\nhost-a\n").unwrap();
        HostClaim::claim_as(&home, "kernel-a\ncontainer\n").unwrap();
    }

    #[test]
    fn a_home_changes_machines_only_when_it_is_not_open() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path(), None).unwrap();
        let here = HostClaim::claim_as(&home, "kernel-a\nhost-a\n").unwrap();
        let also = HostClaim::claim_as(&home, "kernel-a\nhost-a\n").unwrap();
        let refused = HostClaim::claim_as(&home, "kernel-b\nhost-b\n").unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("in use from another machine (host-a)"),
            "{refused}"
        );
        drop((here, also));
        let moved = HostClaim::claim_as(&home, "kernel-b\nhost-b\n").unwrap();
        assert!(HostClaim::claim_as(&home, "kernel-a\nhost-a\n").is_err());
        drop(moved);
    }
}
