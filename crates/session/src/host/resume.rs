//! Decides whether a session resumes its agent's last conversation, and words the note about it.

use crate::host::journal_handle::JournalHandle;
use crate::host::start::{Resumption, StartRequest};
use posthaste_core::harness::{Resume, ResumeArgs};
use posthaste_core::{AgentName, Conversation};
use posthaste_store::Journal;
use posthaste_store::report::Result;
use std::path::Path;
use uuid::Uuid;

/// Decision about the agent's last conversation.
#[derive(Debug)]
pub(crate) enum ResumeDecision {
    /// Resuming was not requested, and no conversation could be resumed.
    NotRequested,
    /// Resuming was not requested, but this conversation could be resumed.
    Available(Conversation),
    /// The conversation cannot be resumed, for this reason.
    Impossible(&'static str),
    Resume {
        conversation: Conversation,
        resumed: ResumeArgs,
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
            Resumption::Never => return Ok(Self::NotRequested),
        };
        let Some(resume) = &request.harness.resume else {
            return Ok(Self::NotRequested);
        };
        if launch.is_loop() || !request.harness.start.is_for(user_args) {
            return Ok(Self::NotRequested);
        }
        let agent = launch.name.clone();
        let latest = journal.ask(move |journal| latest(journal, &agent)).await?;
        Ok(match (resumable(latest, request, resume), is_requested) {
            (Ok((conversation, resumed)), true) => Self::Resume {
                conversation,
                resumed,
            },
            // The person has chosen a conversation.
            (Ok((_, resumed)), false) if !resumed.dropped_choices.is_empty() => Self::NotRequested,
            (Ok((conversation, _)), false) => Self::Available(conversation),
            (Err(why), true) => Self::Impossible(why),
            (Err(_), false) => Self::NotRequested,
        })
    }

    /// The conversation that the program is told to resume.
    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::Resume { conversation, .. } => Some(conversation),
            Self::NotRequested | Self::Available(_) | Self::Impossible(_) => None,
        }
    }

    pub(crate) fn args(&self) -> Option<&[String]> {
        match self {
            Self::Resume { resumed, .. } => Some(&resumed.args),
            Self::NotRequested | Self::Available(_) | Self::Impossible(_) => None,
        }
    }

    /// Return the conversation to record at the start of `run`: the program's hooks may not name a
    /// conversation before the first prompt.
    pub(crate) fn recorded(&self, run: Uuid) -> Option<Conversation> {
        let (conversation, not_resumed) = match self {
            Self::Resume { conversation, .. } => (conversation.clone(), false),
            Self::Available(conversation) => (conversation.clone(), true),
            Self::NotRequested | Self::Impossible(_) => return None,
        };
        Some(Conversation {
            run,
            not_resumed,
            ..conversation
        })
    }

    pub(crate) fn note(&self, agent: &AgentName) -> Option<String> {
        match self {
            Self::NotRequested => None,
            Self::Impossible(why) => Some(format!(
                "cannot resume the last conversation: {why}; starting a new one"
            )),
            Self::Available(conversation) => Some(format!(
                "starting a new conversation; 'ph restart {agent}' before its first prompt resumes \
                 the last one, {}",
                short_id(conversation)
            )),
            Self::Resume {
                conversation,
                resumed,
            } => {
                let mut note = format!("resuming conversation {}", short_id(conversation));
                for choice in &resumed.dropped_choices {
                    note += &format!("; '{choice}' on the command line is ignored");
                }
                if resumed.drops_prompt {
                    note += "; the prompt on the command line is not sent again";
                }
                Some(note)
            }
        }
    }
}

fn short_id(conversation: &Conversation) -> String {
    posthaste_core::text::one_line(&conversation.id, 40)
}

/// Return the conversation and the arguments that resume it, or why it cannot be resumed.
fn resumable(
    latest: Option<Conversation>,
    request: &StartRequest,
    resume: &Resume,
) -> std::result::Result<(Conversation, ResumeArgs), &'static str> {
    let launch = &request.launch;
    let conversation = latest.ok_or("none is on record")?;
    if conversation.harness != launch.harness {
        return Err("it belongs to a different harness");
    }
    if Path::new(&conversation.cwd) != launch.cwd {
        return Err("it was in a different directory");
    }
    let transcript = conversation.transcript.as_deref().map(Path::new);
    if transcript.is_some_and(|path| path.symlink_metadata().is_err()) {
        return Err("it has no transcript yet");
    }
    let user_args = launch.command.get(1..).unwrap_or_default();
    let resumed = resume.args(user_args, &conversation.id);
    let resumed = resumed.ok_or("its id contains invalid characters")?;
    Ok((conversation, resumed))
}

/// Return the conversation of the latest run. A run that began with --fresh and had no turn yet has
/// none: its user did not want to resume the earlier conversation.
fn latest(
    journal: &mut Journal,
    agent: &AgentName,
) -> std::result::Result<Option<Conversation>, posthaste_store::Error> {
    let run = journal.session(agent)?.map(|run| run.started.run);
    let conversation = journal.conversation(agent)?;
    Ok(conversation.filter(|conversation| Some(conversation.run) == run))
}
