//! One kernel at a time: a home in use from another machine is refused.
//!
//! Every process that has a home open holds a shared lock on its `host` file, which names the
//! kernel that last used it. A different name there is only a past one if nobody holds the lock.
//! Containers on the same kernel share locks and memory, so they are the same machine.

use crate::error::{Error, Result, io};
use crate::home::{Home, private_file};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};

/// Held for as long as this process has the home open.
#[derive(Debug)]
pub(crate) struct HostHold {
    _file: File,
}

impl HostHold {
    pub(crate) fn claim(home: &Home) -> Result<Self> {
        Self::claim_as(home, &this_kernel())
    }

    fn claim_as(home: &Home, kernel: &str) -> Result<Self> {
        let path = home.host();
        let mut file = private_file(&path)?;
        file.lock_shared().map_err(io("lock", &path))?;
        if read(&mut file).map_err(io("read", &path))? == kernel {
            return Ok(Self { _file: file });
        }
        file.unlock().map_err(io("unlock", &path))?;
        match file.try_lock() {
            Ok(()) => {
                rewrite(&mut file, kernel).map_err(io("write", &path))?;
                file.lock_shared().map_err(io("lock", &path))?;
                Ok(Self { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                // Alone it is held only for the moment of a claim, by a process of this machine
                // or another: wait for that, then see who is there.
                file.lock_shared().map_err(io("lock", &path))?;
                let there = read(&mut file).map_err(io("read", &path))?;
                if there == kernel {
                    return Ok(Self { _file: file });
                }
                let host = there.lines().nth(1).unwrap_or("unknown").to_owned();
                Err(Error::OtherMachine {
                    path: home.path().to_owned(),
                    host,
                })
            }
            Err(TryLockError::Error(error)) => Err(io("lock", &path)(error)),
        }
    }
}

fn read(file: &mut File) -> std::io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.take(4096).read_to_string(&mut text)?;
    Ok(text)
}

fn rewrite(file: &mut File, text: &str) -> std::io::Result<()> {
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// The running kernel's own id, then the host's name for people.
fn this_kernel() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    format!("{}\n{name}\n", boot.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_changes_machines_only_when_nobody_has_it_open() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path());
        let here = HostHold::claim_as(&home, "kernel-a\nhost-a\n").unwrap();
        let also = HostHold::claim_as(&home, "kernel-a\nhost-a\n").unwrap();
        let refused = HostHold::claim_as(&home, "kernel-b\nhost-b\n").unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("in use from another machine (host-a)"),
            "{refused}"
        );
        drop((here, also));
        let moved = HostHold::claim_as(&home, "kernel-b\nhost-b\n").unwrap();
        assert!(HostHold::claim_as(&home, "kernel-a\nhost-a\n").is_err());
        drop(moved);
    }
}
