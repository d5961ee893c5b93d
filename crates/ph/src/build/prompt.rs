//! Gathers what a prompt is made of: the loop's state, its files, its mail, tasks and notes. What
//! they look like in it is the core's.

use super::files::{self, Spec};
use crate::report::{Report, Result};
use jiff::tz::TimeZone;
use posthaste_core::build::prd::Prd;
use posthaste_core::build::prompt::{self, Parts, PrdFile};
use posthaste_core::build::template::Template;
use posthaste_core::build::{Failure, LoopState, Outcome};
use posthaste_core::prompt::Entry;
use posthaste_core::{
    Body, Letter, MessageId, Note, NoteType, Priority, PromptId, Task, TaskStatus, Timestamp, text,
    turn,
};
use posthaste_store::{Error, Home, Journal, Listing, files as bodies};
use std::path::Path;

/// How much of a message stands in a prompt. The rest is in its file, of which the path is told.
const LONGEST_MAIL: usize = 16 << 10;
/// A longer spec the agent reads itself.
const LONGEST_SPEC: usize = 32 << 10;

/// A prompt, and what stands in it.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) mail: Vec<MessageId>,
    pub(super) injected: Vec<PromptId>,
    pub(super) story: Option<String>,
    pub(super) task: Option<String>,
}

/// The prd as it stands on disk now.
#[derive(Debug)]
pub(super) enum Stories {
    /// The loop has none.
    None,
    Read(Prd),
    /// Why it cannot be read. The agent is told to mend it.
    Broken(String),
}

impl Stories {
    pub(super) fn of(state: &LoopState) -> Self {
        let Some(path) = state.settings.prd.as_deref().map(Path::new) else {
            return Self::None;
        };
        match files::prd(path) {
            Ok(prd) => Self::Read(prd),
            Err(report) => Self::Broken(report.message().to_owned()),
        }
    }

    pub(super) fn prd(&self) -> Option<&Prd> {
        match self {
            Self::Read(prd) => Some(prd),
            Self::None | Self::Broken(_) => None,
        }
    }

    pub(super) fn are_complete(&self) -> bool {
        self.prd().is_some_and(Prd::is_complete)
    }
}

/// What the journal has for a prompt.
struct Gathered {
    mail: Vec<Letter>,
    /// As much of each text as a prompt has.
    bodies: Vec<String>,
    tasks: Vec<Task>,
    completed: u64,
    notes: Vec<Note>,
}

impl Gathered {
    fn of(home: &Home, journal: &mut Journal, state: &LoopState, now: Timestamp) -> Result<Self> {
        let agent = &state.agent;
        let (mail, bodies) = mail(home, journal, state, now)?;
        let open = TaskStatus::ALL
            .into_iter()
            .filter(|status| status.is_open());
        Ok(Self {
            mail,
            bodies,
            tasks: journal.tasks(agent, &open.collect::<Vec<_>>())?,
            completed: journal.task_counts(agent)?.completed,
            notes: journal.notes(agent, &NoteType::ALL)?,
        })
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        let both = self.mail.iter().zip(&self.bodies);
        let entries = both.map(|(letter, text)| Entry {
            message: &letter.message,
            text,
        });
        entries.collect()
    }
}

