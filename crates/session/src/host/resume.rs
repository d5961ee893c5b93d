//! Decides whether a session resumes its agent's last conversation, and words the note about it.

use crate::host::journal_handle::JournalHandle;
use crate::host::start::{Resumption, StartRequest};
use posthaste_core::{AgentName, Conversation};
use posthaste_store::Journal;
use posthaste_store::report::Result;
use std::path::Path;

/// Decision about the agent's last conversation.
#[derive(Debug)]
pub(crate) enum ResumeDecision {
    /// Resuming was not requested, or the harness cannot resume.
    NotRequested,
    /// The conversation cannot be resumed, for this reason.
    Impossible(&'static str),
    Resume {
        conversation: Conversation,
        args: Vec<String>,
        /// Whether a prompt on the command line is dropped.
        drops_prompt: bool,
    },
}

impl ResumeDecision {
    /// Decide which conversation a session that is started by this request resumes.
    pub(crate) async fn make(
        journal: &JournalHandle,
        request: &StartRequest,
        has_crashed: bool,
    ) -> Result<Self> {
        let launch = &request.launch;
        let user_args = launch.command.get(1..).unwrap_or_default();
        let is_requested = match request.resumption {
            Resumption::Always => true,
            Resumption::AfterCrash => has_crashed,
            Resumption::Never => false,
        };
        let Some(resume) = &request.harness.resume else {
            return Ok(Self::NotRequested);
        };
        if !is_requested || launch.is_loop() || !request.harness.start.is_for(user_args) {
            return Ok(Self::NotRequested);
        }
        let agent = launch.name.clone();
        let latest = journal.ask(move |journal| latest(journal, &agent));
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
        Ok(match resume.args(user_args, &conversation.id) {
            Some(args) => Self::Resume {
                drops_prompt: user_args.iter().any(|word| !args.contains(word)),
                conversation,
                args,
            },
            None => Self::Impossible("its id contains invalid characters"),
        })
    }

    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::Resume { conversation, .. } => Some(conversation),
            Self::NotRequested | Self::Impossible(_) => None,
        }
    }

    pub(crate) fn args(&self) -> Option<&[String]> {
        match self {
            Self::Resume { args, .. } => Some(args),
            Self::NotRequested | Self::Impossible(_) => None,
        }
    }

    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::NotRequested => None,
            Self::Impossible(why) => Some(format!(
                "cannot resume the last conversation: {why}; starting a new one"
            )),
            Self::Resume {
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

/// Return the conversation of the latest run. A run that began a new conversation and had no turn yet
/// has none: its user did not want to resume the earlier conversation.
fn latest(
    journal: &mut Journal,
    agent: &AgentName,
) -> std::result::Result<Option<Conversation>, posthaste_store::Error> {
    let run = journal.session(agent)?.map(|run| run.started.run);
    let conversation = journal.conversation(agent)?;
    Ok(conversation.filter(|conversation| Some(conversation.run) == run))
}
