//! `wait_for_message`: lists the mail, then sleeps until the bell rings. A wait uses no processor
//! time and blocks no other call.

use super::mail::{self, ShownMessage};
use super::tool::WaitForMessage;
use super::{ToolReply, server};
use crate::context::{Context, GlobalOptions, agent_name};
use posthaste_core::{AgentName, IdPrefix};
use posthaste_store::bell::{BELL_CHECK_INTERVAL, Watch};
use posthaste_store::report::{Report, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Time that a call waits by default.
const DEFAULT_WAIT_SECONDS: u64 = 30;

/// A filter for the awaited message.
#[derive(Debug, Clone, Default)]
struct WaitFilter {
    from: Option<AgentName>,
    /// The whole id.
    reply_to: Option<String>,
}

impl WaitFilter {
    fn new(context: &Context, arguments: &WaitForMessage) -> Result<Self> {
        let WaitForMessage { from, reply_to, .. } = arguments;
        let reply_to = reply_to.as_deref().map(|id| whole_id(context, id));
        Ok(Self {
            from: from.as_deref().map(agent_name).transpose()?,
            reply_to: reply_to.transpose()?,
        })
    }

    fn fits(&self, state: &ShownMessage) -> bool {
        let is_from = |name: &AgentName| state.from == name.as_str();
        self.from.as_ref().is_none_or(is_from)
            && (self.reply_to.is_none() || state.reply_to == self.reply_to)
    }
}

/// Return the whole id for an id prefix. If a script keeps the mail, only whole ids work.
fn whole_id(context: &Context, id: &str) -> Result<String> {
    if context.config.mail.script()?.is_some() {
        return Ok(id.to_owned());
    }
    let prefix = IdPrefix::parse(id).map_err(|error| {
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
pub(super) async fn wait(
    options: &Arc<GlobalOptions>,
    arguments: WaitForMessage,
    me: AgentName,
) -> Result<ToolReply> {
    let seconds = arguments
        .timeout_seconds
        .map_or(DEFAULT_WAIT_SECONDS, |seconds| seconds.0);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    // One pending ring is enough.
    let rung = Arc::new(Notify::new());
    let (wanted, _watch) = server::on_a_thread({
        let (options, rung) = (options.clone(), rung.clone());
        move || {
            let context = Context::new(&options)?;
            let wanted = WaitFilter::new(&context, &arguments)?;
            // A missing home is created, because the bell is in it.
            drop(context.journal()?);
            let watch = Watch::on(&context.home, Some(&me), move || rung.notify_one())?;
            Ok((wanted, watch))
        }
    })
    .await?;
    loop {
        let messages = server::on_a_thread({
            let options = options.clone();
            move || mail::unread(&options)
        })
        .await?;
        let found: Vec<_> = messages.into_iter().filter(|l| wanted.fits(l)).collect();
        if !found.is_empty() {
            return Ok(mail::listed(&found));
        }
        if Instant::now() >= deadline {
            return Ok(format!("No message within {seconds} s").into());
        }
        // The interval covers a writer that was killed before it rang, and a script, which cannot
        // ring.
        let tick = (Instant::now() + BELL_CHECK_INTERVAL).min(deadline);
        let _ = timeout_at(tick, rung.notified()).await;
    }
}
