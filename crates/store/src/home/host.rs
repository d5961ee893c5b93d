//! One kernel at a time: a home in use from another machine is refused.
//!
//! Every process that has a home open holds a shared lock on its `host` file, which names the
//! kernel that last used it. A different name there is only a past one if nobody holds the lock.
//! Containers on the same kernel share locks and memory, so they are the same machine.

use crate::error::{Error, Result, io};
use crate::home::{Home, private_file};
use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How long somebody else may have the record before it counts as in use.
const GRACE: Duration = Duration::from_millis(500);

/// Held for as long as this process has the home open.
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
        let deadline = Instant::now() + GRACE;
        loop {
            file.lock_shared().map_err(io("lock", &path))?;
            let there = read(&file).map_err(io("read", &path))?;
            if is_same(&there, kernel) {
                return Ok(Self { _file: file });
            }
            file.unlock().map_err(io("unlock", &path))?;
            match file.try_lock() {
                Ok(()) => rewrite(&mut file, kernel).map_err(io("write", &path))?,
                // Others of this machine may be looking, or have just claimed it: then the next
                // look shows that. Another machine has it for longer.
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(TryLockError::WouldBlock) => {
                    let host = there.lines().nth(1).unwrap_or("unknown").to_owned();
                    let path = home.path().to_owned();
                    return Err(Error::OtherMachine { path, host });
                }
                Err(TryLockError::Error(error)) => return Err(io("lock", &path)(error)),
            }
        }
    }
}

/// Whether two records name the same kernel; the host's name behind it is for people.
fn is_same(one: &str, other: &str) -> bool {
    one.lines().next() == other.lines().next()
}

/// The record, in one read: it is short, and whatever is longer is none of ours.
fn read(file: &File) -> std::io::Result<String> {
    let mut bytes = [0; 512];
    let count = file.read_at(&mut bytes, 0)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

fn rewrite(file: &mut File, text: &str) -> std::io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// The running kernel's own id, then the host's name for people. Where a kernel has no id, its
/// host's name must do.
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
    fn ten_at_once_claim_a_home_that_another_machine_had() {
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
    fn who_comes_while_the_first_holds_on_is_let_in() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(dir.path(), None).unwrap();
        let kernel = "kernel-a\nhost-a\n";
        for _ in 0..50 {
            std::fs::write(home.host(), "").unwrap();
            std::thread::scope(|scope| {
                let claims: Vec<_> = (0..4)
                    .map(|_| scope.spawn(|| HostClaim::claim_as(&home, kernel).unwrap()))
                    .collect();
                // All of them hold on until the last has come.
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
    fn a_home_changes_machines_only_when_nobody_has_it_open() {
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
