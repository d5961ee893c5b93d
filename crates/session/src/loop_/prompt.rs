//! Collects the parts of a prompt: state, files, mail, tasks and notes. `core::loop_::prompt`
//! formats them.

use super::files::{self, SpecFile};
use jiff::tz::TimeZone;
use posthaste_core::loop_::prd::Prd;
use posthaste_core::loop_::prompt::template::PromptTemplate;
use posthaste_core::loop_::prompt::{self, Parts, PrdFile};
use posthaste_core::loop_::{Bounds, IterationFailure, IterationOutcome, LoopState, Settings};
use posthaste_core::prompt::Entry;
use posthaste_core::{
    AgentName, Body, MessageId, MessageState, Note, NoteType, Priority, PromptId, Task, TaskStatus,
    Timestamp, text, turn,
};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, Journal, Listing, files as bodies};
use std::path::Path;

/// Limits for each message in a prompt, in bytes. The first one with which all messages fit
/// applies; the prompt names the file with the rest of a message.
const MESSAGE_BYTES: [usize; 4] = [MAX_MESSAGE_BYTES, 4 << 10, 1 << 10, MIN_MESSAGE_BYTES];
const MAX_MESSAGE_BYTES: usize = 16 << 10;
const MIN_MESSAGE_BYTES: usize = 200;
/// Space kept for mail, notes, tasks and injected text in a prompt with a size limit.
const RESERVED_BYTES: usize = 32 << 10;

/// A prompt and its contents.
#[derive(Debug)]
pub(super) struct ComposedPrompt {
    pub(super) text: String,
    pub(super) mail: Vec<MessageId>,
    /// Messages that the prompt marks as repeats, if it includes them.
    pub(super) repeats: Vec<MessageId>,
    /// All mail that existed when the prompt was composed, included or not.
    pub(super) known: Vec<MessageId>,
    pub(super) injected: Vec<PromptId>,
    pub(super) story: Option<String>,
    pub(super) task: Option<String>,
}

/// The prd on disk.
#[derive(Debug)]
pub(super) enum Stories {
    /// The loop has none.
    None,
    Read(Prd),
    /// Why the prd cannot be read. The prompt asks the agent to repair it.
    Invalid(String),
}

impl Stories {
    pub(super) fn of(state: &LoopState) -> Self {
        Self::at(state.settings.prd.as_deref())
    }

    fn at(path: Option<&str>) -> Self {
        let Some(path) = path.map(Path::new) else {
            return Self::None;
        };
        match files::read_prd(path) {
            Ok(prd) => Self::Read(prd),
            Err(report) => Self::Invalid(report.message().to_owned()),
        }
    }

    pub(super) fn prd(&self) -> Option<&Prd> {
        match self {
            Self::Read(prd) => Some(prd),
            Self::None | Self::Invalid(_) => None,
        }
    }

    pub(super) fn are_complete(&self) -> bool {
        self.prd().is_some_and(Prd::is_complete)
    }
}

/// The beginning of a message's body.
struct BodyHead {
    text: String,
    /// Length of the whole body.
    body_bytes: usize,
}

/// The parts of a prompt that come from the journal.
struct JournalParts {
    mail: Vec<(MessageState, BodyHead)>,
    tasks: Vec<Task>,
    completed: u64,
    notes: Vec<Note>,
}

impl JournalParts {
    fn read(home: &Home, journal: &mut Journal, state: &LoopState, now: Timestamp) -> Result<Self> {
        let agent = &state.agent;
        let open = TaskStatus::ALL
            .into_iter()
            .filter(|status| status.is_open());
        Ok(Self {
            mail: unread_mail(home, journal, state, now)?,
            tasks: journal.tasks(agent, &open.collect::<Vec<_>>())?,
            completed: journal.task_counts(agent)?.completed,
            notes: journal.notes(agent, &NoteType::ALL)?,
        })
    }

