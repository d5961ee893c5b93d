//! The files of a loop that a person and an agent write: read whole, within bounds, never written.
//! The one exception is progress.txt, to whose end blocks are added.

use posthaste_core::build::prd::Prd;
use posthaste_core::build::template::Template;
use posthaste_core::text;
use posthaste_store::report::{Report, Result};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What is longer belongs in files that the agent reads itself.
const LONGEST: u64 = 1 << 20;

/// What is to be built, in its author's words.
#[derive(Debug)]
pub(super) struct Spec(pub(super) String);

impl Spec {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let words = read("spec", path)?;
        if text::one_line(&words, 1).is_empty() {
            let shown = shown(path);
            return Err(Report::usage(format!("the spec is empty: {shown}"))
                .hint("it says what is to be built"));
        }
        Ok(Self(words))
    }
}

/// A file's text. A pipe or a device is none: nobody may be at its other end.
fn read(what: &str, path: &Path) -> Result<String> {
    let wrong = |why: &str| Report::usage(format!("cannot read the {what} {}: {why}", shown(path)));
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong("there is no such file"),
        _ => wrong(&error.to_string()),
    })?;
    let kind = file.metadata().map_err(|error| wrong(&error.to_string()))?;
    if kind.is_dir() {
        return Err(wrong("it is a directory").hint(format!("name a file in it: --{what} FILE")));
    }
    if !kind.is_file() {
        return Err(wrong("it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| wrong(&error.to_string()))?;
    if bytes.len() as u64 > LONGEST {
        return Err(wrong("it has more than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is not UTF-8"))
}

/// The stories of a loop, as they stand there now.
pub(super) fn prd(path: &Path) -> Result<Prd> {
    let json = read("prd", path)?;
    Prd::parse(&json).map_err(|error| {
        Report::usage(format!("{} is no prd: {error}", shown(path)))
            .hint("it is an object with 'userStories', a list")
    })
}

/// How the parts of a prompt stand together.
pub(super) fn template(path: &Path) -> Result<Template> {
    let source = read("template", path)?;
    Template::parse(&source)
        .map_err(|error| Report::usage(format!("{} is no template: {error}", shown(path))))
}

/// Adds a block to the end of progress.txt, whatever else is written there meanwhile.
pub(super) fn append(path: &Path, block: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = options
        .append(true)
        .create(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no file"));
    }
    file.write_all(block.as_bytes())
}

pub(super) fn shown(path: &Path) -> String {
    text::one_line(&path.to_string_lossy(), 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let check = |bytes: Option<&[u8]>, want: &str| {
            if let Some(bytes) = bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let report = Spec::read(&path).expect_err("it is none");
            assert!(report.message().contains(want), "{}", report.message());
        };
        check(None, "no such file");
        check(Some(b""), "empty");
        check(Some(b" \n\t\r\n"), "empty");
        check(Some(b"\xff\xfe"), "not UTF-8");
        check(Some(&vec![b'x'; LONGEST as usize + 1]), "1 MiB");
        std::fs::write(&path, vec![b'x'; LONGEST as usize]).unwrap();
        assert_eq!(Spec::read(&path).unwrap().0.len() as u64, LONGEST);
        let report = Spec::read(dir.path()).expect_err("a directory is none");
        assert!(report.message().contains("directory"));
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        assert!(read("spec", &fifo).is_err());
        assert!(append(&fifo, "x").is_err());
    }

    #[test]
    fn a_block_goes_to_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("progress.txt");
        append(&path, "one\n").unwrap();
        std::fs::write(&path, "the agent's own\n").unwrap();
        append(&path, "two\n").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "the agent's own\ntwo\n"
        );
    }
}
