//! Tasks that perform the driver's actions: they write to the journal and to the terminal.
//!
//! Each task runs beside the owner of the state and reports back to it. The driver decides
//! the order of the tasks.

use crate::Shared;
use crate::host::crash_recovery;
use crate::host::log;
use crate::pty::keyboard::{HasDraft, Lease};
use crate::routes::transcript;
use posthaste_core::driver::{
    CommitId, Input, JournalOperation, KeyboardUser, TurnContent, TurnMessage,
};
use posthaste_core::receipt::recovery::NEVER_PROVEN;
use posthaste_core::turn::{self, Entry};
use posthaste_core::{Conversation, MessageId, inject, pending_replies};
use posthaste_store::operation::{
    CloseAsk, Expire, MarkUncertain, OpenAsk, OpenOffers, RecordConversation, RecordDelivery,
    RecordedDelivery,
};
use posthaste_store::{Decided, Denied, Error, InjectLock, files};
use std::rc::Rc;
use tracing::{info, warn};

const TERMINAL_GONE: &str = "the terminal is gone";

/// The result of an action that a task has performed.
#[derive(Debug)]
pub(crate) enum TaskReport {
    Input(Input),
    /// The session has leased the keyboard.
    Leased(KeyboardUser, Lease),
    /// The prompts that the agent's transcripts show as given to its model.
    Transcripts(transcript::TranscriptRead),
}

/// Take the keyboard.
pub(crate) async fn lease(shared: Rc<Shared>, user: KeyboardUser) -> TaskReport {
    match shared.keyboard.lease().await {
        Some(Ok(lease)) => TaskReport::Leased(user, lease),
        Some(Err(HasDraft)) => TaskReport::Input(Input::KeyboardRefused(user)),
        None => TaskReport::Input(Input::KeyboardGone(user)),
    }
}