    /// Render the prompt with all mail. If that is longer than `max_bytes`, shorten the messages,
    /// then omit the last ones, which stay unread for a later prompt. Return the prompt and the
    /// messages in it.
    fn render_within(
        &self,
        home: &Home,
        max_bytes: usize,
        render: impl Fn(&[Entry<'_>]) -> String,
    ) -> (String, Vec<MessageId>) {
        let count = self.mail.len();
        let shorter = MESSAGE_BYTES.into_iter().map(|length| (length, count));
        let fewer = std::iter::successors(Some(count / 2), |n| (*n > 0).then_some(n / 2));
        let fewer = fewer.map(|count| (MIN_MESSAGE_BYTES, count));
        let mut prompt = String::new();
        for (message_bytes, count) in shorter.chain(fewer) {
            let mail = &self.mail[..count];
            let format = |(message_state, body): &(MessageState, BodyHead)| {
                format_message(home, message_state, body, message_bytes)
            };
            let mut texts: Vec<String> = mail.iter().map(format).collect();
            let omitted = self.mail.len() - count;
            if let (1.., Some(text)) = (omitted, texts.last_mut()) {
                text.push_str(&format!("\n({omitted} more unread messages are omitted)"));
            }
            let entries: Vec<_> = mail
                .iter()
                .zip(&texts)
                .map(|((message_state, _), text)| Entry {
                    message: &message_state.message,
                    text,
                })
                .collect();
            prompt = render(&entries);
            if prompt.len() <= max_bytes || count == 0 {
                return (prompt, mail.iter().map(|(l, _)| l.message.id).collect());
            }
        }
        (prompt, Vec::new())
    }
}

/// Compose the next prompt within `max_bytes`. Lists and messages are shortened if necessary; texts
/// of the person are not.
pub(super) fn compose(
    home: &Home,
    journal: &mut Journal,
    (state, stories): (&LoopState, &Stories),
    now: Timestamp,
    max_bytes: usize,
) -> Result<ComposedPrompt> {
    let own = PersonsTexts::read(&state.settings)?;
    let journal_parts = JournalParts::read(home, journal, state, now)?;
    let past = state
        .last
        .as_ref()
        .filter(|last| last.number == state.number);
    let parts = Parts {
        iteration: state.number,
        last: state.last_allowed(),
        injected: &state.prompts,
        notes: &journal_parts.notes,
        tasks: &journal_parts.tasks,
        completed: journal_parts.completed,
        failed: past.and_then(|last| failure(&last.outcome)),
        ..own.parts(
            &state.agent,
            &state.settings,
            stories,
            posthaste_store::times::zone(),
        )
    };
    let bounds = own.bounds(&parts, max_bytes);
    let parts = Parts { bounds, ..parts };
    let (text, mail) = journal_parts.render_within(home, max_bytes, |inbox| {
        own.render(&Parts { inbox, ..parts })
    });
    let injected = bounds.injected(&state.prompts);
    Ok(ComposedPrompt {
        text,
        mail,
        repeats: journal_parts
            .mail
            .iter()
            .filter(|(message_state, _)| message_state.is_repeat())
            .map(|(message_state, _)| message_state.message.id)
            .collect(),
        known: journal_parts
            .mail
            .iter()
            .map(|(l, _)| l.message.id)
            .collect(),
        injected: injected.iter().map(|waiting| waiting.id).collect(),
        story: stories.prd().and_then(Prd::current).map(|s| s.id.clone()),
        task: current(&journal_parts.tasks).map(|task| task.text.clone()),
    })
}

/// Check that the person's texts leave space for mail and tasks.
pub(super) fn check_size(settings: &Settings, max_bytes: usize) -> Result<()> {
    let own = PersonsTexts::read(settings)?;
    let zone = TimeZone::UTC;
    let stories = Stories::at(settings.prd.as_deref());
    let agent = AgentName::human();
    let parts = own.parts(&agent, settings, &stories, &zone);
    let bounds = own.bounds(&parts, max_bytes);
    let length = own.render(&Parts { bounds, ..parts }).len();
    match length <= max_bytes.saturating_sub(RESERVED_BYTES) {
        true => Ok(()),
        false => Err(Report::usage(format!(
            "the prompt has {length} bytes without mail and tasks; an argument can have {max_bytes}"
        ))
        .hint(
            "move text from --prompt, --extra or the template to the spec, or use a command \
             without {prompt}, which gets the prompt on its standard input",
        )),
    }
}

/// The person's texts for a loop.
struct PersonsTexts {
    spec: Option<SpecFile>,
    template: Option<PromptTemplate>,
}

impl PersonsTexts {
    fn read(settings: &Settings) -> Result<Self> {
        let spec = settings.spec.as_deref().map(Path::new);
        let template = settings.template.as_deref().map(Path::new);
        Ok(Self {
            spec: spec.map(SpecFile::read).transpose()?,
            template: template.map(files::read_template).transpose()?,
        })
    }

    /// Return the parts of a prompt that contains only these texts.
    fn parts<'a>(
        &'a self,
        session: &'a AgentName,
        settings: &'a Settings,
        stories: &'a Stories,
        zone: &'a TimeZone,
    ) -> Parts<'a> {
        let spec = settings.spec.as_deref().zip(self.spec.as_ref());
        Parts {
            session,
            iteration: 1,
            last: 0,
            spec: spec.map(|(path, SpecFile(text))| prompt::Spec { path, text }),
            prd: settings.prd.as_deref().map(|path| PrdFile {
                path,
                prd: stories.prd(),
            }),
            progress: settings.progress.as_deref(),
            injected: &[],
            inbox: &[],
            zone,
            notes: &[],
            tasks: &[],
            completed: 0,
            failed: None,
            prompt: settings.prompt.as_deref(),
            extra: settings.extra.as_deref(),
            bounds: Bounds::STEPS[0],
        }
    }

