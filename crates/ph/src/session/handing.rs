//! The errands of the route through the agent's hook: an offer recorded in time, its text made,
//! and the end of a transcript read.

use super::Shared;
use super::clerk::Tell;
use super::errands::{self, Report};
use posthaste_core::delivery::Event;
use posthaste_core::harness::{Format, Route, transcript};
use posthaste_core::turn::{self, Telling};
use posthaste_core::{Letter, MessageId};
use posthaste_store::{Done, Job};
use posthaste_wire::method::Hooked;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the journal may take: the agent waits for its hook, and that gives up after 200 ms.
const IN_TIME: Duration = Duration::from_millis(120);

/// How long after a hook, and then after the time before, a transcript is read, as long as it does
/// not prove everything. On a busy machine an agent writes its last words seconds after its last
/// hook.
pub(crate) const READ_AT: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(500),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// Mail on its way to one call of a hook.
pub(crate) struct Hand {
    pub(crate) number: u64,
    pub(crate) letters: Vec<(Letter, Telling)>,
    pub(crate) event: String,
    pub(crate) format: Format,
    pub(crate) tell: Tell<Hooked>,
}

/// The same, once it stands in the journal.
pub(crate) struct Giving {
    pub(crate) number: u64,
    pub(crate) ids: Vec<MessageId>,
    pub(crate) output: String,
    pub(crate) tell: Tell<Hooked>,
}

impl std::fmt::Debug for Giving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Giving({})", self.number)
    }
}

/// What was read, and how often.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) given: String,
    pub(crate) path: PathBuf,
    pub(crate) times: usize,
}

/// Records the offer. A hook does not wait for a slow journal; what is recorded too late for it
/// was given to nobody.
pub(crate) async fn hand(shared: Rc<Shared>, hand: Hand) -> Report {
    let Hand { number, tell, .. } = hand;
    let not_handed = |ids, why: &str| {
        Report::Event(Event::NotHanded {
            number,
            ids,
            why: why.to_owned(),
        })
    };
    let job = Job::Offer {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        ids: hand.letters.iter().map(|(l, _)| l.message.id).collect(),
        route: Route::Hook.as_str().to_owned(),
    };
    let mut commit = std::pin::pin!(shared.books.commit(job));
    let (recorded, tell) = match timeout(IN_TIME, &mut commit).await {
        Ok(recorded) => (recorded, Some(tell)),
        Err(_) => {
            tell(Hooked::noted());
            (commit.await, None)
        }
    };
    let ids = match recorded {
        Ok(Ok(Done::Moved(moved))) => moved.moved,
        Ok(Ok(_) | Err(_)) | Err(_) => Vec::new(),
    };
    let Some(tell) = tell else {
        return not_handed(ids, "the journal took longer than a hook waits");
    };
    let is_in = |(letter, _): &(Letter, Telling)| ids.contains(&letter.message.id);
    let letters: Vec<_> = hand.letters.into_iter().filter(is_in).collect();
    match errands::told(&shared, &letters, turn::text) {
        Ok(text) => Report::Handing(Giving {
            number,
            ids,
            output: hand.format.print(&hand.event, &text),
            tell,
        }),
        Err(error) => {
            tell(Hooked::noted());
            not_handed(ids, &error.to_string())
        }
    }
}

/// What the end of a transcript shows as given to the agent. Its path is a word from outside: it is
/// opened only as a file of this user's, and only read.
pub(crate) async fn transcript(path: PathBuf, times: usize) -> Report {
    tokio::time::sleep(READ_AT.get(times).copied().unwrap_or_default()).await;
    let file = path.clone();
    let read = tokio::task::spawn_blocking(move || tail(&file)).await;
    let tail = read.ok().and_then(Result::ok).unwrap_or_default();
    Report::Transcript(Transcript {
        given: transcript::given(&tail),
        path,
        times: times + 1,
    })
}

fn tail(path: &Path) -> std::io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !is_file || stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(std::io::ErrorKind::PermissionDenied.into());
    }
    let mut file = File::from(file);
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(transcript::TAIL)))?;
    let mut bytes = Vec::new();
    file.take(transcript::TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_plain_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        let many = usize::try_from(transcript::TAIL).unwrap();
        std::fs::write(&file, format!("beginning{}end", "x".repeat(many))).unwrap();
        let read = tail(&file).unwrap();
        assert!(read.len() == many && read.ends_with("xend"));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let nowhere = dir.path().join("nowhere");
        for other in [link.as_path(), dir.path(), Path::new("/dev/zero"), &nowhere] {
            assert!(tail(other).is_err(), "{}", other.display());
        }
    }
}
