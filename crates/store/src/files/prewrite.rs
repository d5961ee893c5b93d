//! Message files that are written while their messages are being committed.
//!
//! A body is written to a file without a name, which disappears if its message is not stored. After
//! the commit the file gets its name, which takes half the time of writing it. Only Linux has such
//! files, and not on every file system; elsewhere the file is written after the commit.

use crate::home::Home;
use posthaste_core::{Body, Draft};
use std::path::PathBuf;
use unnamed::UnnamedFile;

/// Longest body that is copied in memory to be prewritten.
const PREWRITE_BODY_BYTES: usize = 64 * 1024;

/// Message files of an operation that can be written before its commit, one entry for each draft.
#[derive(Debug, Default)]
pub struct Prewrite {
    copies: Vec<Option<PrewrittenCopy>>,
}

#[derive(Debug)]
struct PrewrittenCopy {
    dir: PathBuf,
    text: String,
    file: Option<UnnamedFile>,
}

impl Prewrite {
    pub(crate) fn new(home: &Home, drafts: &[Draft]) -> Self {
        let copies = drafts.iter().map(|draft| match &draft.body {
            Body::Inline(text) if text.len() <= PREWRITE_BODY_BYTES => Some(PrewrittenCopy {
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

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.copies.iter().all(Option::is_none)
    }

    /// Write the bodies. A file that cannot be written now is written after the commit.
    pub fn begin(&mut self) {
        for copy in self.copies.iter_mut().flatten() {
            copy.file = UnnamedFile::write(&copy.dir, &copy.text);
        }
    }

    /// Give the prewritten file of draft number `draft` the first of `names` that is free. Return
    /// `None` if that is impossible, or if the file has a different text.
    pub(super) fn name<'a>(
        &self,
        draft: usize,
        text: &str,
        names: &'a [PathBuf; 2],
    ) -> Option<&'a PathBuf> {
        let copy = self.copies.get(draft)?.as_ref()?;
        let file = copy.file.as_ref().filter(|_| copy.text == text)?;
        names.iter().find(|path| file.name(path))
    }
}

#[cfg(target_os = "linux")]
mod unnamed {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags};
    use rustix::io::Errno;
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::path::Path;

    /// A file without a name, and the directory in which it can get one. The directory is kept
    /// open, because its path may lead elsewhere by then.
    #[derive(Debug)]
    pub(super) struct UnnamedFile {
        dir: OwnedFd,
        file: File,
    }

    impl UnnamedFile {
        pub(super) fn write(dir: &Path, text: &str) -> Option<Self> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let dir = rustix::fs::open(dir, flags, Mode::empty()).ok()?;
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&dir, ".", flags, Mode::RUSR | Mode::WUSR).ok()?;
            let mut file = File::from(file);
            file.write_all(text.as_bytes()).ok()?;
            Some(Self { dir, file })
        }

        /// Return whether the file got the name of `path`, which may be taken.
        pub(super) fn name(&self, path: &Path) -> bool {
            let Some(name) = path.file_name() else {
                return false;
            };
            let Self { dir, file } = self;
            let named = match rustix::fs::linkat(file, "", dir, name, AtFlags::EMPTY_PATH) {
                // Before Linux 6.10 only root could do that. Every user can link the descriptor.
                Err(Errno::NOENT) => {
                    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
                    rustix::fs::linkat(CWD, &unnamed, dir, name, AtFlags::SYMLINK_FOLLOW)
                }
                named => named,
            };
            named.is_ok()
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::path::Path;

    #[derive(Debug)]
    pub(super) enum UnnamedFile {}

    impl UnnamedFile {
        pub(super) fn write(_: &Path, _: &str) -> Option<Self> {
            None
        }

        pub(super) fn name(&self, _: &Path) -> bool {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs::read_to_string;

    /// Return `None` if this file system has no unnamed files.
    fn begun(dir: &std::path::Path, text: &str) -> Option<Prewrite> {
        let copy = PrewrittenCopy {
            dir: dir.to_owned(),
            text: text.to_owned(),
            file: None,
        };
        let mut prewrite = Prewrite {
            copies: vec![None, Some(copy)],
        };
        prewrite.begin();
        let is_begun = prewrite
            .copies
            .iter()
            .flatten()
            .all(|copy| copy.file.is_some());
        is_begun.then_some(prewrite)
    }

    #[allow(
        clippy::print_stderr,
        reason = "the person who runs the tests must know"
    )]
    fn skip() {
        assert!(std::env::var_os("PH_CI").is_none(), "nothing was begun");
        eprintln!("skipped: this file system has no unnamed files");
    }

    #[test]
    fn a_prewritten_file_has_no_name_until_it_gets_a_free_one() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["first", "second"].map(|name| dir.path().join(name));
        let Some(prewrite) = begun(dir.path(), "text") else {
            return skip();
        };
        let count = || dir.path().read_dir().unwrap().count();
        assert_eq!(count(), 0);
        assert_eq!(prewrite.name(0, "text", &names), None);
        assert_eq!(prewrite.name(1, "another text", &names), None);
        assert_eq!(count(), 0);
        assert_eq!(prewrite.name(1, "text", &names), Some(&names[0]));
        assert_eq!(read_to_string(&names[0]).unwrap(), "text");
        let again = begun(dir.path(), "other").unwrap();
        assert_eq!(again.name(1, "other", &names), Some(&names[1]));
        let late = begun(dir.path(), "late").unwrap();
        assert_eq!(late.name(1, "late", &names), None);
        drop(late);
        assert_eq!(count(), 2);
        assert_eq!(read_to_string(&names[0]).unwrap(), "text");
        assert_eq!(read_to_string(&names[1]).unwrap(), "other");
    }

    #[test]
    fn no_file_is_prewritten_or_named_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let [own, link, others] = ["own", "link", "others"].map(|name| root.path().join(name));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&others).unwrap();
        std::os::unix::fs::symlink(&others, &link).unwrap();
        let Some(prewrite) = begun(&own, "text") else {
            return skip();
        };
        assert!(begun(&link, "text").is_none());
        let names = ["first", "second"].map(|name| own.join(name));
        std::fs::rename(&own, root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&others, &own).unwrap();
        assert_eq!(prewrite.name(1, "text", &names), Some(&names[0]));
        assert_eq!(others.read_dir().unwrap().count(), 0);
    }
}
