//! Storing messages.

use super::{Decided, Denied, Operation};
use crate::error::Result;
use crate::files::{self, Prewrite, StoredBodies};
use crate::home::Home;
use crate::journal::transaction::Transaction;
use crate::views::marks::{MarkKind, sender_recipient_and_key};
use jiff::Timestamp;
use posthaste_core::post::{self, Correspondence};
use posthaste_core::{
    AgentName, Draft, Event, Fact, MessageState, MessageStatus, Posting, Refusal,
};

/// Store messages.
#[derive(Debug, Clone)]
pub struct Post {
    pub now: Timestamp,
    pub drafts: Vec<Draft>,
}

#[derive(Debug, Clone)]
pub struct Posted {
    pub state: MessageState,
    /// False if the journal already had the message.
    pub is_new: bool,
    /// Why the message's file could not be written. The message is stored, and its file is made
    /// when it is asked for.
    pub unfiled: Option<String>,
}

impl Operation for Post {
    type Output = Vec<Posted>;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Vec<Posted>>> {
        tx.undo_if_denied(self.drafts.len(), |tx| {
            let each = self.drafts.iter().map(|draft| tx.post(self.now, draft));
            each.collect()
        })
    }

    fn prewrite(&self, home: &Home) -> Prewrite {
        Prewrite::new(home, &self.drafts)
    }

    fn store_bodies(&mut self, home: &Home) -> Result<StoredBodies> {
        files::store_bodies(home, self.now, &mut self.drafts)
    }

    fn settle_files(
        &self,
        home: &Home,
        bodies: &StoredBodies,
        prewrite: &Prewrite,
        decided: &mut Decided<Vec<Posted>>,
    ) {
        match decided {
            Ok(posted) => {
                for (draft, posted) in posted.iter_mut().enumerate() {
                    files::settle_posted(home, bodies, prewrite, draft, posted);
                }
            }
            Err(_) => bodies.remove(),
        }
    }
}

impl Transaction<'_> {
    fn post(&mut self, now: Timestamp, draft: &Draft) -> rusqlite::Result<Decided<Posted>> {
        let mut known = match self.correspondence(now, draft)? {
            Ok(known) => known,
            Err(denied) => return Ok(Err(denied)),
        };
        // Ids are random, so a taken id is detected by the insert that fails.
        loop {
            let (event, also) = match post::decide(now, draft, &known) {
                Ok(Posting::New { envelope, also }) => (Event::Message(*envelope), also),
                Ok(Posting::Already(id)) => {
                    let stored = self.views.message(id)?;
                    return Ok(posted(stored, false).ok_or(Denied::NotFound(id)));
                }
                Err(refusal) => return Ok(Err(Denied::Refused { id: None, refusal })),
            };
            let fact = Fact {
                id: draft.id.0,
                at: now,
                agent: draft.to.clone(),
                event,
            };
            match self.append(&fact) {
                Ok(()) => {
                    let stored = self.complete_post(now, draft, &fact, also)?;
                    return Ok(posted(stored, true).ok_or(Denied::NotFound(draft.id)));
                }
                Err(error) if is_id_taken(&error) && known.same_id.is_none() => {}
                Err(error) => return Err(error),
            }
            match self.views.message(draft.id)? {
                Some(stored) => known.same_id = Some(stored.message),
                // Another kind of fact has the id, or a message that this version cannot read.
                None => {
                    let refusal = Refusal::IdTaken;
                    return Ok(Err(Denied::Refused { id: None, refusal }));
                }
            }
        }
    }

    /// Append what follows from a message that was just stored, and return its state.
    fn complete_post(
        &mut self,
        now: Timestamp,
        draft: &Draft,
        fact: &Fact,
        also: Vec<(AgentName, Event)>,
    ) -> rusqlite::Result<Option<MessageState>> {
        let is_unchanged = also.is_empty();
        for (agent, event) in also {
            self.append_events(now, &agent, vec![event])?;
        }
        // A sender that sets an expiry has probably set others: record those that have expired.
        if draft.ttl.is_some() {
            self.record_expired(now, &draft.to)?;
        }
        if !is_unchanged {
            return self.views.message(draft.id);
        }
        Ok(fact.message().map(|message| MessageState {
            message,
            status: MessageStatus::default(),
            receipts: fact.receipt().into_iter().collect(),
        }))
    }

    /// Look up what the core has to know to decide about a draft.
    fn correspondence(
        &self,
        now: Timestamp,
        draft: &Draft,
    ) -> rusqlite::Result<Decided<Correspondence>> {
        let mut known = Correspondence::default();
        for (id, found) in [
            (draft.reply_to, &mut known.parent),
            (draft.closes, &mut known.closed),
        ] {
            let Some(id) = id else { continue };
            *found = self.views.message(id)?;
            if found.is_none() {
                return Ok(Err(Denied::NotFound(id)));
            }
        }
        if !draft.from.is_human() {
            let (from, to, most) = (&draft.from, &draft.to, draft.limits.rate);
            known.given = self.views.shown_last(from)?;
            if most < u32::MAX {
                known.recent = self.views.sent_in_last_minute(from, to, now, most)?;
            }
        }
        if let Some(answer) = &draft.answers {
            known.ask = self.views.ask(answer.ask)?;
            let claim = known.ask.as_ref().and_then(|ask| ask.claim.as_ref());
            known.rival = match claim {
                Some(claim) => self.views.message(claim.message)?,
                None => None,
            };
        }
        if let Some(key) = &draft.key {
            let owner = sender_recipient_and_key(draft.from.as_str(), draft.to.as_str(), key);
            if let Some(last) = self.views.last_marked(MarkKind::Key, &owner)? {
                known.same_key = self.views.message_at(last)?;
            }
            // Nothing will be inserted that could fail because the id is taken.
            if known.same_key.is_some() {
                let stored = self.views.message(draft.id)?;
                known.same_id = stored.map(|stored| stored.message);
            }
        }
        Ok(Ok(known))
    }
}

fn posted(message_state: Option<MessageState>, is_new: bool) -> Option<Posted> {
    message_state.map(|message_state| Posted {
        state: message_state,
        is_new,
        unfiled: None,
    })
}

fn is_id_taken(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}
