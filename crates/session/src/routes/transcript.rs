//! An agent's transcripts: the files in which it records what its model was given.
//!
//! A session reads only the rows that were added after the offers whose proof it awaits. Paths come
//! from hooks and are untrusted: only regular files owned by this user are opened, read-only.

use crate::state::actions::tasks::TaskReport;
use posthaste_core::harness::transcript;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of transcripts that are followed. The transcript of a cleared conversation may
/// still contain a proof.
const MAX_FOLLOWED_FILES: usize = 4;
/// Maximum number of bytes of a file that are held in memory at once.
const MAX_READ_BYTES: u64 = 4 << 20;
/// Maximum number of bytes of prompts after which a read stops. The next read continues there.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// A transcript, and how far it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedFile {
    path: PathBuf,
    offset: u64,
    /// Number of the file's inode when it was read last; zero before.
    inode: u64,
}

/// Result of one read.
#[derive(Debug)]
pub(crate) struct TranscriptRead {
    pub(crate) text: transcript::Shown,
    pub(crate) files: Vec<FollowedFile>,
    /// Whether every file was read to its end.
    pub(crate) is_complete: bool,
    trouble: Option<String>,
}

/// The transcripts that the agent's hooks have named in this run.
#[derive(Debug, Default)]
pub(crate) struct Transcripts {
    files: Vec<FollowedFile>,
    /// The files as they were when the read began.
    began: Vec<FollowedFile>,
}

impl Transcripts {
    /// Follow the transcript at `path`, from its beginning or from its present end.
    pub(crate) fn follow(&mut self, path: &str, from_start: bool) {
        let path = PathBuf::from(path);
        if self.files.iter().any(|file| file.path == path) {
            return;
        }
        if self.files.len() == MAX_FOLLOWED_FILES {
            self.files.remove(0);
        }
        let mut file = FollowedFile {
            path,
            offset: 0,
            inode: 0,
        };
        if !from_start {
            file.skip_to_end();
        }
        self.files.push(file);
    }

    /// Move the read offsets to the ends of the transcripts before an offer, because earlier rows
    /// cannot prove the offer.
    pub(crate) fn skip_to_end(&mut self) {
        self.files.iter_mut().for_each(FollowedFile::skip_to_end);
    }

    /// The files to read now. The result is passed to [`Self::finish`].
    pub(crate) fn begin(&mut self) -> Vec<FollowedFile> {
        self.began = self.files.clone();
        self.files.clone()
    }

    /// Note how far the files were read. Return what they show, and why no file could be read.
    pub(crate) fn finish(&mut self, found: TranscriptRead) -> (transcript::Shown, Option<String>) {
        for read in found.files {
            // An offset that was moved meanwhile counts.
            let is_unmoved =
                |file: &&mut FollowedFile| file.path == read.path && self.began.contains(file);
            if let Some(file) = self.files.iter_mut().find(is_unmoved) {
                *file = read;
            }
        }
        (found.text, found.trouble)
    }
}

impl FollowedFile {
    fn skip_to_end(&mut self) {
        let meta = open(&self.path).and_then(|file| file.metadata());
        (self.offset, self.inode) = meta.map_or((0, 0), |meta| (meta.len(), meta.ino()));
    }
}

/// Read the rows added to these transcripts, on a blocking thread outside the state's owner.
pub(crate) async fn read(files: Vec<FollowedFile>) -> TaskReport {
    TaskReport::Transcripts(read_now(files).await)
}

pub(crate) async fn read_now(files: Vec<FollowedFile>) -> TranscriptRead {
    let read = tokio::task::spawn_blocking(move || read_files(files)).await;
    read.unwrap_or_else(|_| TranscriptRead {
        text: transcript::Shown::default(),
        files: Vec::new(),
        is_complete: true,
        trouble: Some("the transcript could not be read".to_owned()),
    })
}

/// The transcript of an earlier run, to be read from its beginning.
pub(crate) fn whole(path: &str) -> Vec<FollowedFile> {
    vec![FollowedFile {
        path: path.into(),
        offset: 0,
        inode: 0,
    }]
}

fn read_files(mut files: Vec<FollowedFile>) -> TranscriptRead {
    let mut text = transcript::Shown::default();
    let mut trouble = None;
    for file in &mut files {
        while text.len() < MAX_TEXT_BYTES {
            match read_lines(file) {
                Ok(Some(lines)) => text.add(&lines),
                Ok(None) => break,
                Err(error) => {
                    trouble = Some(error.to_string());
                    break;
                }
            }
        }
    }
    // Report an error only if no transcript yielded any text.
    let trouble = trouble.filter(|_| text.is_empty());
    TranscriptRead {
        is_complete: text.len() < MAX_TEXT_BYTES,
        text,
        files,
        trouble,
    }
}

