//! What the desk decides, done: the journal asked and told, the terminal written to.
//!
//! Each errand runs beside the owner of the state and reports back to it as an event. The
//! keyboard is taken before an offer is recorded and kept until it is written whole, so that no
//! person's key falls into it.

use super::clerk::{Asked, Bar, Wish};
use super::door::Calling;
use super::handing::Giving;
use super::keyboard::{HasDraft, Lease};
use super::{Shared, clock, left, log, transcript};
use posthaste_core::delivery::{Effect, Event, REST};
use posthaste_core::harness::Route;
use posthaste_core::offer::Said;
use posthaste_core::turn::{self, Entry, Input, Telling};
use posthaste_core::{Conversation, Letter, MessageId, Timestamp, inject, owed, text};
use posthaste_store::{Cut, Denied, Done, Error, InjectLock, Job, files};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{error, info, warn};

/// A terminal in its usual mode takes no line of 4,096 bytes; a character has at most four.
const NUDGE: usize = 1_000;
/// For how long a receipt is tried again that could not be recorded.
const INSIST: Duration = Duration::from_secs(180);
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

/// What came of an errand.
#[derive(Debug)]
pub(crate) enum Report {
    /// To be told to the desk.
    Event(Event),
    /// The keyboard is ours, and the offer recorded.
    Offering { lease: Lease, ids: Vec<MessageId> },
    /// The keyboard is ours again.
    Resumed(Lease),
    /// A receipt was recorded, or could not be.
    Recorded,
    /// The offer to a hook is recorded.
    Handing(Giving),
    /// The same of an offer to the agent's own door.
    Calling(Calling),
    /// What the agent's transcript shows as given to it.
    Transcript(transcript::Found),
}

/// How an offer to the terminal is called in receipts.
fn terminal() -> String {
    Route::Terminal.as_str().to_owned()
}

/// Takes the keyboard and records the offer.
pub(crate) async fn offer(
    shared: Rc<Shared>,
    ids: Vec<MessageId>,
    repeats: Vec<MessageId>,
) -> Report {
    let job = Job::Offer {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        ids,
        route: terminal(),
        repeats,
    };
    begin(shared, job).await
}

/// Takes the keyboard and records that the agent is reminded.
pub(crate) async fn remind(shared: Rc<Shared>, ids: Vec<MessageId>) -> Report {
    let job = Job::Say {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        ids,
        said: Said::Reminded { route: terminal() },
    };
    begin(shared, job).await
}

async fn begin(shared: Rc<Shared>, job: Job) -> Report {
    let lease = match shared.keyboard.lease().await {
        Some(Ok(lease)) => lease,
        // The keys have told the desk already, or are about to.
        Some(Err(HasDraft)) => return Report::Event(Event::Barred),
        None => return Report::Event(Event::NotRecorded(GONE.to_owned())),
    };
    match shared.books.commit(job).await {
        Ok(Ok(Done::Moved(moved))) => Report::Offering {
            lease,
            ids: moved.moved,
        },
        Ok(Ok(_)) => {
            let why = "the journal answered another question";
            Report::Event(Event::NotRecorded(why.to_owned()))
        }
        Ok(Err(denied)) => Report::Event(Event::NotRecorded(denied.to_string())),
        Err(error) => Report::Event(Event::NotRecorded(error.to_string())),
    }
}

/// Types the text of a turn.
pub(crate) async fn write(
    shared: Rc<Shared>,
    lease: Lease,
    letters: Vec<(Letter, Telling)>,
    input: Input,
) -> Report {
    match render(&shared, &letters, input) {
        Ok(text) => type_in(lease, text).await,
        Err(error) => Report::Event(Event::WriteFailed(error.to_string())),
    }
}

/// Types the text of a turn, and tells what it is.
async fn type_in(lease: Lease, bytes: Vec<u8>) -> Report {
    let text = turn::unclosed(&bytes);
    Report::Event(match lease.write(bytes).await {
        Ok(()) => Event::Wrote(text),
        Err(error) => Event::WriteFailed(error.to_string()),
    })
}

