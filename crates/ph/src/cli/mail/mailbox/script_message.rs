//! One message that a script keeps: its content, its thread, and a reply to it.

use super::local_copies::{Copies, apply_order};
use super::send;
use super::{MailboxEntry, Marking};
use crate::cli::prelude::*;
use posthaste_core::{MessageState, Order};
use posthaste_provider::error::ScriptError;
use posthaste_provider::script::Script;
use posthaste_wire::provider::{Message, Text};

#[derive(Debug)]
pub(crate) struct ScriptMessage<'a> {
    pub(super) script: &'a Script,
    /// The script's id.
    pub(super) id: String,
    /// The message, if the script was asked for it already.
    got: Option<Message>,
    /// Our copy, if the message was named by our id.
    pub(super) copy: Option<Box<MessageState>>,
}

impl<'a> ScriptMessage<'a> {
    pub(super) fn new(
        script: &'a Script,
        id: String,
        got: Option<Message>,
        copy: Option<Box<MessageState>>,
    ) -> Self {
        Self {
            script,
            id,
            got,
            copy,
        }
    }

    pub(super) fn get(&mut self) -> std::result::Result<Message, ScriptError> {
        match self.got.take() {
            Some(message) => Ok(message),
            None => self.script.get(&self.id),
        }
    }

    pub(crate) fn entry(mut self, context: &Context) -> Result<MailboxEntry> {
        let message = self.get()?;
        Ok(Copies::open(context, self.script).entry(message))
    }

    /// Return the message as it is after this reading, and whether to mark it.
    pub(crate) fn open(&mut self, context: &Context) -> Result<(Message, Marking)> {
        let (me, _) = context.me()?;
        match self.get() {
            Ok(message) if !me.is_human() && message.to != me.as_str() => {
                Ok((message, Marking::NotMine))
            }
            Ok(message) => Ok((
                Message {
                    read: true,
                    ..message
                },
                Marking::Due,
            )),
            // Without 'get' a message can only be read, which marks it.
            Err(error) if error.is_unknown_op() => Ok((self.mark_read(context)?, Marking::Done)),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn mark_read(&self, context: &Context) -> Result<Message> {
        let message = self.script.read(&self.id)?;
        let copy = self.copy.clone();
        let find = || Copies::open(context, self.script).find(&message);
        let copy = copy.or_else(|| find().map(Box::new));
        if let Some(state) = copy {
            apply_order(context, &state, Order::MarkRead);
        }
        Ok(message)
    }

    pub(super) fn thread(mut self, context: &Context) -> Result<Vec<MailboxEntry>> {
        // Some scripts find a thread only by the thread's id.
        let thread = match self.get() {
            Ok(message) if !message.thread_id.is_empty() => message.thread_id,
            Ok(message) => message.id,
            Err(error) if error.is_unknown_op() => self.id,
            Err(error) => return Err(error.into()),
        };
        let messages = self.script.thread(&thread)?;
        Ok(Copies::open(context, self.script).entries(messages))
    }

    pub(crate) fn reply(mut self, context: &Context, text: &Text) -> Result<Message> {
        // The parent tells to whom the reply must go. A script that does not have the message
        // refuses the reply itself.
        let parent = match self.get() {
            Ok(message) => Some(message),
            Err(error) if error.is_unknown_op() || error.is_not_found() => None,
            Err(error) => return Err(error.into()),
        };
        let sent = self.script.reply(&self.id, text, parent.as_ref());
        let sent = sent.map_err(|error| {
            let is_denial = error.is_denial();
            let report = Report::from(error);
            match is_denial {
                true => report,
                false => report.after("it is not known whether it was sent:"),
            }
        })?;
        send::wake(context, &sent.to);
        Ok(sent)
    }
}