/// Read complete lines after the offset, and advance the offset past them. Return `None` at the
/// end; an incomplete last line is left for the next read.
fn read_lines(followed: &mut FollowedFile) -> std::io::Result<Option<String>> {
    let mut file = open(&followed.path)?;
    let meta = file.metadata()?;
    let is_replaced = followed.inode != 0 && followed.inode != meta.ino();
    if is_replaced || meta.len() < followed.offset {
        followed.offset = 0;
    }
    followed.inode = meta.ino();
    file.seek(SeekFrom::Start(followed.offset))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
    let is_full = bytes.len() as u64 == MAX_READ_BYTES;
    let end = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map(|at| at + 1);
    // Skip a line longer than the limit: no valid record is that long.
    let end = end.unwrap_or(if is_full { bytes.len() } else { 0 });
    bytes.truncate(end);
    followed.offset += end as u64;
    Ok((end > 0).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    Ok(File::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const ROW: &str = r#"{"type":"user","message":{"role":"user","content":"TEXT"}}"#;

    fn row(text: &str) -> String {
        format!("{}\n", ROW.replace("TEXT", text))
    }

    fn given(files: Vec<FollowedFile>) -> (String, Vec<FollowedFile>) {
        let found = read_files(files);
        (found.text.given, found.files)
    }

    #[test]
    fn only_whole_lines_after_the_offset_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        std::fs::write(&path, row("old")).unwrap();
        let mut transcripts = Transcripts::default();
        transcripts.follow(path.to_str().unwrap(), false);
        let mut file = File::options().append(true).open(&path).unwrap();
        let (half, rest) = ROW.split_at(20);
        file.write_all(row("one").as_bytes()).unwrap();
        file.write_all(half.as_bytes()).unwrap();
        let (text, files) = given(transcripts.begin());
        assert_eq!(text, "one\n");
        file.write_all(format!("{rest}\n").as_bytes()).unwrap();
        assert_eq!(given(files).0, "TEXT\n");
        transcripts.skip_to_end();
        assert_eq!(given(transcripts.begin()).0, "");
        // A file that is shorter than before, or another file, is read from its beginning.
        let read = |transcripts: &mut Transcripts| {
            let found = read_files(transcripts.begin());
            transcripts.finish(found).0.given
        };
        std::fs::write(&path, row("new")).unwrap();
        assert_eq!(read(&mut transcripts), "new\n");
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(row("newer").as_bytes()).unwrap();
        assert_eq!(read(&mut transcripts), "newer\n");
        let other = dir.path().join("other");
        std::fs::write(&other, format!("{}{}", row("first"), row(&"x".repeat(500)))).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(read(&mut transcripts).starts_with("first\n"));
    }

    #[test]
    fn a_long_transcript_is_read_in_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let long = "x".repeat(usize::try_from(MAX_READ_BYTES).unwrap());
        std::fs::write(&path, format!("{}{}{}", row("one"), row(&long), row("two"))).unwrap();
        let mut transcripts = Transcripts::default();
        transcripts.follow(path.to_str().unwrap(), true);
        assert_eq!(given(transcripts.begin()).0, "one\ntwo\n");
    }

    #[test]
    fn a_read_stops_after_a_bounded_text_and_the_next_one_continues() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let long = "x".repeat(MAX_TEXT_BYTES);
        let rows = [row("one"), row(&long), row(&long), row("two")].concat();
        let padding = format!("{}\n", " ".repeat(usize::try_from(MAX_READ_BYTES).unwrap()));
        std::fs::write(&path, format!("{rows}{padding}{}", row("three"))).unwrap();
        let mut transcripts = Transcripts::default();
        transcripts.follow(path.to_str().unwrap(), true);
        let found = read_files(transcripts.begin());
        assert!(!found.is_complete);
        assert!(found.text.len() <= MAX_TEXT_BYTES + usize::try_from(MAX_READ_BYTES).unwrap());
        assert!(!found.text.given.contains("three"));
        assert!(transcripts.finish(found).0.given.ends_with("two\n"));
        let found = read_files(transcripts.begin());
        assert!(found.is_complete);
        assert_eq!(transcripts.finish(found).0.given, "three\n");
    }

    #[test]
    fn only_a_regular_file_of_this_user_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, row("x")).unwrap();
        assert!(open(&file).is_ok());
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let nowhere = dir.path().join("nowhere");
        for other in [link.as_path(), dir.path(), Path::new("/dev/zero"), &nowhere] {
            assert!(open(other).is_err(), "{}", other.display());
            let mut transcripts = Transcripts::default();
            transcripts.follow(other.to_str().unwrap(), true);
            assert!(read_files(transcripts.begin()).trouble.is_some());
        }
    }
}