/// The prompt of the iteration that comes next.
pub(super) fn compose(
    home: &Home,
    journal: &mut Journal,
    state: &LoopState,
    stories: &Stories,
    now: Timestamp,
) -> Result<Prompt> {
    let settings = &state.settings;
    let spec = settings.spec.as_deref().map(Path::new);
    let spec = spec.map(Spec::read).transpose()?;
    let spec_text = spec.as_ref().map(|spec| spec.0.as_str());
    let template = settings.template.as_deref().map(Path::new);
    let template = template.map(read_template).transpose()?;
    let gathered = Gathered::of(home, journal, state, now)?;
    let entries = gathered.entries();
    let mut past = state.last.iter().filter(|last| last.number == state.number);
    let parts = Parts {
        session: &state.agent,
        iteration: state.number,
        last: state.last_allowed(),
        spec: settings.spec.as_deref().map(|path| prompt::Spec {
            path,
            text: spec_text.filter(|words| words.len() <= LONGEST_SPEC),
        }),
        prd: settings.prd.as_deref().map(|path| PrdFile {
            path,
            prd: stories.prd(),
        }),
        progress: settings.progress.as_deref(),
        injected: &state.prompts,
        inbox: &entries,
        zone: &TimeZone::system(),
        notes: &gathered.notes,
        tasks: &gathered.tasks,
        completed: gathered.completed,
        failed: past.find_map(|last| failure(&last.outcome)),
        prompt: settings.prompt.as_deref(),
        extra: settings.extra.as_deref(),
    };
    let text = match &template {
        Some(template) => prompt::fill(template, &parts),
        None => prompt::build(&parts),
    };
    Ok(Prompt {
        text,
        mail: gathered.mail.iter().map(|l| l.message.id).collect(),
        injected: state.prompts.iter().map(|waiting| waiting.id).collect(),
        story: stories.prd().and_then(Prd::current).map(|s| s.id.clone()),
        task: current(&gathered.tasks).map(|task| task.text.clone()),
    })
}

fn failure(outcome: &Outcome) -> Option<&Failure> {
    match outcome {
        Outcome::Failed(failure) => Some(failure),
        Outcome::Completed(_) | Outcome::Ended | Outcome::Interrupted | Outcome::Stopped => None,
    }
}

/// The task that is in progress, else the first that can be begun.
fn current(tasks: &[Task]) -> Option<&Task> {
    let of = |status| tasks.iter().find(|task: &&Task| task.status == status);
    of(TaskStatus::InProgress).or_else(|| of(TaskStatus::Remaining))
}

fn read_template(path: &Path) -> Result<Template> {
    let source = files::read("template", path)?;
    Template::parse(&source)
        .map_err(|error| Report::usage(format!("{} is no template: {error}", files::shown(path))))
}

/// All unread mail that is due, and as much of each text as a prompt has. What is typed as it is
/// answers a question on a screen, and is none of a prompt.
fn mail(
    home: &Home,
    journal: &mut Journal,
    state: &LoopState,
    now: Timestamp,
) -> Result<(Vec<Letter>, Vec<String>)> {
    let mut letters = journal.inbox(&state.agent, Listing::Unread, now)?;
    letters.retain(|letter| letter.message.is_due(now) && !letter.message.envelope.raw);
    // What is urgent first; else as it was sent.
    letters.sort_by_key(|letter| !is_urgent(letter));
    let texts = letters.iter().map(|letter| {
        let body = match bodies::body(home, &letter.message) {
            Err(error @ Error::BodyLost { .. }) => format!("({error})"),
            body => body?,
        };
        Ok(shown(home, letter, &body))
    });
    let texts = texts.collect::<Result<Vec<_>>>()?;
    Ok((letters, texts))
}

fn is_urgent(letter: &Letter) -> bool {
    letter.message.envelope.priority == Priority::Interrupt
}

/// A message as the prompt has it: that it is urgent; who wrote it, where that is not the person; that it may be a
/// repeat; and where the rest of it is.
fn shown(home: &Home, letter: &Letter, body: &str) -> String {
    let message = &letter.message;
    let mut text = String::new();
    if is_urgent(letter) {
        text.push_str("URGENT: ");
    }
    if letter.is_repeat() {
        text.push_str(turn::REPEAT.trim_start());
        text.push(' ');
    }
    if !message.envelope.from.is_human() {
        text.push_str(&format!("[from {}] ", message.envelope.from));
    }
    if let Some(subject) = &message.envelope.subject {
        text.push_str(&format!("({}) ", text::one_line(subject, 200)));
    }
    let head = text::head(body, LONGEST_MAIL);
    text.push_str(head);
    if head.len() < body.len() || matches!(message.envelope.body, Body::Filed { .. }) {
        let rest = match bodies::ensure(home, message) {
            Ok(path) => format!("all {} bytes are in {}", body.len(), path.display()),
            Err(_) => format!("it has {} bytes", body.len()),
        };
        text.push_str(&format!("\n({rest})"));
    }
    text
}
