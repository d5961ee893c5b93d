//! Rejects homes on network and shared file systems.
//!
//! SQLite's WAL needs memory that its processes share, and machines do not share memory.

use crate::error::{Error, Result};
use std::path::Path;

/// Fail if a home is on a network or shared file system, before anything is created there.
pub(super) fn reject_shared(home: &Path) -> Result<()> {
    let absolute = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
    // A home that does not exist will be created on the file system of its nearest parent.
    let Some(existing) = absolute.ancestors().find(|path| path.exists()) else {
        return Ok(());
    };
    match shared_kind(existing) {
        Some(kind) => Err(Error::SharedFileSystem {
            path: home.to_owned(),
            kind,
        }),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn shared_kind(path: &Path) -> Option<String> {
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    #[allow(
        clippy::unnecessary_cast,
        reason = "the type differs between architectures"
    )]
    let magic = magic as u64 & 0xffff_ffff;
    if magic == FUSE_MAGIC {
        let kind = mount_type(path)?;
        return (!LOCAL_FUSE_TYPES.contains(&kind.as_str())).then_some(kind);
    }
    SHARED_FILE_SYSTEMS
        .iter()
        .find(|(known, _)| *known == magic)
        .map(|(_, name)| (*name).to_owned())
}

#[cfg(target_os = "linux")]
const FUSE_MAGIC: u64 = 0x6573_5546;

/// FUSE_MAGIC file systems to which only one kernel writes.
#[cfg(target_os = "linux")]
const LOCAL_FUSE_TYPES: [&str; 4] = [
    "fuseblk",
    "fuse.fuse-overlayfs",
    "fuse.mergerfs",
    "fuse.gocryptfs",
];

#[cfg(target_os = "linux")]
const SHARED_FILE_SYSTEMS: [(u64, &str); 15] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB2"),
    (0xff53_4d42, "CIFS"),
    (0x0102_1997, "9p"),
    (0x6a65_6a63, "virtiofs"),
    (0x786f_4256, "vboxsf"),
    (0xbacb_acbc, "vmhgfs"),
    (0x7c7c_6673, "prl_fs"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x7461_636f, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x5346_414f, "AFS"),
];

/// Return the type of the mount that `path` is on, as the kernel spells it.
#[cfg(target_os = "linux")]
fn mount_type(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    type_in_mountinfo(
        &std::fs::read_to_string("/proc/self/mountinfo").ok()?,
        &path,
    )
}

#[cfg(target_os = "linux")]
fn type_in_mountinfo(mountinfo: &str, path: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        Some((point, after.split(' ').next()?))
    });
    mounts
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map(|(_, kind)| kind.to_owned())
}

#[cfg(target_os = "macos")]
fn shared_kind(path: &Path) -> Option<String> {
    let stat = rustix::fs::statfs(path).ok()?;
    let name: String = stat
        .f_fstypename
        .iter()
        .take_while(|c| **c != 0)
        .map(|c| char::from(c.cast_unsigned()))
        .collect();
    [
        "nfs", "smbfs", "afpfs", "webdav", "ftp", "macfuse", "osxfuse",
    ]
    .contains(&name.as_str())
    .then_some(name)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn shared_kind(_: &Path) -> Option<String> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_local_directory_is_accepted_before_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        reject_shared(&dir.path().join("not/yet/there")).unwrap();
    }

    #[test]
    fn the_nearest_mount_decides() {
        let info = "22 1 254:0 / / rw - ext4 /dev/vda rw\n\
                    36 22 0:31 / /mnt/far rw shared:1 - fuse.sshfs host:/x rw\n\
                    37 22 0:32 / /mnt/with\\040space rw - fuse.fuse-overlayfs x rw\n";
        let check = |path: &str, want: &str| {
            assert_eq!(
                type_in_mountinfo(info, Path::new(path)).as_deref(),
                Some(want),
                "{path}"
            );
        };
        check("/home/me", "ext4");
        check("/mnt/far/home", "fuse.sshfs");
        check("/mnt/farther", "ext4");
        check("/mnt/with space/home", "fuse.fuse-overlayfs");
    }

    #[test]
    fn every_shared_file_system_is_listed_once() {
        let mut numbers: Vec<_> = SHARED_FILE_SYSTEMS.iter().map(|(n, _)| n).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), SHARED_FILE_SYSTEMS.len());
    }
}
