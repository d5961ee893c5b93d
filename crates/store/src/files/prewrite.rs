//! Message files that are begun while their messages are being committed.
//!
//! A body is written to a file without a name, of which nothing is left where its message is not
//! stored. Once it is, the file gets its name, whole and at once: half the work of making one. Only
//! Linux has such files, and not on every file system; elsewhere all is done after the commit.

use crate::home::Home;
use crate::operation::Job;
use posthaste_core::Body;
use std::path::PathBuf;
use unnamed::Unnamed;

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
    file: Option<Unnamed>,
}

impl Ahead {
    pub(crate) fn of(home: &Home, job: &Job) -> Self {
        let Job::Post { drafts, .. } = job else {
            return Self::default();
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

    /// Whether there is nothing to begin.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.copies.iter().all(Option::is_none)
    }

    /// Writes the bodies. What fails here is done after the commit, and fails there if it must.
    pub fn begin(&mut self) {
        for copy in self.copies.iter_mut().flatten() {
            copy.file = Unnamed::write(&copy.dir, &copy.text);
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

    /// A file without a name, and the directory in which it can get one: that, and not what may lie
    /// under the same path by then.
    #[derive(Debug)]
    pub(super) struct Unnamed {
        dir: OwnedFd,
        file: File,
    }

    impl Unnamed {
        pub(super) fn write(dir: &Path, text: &str) -> Option<Self> {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let dir = rustix::fs::open(dir, flags, Mode::empty()).ok()?;
            let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&dir, ".", flags, Mode::RUSR | Mode::WUSR).ok()?;
            let mut file = File::from(file);
            file.write_all(text.as_bytes()).ok()?;
            Some(Self { dir, file })
        }

        /// False where the name is taken, or it can get none.
        pub(super) fn name(&self, path: &Path) -> bool {
            let Some(name) = path.file_name() else {
                return false;
            };
            let Self { dir, file } = self;
            let named = match rustix::fs::linkat(file, "", dir, name, AtFlags::EMPTY_PATH) {
                // Before Linux 6.10 that was root's privilege. The way round is open to everybody.
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
    pub(super) enum Unnamed {}

    impl Unnamed {
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

    /// None where this file system has no such files: then there is nothing to see here.
    fn begun(dir: &std::path::Path, text: &str) -> Option<Ahead> {
        let copy = Begun {
            dir: dir.to_owned(),
            text: text.to_owned(),
            file: None,
        };
        let mut ahead = Ahead {
            copies: vec![None, Some(copy)],
        };
        ahead.begin();
        let is_begun = ahead
            .copies
            .iter()
            .flatten()
            .all(|copy| copy.file.is_some());
        is_begun.then_some(ahead)
    }

    #[allow(clippy::print_stderr, reason = "who runs the tests is to know")]
    fn skip() {
        assert!(std::env::var_os("PH_CI").is_none(), "nothing was begun");
        eprintln!("skipped: no files without a name can be made here");
    }

    #[test]
    fn a_file_that_is_begun_has_no_name_until_it_is_given_a_free_one() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["first", "second"].map(|name| dir.path().join(name));
        let Some(ahead) = begun(dir.path(), "text") else {
            return skip();
        };
        let count = || dir.path().read_dir().unwrap().count();
        assert_eq!(count(), 0);
        assert_eq!(ahead.name(0, "text", &names), None);
        assert_eq!(ahead.name(1, "another text", &names), None);
        assert_eq!(count(), 0);
        assert_eq!(ahead.name(1, "text", &names), Some(&names[0]));
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
    fn nothing_is_begun_or_named_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let [own, link, others] = ["own", "link", "others"].map(|name| root.path().join(name));
        std::fs::create_dir(&own).unwrap();
        std::fs::create_dir(&others).unwrap();
        std::os::unix::fs::symlink(&others, &link).unwrap();
        let Some(ahead) = begun(&own, "text") else {
            return skip();
        };
        assert!(begun(&link, "text").is_none());
        let names = ["first", "second"].map(|name| own.join(name));
        std::fs::rename(&own, root.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&others, &own).unwrap();
        assert_eq!(ahead.name(1, "text", &names), Some(&names[0]));
        assert_eq!(others.read_dir().unwrap().count(), 0);
    }
}
