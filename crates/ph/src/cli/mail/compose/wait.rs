//! Waits until messages reach a state. Reads the journal only after the bell has rung.

use crate::context::Context;
use crate::output::letters;
use crate::output::note;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::{SignedDuration, Timestamp};
use posthaste_client::mailbox;
use posthaste_core::goal::{Goal, Progress};
use posthaste_core::{AgentName, Letter, MessageId};
use posthaste_store::Journal;
use posthaste_store::bell::{Ear, TICK};
use posthaste_store::report::{Code, Result};
use posthaste_store::times::{self, parse_duration};
use posthaste_wire as wire;
use serde::Serialize;
use std::time::{Duration, Instant};

#[derive(Debug, Default, clap::Args)]
pub(crate) struct WaitArgs {
    /// Wait until the message is offered, accepted or read; exit with 1 if that state is not
    /// reached
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
    let ear = match sent {
        [(_, to)] => Ear::on(&context.home, Some(to))?,
        _ => Ear::on(&context.home, None)?,
    };
    let mut journal = context.journal()?;
    let letters = loop {
        let letters = load(&mut journal, sent)?;
        context.now = times::now();
        let is_open = |letter: &&Letter| progress(wait, letter, context.now) == Progress::NotYet;
        let next = letters.iter().filter(is_open).filter_map(expiry).min();
        let is_done = letters.iter().find(is_open).is_none();
        let left = match wait.deadline {
            Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            None => TICK,
        };
        if is_done || left.is_zero() {
            break letters;
        }
        let runs_out = next.and_then(|at| Duration::try_from(at.duration_since(context.now)).ok());
        let patience = runs_out.unwrap_or(TICK).min(left).min(TICK);
        ear.wait(patience.max(Duration::from_millis(1)));
    };
    tell(context, wait, &letters, is_list)
}

fn load(journal: &mut Journal, sent: &[(MessageId, AgentName)]) -> Result<Vec<Letter>> {
    let mut letters = Vec::with_capacity(sent.len());
    for (id, _) in sent {
        let letter = journal.letter(*id)?;
        letters.extend(letter);
    }
    Ok(letters)
}

fn progress(wait: Wait, letter: &Letter, now: Timestamp) -> Progress {
    wait.goal.progress(&letter.message, letter.standing, now)
}

fn expiry(letter: &Letter) -> Option<Timestamp> {
    letter.message.envelope.expires_at
}

fn tell(context: &mut Context, wait: Wait, letters: &[Letter], is_list: bool) -> Result<Code> {
    let goal = wait.goal;
    let (mut told, mut is_reached) = (Vec::new(), true);
    for letter in letters {
        let progress = progress(wait, letter, context.now);
        let why = mailbox::why(&context.home, context.config.patience, context.now, letter);
        let id8 = letter.message.id.id8();
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
            let body = letters::text_or_loss(&context.home, letter)?;
            let mut message = wire::Message::new(letter, body, context.now);
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