    fn render(&self, parts: &Parts<'_>) -> String {
        match &self.template {
            Some(template) => prompt::fill(template, parts),
            None => prompt::build(parts),
        }
    }

    /// Return the widest bounds that leave half of the prompt to mail, or else the narrowest.
    fn bounds(&self, parts: &Parts<'_>, max_bytes: usize) -> Bounds {
        let [.., narrowest] = Bounds::STEPS;
        let is_wide = |bounds: &Bounds| {
            let parts = Parts {
                bounds: *bounds,
                ..*parts
            };
            self.render(&parts).len() <= max_bytes / 2
        };
        Bounds::STEPS.into_iter().find(is_wide).unwrap_or(narrowest)
    }
}

fn failure(outcome: &IterationOutcome) -> Option<&IterationFailure> {
    match outcome {
        IterationOutcome::Failed(failure) => Some(failure),
        IterationOutcome::Completed(_)
        | IterationOutcome::Ended
        | IterationOutcome::Interrupted
        | IterationOutcome::Stopped => None,
    }
}

/// Return the task in progress, or else the first remaining task.
fn current(tasks: &[Task]) -> Option<&Task> {
    let of = |status| tasks.iter().find(|task: &&Task| task.status == status);
    of(TaskStatus::InProgress).or_else(|| of(TaskStatus::Remaining))
}

/// Return the unread mail that is due, urgent messages first. Raw messages are excluded: they
/// answer a question on a screen.
fn unread_mail(
    home: &Home,
    journal: &mut Journal,
    state: &LoopState,
    now: Timestamp,
) -> Result<Vec<(MessageState, BodyHead)>> {
    let mut messages = journal.inbox(&state.agent, Listing::Unread, now)?;
    messages.retain(|message_state| {
        message_state.message.is_due(now) && !message_state.message.envelope.raw
    });
    // The sort is stable, so the order of sending is kept otherwise.
    messages.sort_by_key(|message_state| !is_urgent(message_state));
    let with_body = messages.into_iter().map(|message_state| {
        let body = bodies::body_or_loss(home, &message_state.message)?;
        let head = BodyHead {
            text: text::head(&body, MAX_MESSAGE_BYTES).to_owned(),
            body_bytes: body.len(),
        };
        Ok((message_state, head))
    });
    with_body.collect()
}

fn is_urgent(message_state: &MessageState) -> bool {
    message_state.message.envelope.priority == Priority::Interrupt
}

/// Format a message for a prompt, with its urgency, repeat mark, sender, subject and the path of
/// the file with the rest.
fn format_message(
    home: &Home,
    message_state: &MessageState,
    body: &BodyHead,
    max_bytes: usize,
) -> String {
    let message = &message_state.message;
    let mut text = String::new();
    if is_urgent(message_state) {
        text.push_str("URGENT: ");
    }
    if message_state.is_repeat() {
        text.push_str(turn::REPEAT.trim_start());
        text.push(' ');
    }
    if !message.envelope.from.is_human() {
        text.push_str(&format!("[from {}] ", message.envelope.from));
    }
    if let Some(subject) = &message.envelope.subject {
        text.push_str(&format!("({}) ", text::one_line(subject, 200)));
    }
    let head = text::head(&body.text, max_bytes);
    text.push_str(head);
    if head.len() < body.body_bytes || matches!(message.envelope.body, Body::Filed { .. }) {
        let rest = match bodies::ensure(home, message) {
            Ok(path) => format!("all {} bytes are in {}", body.body_bytes, path.display()),
            Err(_) => format!("it has {} bytes", body.body_bytes),
        };
        text.push_str(&format!("\n({rest})"));
    }
    text
}
