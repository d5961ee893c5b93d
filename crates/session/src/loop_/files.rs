//! Reads a loop's spec, prd and template, up to a size limit, and appends blocks to progress.txt.
//! Never writes to other files.

use posthaste_core::loop_::prd::Prd;
use posthaste_core::loop_::prompt::template::PromptTemplate;
use posthaste_core::text;
use posthaste_store::data_file;
use posthaste_store::report::{Report, Result};
use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Size limit. An agent should read longer texts itself.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The text of a spec, which is never empty.
#[derive(Debug)]
pub(super) struct SpecFile(pub(super) String);

impl SpecFile {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read("spec", path)?;
        if text::one_line(&text, 1).is_empty() {
            let shown = shown(path);
            return Err(Report::usage(format!("the spec is empty: {shown}"))
                .hint("write into it what the agent should build"));
        }
        Ok(Self(text))
    }
}

/// Read a text file. Pipes and devices are refused, because reading them may block.
fn read(what: &str, path: &Path) -> Result<String> {
    data_file::read(path, OFlags::empty(), MAX_FILE_BYTES).map_err(|error| {
        let report =
            |why: &str| Report::usage(format!("cannot read the {what} {}: {why}", shown(path)));
        match error.kind() {
            ErrorKind::NotFound => report("the file does not exist"),
            _ if path.is_dir() => {
                report("it is a directory").hint(format!("name a file in it: --{what} FILE"))
            }
            _ => report(&error.to_string()),
        }
    })
}

/// Read the prd as it is now.
pub(super) fn read_prd(path: &Path) -> Result<Prd> {
    let json = read("prd", path)?;
    Prd::parse(&json).map_err(|error| {
        Report::usage(format!("{} is not a valid prd: {error}", shown(path)))
            .hint("a prd is a JSON object with the list 'userStories'")
    })
}

/// Read a prompt template.
pub(super) fn read_template(path: &Path) -> Result<PromptTemplate> {
    let source = read("template", path)?;
    PromptTemplate::parse(&source)
        .map_err(|error| Report::usage(format!("{} is not a valid template: {error}", shown(path))))
}

/// Append a block to progress.txt, even while other processes write to the file.
pub(super) fn append(path: &Path, block: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = options
        .append(true)
        .create(true)
        .custom_flags(flags)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
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
    fn files_that_are_not_text_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let check = |bytes: Option<&[u8]>, want: &str| {
            if let Some(bytes) = bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let report = SpecFile::read(&path).expect_err("it is invalid");
            assert!(report.message().contains(want), "{}", report.message());
        };
        check(None, "does not exist");
        check(Some(b""), "empty");
        check(Some(b" \n\t\r\n"), "empty");
        check(Some(b"\xff\xfe"), "not UTF-8");
        check(Some(&vec![b'x'; MAX_FILE_BYTES as usize + 1]), "1024 KiB");
        std::fs::write(&path, vec![b'x'; MAX_FILE_BYTES as usize]).unwrap();
        assert_eq!(
            SpecFile::read(&path).unwrap().0.len() as u64,
            MAX_FILE_BYTES
        );
        let report = SpecFile::read(dir.path()).expect_err("a directory is not a file");
        assert!(report.message().contains("directory"));
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        assert!(read("spec", &fifo).is_err());
        assert!(append(&fifo, "x").is_err());
    }

    #[test]
    fn a_block_is_appended() {
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