/// Types keys within a turn; `typed` is what is told when the terminal has them.
pub(crate) async fn strokes(lease: Lease, keys: Vec<u8>, typed: Event) -> Report {
    Report::Event(match lease.write(keys).await {
        Ok(()) => typed,
        Err(error) => Event::WriteFailed(error.to_string()),
    })
}

/// Types what reminds the agent of the answers that it owes.
pub(crate) async fn write_reminder(lease: Lease, letters: Vec<Letter>, input: Input) -> Report {
    type_in(lease, turn::enclose(&owed::reminder(&letters), input)).await
}

/// Looks at the screen afresh.
pub(crate) async fn look(shared: Rc<Shared>) -> Report {
    Report::Event(match shared.terminal.look().await {
        Some(sighting) => Event::Looked(sighting),
        None => Event::WriteFailed(GONE.to_owned()),
    })
}

/// Takes the keyboard for a text that waits for its Enter.
pub(crate) async fn resume(shared: Rc<Shared>) -> Report {
    match shared.keyboard.lease().await {
        Some(Ok(lease)) => Report::Resumed(lease),
        Some(Err(HasDraft)) => Report::Event(Event::Barred),
        None => Report::Event(Event::WriteFailed(GONE.to_owned())),
    }
}

/// Records how an offer ended. A journal that is busy is asked again, so that the next session does
/// not take for uncertain what was offered. While that goes on, nothing else is offered that the
/// journal would not take either, so few of these wait at once.
pub(crate) async fn record(shared: Rc<Shared>, effect: Effect) -> Report {
    let Some(job) = receipt(&shared, effect) else {
        return Report::Recorded;
    };
    let give_up = Instant::now() + INSIST;
    let mut is_told = false;
    while let Err(error) = shared.books.commit(job.clone()).await {
        // Without an end, the next session will say of the offer that it is uncertain.
        if Instant::now() >= give_up || matches!(error, Error::WriterGone) {
            error!(target: log::DELIVERY, "a receipt could not be recorded: {error}");
            break;
        }
        if !is_told {
            warn!(target: log::DELIVERY, "a receipt has to wait: {error}");
            is_told = true;
        }
        tokio::time::sleep(REST).await;
    }
    Report::Recorded
}

/// What is to be recorded of an offer's end, as of now.
fn receipt(shared: &Shared, effect: Effect) -> Option<Job> {
    let (ids, said) = match effect {
        Effect::Offered {
            ids,
            evidence,
            route,
            proof_awaited,
        } => {
            let said = Said::Offered {
                route: route.as_str().to_owned(),
                evidence,
                proof_awaited,
            };
            (ids, said)
        }
        Effect::Accepted {
            ids,
            evidence,
            route,
        } => {
            let route = route.as_str().to_owned();
            (ids, Said::Accepted { route, evidence })
        }
        Effect::Withdraw { ids, reason } => (ids, Said::Withdrawn { reason }),
        Effect::Uncertain { ids, reason } => (ids, Said::Uncertain { reason }),
        Effect::Fail { ids, reason } => (ids, Said::Failed { reason }),
        Effect::Key(_)
        | Effect::Abort
        | Effect::GoOn
        | Effect::Call { .. }
        | Effect::Offer { .. }
        | Effect::Give { .. }
        | Effect::Write { .. }
        | Effect::Enter
        | Effect::Look
        | Effect::Resume
        | Effect::Remind { .. }
        | Effect::WriteReminder { .. } => return None,
    };
    Some(Job::Say {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        ids,
        said,
    })
}

/// Record the conversation that the program is in.
pub(crate) async fn converse(shared: Rc<Shared>, conversation: Conversation) -> Report {
    let job = Job::Conversation {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        conversation,
    };
    if let Err(error) = shared.books.commit(job).await {
        warn!(target: log::SESSION, "the conversation could not be recorded: {error}");
    }
    Report::Recorded
}

