//! Decides whether a session resumes its agent's last conversation, and words the note about it.

use super::books::Books;
use super::start::{Orders, Resumption};
use crate::report::Result;
use posthaste_core::Conversation;
use std::path::Path;

/// Decision about the agent's last conversation.
#[derive(Debug)]
pub(super) enum Resuming {
    /// No conversation is on record, or resuming was not requested.
    Nothing,
    /// The conversation cannot be resumed, for this reason.
    Impossible(&'static str),
    Resumes {
        conversation: Conversation,
        args: Vec<String>,
    },
}

impl Resuming {
    /// Choose the conversation that a session with these orders resumes.
    pub(super) async fn choose(books: &Books, orders: &Orders, has_crashed: bool) -> Result<Self> {
        let is_wanted = match orders.resumption {
            Resumption::Always => true,
            Resumption::AfterCrash => has_crashed,
            Resumption::Never => false,
        };
        let launch = &orders.launch;
        let Some(resume) = &orders.harness.resume else {
            return Ok(Self::Nothing);
        };
        if !is_wanted || launch.is_loop() {
            return Ok(Self::Nothing);
        }
        let agent = launch.name.clone();
        let latest = books.ask(move |journal| journal.conversation(&agent));
        let Some(conversation) = latest.await? else {
            return Ok(Self::Nothing);
        };
        let said = launch.command.get(1..).unwrap_or_default();
        let transcript = conversation.transcript.as_deref();
        let is_gone = transcript.is_some_and(|path| !Path::new(path).is_file());
        if conversation.harness != launch.harness {
            return Ok(Self::Impossible("it belongs to a different harness"));
        }
        if Path::new(&conversation.cwd) != launch.cwd {
            return Ok(Self::Impossible("it was in a different directory"));
        }
        if is_gone {
            return Ok(Self::Impossible("its transcript no longer exists"));
        }
        if !orders.harness.start.is_for(said) {
            return Ok(Self::Nothing);
        }
        Ok(match resume.args(said, &conversation.id) {
            Some(args) => Self::Resumes { conversation, args },
            None => Self::Impossible("its id contains invalid characters"),
        })
    }

    pub(super) fn conversation(&self) -> Option<&Conversation> {
        match self {
            Self::Resumes { conversation, .. } => Some(conversation),
            Self::Nothing | Self::Impossible(_) => None,
        }
    }

    pub(super) fn args(&self) -> Option<&[String]> {
        match self {
            Self::Resumes { args, .. } => Some(args),
            Self::Nothing | Self::Impossible(_) => None,
        }
    }

    pub(super) fn note(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Impossible(why) => Some(format!(
                "cannot resume the last conversation: {why}; starting a new one"
            )),
            Self::Resumes { conversation, .. } => {
                let id = posthaste_core::text::one_line(&conversation.id, 40);
                Some(format!("resuming conversation {id}"))
            }
        }
    }
}