/// Type the text of a turn.
pub(crate) async fn type_turn(
    shared: Rc<Shared>,
    lease: Lease,
    turn: TurnContent,
    mode: turn::InputMode,
) -> TaskReport {
    let bytes = match turn {
        TurnContent::Messages(messages) => {
            render_messages(&shared, &messages, |entries| turn::render(entries, mode))
        }
        TurnContent::Reminder(messages) => {
            Ok(turn::enclose(&pending_replies::reminder(&messages), mode))
        }
    };
    let typed = match bytes {
        Ok(bytes) => {
            let text = turn::unclosed(&bytes);
            let written = lease.write(bytes).await;
            written.map(|()| text).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    TaskReport::Input(typed.map_or_else(
        |why| {
            let by = KeyboardUser::Turn;
            Input::TerminalFailed { by, why }
        },
        Input::Typed,
    ))
}

/// Type a line that is not a message.
pub(crate) async fn type_line(lease: Lease, line: String) -> TaskReport {
    TaskReport::Input(match lease.write(line.into_bytes()).await {
        Ok(()) => Input::LineTyped,
        Err(_) => terminal_gone(KeyboardUser::Nudge),
    })
}

/// Press Enter after a text.
pub(crate) async fn press_enter(lease: Lease, by: KeyboardUser, keys: Vec<u8>) -> TaskReport {
    TaskReport::Input(match lease.write(keys).await {
        Ok(()) => Input::EnterPressed(by),
        Err(error) => {
            let why = error.to_string();
            Input::TerminalFailed { by, why }
        }
    })
}

pub(crate) fn terminal_gone(by: KeyboardUser) -> Input {
    let why = TERMINAL_GONE.to_owned();
    Input::TerminalFailed { by, why }
}

/// Read the screen once all output of the program is on it.
pub(crate) async fn look(shared: Rc<Shared>, by: KeyboardUser) -> TaskReport {
    TaskReport::Input(match shared.terminal.recognise().await {
        Some(sighting) => Input::Looked { by, sighting },
        None => terminal_gone(by),
    })
}

/// Look up the number of the journal's last fact, after its bell has rung. The bell also rings for
/// commits of this session, which need no read if their mail was read already.
pub(crate) async fn look_up_head(shared: Rc<Shared>) -> TaskReport {
    TaskReport::Input(match shared.journal.ask(|journal| journal.head()).await {
        Ok(head) => Input::JournalChanged { head },
        // The next read reports the error.
        Err(_) => Input::PeriodicCheck,
    })
}

/// Why an operation recorded nothing.
struct NotRecorded {
    why: String,
    is_final: bool,
}

impl From<Error> for NotRecorded {
    fn from(error: Error) -> Self {
        Self {
            why: error.to_string(),
            is_final: matches!(error, Error::WriterGone),
        }
    }
}

impl From<Denied> for NotRecorded {
    fn from(refusal: Denied) -> Self {
        Self {
            why: refusal.to_string(),
            is_final: true,
        }
    }
}

/// The messages that an operation has recorded, and whether it has more to record.
type Recorded = Result<(Vec<MessageId>, bool), NotRecorded>;

/// Record an operation.
pub(crate) async fn commit(
    shared: Rc<Shared>,
    commit: CommitId,
    operation: JournalOperation,
) -> TaskReport {
    TaskReport::Input(match record(&shared, operation).await {
        Ok((ids, has_more)) => Input::Committed {
            commit,
            ids,
            head: shared.journal.head(),
            has_more,
        },
        Err(NotRecorded { why, is_final }) => Input::NotCommitted {
            commit,
            why,
            is_final,
        },
    })
}

async fn record(shared: &Shared, operation: JournalOperation) -> Recorded {
    let (now, agent) = (posthaste_store::times::now(), shared.agent.clone());
    let mut recorded = (Vec::new(), false);
    match operation {
        JournalOperation::RecordStep { ids, report } => {
            let record = RecordDelivery {
                now,
                agent,
                ids,
                report,
            };
            recorded.0 = shared.journal.commit(record).await??.moved;
        }
        JournalOperation::Expire => {
            let expired = shared.journal.commit(Expire { now, agent }).await??;
            if !expired.ids.is_empty() {
                info!(target: log::DELIVERY, messages = %log::Ids(&expired.ids), "expired");
            }
            recorded = (expired.ids, expired.more);
        }
        JournalOperation::RecordConversation(conversation) => {
            let record = RecordConversation {
                now,
                agent,
                conversation,
            };
            shared.journal.commit(record).await??;
        }
        JournalOperation::SettleEarlierOffers(resumed) => settle(shared, resumed).await?,
        JournalOperation::CloseKilledHooks => close_killed_hooks(shared).await?,
        JournalOperation::CloseUnproven => {
            mark_uncertain(shared, OpenOffers::Unproven, NEVER_PROVEN).await?;
        }
        JournalOperation::OpenAsk { id, opened } => {
            let open = OpenAsk {
                now,
                agent,
                id,
                opened: *opened,
            };
            shared.journal.commit(open).await??;
        }
        JournalOperation::CloseAsk { ask, reason } => {
            shared
                .journal
                .commit(CloseAsk { now, ask, reason })
                .await??;
        }
    }
    Ok(recorded)
}

/// Settle the offers of earlier sessions by the transcript of the resumed conversation.
async fn settle(shared: &Shared, resumed: Conversation) -> Result<(), NotRecorded> {
    let settled =
        crash_recovery::settle_unproven(&shared.journal, &shared.agent, Some(&resumed)).await;
    settled.map_err(|report| NotRecorded {
        why: report.message().to_owned(),
        is_final: false,
    })
}

/// Mark mail that a killed hook left unprinted as uncertain. The session does not leave this to the
/// next hook, because no other hook may run.
async fn close_killed_hooks(shared: &Shared) -> Result<(), NotRecorded> {
    let agent = shared.agent.clone();
    let asked = shared
        .journal
        .ask(move |journal| journal.is_injecting(&agent));
    if !asked.await? {
        return Ok(());
    }
    // If the lock is taken, a hook is still printing.
    let Some(_lock) = InjectLock::try_acquire(&shared.home, &shared.agent)? else {
        return Ok(());
    };
    mark_uncertain(shared, OpenOffers::Injected, inject::UNPRINTED).await
}

async fn mark_uncertain(
    shared: &Shared,
    offers: OpenOffers,
    reason: &'static str,
) -> Result<(), NotRecorded> {
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        offers,
        reason: reason.to_owned(),
    };
    let done = shared.journal.commit(mark).await?;
    log_uncertain(&done, reason);
    done?;
    Ok(())
}

/// Log which messages the journal has marked as uncertain.
pub(crate) fn log_uncertain(done: &Decided<RecordedDelivery>, reason: &str) {
    if let Ok(recorded) = done
        && !recorded.moved.is_empty()
    {
        warn!(target: log::DELIVERY, messages = %log::Ids(&recorded.moved), reason, "uncertain");
    }
}

/// Make sure that each message has its file, then call `make` with the entries of the messages.
pub(crate) fn render_messages<T>(
    shared: &Shared,
    messages: &[TurnMessage],
    make: impl FnOnce(&[Entry<'_>]) -> T,
) -> Result<T, Error> {
    let paths = messages
        .iter()
        .map(|message| {
            let path = files::ensure(&shared.home, &message.state.message)?;
            Ok(path.to_string_lossy().into_owned())
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let entries: Vec<_> = messages
        .iter()
        .zip(&paths)
        .map(|(message, path)| Entry {
            state: &message.state,
            path,
            placement: message.placement,
        })
        .collect();
    Ok(make(&entries))
}
