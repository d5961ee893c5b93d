//! `wait_for_message`: looks, then sleeps until the bell rings, so that a wait costs nothing and
//! keeps no other call from its answer.

use super::mail::{self, Letter};
use super::tool::{Given, USUAL_WAIT};
use super::{Reply, server};
use crate::context::{Context, Said, agent_name};
use crate::report::{Report, Result};
use posthaste_core::{AgentName, IdPrefix, MessageId};
use posthaste_store::bell::{TICK, Watch};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Which message is waited for.
#[derive(Debug, Clone, Default)]
struct Wanted {
    from: Option<AgentName>,
    reply_to: Option<IdPrefix>,
}

impl Wanted {
    fn of(given: &Given) -> Result<Self> {
        let from = given.text("from").map(agent_name).transpose()?;
        let reply_to = given.text("reply_to").map(IdPrefix::parse).transpose();
        let reply_to = reply_to.map_err(|error| {
            Report::usage(format!("'reply_to' is no message of yours: {error}"))
                .hint("send_message has told its id")
        })?;
        Ok(Self { from, reply_to })
    }

    fn fits(&self, letter: &Letter) -> bool {
        let is_from = self
            .from
            .as_ref()
            .is_none_or(|name| letter.from == name.as_str());
        let parent = letter
            .reply_to
            .as_ref()
            .and_then(|id| id.parse::<MessageId>().ok());
        let is_reply = self
            .reply_to
            .as_ref()
            .is_none_or(|wanted| parent.is_some_and(|parent| wanted.fits(parent)));
        is_from && is_reply
    }
}

/// Waits for unread mail of `me`, at most for as long as was said.
pub(super) async fn wait(said: &Arc<Said>, given: &Given, me: AgentName) -> Result<Reply> {
    let wanted = Wanted::of(given)?;
    let seconds = given.number("timeout_seconds").unwrap_or(USUAL_WAIT);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    // One ring not yet heard is as good as many.
    let rung = Arc::new(Notify::new());
    let _watch = server::on_a_thread({
        let (said, rung) = (said.clone(), rung.clone());
        move || {
            let context = Context::new(&said)?;
            // The home is made where it is not there: there must be a bell to listen to.
            drop(context.journal()?);
            Ok(Watch::on(&context.home, Some(&me), move || {
                rung.notify_one();
            })?)
        }
    })
    .await?;
    loop {
        let letters = server::on_a_thread({
            let said = said.clone();
            move || mail::unread(&said)
        })
        .await?;
        let found: Vec<_> = letters.into_iter().filter(|l| wanted.fits(l)).collect();
        if !found.is_empty() {
            return Ok(mail::listed(&found));
        }
        if Instant::now() >= deadline {
            return Ok(format!("No message within {seconds} s").into());
        }
        // The tick covers a writer that was killed before it rang, and a script that cannot ring.
        let tick = (Instant::now() + TICK).min(deadline);
        let _ = timeout_at(tick, rung.notified()).await;
    }
}
