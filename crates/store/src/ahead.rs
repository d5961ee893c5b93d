//! Message files that are begun while their messages are being committed.
//!
//! A body is written to a file without a name, of which nothing is left where its message is not
//! stored. Once it is, the file gets its name, whole and at once: half the work of making one. Only
//! Linux has such files, and not on every file system; elsewhere all is done after the commit.

use crate::home::Home;
use crate::job::Job;
use posthaste_core::Body;
use std::fs::File;
use std::path::PathBuf;

/// A longer body is not worth another copy of it in memory.
const SHORT: usize = 64 * 1024;

/// What can be begun of a job's message files, draft by draft.
#[derive(Debug, Default)]
pub struct Ahead {
    copies: Vec<Option<Begun>>,
}

/// One message's file to be.
#[derive(Debug)]
struct Begun {
    dir: PathBuf,
    text: String,
    file: Option<File>,
}

impl Ahead {
    pub(crate) fn of(home: &Home, job: &Job) -> Self {
        let drafts = match job {
            Job::Post { drafts, .. } => drafts.as_slice(),
            _ => &[],
        };
        let copies = drafts.iter().map(|draft| match &draft.body {
            Body::Inline(text) if text.len() <= SHORT => Some(Begun {
                dir: home.messages(&draft.to),
                text: text.clone(),
                file: None,
            }),
            Body::Inline(_) | Body::Filed { .. } => None,
        });
        Self {
            copies: copies.collect(),
        }
    }

    /// Writes the bodies. What fails here is done after the commit, and fails there if it must.
    pub fn begin(&mut self) {
        for copy in self.copies.iter_mut().flatten() {
            copy.file = unnamed::write(&copy.dir, &copy.text);
        }
    }

    /// Gives the file that was begun for this draft the first of `names` that is free; none where
    /// that cannot be done, or where it has another text than this.
    pub(crate) fn name<'a>(
        &self,
        draft: usize,
        text: &str,
        names: &'a [PathBuf; 2],
    ) -> Option<&'a PathBuf> {
        let begun = self.copies.get(draft)?.as_ref()?;
        let file = begun.file.as_ref().filter(|_| begun.text == text)?;
        unnamed::name_first(file, names)
    }
}

#[cfg(target_os = "linux")]
mod unnamed {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    pub(super) fn write(dir: &Path, text: &str) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(rustix::fs::open(dir, flags, mode).ok()?);
        file.write_all(text.as_bytes()).ok()?;
        Some(file)
    }

    pub(super) fn name_first<'a>(file: &File, names: &'a [PathBuf; 2]) -> Option<&'a PathBuf> {
        for path in names {
            match name(file, path) {
                Ok(()) => return Some(path),
                Err(Errno::EXIST) => {}
                Err(_) => return None,
            }
        }
        None
    }

    fn name(file: &File, path: &Path) -> rustix::io::Result<()> {
        match rustix::fs::linkat(file, "", CWD, path, AtFlags::EMPTY_PATH) {
            // Before Linux 6.10 that was root's privilege. The way round is open to everybody.
            Err(Errno::NOENT) => {
                let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
                rustix::fs::linkat(CWD, &unnamed, CWD, path, AtFlags::SYMLINK_FOLLOW)
            }
            named => named,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::path::{Path, PathBuf};

    pub(super) fn write(_: &Path, _: &str) -> Option<File> {
        None
    }

    pub(super) fn name_first<'a>(_: &File, _: &'a [PathBuf; 2]) -> Option<&'a PathBuf> {
        None
    }
}
