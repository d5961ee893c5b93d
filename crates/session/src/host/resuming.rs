//! Decides whether a session resumes its agent's last conversation, and words the note about it.

use crate::host::books::Books;
use crate::host::start::{Orders, Resumption};
use posthaste_core::{AgentName, Conversation};
use posthaste_store::Journal;
use posthaste_store::report::Result;
use std::path::Path;

/// Decision about the agent's last conversation.
#[derive(Debug)]
pub(crate) enum Resuming {
    /// Resuming was not requested, or the harness cannot resume.
    NotWanted,
    /// The conversation cannot be resumed, for this reason.
    Impossible(&'static str),
    Resumes {
        conversation: Conversation,
        args: Vec<String>,
        /// Whether a prompt on the command line is dropped.
        drops_prompt: bool,
    },
}

impl Resuming {
    /// Choose the conversation that a session with these orders resumes.
    pub(crate) async fn choose(books: &Books, orders: &Orders, has_crashed: bool) -> Result<Self> {
        let launch = &orders.launch;
        let said = launch.command.get(1..).unwrap_or_default();
        let is_wanted = match orders.resumption {
            Resumption::Always => true,
            Resumption::AfterCrash => has_crashed,
            Resumption::Never => false,
        };
        let Some(resume) = &orders.harness.resume else {
            return Ok(Self::NotWanted);
        };
        if !is_wanted || launch.is_loop() || !orders.harness.start.is_for(said) {
            return Ok(Self::NotWanted);
        }
        let agent = launch.name.clone();
        let latest = books.ask(move |journal| latest(journal, &agent));
        let Some(conversation) = latest.await? else {
            return Ok(Self::Impossible("none is on record"));
        };
        if conversation.harness != launch.harness {
            return Ok(Self::Impossible("it belongs to a different harness"));
        }
        if Path::new(&conversation.cwd) != launch.cwd {
            return Ok(Self::Impossible("it was in a different directory"));
        }
        let transcript = conversation.transcript.as_deref().map(Path::new);
        if transcript.is_some_and(|path| path.symlink_metadata().is_err()) {
            return Ok(Self::Impossible("it has no transcript yet"));
        }
        Ok(match resume.args(said, &conversation.id) {
            Some(args) => Self::Resumes {
                drops_prompt: said.iter().any(|word| !args.contains(word)),
                conversation,
                args,
            },
            None => Self::Impossible("its id contains invalid characters"),
        })
    }

    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::Resumes { conversation, .. } => Some(conversation),
            Self::NotWanted | Self::Impossible(_) => None,
        }
    }

    pub(crate) fn args(&self) -> Option<&[String]> {
        match self {
            Self::Resumes { args, .. } => Some(args),
            Self::NotWanted | Self::Impossible(_) => None,
        }
    }

    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::NotWanted => None,
            Self::Impossible(why) => Some(format!(
                "cannot resume the last conversation: {why}; starting a new one"
            )),
            Self::Resumes {
                conversation,
                drops_prompt,
                ..
            } => {
                let id = posthaste_core::text::one_line(&conversation.id, 40);
                let dropped = match drops_prompt {
                    true => "; the prompt on the command line is not sent again",
                    false => "",
                };
                Some(format!("resuming conversation {id}{dropped}"))
            }
        }
    }
}

/// Return the conversation of the latest run. A run that began a new one, and had no turn yet, has
/// none: the conversation before it was left on purpose.
fn latest(
    journal: &mut Journal,
    agent: &AgentName,
) -> std::result::Result<Option<Conversation>, posthaste_store::Error> {
    let run = journal.session(agent)?.map(|run| run.started.run);
    let conversation = journal.conversation(agent)?;
    Ok(conversation.filter(|conversation| Some(conversation.run) == run))
}
