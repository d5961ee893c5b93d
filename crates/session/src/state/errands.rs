//! Tasks that perform the driver's actions: they write to the journal and to the terminal.
//!
//! Each task runs beside the owner of the state and reports back to it. The driver decides
//! the order of the tasks.

use crate::Shared;
use crate::host::clock;
use crate::host::left;
use crate::host::log;
use crate::pty::keyboard::{HasDraft, Lease};
use crate::routes::transcript;
use crate::state::{Asked, Bar, Wish};
use posthaste_core::driver::{CommitId, Input, Operation, Turn};
use posthaste_core::offer::Said;
use posthaste_core::turn::{self, Entry, Telling};
use posthaste_core::{Conversation, Letter, MessageId, Timestamp, inject, owed, text};
use posthaste_store::operation::{
    Expire, MarkUncertain, OpenOffers, RecordConversation, RecordDelivery, RecordedDelivery,
};
use posthaste_store::{Decided, Error, InjectLock, files};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{info, warn};

/// Maximum length of a nudge, in characters. A terminal in canonical mode takes no line of 4,096
/// bytes, and a character has at most four bytes.
const NUDGE: usize = 1_000;
/// Reason for a message whose run ended without proof.
pub(crate) const NEVER_PROVEN: &str =
    "the program ended, and nothing shows that its model was given the message";
const GONE: &str = "the terminal is gone";
/// How long a nudge waits for a program to take it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a nudge waits for a screen that keeps changing.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);
/// Interval between screen checks for a nudge.
const SCREEN_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// The result of an action that a task has performed.
#[derive(Debug)]
pub(crate) enum Report {
    Input(Input),
    /// The session has leased the keyboard.
    Leased(Lease),
    /// What the agent's transcripts show as given to its model.
    Transcripts(transcript::Found),
}

/// Take the keyboard.
pub(crate) async fn lease(shared: Rc<Shared>) -> Report {
    match shared.keyboard.lease().await {
        Some(Ok(lease)) => Report::Leased(lease),
        Some(Err(HasDraft)) => Report::Input(Input::KeyboardRefused),
        None => Report::Input(Input::KeyboardGone),
    }
}

