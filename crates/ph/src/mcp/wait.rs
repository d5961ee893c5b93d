//! `wait_for_message`: lists the mail, then sleeps until the bell rings. A wait uses no processor time and
//! blocks no other call.

use super::mail::{self, ShownMessage};
use super::tool::{Given, USUAL_WAIT};
use super::{Reply, server};
use crate::context::{Context, GlobalOptions, agent_name};
use posthaste_core::{AgentName, IdPrefix};
use posthaste_store::bell::{BELL_CHECK_INTERVAL, Watch};
use posthaste_store::report::{Report, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A filter for the awaited message.
#[derive(Debug, Clone, Default)]
struct Wanted {
    from: Option<AgentName>,
    /// The whole id.
    reply_to: Option<String>,
}

impl Wanted {
    fn of(context: &Context, given: &Given) -> Result<Self> {
        let from = given.text("from").map(agent_name).transpose()?;
        let reply_to = given.text("reply_to").map(|said| whole(context, said));
        Ok(Self {
            from,
            reply_to: reply_to.transpose()?,
        })
    }

    fn fits(&self, state: &ShownMessage) -> bool {
        let is_from = |name: &AgentName| state.from == name.as_str();
        self.from.as_ref().is_none_or(is_from)
            && (self.reply_to.is_none() || state.reply_to == self.reply_to)
    }
}

/// Return the whole id of `reply_to`. If a script keeps the mail, only whole ids work.
fn whole(context: &Context, said: &str) -> Result<String> {
    if context.config.mail.script()?.is_some() {
        return Ok(said.to_owned());
    }
    let prefix = IdPrefix::parse(said).map_err(|error| {
        Report::usage(format!(
            "'reply_to' is not the ID of a message from you: {error}"
        ))
        .hint("use an ID that send_message has returned")
    })?;
    let mut journal = context.reader()?;
    let state = context.find(journal.as_mut(), &prefix)?;
    Ok(state.message.id.to_string())
}

/// Wait for unread mail of `me` until the given timeout.
pub(super) async fn wait(said: &Arc<GlobalOptions>, given: Given, me: AgentName) -> Result<Reply> {
    let seconds = given.number("timeout_seconds").unwrap_or(USUAL_WAIT);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    // One pending ring is enough.
    let rung = Arc::new(Notify::new());
    let (wanted, _watch) = server::on_a_thread({
        let (said, rung) = (said.clone(), rung.clone());
        move || {
            let context = Context::new(&said)?;
            let wanted = Wanted::of(&context, &given)?;
            // A missing home is created, because the bell is in it.
            drop(context.journal()?);
            let watch = Watch::on(&context.home, Some(&me), move || rung.notify_one())?;
            Ok((wanted, watch))
        }
    })
    .await?;
    loop {
        let messages = server::on_a_thread({
            let said = said.clone();
            move || mail::unread(&said)
        })
        .await?;
        let found: Vec<_> = messages.into_iter().filter(|l| wanted.fits(l)).collect();
        if !found.is_empty() {
            return Ok(mail::listed(&found));
        }
        if Instant::now() >= deadline {
            return Ok(format!("No message within {seconds} s").into());
        }
        // The interval covers a writer that was killed before it rang, and a script, which cannot ring.
        let tick = (Instant::now() + BELL_CHECK_INTERVAL).min(deadline);
        let _ = timeout_at(tick, rung.notified()).await;
    }
}
