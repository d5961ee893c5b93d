//! Gathers what a prompt is made of: the loop's state, its files, its mail, tasks and notes. What
//! they look like in it is the core's.

use super::files::{self, Spec};
use jiff::tz::TimeZone;
use posthaste_core::build::prd::Prd;
use posthaste_core::build::prompt::{self, Parts, PrdFile};
use posthaste_core::build::template::Template;
use posthaste_core::build::{Bounds, Failure, LoopState, Outcome, Settings};
use posthaste_core::prompt::Entry;
use posthaste_core::{
    AgentName, Body, MessageId, MessageState, Note, NoteType, Priority, PromptId, Task, TaskStatus,
    Timestamp, text, turn,
};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Error, Home, Journal, Listing, files as bodies};
use std::path::Path;

/// How much of a message stands in a prompt. The rest is in its file, of which the path is told.
const LONGEST_MAIL: usize = 16 << 10;
/// The same where all of it is too much, as an argument has its limit: the first that fits.
const SHORTER: [usize; 3] = [4 << 10, 1 << 10, SHORTEST];
const SHORTEST: usize = 200;
/// What is kept for mail, notes, tasks and an injected text where a prompt has its limit.
const RESERVE: usize = 32 << 10;

/// A prompt, and what stands in it.
#[derive(Debug)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) mail: Vec<MessageId>,
    /// Messages that the prompt marks as repeats, if it includes them.
    pub(super) repeats: Vec<MessageId>,
    /// All mail that was there when it was made: that, and what had no room in it.
    pub(super) known: Vec<MessageId>,
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
        Self::at(state.settings.prd.as_deref())
    }

    fn at(path: Option<&str>) -> Self {
        let Some(path) = path.map(Path::new) else {
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

/// A message's text, as far as any prompt has it.
struct Text {
    head: String,
    /// How many bytes all of it has.
    whole: usize,
}

/// What the journal has for a prompt.
struct Gathered {
    mail: Vec<(MessageState, Text)>,
    tasks: Vec<Task>,
    completed: u64,
    notes: Vec<Note>,
}

impl Gathered {
    fn of(home: &Home, journal: &mut Journal, state: &LoopState, now: Timestamp) -> Result<Self> {
        let agent = &state.agent;
        let open = TaskStatus::ALL
            .into_iter()
            .filter(|status| status.is_open());
        Ok(Self {
            mail: mail(home, journal, state, now)?,
            tasks: journal.tasks(agent, &open.collect::<Vec<_>>())?,
            completed: journal.task_counts(agent)?.completed,
            notes: journal.notes(agent, &NoteType::ALL)?,
        })
    }

    /// The prompt with all mail, if need be with less of each message, so that mail never makes it
    /// too long; and the mail that stands in it. What has no room at all stays unread,
    /// and comes when what came before it is read.
    fn fitting(
        &self,
        home: &Home,
        room: usize,
        render: impl Fn(&[Entry<'_>]) -> String,
    ) -> (String, Vec<MessageId>) {
        let count = self.mail.len();
        let lengths = [LONGEST_MAIL].into_iter().chain(SHORTER);
        let all = lengths.map(|longest| (longest, count));
        let fewer = std::iter::successors(Some(count / 2), |n| (*n > 0).then_some(n / 2));
        let fewer = fewer.map(|count| (SHORTEST, count));
        let mut last = String::new();
        for (longest, count) in all.chain(fewer) {
            let mail = &self.mail[..count];
            let shown = |(message_state, text): &(MessageState, Text)| {
                shown(home, message_state, text, longest)
            };
            let mut texts: Vec<String> = mail.iter().map(shown).collect();
            let more = self.mail.len() - count;
            if let (1.., Some(text)) = (more, texts.last_mut()) {
                text.push_str(&format!("\n({more} more unread messages are omitted)"));
            }
            let entries: Vec<_> = mail
                .iter()
                .zip(&texts)
                .map(|((message_state, _), text)| Entry {
                    message: &message_state.message,
                    text,
                })
                .collect();
            last = render(&entries);
            if last.len() <= room || count == 0 {
                return (last, mail.iter().map(|(l, _)| l.message.id).collect());
            }
        }
        (last, Vec::new())
    }
}

/// The prompt of the iteration that comes next, of so many bytes: what grows is told shorter where
/// that is too much. Only what a person says himself is not.
pub(super) fn compose(
    home: &Home,
    journal: &mut Journal,
    (state, stories): (&LoopState, &Stories),
    now: Timestamp,
    room: usize,
) -> Result<Prompt> {
    let own = Own::read(&state.settings)?;
    let gathered = Gathered::of(home, journal, state, now)?;
    let past = state
        .last
        .as_ref()
        .filter(|last| last.number == state.number);
    let parts = Parts {
        iteration: state.number,
        last: state.last_allowed(),
        injected: &state.prompts,
        notes: &gathered.notes,
        tasks: &gathered.tasks,
        completed: gathered.completed,
        failed: past.and_then(|last| failure(&last.outcome)),
        ..own.parts(
            &state.agent,
            &state.settings,
            stories,
            posthaste_store::times::zone(),
        )
    };
    let bounds = own.bounds(&parts, room);
    let parts = Parts { bounds, ..parts };
    let (text, mail) = gathered.fitting(home, room, |inbox| own.render(&Parts { inbox, ..parts }));
    let injected = bounds.injected(&state.prompts);
    Ok(Prompt {
        text,
        mail,
        repeats: gathered
            .mail
            .iter()
            .filter(|(message_state, _)| message_state.is_repeat())
            .map(|(message_state, _)| message_state.message.id)
            .collect(),
        known: gathered.mail.iter().map(|(l, _)| l.message.id).collect(),
        injected: injected.iter().map(|waiting| waiting.id).collect(),
        story: stories.prd().and_then(Prd::current).map(|s| s.id.clone()),
        task: current(&gathered.tasks).map(|task| task.text.clone()),
    })
}

/// Whether what a person says himself leaves room for all else, so that not every iteration fails.
pub(super) fn check(settings: &Settings, room: usize) -> Result<()> {
    let own = Own::read(settings)?;
    let zone = TimeZone::UTC;
    let stories = Stories::at(settings.prd.as_deref());
    let agent = AgentName::human();
    let parts = own.parts(&agent, settings, &stories, &zone);
    let bounds = own.bounds(&parts, room);
    let length = own.render(&Parts { bounds, ..parts }).len();
    match length <= room.saturating_sub(RESERVE) {
        true => Ok(()),
        false => Err(Report::usage(format!(
            "the prompt has {length} bytes before any mail and tasks; an argument can have {room}"
        ))
        .hint(
            "say less by --prompt, --extra or the template, and more in the spec; a command \
             without {prompt} gets it on its standard input",
        )),
    }
}

/// What a person has written for a loop.
struct Own {
    spec: Option<Spec>,
    template: Option<Template>,
}

impl Own {
    fn read(settings: &Settings) -> Result<Self> {
        let spec = settings.spec.as_deref().map(Path::new);
        let template = settings.template.as_deref().map(Path::new);
        Ok(Self {
            spec: spec.map(Spec::read).transpose()?,
            template: template.map(files::template).transpose()?,
        })
    }

    /// A prompt of nothing else.
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
            spec: spec.map(|(path, Spec(text))| prompt::Spec { path, text }),
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

    /// The widest that leave half of it to mail, else the narrowest.
    fn bounds(&self, parts: &Parts<'_>, room: usize) -> Bounds {
        let [.., narrowest] = Bounds::STEPS;
        let is_wide = |bounds: &Bounds| {
            let parts = Parts {
                bounds: *bounds,
                ..*parts
            };
            self.render(&parts).len() <= room / 2
        };
        Bounds::STEPS.into_iter().find(is_wide).unwrap_or(narrowest)
    }
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

/// All unread mail that is due, and as much of each text as a prompt has. What is typed as it is
/// answers a question on a screen, and is none of a prompt.
fn mail(
    home: &Home,
    journal: &mut Journal,
    state: &LoopState,
    now: Timestamp,
) -> Result<Vec<(MessageState, Text)>> {
    let mut messages = journal.inbox(&state.agent, Listing::Unread, now)?;
    messages.retain(|message_state| {
        message_state.message.is_due(now) && !message_state.message.envelope.raw
    });
    // What is urgent first; else as it was sent.
    messages.sort_by_key(|message_state| !is_urgent(message_state));
    let both = messages.into_iter().map(|message_state| {
        let body = match bodies::body(home, &message_state.message) {
            Err(error @ Error::BodyLost { .. }) => format!("({error})"),
            body => body?,
        };
        let text = Text {
            head: text::head(&body, LONGEST_MAIL).to_owned(),
            whole: body.len(),
        };
        Ok((message_state, text))
    });
    both.collect()
}

fn is_urgent(message_state: &MessageState) -> bool {
    message_state.message.envelope.priority == Priority::Interrupt
}

/// A message as the prompt has it: that it is urgent; who wrote it, where that is not the person;
/// that it may be a repeat; and where the rest of it is.
fn shown(home: &Home, message_state: &MessageState, body: &Text, longest: usize) -> String {
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
    let head = text::head(&body.head, longest);
    text.push_str(head);
    if head.len() < body.whole || matches!(message.envelope.body, Body::Filed { .. }) {
        let rest = match bodies::ensure(home, message) {
            Ok(path) => format!("all {} bytes are in {}", body.whole, path.display()),
            Err(_) => format!("it has {} bytes", body.whole),
        };
        text.push_str(&format!("\n({rest})"));
    }
    text
}