/// Settle the offers of earlier sessions by the transcript of the resumed conversation.
pub(crate) async fn settle(shared: Rc<Shared>, resumed: Conversation) -> Report {
    let settled = left::settle_unproven(&shared.books, &shared.agent, Some(&resumed)).await;
    if let Err(report) = settled {
        let why = report.message();
        warn!(
            target: log::DELIVERY,
            "earlier offers stay unproven until the end of the run: {why}"
        );
    }
    Report::Recorded
}

/// Mark mail that a killed hook left unprinted as uncertain. The session does not leave this to the
/// next hook, because no other hook may run.
pub(crate) async fn put_away_injected(shared: Rc<Shared>) -> Report {
    let agent = shared.agent.clone();
    let asked = shared
        .books
        .ask(move |journal| journal.is_injecting(&agent));
    if !matches!(asked.await, Ok(true)) {
        return Report::Recorded;
    }
    // If the lock is taken, a hook is still printing.
    let Ok(Some(_lock)) = InjectLock::try_acquire(&shared.home, &shared.agent) else {
        return Report::Recorded;
    };
    let job = Job::Uncertain {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        cut: Cut::Injected,
        reason: inject::UNPRINTED.to_owned(),
    };
    match shared.books.commit(job).await {
        Ok(done) => log_uncertain(&done, inject::UNPRINTED),
        Err(error) => warn!(
            target: log::DELIVERY,
            "cannot mark unprinted mail as uncertain until the next hook runs: {error}"
        ),
    }
    Report::Recorded
}

/// Mark the messages of this run that were not proven to be accepted as uncertain.
pub(crate) async fn never_proven(shared: &Shared) {
    let job = Job::Uncertain {
        now: crate::times::now(),
        agent: shared.agent.clone(),
        cut: Cut::Unproven,
        reason: NEVER_PROVEN.to_owned(),
    };
    match shared.books.commit(job).await {
        Ok(done) => log_uncertain(&done, NEVER_PROVEN),
        Err(error) => warn!(
            target: log::DELIVERY,
            "unproven messages stay offered until the next start: {error}"
        ),
    }
}

/// Log which messages the journal took for uncertain.
pub(crate) fn log_uncertain(done: &Result<Done, Denied>, reason: &str) {
    if let Ok(Done::Moved(moved)) = done
        && !moved.moved.is_empty()
    {
        warn!(target: log::DELIVERY, messages = %log::Ids(&moved.moved), reason, "uncertain");
    }
}

/// Records what ran out of time.
pub(crate) async fn expire(shared: Rc<Shared>) -> Report {
    let job = Job::Expire {
        now: crate::times::now(),
        agent: shared.agent.clone(),
    };
    loop {
        match shared.books.commit(job.clone()).await {
            Ok(Ok(Done::Expired(expired))) => {
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
    Report::Recorded
}

fn render(shared: &Shared, letters: &[(Letter, Telling)], input: Input) -> Result<Vec<u8>, Error> {
    told(shared, letters, |entries| turn::render(entries, input))
}

/// Return the messages of an offer that are repeats.
pub(crate) fn repeats(letters: &[(Letter, Telling)]) -> Vec<MessageId> {
    let repeats = letters.iter().filter(|(letter, _)| letter.is_repeat());
    repeats.map(|(letter, _)| letter.message.id).collect()
}

/// What is made of messages, once each has its file.
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
    /// When whoever waits for it asked.
    pub(crate) asked_at: Option<Timestamp>,
}

/// Types a line that is no message. Nothing of it is kept: where it cannot be typed soon, it is not
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
    // A line that is half written is brought to its end, also where nobody waits for that any more.
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

/// The rules once more, before the first key: until the keyboard was free, a question may have
/// opened, and a text stayed in the input box.
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

/// Has the screen looked at, where that tells anything, and asks what the rules say then.
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
