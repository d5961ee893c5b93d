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
use posthaste_core::offer::OfferReport;
use posthaste_core::receipt::recovery::NEVER_PROVEN;
use posthaste_core::turn::{self, Entry};
use posthaste_core::{Conversation, MessageId, inject, pending_replies};
use posthaste_store::operation::{
    Expire, MarkUncertain, OpenOffers, RecordConversation, RecordDelivery, RecordedDelivery,
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

/// The messages that an operation has recorded, and whether it has more to record.
#[derive(Default)]
struct Recorded {
    ids: Vec<MessageId>,
    has_more: bool,
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

/// Record an operation.
pub(crate) async fn commit(
    shared: Rc<Shared>,
    commit: CommitId,
    operation: JournalOperation,
) -> TaskReport {
    let recorded = match operation {
        JournalOperation::RecordStep { ids, report } => record_step(&shared, ids, report).await,
        JournalOperation::Expire => expire(&shared).await,
        JournalOperation::RecordConversation(conversation) => {
            record_conversation(&shared, conversation).await
        }
        JournalOperation::SettleEarlierOffers(resumed) => settle(&shared, resumed).await,
        JournalOperation::CloseKilledHooks => close_killed_hooks(&shared).await,
        JournalOperation::CloseUnproven => close_unproven(&shared).await,
    };
    TaskReport::Input(match recorded {
        Ok(Recorded { ids, has_more }) => Input::Committed {
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

async fn record_step(
    shared: &Shared,
    ids: Vec<MessageId>,
    report: OfferReport,
) -> Result<Recorded, NotRecorded> {
    let record = RecordDelivery {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        ids,
        report,
    };
    let recorded = shared.journal.commit(record).await??;
    Ok(Recorded {
        ids: recorded.moved,
        has_more: false,
    })
}

/// Record the conversation that the program is in.
async fn record_conversation(
    shared: &Shared,
    conversation: Conversation,
) -> Result<Recorded, NotRecorded> {
    let record = RecordConversation {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        conversation,
    };
    shared.journal.commit(record).await??;
    Ok(Recorded::default())
}

/// Settle the offers of earlier sessions by the transcript of the resumed conversation.
async fn settle(shared: &Shared, resumed: Conversation) -> Result<Recorded, NotRecorded> {
    let settled =
        crash_recovery::settle_unproven(&shared.journal, &shared.agent, Some(&resumed)).await;
    settled.map_err(|report| NotRecorded {
        why: report.message().to_owned(),
        is_final: false,
    })?;
    Ok(Recorded::default())
}

/// Mark mail that a killed hook left unprinted as uncertain. The session does not leave this to the
/// next hook, because no other hook may run.
async fn close_killed_hooks(shared: &Shared) -> Result<Recorded, NotRecorded> {
    let agent = shared.agent.clone();
    let asked = shared
        .journal
        .ask(move |journal| journal.is_injecting(&agent));
    if !asked.await? {
        return Ok(Recorded::default());
    }
    // If the lock is taken, a hook is still printing.
    let Some(_lock) = InjectLock::try_acquire(&shared.home, &shared.agent)? else {
        return Ok(Recorded::default());
    };
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        offers: OpenOffers::Injected,
        reason: inject::UNPRINTED.to_owned(),
    };
    let done = shared.journal.commit(mark).await?;
    log_uncertain(&done, inject::UNPRINTED);
    done?;
    Ok(Recorded::default())
}

/// Mark the messages that were not proven to be accepted as uncertain.
async fn close_unproven(shared: &Shared) -> Result<Recorded, NotRecorded> {
    let mark = MarkUncertain {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        offers: OpenOffers::Unproven,
        reason: NEVER_PROVEN.to_owned(),
    };
    let done = shared.journal.commit(mark).await?;
    log_uncertain(&done, NEVER_PROVEN);
    done?;
    Ok(Recorded::default())
}

/// Log which messages the journal has marked as uncertain.
pub(crate) fn log_uncertain(done: &Decided<RecordedDelivery>, reason: &str) {
    if let Ok(recorded) = done
        && !recorded.moved.is_empty()
    {
        warn!(target: log::DELIVERY, messages = %log::Ids(&recorded.moved), reason, "uncertain");
    }
}

/// Record the expiry of messages, as many as one commit takes.
async fn expire(shared: &Shared) -> Result<Recorded, NotRecorded> {
    let expire = Expire {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
    };
    let expired = shared.journal.commit(expire).await??;
    if !expired.ids.is_empty() {
        info!(target: log::DELIVERY, messages = %log::Ids(&expired.ids), "expired");
    }
    Ok(Recorded {
        ids: expired.ids,
        has_more: expired.more,
    })
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