/// Type the text of a turn.
pub(crate) async fn type_turn(
    shared: Rc<Shared>,
    lease: Lease,
    turn: Turn,
    mode: turn::Input,
) -> Report {
    let bytes = match turn {
        Turn::Messages(letters) => told(&shared, &letters, |entries| turn::render(entries, mode)),
        Turn::Reminder(letters) => Ok(turn::enclose(&owed::reminder(&letters), mode)),
    };
    let typed = match bytes {
        Ok(bytes) => {
            let text = turn::unclosed(&bytes);
            let written = lease.write(bytes).await;
            written.map(|()| text).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    Report::Input(typed.map_or_else(Input::TerminalFailed, Input::Typed))
}

/// Press Enter after a text.
pub(crate) async fn press_enter(lease: Lease, keys: Vec<u8>) -> Report {
    Report::Input(match lease.write(keys).await {
        Ok(()) => Input::EnterPressed,
        Err(error) => Input::TerminalFailed(error.to_string()),
    })
}

pub(crate) fn terminal_gone() -> Input {
    Input::TerminalFailed(GONE.to_owned())
}

/// Read the screen once all output of the program is on it.
pub(crate) async fn look(shared: Rc<Shared>) -> Report {
    Report::Input(match shared.terminal.look().await {
        Some(sighting) => Input::Looked(sighting),
        None => terminal_gone(),
    })
}

/// Record an operation.
pub(crate) async fn commit(shared: Rc<Shared>, commit: CommitId, operation: Operation) -> Report {
    match operation {
        Operation::Say { ids, said } => {
            return Report::Input(say(&shared, commit, ids, said).await);
        }
        Operation::Expire => expire(shared).await,
        Operation::Converse(conversation) => converse(shared, conversation).await,
        Operation::SettleEarlierOffers(resumed) => settle(shared, resumed).await,
        Operation::CloseKilledHooks => close_killed_hooks(shared).await,
    }
    let ids = Vec::new();
    Report::Input(Input::Committed { commit, ids })
}

async fn say(shared: &Shared, commit: CommitId, ids: Vec<MessageId>, said: Said) -> Input {
    let record = RecordDelivery {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        ids,
        said,
    };
    let (why, is_final) = match shared.books.commit(record).await {
        Ok(Ok(recorded)) => {
            let ids = recorded.moved;
            return Input::Committed { commit, ids };
        }
        Ok(Err(denied)) => (denied.to_string(), true),
        Err(error) => (error.to_string(), matches!(error, Error::WriterGone)),
    };
    Input::NotCommitted {
        commit,
        why,
        is_final,
    }
}

/// Record the conversation that the program is in.
async fn converse(shared: Rc<Shared>, conversation: Conversation) {
    let record = RecordConversation {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        conversation,
    };
    if let Err(error) = shared.books.commit(record).await {
        warn!(target: log::SESSION, "the conversation could not be recorded: {error}");
    }
}

/// Settle the offers of earlier sessions by the transcript of the resumed conversation.
async fn settle(shared: Rc<Shared>, resumed: Conversation) {
    let settled = left::settle_unproven(&shared.books, &shared.agent, Some(&resumed)).await;
    if let Err(report) = settled {
        let why = report.message();
        warn!(
            target: log::DELIVERY,
            "earlier offers stay unproven until the end of the run: {why}"
        );
    }
}

/// Mark mail that a killed hook left unprinted as uncertain. The session does not leave this to the
/// next hook, because no other hook may run.
async fn close_killed_hooks(shared: Rc<Shared>) {
    let agent = shared.agent.clone();
    let asked = shared
        .books
        .ask(move |journal| journal.is_injecting(&agent));
    if !matches!(asked.await, Ok(true)) {
        return;
    }
    // If the lock is taken, a hook is still printing.
    let Ok(Some(_lock)) = InjectLock::try_acquire(&shared.home, &shared.agent) else {
        return;
    };
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        offers: OpenOffers::Injected,
        reason: inject::UNPRINTED.to_owned(),
    };
    match shared.books.commit(mark).await {
        Ok(done) => log_uncertain(&done, inject::UNPRINTED),
        Err(error) => warn!(
            target: log::DELIVERY,
            "cannot mark unprinted mail as uncertain until the next hook runs: {error}"
        ),
    }
}

/// Mark the messages of this run that were not proven to be accepted as uncertain.
pub(crate) async fn never_proven(shared: &Shared) {
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        offers: OpenOffers::Unproven,
        reason: NEVER_PROVEN.to_owned(),
    };
    match shared.books.commit(mark).await {
        Ok(done) => log_uncertain(&done, NEVER_PROVEN),
        Err(error) => warn!(
            target: log::DELIVERY,
            "unproven messages stay offered until the next start: {error}"
        ),
    }
}

/// Log which messages the journal has marked as uncertain.
pub(crate) fn log_uncertain(done: &Decided<RecordedDelivery>, reason: &str) {
    if let Ok(recorded) = done
        && !recorded.moved.is_empty()
    {
        warn!(target: log::DELIVERY, messages = %log::Ids(&recorded.moved), reason, "uncertain");
    }
}

/// Record the expiry of messages whose time has run out.
async fn expire(shared: Rc<Shared>) {
    let expire = Expire {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
    };
    loop {
        match shared.books.commit(expire.clone()).await {
            Ok(Ok(expired)) => {
                if !expired.ids.is_empty() {
                    info!(target: log::DELIVERY, messages = %log::Ids(&expired.ids), "expired");
                }
                if !expired.more {
                    break;
                }
            }
            Ok(_) => break,
            Err(error) => {
                warn!(target: log::DELIVERY, "what expired could not be recorded: {error}");
                break;
            }
        }
    }
}

