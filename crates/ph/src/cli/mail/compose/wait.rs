//! Waits until messages reach a state. Reads the journal only after the bell has rung.

use crate::cli::times::parse_duration;
use crate::context::Context;
use crate::output::message_text;
use crate::output::note;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::{SignedDuration, Timestamp};
use posthaste_client::mail;
use posthaste_core::goal::{Goal, Progress};
use posthaste_core::{AgentName, MessageId, MessageState};
use posthaste_store::Journal;
use posthaste_store::bell::{BELL_CHECK_INTERVAL, BellListener};
use posthaste_store::report::{Code, Result};
use posthaste_store::times;
use posthaste_wire as wire;
use serde::Serialize;
use std::time::{Duration, Instant};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct WaitArgs {
    /// Wait until the message is offered, accepted or read; exits with 1 if that state is not
    /// reached in time
    #[arg(long, value_name = "RECEIPT", value_parser = goal(), hide_possible_values = true)]
    wait: Option<Goal>,
    /// Maximum time to wait [default: no limit]
    #[arg(long, value_name = "D", requires = "wait", value_parser = parse_duration)]
    timeout: Option<SignedDuration>,
}

fn goal() -> impl TypedValueParser<Value = Goal> {
    PossibleValuesParser::new(Goal::ALL.map(Goal::as_str)).try_map(|said| said.parse::<Goal>())
}

impl WaitArgs {
    /// Return the state to wait for and the deadline, counted from now.
    pub(crate) fn begin(&self) -> Option<Wait> {
        let timeout = self.timeout.and_then(|d| Duration::try_from(d).ok());
        Some(Wait {
            goal: self.wait?,
            // A timeout that is out of range means no deadline.
            deadline: timeout.and_then(|d| Instant::now().checked_add(d)),
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    goal: Goal,
    deadline: Option<Instant>,
}

/// A message and its state after the wait.
#[derive(Debug, Serialize)]
struct Waited {
    #[serde(flatten)]
    message: wire::Message,
    reached: bool,
}

/// Wait for all messages, and print those that did not reach the state. With JSON, this prints
/// the messages.
pub(crate) fn until(
    context: &mut Context,
    wait: Wait,
    sent: &[(MessageId, AgentName)],
    is_list: bool,
) -> Result<Code> {
    let listener = match sent {
        [(_, to)] => BellListener::on(&context.home, Some(to))?,
        _ => BellListener::on(&context.home, None)?,
    };
    let mut journal = context.journal()?;
    let messages = loop {
        let messages = load(&mut journal, sent)?;
        context.now = times::now();
        let is_open = |message_state: &&MessageState| {
            progress(wait, message_state, context.now) == Progress::NotYet
        };
        let next = messages.iter().filter(is_open).filter_map(expiry).min();
        let is_done = messages.iter().find(is_open).is_none();
        let left = match wait.deadline {
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => BELL_CHECK_INTERVAL,
        };
        if is_done || left.is_zero() {
            break messages;
        }
        let runs_out = next.and_then(|at| Duration::try_from(at.duration_since(context.now)).ok());
        let patience = runs_out
            .unwrap_or(BELL_CHECK_INTERVAL)
            .min(left)
            .min(BELL_CHECK_INTERVAL);
        listener.wait(patience.max(Duration::from_millis(1)));
    };
    tell(context, wait, &messages, is_list)
}

fn load(journal: &mut Journal, sent: &[(MessageId, AgentName)]) -> Result<Vec<MessageState>> {
    let mut messages = Vec::with_capacity(sent.len());
    for (id, _) in sent {
        let message_state = journal.state(*id)?;
        messages.extend(message_state);
    }
    Ok(messages)
}

fn progress(wait: Wait, message_state: &MessageState, now: Timestamp) -> Progress {
    wait.goal
        .progress(&message_state.message, message_state.status, now)
}

fn expiry(message_state: &MessageState) -> Option<Timestamp> {
    message_state.message.envelope.expires_at
}

fn tell(
    context: &mut Context,
    wait: Wait,
    messages: &[MessageState],
    is_list: bool,
) -> Result<Code> {
    let goal = wait.goal;
    let (mut told, mut is_reached) = (Vec::new(), true);
    for message_state in messages {
        let progress = progress(wait, message_state, context.now);
        let why = mail::why(
            &context.home,
            context.config.patience,
            context.now,
            message_state,
        );
        let id8 = message_state.message.id.id8();
        match progress {
            Progress::Reached => {}
            Progress::Never => note(format!("{id8} will not be {goal}: it is {}", why.receipt)),
            Progress::NotYet => note(format!("{id8} is not {goal} yet: it is {}", why.receipt)),
        }
        let reached = progress == Progress::Reached;
        if let (false, Some(reason)) = (reached, &why.reason) {
            note(format!("why: {reason}"));
        }
        is_reached &= reached;
        if context.json {
            let body = message_text::text_or_loss(&context.home, message_state)?;
            let mut message = wire::Message::new(message_state, body, context.now);
            message.reason = why.reason;
            told.push(Waited { message, reached });
        }
    }
    if context.json {
        match told.as_slice() {
            [one] if !is_list => context.out.json(one)?,
            several => context.out.json(&several)?,
        }
    }
    Ok(if is_reached { Code::Ok } else { Code::No })
}