/// Make sure that each message has its file, then call `make` with the entries of the messages.
pub(crate) fn told<T>(
    shared: &Shared,
    letters: &[(Letter, Telling)],
    make: impl FnOnce(&[Entry<'_>]) -> T,
) -> Result<T, Error> {
    let paths = letters
        .iter()
        .map(|(letter, _)| {
            let path = files::ensure(&shared.home, &letter.message)?;
            Ok(path.to_string_lossy().into_owned())
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let entries: Vec<_> = letters
        .iter()
        .zip(&paths)
        .map(|((letter, telling), path)| Entry {
            letter,
            path,
            telling: *telling,
        })
        .collect();
    Ok(make(&entries))
}

/// How a line is submitted.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) enter: Vec<u8>,
    pub(crate) delay: Duration,
    /// How long the input box may take to show the line.
    pub(crate) seen_within: Duration,
    /// Whether the screen can show a question, so that it is looked at before the first key and
    /// before Enter.
    pub(crate) looks: bool,
    /// When the caller that waits for the line asked for it.
    pub(crate) asked_at: Option<Timestamp>,
}

/// Type a line that is not a message. The line is not stored: if it cannot be typed soon, it is not
/// typed at all.
pub(crate) async fn nudge(
    shared: Rc<Shared>,
    said: &str,
    submission: Submission,
) -> Result<(), String> {
    let lease = timeout(PATIENCE, shared.keyboard.lease())
        .await
        .map_err(|_| "something else is still being typed, or has not been read".to_owned())?;
    let lease = match lease {
        Some(Ok(lease)) => lease,
        Some(Err(HasDraft)) => return Err("a person is typing".to_owned()),
        None => return Err(GONE.to_owned()),
    };
    let line = turn::defused(&text::one_line(said, NUDGE));
    look_again(&shared, &submission, &line).await?;
    // Finish a line that is half written, even if the caller has stopped waiting.
    let typing = tokio::task::spawn_local(async move {
        let gone = |_| GONE.to_owned();
        lease.write(line.clone().into_bytes()).await.map_err(gone)?;
        tokio::time::sleep(submission.delay).await;
        let asked = || Asked::Enter(line.clone());
        if let Some(reason) = ask_until(&shared, &submission, asked, submission.seen_within).await?
        {
            return Err(format!(
                "{reason}; the line was typed, and Enter was not pressed"
            ));
        }
        lease.write(submission.enter).await.map_err(gone)
    });
    match timeout(PATIENCE, typing).await {
        Ok(Ok(typed)) => typed,
        Ok(Err(_)) => Err(GONE.to_owned()),
        Err(_) => Err("the program does not read its input".to_owned()),
    }
}

/// Check the rules once more before the first key. While the nudge waited for the keyboard, a
/// question may have opened, or a text may have been left in the input box.
async fn look_again(shared: &Shared, submission: &Submission, line: &str) -> Result<(), String> {
    let asked = || Asked::Rules(line.to_owned());
    match ask_until(shared, submission, asked, SETTLES_WITHIN).await? {
        None if clock::is_too_late(submission.asked_at) => Err(clock::TOO_LATE.to_owned()),
        None => Ok(()),
        Some(reason) => Err(reason),
    }
}

/// Retry until the line or its Enter may be typed, a permanent reason forbids it, or `time` has
/// passed.
async fn ask_until(
    shared: &Shared,
    submission: &Submission,
    asked: impl Fn() -> Asked,
    time: Duration,
) -> Result<Option<String>, String> {
    let give_up = Instant::now() + time;
    loop {
        match ask(shared, submission, asked()).await? {
            Some(bar) if bar.passes && Instant::now() < give_up => {
                tokio::time::sleep(SCREEN_POLL_INTERVAL).await;
            }
            bar => return Ok(bar.map(|bar| bar.reason)),
        }
    }
}

/// Look at the screen, if that tells anything, and ask whether the rules forbid the line or its
/// Enter.
async fn ask(
    shared: &Shared,
    submission: &Submission,
    asked: Asked,
) -> Result<Option<Bar>, String> {
    let seen = if submission.looks {
        Some(shared.terminal.look().await.ok_or(GONE)?)
    } else {
        None
    };
    let (tell, told) = oneshot::channel();
    let tell = Box::new(move |reason| {
        let _ = tell.send(reason);
    });
    shared.wish(Wish::Nudgeable { seen, asked, tell }).await;
    told.await.map_err(|_| GONE.to_owned())
}
